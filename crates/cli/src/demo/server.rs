//! Serves the demo over HTTP/1.1 on loopback.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, http};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;

use super::lab;
use super::page::{Content, Page};
use super::site::DemoSite;

/// The delay of the slow page.
const SLOW_DELAY: Duration = Duration::from_secs(1);
/// The pause after an error of `accept`, such as a lack of file handles. It prevents a busy loop.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(20);

type Answer = http::Result<Response<Full<Bytes>>>;

/// The running server of the demo. Dropping it closes the port and all connections.
#[derive(Debug)]
pub struct DemoServer {
    site: Arc<DemoSite>,
    /// Ends with the server.
    _accepting: JoinSet<()>,
}

/// Serves the demo on 127.0.0.1, on a port that the system chooses, until the returned server is dropped.
///
/// # Errors
///
/// When no port can be opened on loopback.
pub async fn serve() -> io::Result<DemoServer> {
    serve_at(0, ".demo.localhost").await
}

/// Serves the demo on this port of 127.0.0.1, with hosts that are sites of their own, until the returned server is dropped. For port 0 the
/// system chooses one.
///
/// # Errors
///
/// When the port cannot be opened.
pub async fn serve_four_sites(port: u16) -> io::Result<DemoServer> {
    serve_at(port, "-demo.localhost").await
}

async fn serve_at(port: u16, domain: &str) -> io::Result<DemoServer> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let site = Arc::new(DemoSite::new(domain, listener.local_addr()?.port()));
    let mut accepting = JoinSet::new();
    accepting.spawn(accept(listener, Arc::clone(&site)));
    Ok(DemoServer {
        site,
        _accepting: accepting,
    })
}

impl DemoServer {
    /// Returns the site that is served.
    #[must_use]
    pub fn site(&self) -> &Arc<DemoSite> {
        &self.site
    }
}

async fn accept(listener: TcpListener, site: Arc<DemoSite>) {
    // This task owns the connections, so they end with the server.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve_connection(stream, Arc::clone(&site)));
                }
                Err(_) => tokio::time::sleep(PAUSE_AFTER_ERROR).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, site: Arc<DemoSite>) {
    let service = service_fn(|request| respond(request, &site));
    // A client may close its connection at any time, so errors are ignored.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn respond(request: Request<Incoming>, site: &DemoSite) -> Answer {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    match host.and_then(|host| site.requested(host, path)) {
        Some(page) => answer(&page, site).await,
        None => not_found(site.seed()),
    }
}

async fn answer(page: &Page, site: &DemoSite) -> Answer {
    match page.address.path() {
        lab::SLOW => tokio::time::sleep(SLOW_DELAY).await,
        lab::UNAVAILABLE_ONCE if !site.was_unavailable.swap(true, Ordering::Relaxed) => {
            let response = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE);
            return response.header(RETRY_AFTER, "0").body(Full::default());
        }
        _ => {}
    }
    let response = Response::builder();
    match &page.content {
        Content::Html => response
            .header(CONTENT_TYPE, page.html_type())
            .body(page.to_html().into()),
        Content::File(kind, bytes) => response.header(CONTENT_TYPE, *kind).body(bytes.clone().into()),
        Content::Redirect(status, location) => {
            let response = response.status(status).header(LOCATION, location);
            response.body(Full::default())
        }
    }
}

fn not_found(front_page: &Url) -> Answer {
    let text = format!("The demo has no such page. Its front page is {front_page}\n");
    let response = Response::builder().status(StatusCode::NOT_FOUND);
    response.header(CONTENT_TYPE, "text/plain").body(text.into())
}
