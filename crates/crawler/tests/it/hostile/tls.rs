//! A server over TLS with a certificate that no authority signed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{HandshakeKind, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::server::html;

/// Returns the server side of TLS connections with a self-signed certificate.
pub(crate) fn self_signed() -> TlsAcceptor {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate = CertificateDer::from(include_bytes!("../../data/tls/self_signed.der").as_slice());
    let key = PrivatePkcs8KeyDer::from(include_bytes!("../../data/tls/self_signed_key.der").as_slice());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::from(key))
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Starts a server of one page with a self-signed certificate. Returns the URL of the page.
pub(crate) async fn start_self_signed() -> String {
    let (port, _) = start_counting().await;
    format!("https://127.0.0.1:{port}/")
}

/// Starts a server with a self-signed certificate that closes each connection after its answer without an alert (`close_notify`). Returns its
/// port, and the requests that it has received.
pub(crate) async fn start_without_alerts(
    answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
) -> (u16, Arc<Mutex<Vec<String>>>) {
    let acceptor = self_signed();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (answer, received) = (Arc::new(answer), Arc::clone(&requests));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, answer, received) = (acceptor.clone(), Arc::clone(&answer), Arc::clone(&received));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(byte);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let answer = answer(&target);
                received.lock().unwrap().push(target);
                let _ = stream.write_all(&answer).await;
                let _ = stream.flush().await;
                // The socket is closed, which TLS does not notice.
                let _ = stream.get_mut().0.shutdown().await;
            });
        }
    });
    (port, requests)
}

/// The number of handshakes, by their kind.
#[derive(Debug, Default)]
pub(crate) struct Handshakes {
    pub(crate) full: AtomicUsize,
    pub(crate) resumed: AtomicUsize,
}

/// Starts a server of one page with a self-signed certificate, which closes each connection. Returns its port, and the handshakes it has made.
pub(crate) async fn start_counting() -> (u16, Arc<Handshakes>) {
    let acceptor = self_signed();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let handshakes = Arc::new(Handshakes::default());
    let counted = Arc::clone(&handshakes);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, counted) = (acceptor.clone(), Arc::clone(&counted));
            tokio::spawn(async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let is_resumed = stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed);
                    let count = if is_resumed { &counted.resumed } else { &counted.full };
                    count.fetch_add(1, Ordering::Relaxed);
                    let _ = stream.read(&mut [0; 4096]).await;
                    let _ = stream.write_all(&html("ok")).await;
                    let _ = stream.shutdown().await;
                }
            });
        }
    });
    (port, handshakes)
}
