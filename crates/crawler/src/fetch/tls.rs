//! The settings of TLS: which certificates are trusted, and how many sessions are kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// The servers whose sessions are kept for resumption (RFC 8446, section 2.2), at most. A server has some kilobytes, with its certificates.
const MOST_SERVERS: u64 = 2048;
/// If the memory has a bound, sessions of one server are kept for each MiB of it.
const MEMORY_PER_SERVER: u64 = 1 << 20;
/// The number of sessions that rustls keeps of each server.
const SESSIONS_PER_SERVER: u64 = 8;

/// Makes the settings of TLS for a crawl whose memory has this bound, and which trusts whom the system trusts, or everybody.
///
/// # Errors
///
/// When the certificates of the system cannot be read, but are needed from the start.
pub(super) fn config(trusts_all: bool, needed_now: bool, max_memory: Option<u64>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let trust = Trust {
        trusts_all,
        provider,
        system: OnceLock::new(),
        has_logged: AtomicBool::new(false),
    };
    if needed_now && !trusts_all {
        trust.system()?;
    }
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust))
        .with_no_client_auth();
    let servers = max_memory.map_or(MOST_SERVERS, |bytes| MOST_SERVERS.min(bytes / MEMORY_PER_SERVER));
    let sessions = usize::try_from(servers * SESSIONS_PER_SERVER).unwrap_or(usize::MAX);
    config.resumption = Resumption::in_memory_sessions(sessions);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Trusts whom the system trusts, or everybody. The certificates of the system are read once, when the first server shows its own: where they are
/// files, that takes longer than a hundred pages over http.
#[derive(Debug)]
struct Trust {
    /// Accepts certificates that cannot be parsed, too: such are the ones of old devices.
    trusts_all: bool,
    provider: Arc<CryptoProvider>,
    /// Only once they could be read: at the limit of open files they cannot, but later.
    system: OnceLock<Verifier>,
    has_logged: AtomicBool,
}

impl Trust {
    fn system(&self) -> Result<&Verifier, Error> {
        if let Some(verifier) = self.system.get() {
            return Ok(verifier);
        }
        let read = Verifier::new(Arc::clone(&self.provider)).inspect_err(|why| {
            if !self.has_logged.swap(true, Ordering::Relaxed) {
                log::warn!(
                    target: "crawler::fetch",
                    "no https page can be fetched: {why}; install the certificates of your system (ca-certificates), or name them in \
                     SSL_CERT_FILE"
                );
            }
        })?;
        Ok(self.system.get_or_init(|| read))
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.trusts_all {
            return Ok(ServerCertVerified::assertion());
        }
        let system = self.system()?;
        system.verify_server_cert(certificate, intermediates, server, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.trusts_all {
            return Ok(HandshakeSignatureValid::assertion());
        }
        self.system()?.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.trusts_all {
            return Ok(HandshakeSignatureValid::assertion());
        }
        self.system()?.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
