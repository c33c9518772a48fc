//! What the errors of an HTTP client are to a frontier: `FailureKind::of_error`, for callers with a fetcher of their own.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use frontier::FailureKind;

/// Answers one connection, then closes it. `None` never answers.
fn server(answer: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let _ = connection.read(&mut [0; 4096]);
        match answer {
            Some(answer) => connection.write_all(answer.as_bytes()).unwrap(),
            None => drop(connection.read(&mut [0; 4096])),
        }
    });
    address.to_string()
}

#[tokio::test]
async fn errors_of_an_http_client_have_their_kinds() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .timeout(Duration::from_millis(500))
        .build()
        .unwrap();
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let too_many = || format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(200)).leak() as &'static str;
    let cases = [
        (
            FailureKind::Connect,
            format!("http://{closed}/timeout-of-a-certificate"),
        ),
        (FailureKind::Unresolved, format!("http://{}.invalid/", "a".repeat(64))),
        (FailureKind::Broken, format!("http://{}/", server(Some("")))),
        (FailureKind::Timeout, format!("http://{}/", server(None))),
        (
            FailureKind::Malformed,
            format!("http://{}/", server(Some("220 mail ESMTP\r\n\r\n"))),
        ),
        (
            FailureKind::HeadTooLarge,
            format!("http://{}/", server(Some(too_many()))),
        ),
        (
            FailureKind::Tls,
            format!("https://{}/", server(Some("HTTP/1.1 400 Bad Request\r\n\r\n"))),
        ),
        (
            FailureKind::Incomplete,
            format!(
                "http://{}/",
                server(Some("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"))
            ),
        ),
    ];
    for (kind, url) in cases {
        let answer = async { client.get(&url).send().await?.bytes().await };
        let error = answer.await.unwrap_err();
        assert_eq!(FailureKind::of_error(&error), kind, "{url}: {error:?}");
    }
}
