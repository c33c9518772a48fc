//! A server over TLS with a certificate that no authority signed.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::server::html;

/// Returns the server side of TLS connections with a self-signed certificate.
pub(crate) fn self_signed() -> TlsAcceptor {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate = CertificateDer::from(include_bytes!("../data/tls/self_signed.der").as_slice());
    let key = PrivatePkcs8KeyDer::from(include_bytes!("../data/tls/self_signed_key.der").as_slice());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::from(key))
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Starts a server of one page with a self-signed certificate. Returns the URL of the page.
pub(crate) async fn start_self_signed() -> String {
    let acceptor = self_signed();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("https://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let _ = stream.read(&mut [0; 4096]).await;
                    let _ = stream.write_all(&html("ok")).await;
                    let _ = stream.shutdown().await;
                }
            });
        }
    });
    url
}
