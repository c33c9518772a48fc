//! Which certificates are trusted: those that the system trusts, or all on request.
//!
//! Reading them takes as long as fetching some fifty pages. So it is done at the start only if a seed needs them, and else during the first
//! handshake.

use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::thread;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use super::error::is_lack_of_handles;
use super::sessions::Sessions;

/// Makes the settings of TLS.
///
/// # Errors
///
/// When the system's certificates cannot be read, if they are `needed_now`; else connections fail while they cannot.
pub(super) fn config(needed_now: bool, sessions: Sessions) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder();
    let trusted = Trusted {
        provider: Arc::clone(builder.crypto_provider()),
        certificates: Arc::default(),
    };
    // Without a file handle left, the first connection tries again.
    if needed_now
        && let Err(error) = trusted.verifier()
        && !is_lack_of_handles(&error)
    {
        return Err(error);
    }
    Ok(with_verifier(Arc::new(trusted), sessions))
}

/// Makes the settings of TLS that accept any certificate and any signature.
pub(super) fn config_without_checks(sessions: Sessions) -> ClientConfig {
    let provider = Arc::clone(ClientConfig::builder().crypto_provider());
    with_verifier(Arc::new(Unchecked { provider }), sessions)
}

fn with_verifier(verifier: Arc<dyn ServerCertVerifier>, sessions: Sessions) -> ClientConfig {
    let mut config = ClientConfig::builder()
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.resumption = Resumption::store(Arc::new(sessions));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
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

/// The system's verifier, once its certificates are read.
#[derive(Debug, Clone)]
struct Trusted {
    provider: Arc<CryptoProvider>,
    certificates: Arc<Certificates>,
}

/// The system's certificates, which are read when they are needed.
#[derive(Debug)]
struct Certificates {
    verifier: OnceLock<Arc<dyn ServerCertVerifier>>,
    /// Locked by the thread that reads. Whether reading has failed before.
    has_failed: Mutex<bool>,
    read_ahead: Once,
}

impl Default for Certificates {
    fn default() -> Self {
        Self {
            verifier: OnceLock::new(),
            has_failed: Mutex::new(false),
            read_ahead: Once::new(),
        }
    }
}

impl Trusted {
    /// Begins to read, unless that was done before. Whoever needs the certificates waits until they are there.
    fn read_ahead(&self) {
        self.certificates.read_ahead.call_once(|| {
            let reader = self.clone();
            let read = move || drop(reader.verifier().map(|_| ()));
            // If the system has no thread left, the connection itself reads them, when it verifies the server.
            drop(thread::Builder::new().name("certificates".to_owned()).spawn(read));
        });
    }

    /// Returns the verifier, and reads the certificates first if need be. If they cannot be read, the next connection tries again.
    fn verifier(&self) -> Result<&Arc<dyn ServerCertVerifier>, Error> {
        let read = &self.certificates.verifier;
        if let Some(verifier) = read.get() {
            return Ok(verifier);
        }
        let lock = self.certificates.has_failed.lock();
        let mut has_failed = lock.unwrap_or_else(PoisonError::into_inner);
        // Another thread may have read them meanwhile.
        if let Some(verifier) = read.get() {
            return Ok(verifier);
        }
        match of_the_system(Arc::clone(&self.provider)) {
            Ok(verifier) => Ok(read.get_or_init(|| verifier)),
            // Not for good: the page is requested again.
            Err(why) if is_lack_of_handles(&why) => Err(why),
            Err(why) => {
                if !std::mem::replace(&mut *has_failed, true) {
                    log::error!(
                        target: "crawler::fetch",
                        "no https page can be fetched: {why}; install the certificates of your system (ca-certificates), or name them in SSL_CERT_FILE"
                    );
                }
                Err(why)
            }
        }
    }
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        // This is asked for the first message of a handshake, so the certificates are read while the server answers.
        self.read_ahead();
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Reads the system's certificates.
///
/// # Errors
///
/// When there are none, or when no file handle was left for one of them: they are not used without it, or its sites would seem to have
/// certificates that nobody trusts.
#[cfg(all(unix, not(target_vendor = "apple"), not(target_os = "android")))]
fn of_the_system(provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    use rustls::client::WebPkiServerVerifier;
    use rustls::{OtherError, RootCertStore};
    use rustls_native_certs::{ErrorKind, load_native_certs};

    use super::error::is_out_of_handles;

    let found = load_native_certs();
    let mut first_error = None;
    for error in found.errors {
        log::info!(target: "crawler::fetch", "a certificate is left out: {error}");
        first_error.get_or_insert_with(|| error.to_string());
        if let ErrorKind::Io { inner, .. } = error.kind
            && is_out_of_handles(&inner)
        {
            return Err(Error::Other(OtherError(Arc::new(inner))));
        }
    }
    let mut trusted = RootCertStore::empty();
    trusted.add_parsable_certificates(found.certs);
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(trusted), provider).build();
    match verifier {
        Ok(verifier) => Ok(verifier),
        Err(_) => Err(Error::General(
            first_error.unwrap_or_else(|| "the system has no certificates".to_owned()),
        )),
    }
}

#[cfg(not(all(unix, not(target_vendor = "apple"), not(target_os = "android"))))]
fn of_the_system(provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    Ok(Arc::new(rustls_platform_verifier::Verifier::new(provider)?))
}
