//! Serves the demo over HTTP/1.1 on loopback, and records the requests.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, LOCATION, RETRY_AFTER, USER_AGENT};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, http};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use super::html;
use super::page::{Address, Behaviour, Content, Host, Page};
use super::site::DemoSite;

/// The delay of the slow page.
const SLOW_DELAY: Duration = Duration::from_secs(1);
/// The pause after an error of `accept`, such as a lack of file handles. It prevents a busy loop.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);
/// The maximum number of recorded requests. Later ones are answered, but not recorded.
const MAX_RECORDS: usize = 100_000;

type Answer = http::Result<Response<Full<Bytes>>>;

/// The running server of the demo. Dropping it closes the port and all connections.
#[derive(Debug)]
pub struct DemoServer {
    site: Arc<DemoSite>,
    address: SocketAddr,
    records: Arc<Records>,
    accepting: JoinHandle<()>,
}

/// One answered request.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// The `Host` header in lower case, without the port; empty if there was none.
    pub host: String,
    /// The path and query of the request.
    pub path: String,
    /// When the server had read the head of the request.
    pub started: Instant,
    /// When the answer was ready to be sent.
    pub ended: Instant,
    /// The status of the answer.
    pub status: u16,
    /// The `User-Agent` header, unless it was missing or not text.
    pub user_agent: Option<String>,
}

#[derive(Debug, Default)]
struct Records {
    requests: Mutex<Vec<RequestRecord>>,
    /// The pages that have answered 503 once.
    unavailable_before: Mutex<BTreeSet<Address>>,
}

/// Serves the demo on 127.0.0.1, on a port that the system chooses, until the returned server is dropped.
///
/// # Errors
///
/// When no port can be opened on loopback.
pub async fn serve() -> io::Result<DemoServer> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let site = Arc::new(DemoSite::new(address.port()));
    let records = Arc::new(Records::default());
    let accepting = tokio::spawn(accept(listener, Arc::clone(&site), Arc::clone(&records)));
    Ok(DemoServer {
        site,
        address,
        records,
        accepting,
    })
}

impl DemoServer {
    /// Returns the site that is served.
    #[must_use]
    pub fn site(&self) -> &Arc<DemoSite> {
        &self.site
    }

    /// Returns the address of all hosts of the demo.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the answered requests, in the order of their answers; at most the first 100 000.
    #[must_use]
    pub fn requests(&self) -> Vec<RequestRecord> {
        locked(&self.records.requests).clone()
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Locks a mutex, also a poisoned one: a panic cannot leave its data inconsistent.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, site: Arc<DemoSite>, records: Arc<Records>) {
    // This task owns the connections, so they end with the server.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve_connection(stream, Arc::clone(&site), Arc::clone(&records)));
                }
                Err(_) => tokio::time::sleep(PAUSE_AFTER_ERROR).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, site: Arc<DemoSite>, records: Arc<Records>) {
    let service = service_fn(|request| respond(request, &site, &records));
    // A client may close its connection at any time, so errors are ignored.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(request: Request<Incoming>, site: &DemoSite, records: &Records) -> Answer {
    let started = Instant::now();
    let host = header(&request, HOST).unwrap_or_default();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let address = Host::from_header(&host).map(|host| Address {
        host,
        path: path.to_owned(),
    });
    let page = address.and_then(|address| site.page(&address).map(|page| (address, page)));
    let response = match page {
        Some((address, page)) => answer(site, &address, &page, records).await?,
        None => not_found()?,
    };
    records.note(RequestRecord {
        host: host.split(':').next().unwrap_or_default().to_ascii_lowercase(),
        path: path.to_owned(),
        started,
        ended: Instant::now(),
        status: response.status().as_u16(),
        user_agent: header(&request, USER_AGENT),
    });
    Ok(response)
}

async fn answer(site: &DemoSite, address: &Address, page: &Page, records: &Records) -> Answer {
    match page.behaviour {
        Behaviour::UnavailableOnce if records.is_first_request(address) => return unavailable(),
        Behaviour::Slow => tokio::time::sleep(SLOW_DELAY).await,
        Behaviour::Prompt | Behaviour::UnavailableOnce => {}
    }
    match &page.content {
        Content::Html(html) => ok(html.charset.content_type(), html::write(site, address, page, html)),
        Content::File { content_type, bytes } => ok(content_type, bytes.clone()),
        Content::Redirect(status) => redirect(*status, site, address, page),
    }
}

fn ok(content_type: &str, body: Vec<u8>) -> Answer {
    Response::builder()
        .header(CONTENT_TYPE, content_type)
        .body(Full::from(body))
}

fn redirect(status: StatusCode, site: &DemoSite, address: &Address, page: &Page) -> Answer {
    let response = Response::builder().status(status);
    let locations = page.links.iter().map(|link| html::location(site, address, link));
    locations
        .fold(response, |response, location| response.header(LOCATION, location))
        .body(Full::default())
}

fn unavailable() -> Answer {
    Response::builder()
        .status(StatusCode::SERVICE_UNAVAILABLE)
        .header(RETRY_AFTER, "0")
        .body(Full::default())
}

fn not_found() -> Answer {
    Response::builder()
        .status(StatusCode::NOT_FOUND)
        .header(CONTENT_TYPE, "text/plain")
        .body(Full::from(
            "The demo has no such page. Its front page is http://www.demo.localhost with this port.\n",
        ))
}

fn header(request: &Request<Incoming>, name: HeaderName) -> Option<String> {
    request.headers().get(name)?.to_str().ok().map(str::to_owned)
}

impl Records {
    fn note(&self, record: RequestRecord) {
        let mut requests = locked(&self.requests);
        if requests.len() < MAX_RECORDS {
            requests.push(record);
        }
    }

    fn is_first_request(&self, address: &Address) -> bool {
        locked(&self.unavailable_before).insert(address.clone())
    }
}
