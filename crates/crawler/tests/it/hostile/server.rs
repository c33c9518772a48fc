//! The server: raw TCP, one script per request, and a record of the requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::{Crawl, CrawlOptions, HttpOptions, Summary};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// One received request.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    /// The `Host` header with its port.
    pub(crate) host: String,
    pub(crate) target: String,
    /// With the names of headers in lower case.
    pub(crate) head: String,
    /// The head as it was received.
    pub(crate) bytes: Vec<u8>,
}

impl ReceivedRequest {
    /// Returns the label of the host before `localhost`: the name of the behaviour.
    pub(crate) fn name(&self) -> &str {
        let host = self.host.split(':').next().unwrap_or_default();
        host.rsplit('.').nth(1).unwrap_or_default()
    }

    fn read(bytes: &[u8]) -> Self {
        let head = String::from_utf8_lossy(bytes);
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let lower = |line: &str| match line.split_once(": ") {
            Some((name, value)) => format!("{}: {value}\n", name.to_lowercase()),
            None => format!("{line}\n"),
        };
        let head: String = head.lines().map(lower).collect();
        let host = head
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .unwrap_or_default();
        Self {
            host: host.to_owned(),
            target,
            head,
            bytes: bytes.to_owned(),
        }
    }
}

/// What happens to the connection after the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Close,
    Reset,
    /// Send nothing more until the client closes the connection.
    Hold,
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) first: Vec<u8>,
    /// A piece that is sent repeatedly, with a pause before each time.
    pub(crate) repeat: Option<(Vec<u8>, Duration)>,
    pub(crate) then: Then,
}

impl Script {
    pub(crate) fn say(first: impl Into<Vec<u8>>) -> Self {
        Self {
            first: first.into(),
            repeat: None,
            then: Then::Close,
        }
    }

    pub(crate) fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }

    pub(crate) fn for_ever(self, piece: impl Into<Vec<u8>>, pause: Duration) -> Self {
        Self {
            repeat: Some((piece.into(), pause)),
            ..self
        }
    }
}

/// A server that runs until the end of the test.
pub(crate) struct Server {
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl Server {
    /// Starts a server that answers every request with the script of the function.
    pub(crate) async fn start(answer: impl Fn(&ReceivedRequest) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (answer, record) = (Arc::new(answer), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, record) = (Arc::clone(&answer), Arc::clone(&record));
                tokio::spawn(async move {
                    // The client may close the connection early, so errors are ignored.
                    let _ = serve_connection(stream, answer.as_ref(), &record).await;
                });
            }
        });
        Self { port, requests }
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve_connection(
    mut stream: TcpStream,
    answer: &(impl Fn(&ReceivedRequest) -> Script + Send + Sync),
    record: &Mutex<Vec<ReceivedRequest>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        head.push(byte[0]);
    }
    let request = ReceivedRequest::read(&head);
    let script = answer(&request);
    record.lock().unwrap().push(request);
    stream.write_all(&script.first).await?;
    if let Some((piece, pause)) = &script.repeat {
        loop {
            if !pause.is_zero() {
                sleep(*pause).await;
            }
            stream.write_all(piece).await?;
        }
    }
    match script.then {
        Then::Close => stream.shutdown().await,
        Then::Reset => {
            // A reset drops unsent and unread data.
            stream.set_zero_linger()?;
            Ok(())
        }
        Then::Hold => {
            while stream.read(&mut [0; 64]).await? > 0 {}
            Ok(())
        }
    }
}

/// Returns an answer with a body and its length.
pub(crate) fn page(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let mut answer =
        format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// Returns an HTML page.
pub(crate) fn html(body: impl AsRef<[u8]>) -> Vec<u8> {
    page("200 OK", "Content-Type: text/html\r\n", body)
}

/// Returns a redirect.
pub(crate) fn redirect(location: &str) -> Vec<u8> {
    page("302 Found", &format!("Location: {location}\r\n"), "")
}

/// Runs a crawl to its end.
pub(crate) async fn crawl_over_http(options: CrawlOptions, http: HttpOptions) -> Summary {
    let crawl = Crawl::builder(options).unwrap().http(http).build().unwrap();
    crawl.run().await.unwrap()
}
