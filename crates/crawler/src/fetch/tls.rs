//! The settings of TLS: which certificates are trusted, and how many sessions are kept.

use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
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
    let system = if trusts_all {
        Ok(Arc::new(Unchecked { provider }) as Arc<dyn ServerCertVerifier>)
    } else {
        system_verifier(provider)
    };
    let mut config = match system {
        Ok(verifier) => builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth(),
        Err(why) if needed_now => return Err(why),
        Err(why) => {
            log::warn!(
                target: "crawler::fetch",
                "no https page can be fetched: {why}; install the certificates of your system (ca-certificates), or name them in SSL_CERT_FILE"
            );
            builder
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth()
        }
    };
    let servers = max_memory.map_or(MOST_SERVERS, |bytes| MOST_SERVERS.min(bytes / MEMORY_PER_SERVER));
    let sessions = usize::try_from(servers * SESSIONS_PER_SERVER).unwrap_or(usize::MAX);
    config.resumption = Resumption::in_memory_sessions(sessions);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Returns the verifier of the system. Where its certificates are files, they are read once.
fn system_verifier(provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    static VERIFIER: OnceLock<Arc<Verifier>> = OnceLock::new();
    if let Some(verifier) = VERIFIER.get() {
        return Ok(Arc::clone(verifier) as _);
    }
    let verifier = Arc::new(Verifier::new(provider)?);
    Ok(Arc::clone(VERIFIER.get_or_init(|| verifier)) as _)
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
