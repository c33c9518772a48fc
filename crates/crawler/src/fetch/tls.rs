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
    let verifier: Arc<dyn ServerCertVerifier> = if trusts_all {
        Arc::new(Unchecked { provider })
    } else {
        let system = System {
            provider,
            verifier: OnceLock::new(),
            has_logged: AtomicBool::new(false),
        };
        if needed_now {
            system.verifier()?;
        }
        Arc::new(system)
    };
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    let servers = max_memory.map_or(MOST_SERVERS, |bytes| MOST_SERVERS.min(bytes / MEMORY_PER_SERVER));
    let sessions = usize::try_from(servers * SESSIONS_PER_SERVER).unwrap_or(usize::MAX);
    config.resumption = Resumption::in_memory_sessions(sessions);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Trusts whom the system trusts. Its certificates are read once, when the first server shows its own: where they are files, that takes
/// longer than a hundred pages over http.
#[derive(Debug)]
struct System {
    provider: Arc<CryptoProvider>,
    /// Only once they could be read: at the limit of open files they cannot, but later.
    verifier: OnceLock<Verifier>,
    has_logged: AtomicBool,
}

impl System {
    fn verifier(&self) -> Result<&Verifier, Error> {
        if let Some(verifier) = self.verifier.get() {
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
        Ok(self.verifier.get_or_init(|| read))
    }
}

impl ServerCertVerifier for System {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?
            .verify_server_cert(certificate, intermediates, server, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier()?.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Accepts everything, certificates that cannot be parsed included: such are the ones of old devices.
#[derive(Debug)]
struct Unchecked {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
