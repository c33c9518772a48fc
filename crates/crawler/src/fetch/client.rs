//! The HTTP client: one request at a time, over the connections of one of two guards.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frontier::{Origin, Validators};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, COOKIE, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, USER_AGENT,
};
use reqwest::{Method, Response as Answer};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use super::address_cache::CachedResolver;
use super::body;
use super::connections::Connections;
use super::cookies::{Jars, SavedJars};
use super::error::Remedy;
use super::guard::{
    AddressGuard, Dials, Resolver, SavedGuard, SystemResolver, is_localhost, literal, look_up, none_is_left, order,
};
use super::headers;
use super::options::{ClientError, HttpOptions};
use super::own_headers::OwnHeaders;
use super::{
    BodyExtent, Exchange, FetchError, Fetcher, MAX_OTHER_BODY_BYTES, MAX_ROBOTS_BYTES, Request, ResourceKind, Response,
    error,
};
use crate::config::{CrawlConfig, CrawlOptions};
use crate::decoding::ACCEPTED;
use crate::fetch::address_guard::is_public;
use crate::page::media_type::{is_css, may_be_html};

/// The `Accept` header, for servers that can choose.
const ACCEPTED_TYPES: HeaderValue = HeaderValue::from_static("text/html,application/xhtml+xml;q=0.9,*/*;q=0.5");

/// After the last file handle was used, failed connections are not the host's fault for this long.
const EXHAUSTION_LASTS: Duration = Duration::from_secs(2);

/// What is kept for a later run of a crawl with a state directory.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    guard: SavedGuard,
    jars: SavedJars,
}

/// Fetches over HTTP/1.1 and HTTP/2, with TLS by rustls.
#[derive(Debug)]
pub struct HttpFetcher {
    http: HttpOptions,
    connections: Connections,
    guard: AddressGuard,
    resolver: Arc<dyn Resolver>,
    /// The headers of every request.
    headers: HeaderMap,
    own_headers: OwnHeaders,
    jars: Jars,
    /// How many first looks the last [`save`](Fetcher::save) had; at first a number that none has, because it may lack seeds.
    saved_looks: AtomicUsize,
    max_sitemap: u64,
    keep_bodies: bool,
    /// Whether style sheets are read.
    assets: bool,
    /// When the file handles were last exhausted.
    handles_exhausted: Mutex<Option<Instant>>,
    /// Whether an unannounced end of a body was logged.
    has_logged_end: AtomicBool,
}

impl HttpFetcher {
    /// Sets up the connections of a crawl. It takes the user agent, the seeds and the politeness of the crawl from `config`.
    ///
    /// # Errors
    ///
    /// [`ClientError::Setup`] when the TLS roots of the system cannot be read, and a seed needs them; any other for options that cannot be
    /// used.
    pub fn new(config: &CrawlConfig, http: &HttpOptions) -> Result<Self, ClientError> {
        Self::with_resolver(config, http, CachedResolver::new(SystemResolver))
    }

    /// Sets up the connections of a crawl that resolves host names in its own way. The address guard checks what the resolver returns
    /// before anything connects to it. The resolver is asked for each connection: wrap it in a [`CachedResolver`] to change that.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_resolver(
        config: &CrawlConfig,
        http: &HttpOptions,
        resolver: impl Resolver,
    ) -> Result<Self, ClientError> {
        let options = config.options();
        if http.untrusted_seeds && !(http.headers.is_empty() && http.logins.is_empty()) {
            return Err(ClientError::SecretsForUntrustedSeeds);
        }
        let resolver: Arc<dyn Resolver> = Arc::new(resolver);
        let guard = AddressGuard::new(if http.untrusted_seeds { &[] } else { config.seeds() });
        Ok(Self {
            connections: Connections::new(config, http, Arc::clone(&resolver), guard.clone())?,
            guard,
            resolver,
            headers: common_headers(options),
            own_headers: OwnHeaders::new(&config.seeds_with_logins(), &http.headers, &http.logins)?,
            jars: match (&http.cookie_file, http.cookies) {
                (Some(file), _) => Jars::starting_from(file.clone()),
                (None, true) => Jars::default(),
                (None, false) => Jars::unused(),
            },
            saved_looks: AtomicUsize::new(usize::MAX),
            max_sitemap: options.max_sitemap_bytes,
            keep_bodies: options.keep_bodies,
            assets: options.assets,
            handles_exhausted: Mutex::default(),
            has_logged_end: AtomicBool::default(),
            http: http.clone(),
        })
    }

    /// Returns what may be dialled for a URL.
    fn dials(&self, url: &Url) -> Result<Dials, FetchError> {
        if self.http.allow_private_addresses {
            return Ok(Dials::All);
        }
        let dials = self.guard.dials(url);
        if dials == Dials::AsAtFirst {
            return Ok(dials);
        }
        // Addresses are dialled without asking the resolver, which guards the names. A proxy looks names up itself; what localhost means
        // needs no look-up. The names of proxies themselves are not guarded.
        let host = url.host_str().unwrap_or_default();
        let is_inside = match literal(host) {
            Some(address) => !is_public(address),
            None => self.connections.is_proxied() && is_localhost(host) || self.connections.is_proxy(host),
        };
        if is_inside {
            return Err(FetchError::AddressForbidden);
        }
        Ok(dials)
    }

    /// Sends a request and waits for the head of the answer. Repeats it at once where the fault is not the page's.
    async fn send(&self, url: &Url, headers: HeaderMap, deadline: Instant) -> Result<Answer, FetchError> {
        let origin = Origin::of(url).ok_or_else(|| FetchError::Other("the URL is not http".to_owned()))?;
        let mut kind = self.connections.kind(&origin, self.dials(url)?);
        let (mut client, mut is_reused) = self.connections.client_for(&origin, kind)?;
        let (mut is_pooled, mut over_http2) = (true, None);
        let error = loop {
            let mut request = reqwest::Request::new(Method::GET, url.clone());
            request.headers_mut().clone_from(&headers);
            let error = match timeout_at(deadline, client.execute(request)).await {
                Ok(Ok(answer)) => {
                    if over_http2.is_some() {
                        self.connections.note_only_http1(&origin);
                    }
                    if is_reused {
                        self.connections.note_reuse(&origin, false);
                    }
                    if is_pooled {
                        self.connections.note_idle(&origin, kind, headers::keeps_alive(&answer));
                    }
                    return Ok(answer);
                }
                Ok(Err(error)) => error,
                Err(_) => break FetchError::Timeout,
            };
            match error::remedy(&error, is_reused) {
                Some(Remedy::NewConnection) => {
                    self.connections.note_idle(&origin, kind, false);
                    self.connections.note_reuse(&origin, true);
                    client = self.connections.new_client(kind)?;
                    (is_reused, is_pooled) = (false, false);
                }
                Some(Remedy::Http1) if !kind.only_http1 => {
                    kind.only_http1 = true;
                    over_http2 = Some(error::classify(&error));
                    (client, is_reused) = self.connections.client_for(&origin, kind)?;
                    is_pooled = true;
                }
                _ => break over_http2.unwrap_or_else(|| error::classify(&error)),
            }
        };
        if matches!(error, FetchError::Connect(_) | FetchError::Tls(_) | FetchError::Timeout) {
            self.resolver.not_connected(url.host_str().unwrap_or_default());
        }
        Err(self.unless_out_of_handles(error))
    }

    /// Takes failed connections for a lack of file handles where there is one, or was shortly before: of the addresses of a host the last one
    /// speaks, and may be refused where the first found no handle left.
    fn unless_out_of_handles(&self, error: FetchError) -> FetchError {
        let is_lacking = match error {
            FetchError::OutOfHandles => true,
            FetchError::Connect(_) => none_is_left(),
            _ => return error,
        };
        let mut last = self.handles_exhausted.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_lacking && last.is_none_or(|last| last.elapsed() >= EXHAUSTION_LASTS) {
            return error;
        }
        let error = FetchError::OutOfHandles;
        if last.is_none() {
            log::warn!(target: "crawler::fetch", "{error}; until then requests that meet the limit are repeated");
        }
        // What is only taken for it does not prolong it.
        if is_lacking {
            *last = Some(Instant::now());
        }
        self.connections.close_idle();
        error
    }

    fn request_headers(&self, url: &Url, validators: Option<&Validators>) -> HeaderMap {
        let mut headers = self.headers.clone();
        self.own_headers.add_to(&mut headers, url);
        if let Some(cookies) = self.jars.header(url) {
            let own = headers
                .get(COOKIE)
                .map(|own| [own.as_bytes(), b"; ", cookies.as_bytes()].concat());
            let joined = own.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok());
            let mut value = joined.unwrap_or(cookies);
            // Archives leave it out.
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
        if let Some(validators) = validators {
            insert_text(&mut headers, IF_NONE_MATCH, validators.etag.as_deref());
            insert_text(&mut headers, IF_MODIFIED_SINCE, validators.last_modified.as_deref());
        }
        headers
    }

    /// Returns how many bytes of the body to read; `None` to skip it.
    fn cap(&self, kind: ResourceKind, answer: &Response, announced: Option<u64>) -> Option<u64> {
        let content_type = answer.content_type.as_deref();
        match kind {
            ResourceKind::Robots => Some(MAX_ROBOTS_BYTES),
            // One byte more, to see that there is more.
            ResourceKind::Sitemap => Some(self.max_sitemap.saturating_add(1)),
            // Archives and saved files need what a crawl does not.
            ResourceKind::Page if self.http.keep_exchanges || self.keep_bodies => Some(self.http.max_body_bytes),
            ResourceKind::Page if may_be_html(content_type) || self.assets && is_css(content_type) => {
                Some(self.http.max_body_bytes)
            }
            ResourceKind::Page => {
                let is_small = announced.is_some_and(|bytes| bytes <= MAX_OTHER_BODY_BYTES);
                is_small.then_some(self.http.max_body_bytes.min(MAX_OTHER_BODY_BYTES))
            }
        }
    }
}

impl Fetcher for HttpFetcher {
    fn save(&self) -> Option<Vec<u8>> {
        let looks = self.guard.first_looks();
        let has_looked = self.saved_looks.swap(looks, Ordering::Relaxed) != looks;
        let has_cookies = self.jars.take_changed();
        if !has_looked && !has_cookies {
            return None;
        }
        let kept = Kept {
            guard: self.guard.save(),
            jars: self.jars.save(),
        };
        serde_json::to_vec(&kept).ok()
    }

    fn restore(&self, saved: &[u8]) -> Result<(), String> {
        let mut kept: Kept = serde_json::from_slice(saved).map_err(|error| error.to_string())?;
        if self.http.untrusted_seeds {
            kept.guard.seed_origins.clear();
        }
        self.guard.restore(kept.guard);
        self.jars.restore(kept.jars);
        Ok(())
    }

    async fn address(&self, host: &str) -> Option<IpAddr> {
        let longest = self.http.timeout.min(self.http.connect_timeout);
        let found = timeout(longest, look_up(&*self.resolver, host)).await.ok()?.ok()?;
        found.iter().map(IpAddr::to_canonical).min_by_key(order)
    }

    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let started = Instant::now();
        let deadline = started + self.http.timeout;
        let url = &request.url;
        let headers = self.request_headers(url, request.validators.as_ref());
        let cookies = headers.get(COOKIE).cloned();
        let sent = self.http.keep_exchanges.then(|| headers.clone());
        let received = self.send(url, headers, deadline).await?;
        // HTTP/2 limits their bytes alone.
        let max_headers = self.http.max_headers.get();
        if received.headers().len() > max_headers {
            return Err(FetchError::HeadTooLarge(format!("{max_headers} headers")));
        }
        if headers::total_bytes(received.headers()) > self.http.max_header_bytes {
            return Err(FetchError::HeadTooLarge(format!(
                "{} bytes",
                self.http.max_header_bytes
            )));
        }
        let mut answer = headers::read(received.status().as_u16(), received.headers());
        answer.cookies_dropped = self.jars.keep(url, received.headers());
        if let Some(target) = answer.target(url) {
            let next = self.request_headers(&target, None);
            let to = (&target, next.get(COOKIE));
            answer.target_cookies = self.jars.redirected((url, cookies.as_ref()), to);
        }
        answer.exchange = sent.map(|sent| Box::new(Exchange::new(url, &sent, &received)));
        answer.elapsed = started.elapsed();
        match self.cap(request.kind, &answer, received.content_length()) {
            None => answer.extent = BodyExtent::Skipped,
            Some(cap) => {
                let time = started..deadline;
                body::read(received, url, cap, time, &mut answer, &self.has_logged_end).await;
            }
        }
        Ok(answer)
    }
}

/// In the order in which they are sent.
fn common_headers(options: &CrawlOptions) -> HeaderMap {
    let mut headers = HeaderMap::new();
    insert_text(&mut headers, USER_AGENT, Some(&options.user_agent));
    headers.insert(ACCEPT, ACCEPTED_TYPES);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
    headers
}

/// Inserts a text whose characters are the bytes of the value; one that is no header value is left out.
fn insert_text(headers: &mut HeaderMap, name: HeaderName, text: Option<&str>) {
    let bytes = text.and_then(|text| text.chars().map(|c| u8::try_from(c).ok()).collect::<Option<Vec<u8>>>());
    if let Some(value) = bytes.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok()) {
        headers.insert(name, value);
    }
}
