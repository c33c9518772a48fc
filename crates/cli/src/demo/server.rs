//! The demo over HTTP/1.1 on loopback, and the record of who asked for what.

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
use super::page::{Address, Content, Host, Manner, Page};
use super::site::DemoSite;

/// How long the slow page takes.
const SLOWNESS: Duration = Duration::from_secs(1);
/// After an error of `accept` (no file descriptors are left, say), so as not to spin.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);
/// Requests beyond these are answered and not recorded.
const MOST_RECORDS: usize = 100_000;

type Answer = http::Result<Response<Full<Bytes>>>;

/// The demo being served; dropping it closes the port and every connection.
#[derive(Debug)]
pub struct DemoServer {
    site: Arc<DemoSite>,
    address: SocketAddr,
    records: Arc<Records>,
    accepting: JoinHandle<()>,
}

/// One request that was answered.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// The `Host` header in lower case, without the port; empty if there was none.
    pub host: String,
    /// The path with its query, as it was asked for.
    pub path: String,
    /// When the request's head had been read.
    pub started: Instant,
    /// When the answer was ready to be sent.
    pub ended: Instant,
    /// The status it was answered with.
    pub status: u16,
    /// The `User-Agent` header, unless it was missing or not text.
    pub user_agent: Option<String>,
}

#[derive(Debug, Default)]
struct Records {
    requests: Mutex<Vec<RequestRecord>>,
    /// The shy pages that have turned someone away already.
    excused: Mutex<BTreeSet<Address>>,
}

/// Serves the demo on 127.0.0.1, on a port that the system chooses, until the answer is dropped.
///
/// # Errors
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
    /// The site that is served.
    #[must_use]
    pub fn site(&self) -> &Arc<DemoSite> {
        &self.site
    }

    /// Where all hosts of the demo are served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests answered so far, in the order in which their answers were ready; at most the first 100 000.
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

/// Nothing can be left half done under these locks, so that a poisoned one is as good as any.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, site: Arc<DemoSite>, records: Arc<Records>) {
    // Owned here, so that the connections end with the server.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&site), Arc::clone(&records)));
                }
                Err(_) => tokio::time::sleep(PAUSE_AFTER_ERROR).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse(stream: TcpStream, site: Arc<DemoSite>, records: Arc<Records>) {
    let service = service_fn(|request| respond(request, &site, &records));
    // A visitor who hangs up has had enough; there is nobody to tell.
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
    match page.manner {
        Manner::UnavailableOnce if records.is_first_excuse(address) => return unavailable(),
        Manner::Slow => tokio::time::sleep(SLOWNESS).await,
        Manner::Prompt | Manner::UnavailableOnce => {}
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
            "There is no such page in the demo. It begins at http://www.demo.localhost with this port.\n",
        ))
}

fn header(request: &Request<Incoming>, name: HeaderName) -> Option<String> {
    request.headers().get(name)?.to_str().ok().map(str::to_owned)
}

impl Records {
    fn note(&self, record: RequestRecord) {
        let mut requests = locked(&self.requests);
        if requests.len() < MOST_RECORDS {
            requests.push(record);
        }
    }

    fn is_first_excuse(&self, address: &Address) -> bool {
        locked(&self.excused).insert(address.clone())
    }
}
