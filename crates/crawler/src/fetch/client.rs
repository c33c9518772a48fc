//! The HTTP client: one request at a time, over the connections of one of two guards.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frontier::{Origin, Validators};
use page::media_type::{is_css, may_be_html};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, COOKIE, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, SET_COOKIE,
    USER_AGENT,
};
use reqwest::{Method, Response as Answer};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use super::address_cache::CachedResolver;
use super::body;
use super::classify::{Remedy, classify, remedy};
use super::connections::{Connections, Route};
use super::cookies::{Jars, SavedJars};
use super::decoding::ACCEPTED;
use super::guard::{AddressGuard, Dials, Resolver, SavedGuard, SystemResolver, literal, look_up, none_is_left, order};
use super::headers;
use super::options::{ClientError, HttpOptions};
use super::own_headers::OwnHeaders;
use super::{
    BodyExtent, FetchError, Fetcher, HttpExchange, MAX_OTHER_BODY_BYTES, MAX_ROBOTS_BYTES, Request, ResourceKind,
    Response, lock,
};
use crate::config::{CrawlConfig, CrawlOptions};
use crate::fetch::address_guard::is_public;

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
        let guard = AddressGuard::new(if http.untrusted_seeds { &[] } else { config.seeds() });
        Ok(Self {
            connections: Connections::new(config, http, Arc::new(resolver), guard)?,
            headers: common_headers(options),
            own_headers: OwnHeaders::new(&config.seeds_with_logins(), &http.headers, &http.logins)?,
            jars: Jars::new(http),
            saved_looks: AtomicUsize::new(usize::MAX),
            max_sitemap: options.pages.max_sitemap_bytes,
            keep_bodies: options.reports.bodies,
            assets: options.pages.assets,
            handles_exhausted: Mutex::default(),
            has_logged_end: AtomicBool::default(),
            http: http.clone(),
        })
    }

    fn dials(&self, url: &Url, origin: &Origin) -> Result<Dials, FetchError> {
        if self.http.allow_private_addresses {
            return Ok(Dials::All);
        }
        let dials = self.connections.guarded.guard.dials(origin);
        if dials == Dials::AsAtFirst {
            return Ok(dials);
        }
        // Addresses are dialled without asking the resolver, which guards the names.
        let host = url.host_str().unwrap_or_default();
        let is_inside = match literal(host) {
            Some(address) => !is_public(address),
            None => self.connections.is_unguarded(host),
        };
        if is_inside {
            return Err(FetchError::AddressForbidden);
        }
        Ok(dials)
    }

    /// Sends a request and waits for the head of the answer. One that a used connection loses is repeated at once on a new one. If HTTP/1.1
    /// may do where HTTP/2 did not, it switches the route.
    async fn send(&self, url: &Url, headers: HeaderMap, route: &mut Route, end: Instant) -> Result<Answer, FetchError> {
        loop {
            let (client, is_reused) = self.connections.client_for(route)?;
            let mut request = reqwest::Request::new(Method::GET, url.clone());
            request.headers_mut().clone_from(&headers);
            let error = match timeout_at(end, client.execute(request)).await {
                Ok(Ok(answer)) => {
                    self.connections
                        .note_answer(route, is_reused, headers::keeps_alive(&answer));
                    return Ok(answer);
                }
                Ok(Err(error)) => error,
                Err(_) => return Err(FetchError::Timeout),
            };
            let remedy = remedy(&error, is_reused);
            if remedy != Some(Remedy::NewConnection) {
                route.kind.only_http1 |= remedy == Some(Remedy::Http1);
                return Err(match classify(&error) {
                    FetchError::Connect(why) => FetchError::Connect(self.connections.which_failed(&error, url, why)),
                    other => other,
                });
            }
            self.connections.note_lost(route);
        }
    }

    /// Takes failed connections for a lack of file handles where there is one, or was shortly before: of the addresses of a host the last one
    /// speaks, and may be refused where the first found no handle left.
    fn unless_out_of_handles(&self, error: FetchError) -> FetchError {
        let is_lacking = match error {
            FetchError::OutOfHandles => true,
            FetchError::Connect(_) => none_is_left(),
            _ => return error,
        };
        let mut last = lock(&self.handles_exhausted);
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

    /// `None` to skip it.
    fn cap(&self, request: &Request, answer: &Response, announced: Option<u64>) -> Option<u64> {
        let content_type = answer.content_type.as_deref();
        match request.kind {
            ResourceKind::Robots => Some(MAX_ROBOTS_BYTES),
            // One byte more, to see that there is more.
            ResourceKind::Sitemap => Some(self.max_sitemap.saturating_add(1)),
            // Archives and saved files need what a crawl does not.
            ResourceKind::Page if self.http.keep_exchanges || self.keep_bodies => Some(self.http.max_body_bytes),
            ResourceKind::Page if has_packed_name(&request.url) => Some(self.http.max_body_bytes),
            ResourceKind::Page if may_be_html(content_type) || self.assets && is_css(content_type) => {
                Some(self.http.max_body_bytes)
            }
            ResourceKind::Page => {
                let is_small = announced.is_some_and(|bytes| bytes <= MAX_OTHER_BODY_BYTES);
                is_small.then_some(self.http.max_body_bytes.min(MAX_OTHER_BODY_BYTES))
            }
        }
    }

    /// Makes one request, and reads its answer. If HTTP/1.1 may do where HTTP/2 did not, it switches the route.
    async fn attempt(&self, request: &Request, route: &mut Route, started: Instant) -> Result<Response, FetchError> {
        let deadline = started + self.http.timeout;
        let url = &request.url;
        let mut headers = self.request_headers(url, request.validators.as_ref());
        if request.kind != ResourceKind::Page {
            // The user's conditions are for pages: a 304 has no rules and no sitemap.
            headers.remove(IF_NONE_MATCH);
            headers.remove(IF_MODIFIED_SINCE);
        }
        let cookies = headers.get(COOKIE).cloned();
        let has_condition = headers.contains_key(IF_NONE_MATCH) || headers.contains_key(IF_MODIFIED_SINCE);
        let sent = self.http.keep_exchanges.then(|| headers.clone());
        let received = self.send(url, headers, route, deadline).await?;
        // HTTP/2 limits their bytes alone.
        let (number, bytes) = (self.http.max_headers.get(), self.http.max_header_bytes);
        if received.headers().len() > number {
            return Err(FetchError::HeadTooLarge(format!("{number} headers")));
        }
        if headers::total_bytes(received.headers()) > bytes {
            return Err(FetchError::HeadTooLarge(format!("{bytes} bytes")));
        }
        let mut answer = headers::read(received.status().as_u16(), received.headers());
        answer.cookies_dropped = self.jars.keep(url, received.headers());
        // A page may refresh itself, until it gets the cookies that it sets.
        let is_page = (200..300).contains(&answer.status) && received.headers().contains_key(SET_COOKIE);
        if let Some(target) = answer.target(url).or_else(|| is_page.then(|| url.clone())) {
            let next = self.request_headers(&target, None);
            let to = (&target, next.get(COOKIE));
            answer.target_cookies = self.jars.redirected((url, cookies.as_ref()), to);
        }
        answer.exchange = sent.map(|sent| Box::new(HttpExchange::new(url, &sent, &received)));
        answer.has_own_condition = has_condition;
        answer.elapsed = started.elapsed();
        match self.cap(request, &answer, received.content_length()) {
            None => answer.extent = BodyExtent::Skipped,
            Some(cap) => {
                let time = started..deadline;
                let read = body::read(received, cap, time, &mut answer, &self.has_logged_end);
                route.kind.only_http1 |= read.await;
            }
        }
        Ok(answer)
    }
}

impl Fetcher for HttpFetcher {
    fn save(&self) -> Option<Vec<u8>> {
        let guard = &self.connections.guarded.guard;
        let looks = guard.first_looks();
        let has_looked = self.saved_looks.swap(looks, Ordering::Relaxed) != looks;
        let has_cookies = self.jars.take_changed();
        if !has_looked && !has_cookies {
            return None;
        }
        let kept = Kept {
            guard: guard.save(),
            jars: self.jars.save(),
        };
        serde_json::to_vec(&kept).ok()
    }

    fn restore(&self, saved: &[u8]) -> Result<(), String> {
        let mut kept: Kept = serde_json::from_slice(saved).map_err(|error| error.to_string())?;
        if self.http.untrusted_seeds {
            kept.guard.seed_origins.clear();
        }
        self.connections.guarded.guard.restore(kept.guard);
        self.jars.restore(kept.jars);
        Ok(())
    }

    async fn address(&self, host: &str) -> Option<IpAddr> {
        let longest = self.http.timeout.min(self.http.connect_timeout);
        let found = timeout(longest, look_up(&*self.connections.guarded.resolver, host))
            .await
            .ok()?
            .ok()?;
        found.iter().map(IpAddr::to_canonical).min_by_key(order)
    }

    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let started = Instant::now();
        let url = &request.url;
        let origin = Origin::of(url).ok_or_else(|| FetchError::Other("the URL is not http".to_owned()))?;
        let dials = self.dials(url, &origin)?;
        let mut route = self.connections.route(origin, dials);
        let kind = route.kind;
        let mut answer = self.attempt(&request, &mut route, started).await;
        if route.kind != kind && route.may_try_http1 {
            let second = self.attempt(&request, &mut route, started).await;
            self.connections.note_http1(&route, second.is_ok());
            answer = second.or(answer);
        }
        answer.map_err(|error| {
            if matches!(error, FetchError::Connect(_) | FetchError::Tls(_) | FetchError::Timeout) {
                let resolver = &self.connections.guarded.resolver;
                resolver.not_connected(url.host_str().unwrap_or_default());
            }
            self.unless_out_of_handles(error)
        })
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

fn has_packed_name(url: &Url) -> bool {
    [".xml.gz", ".txt.gz"].iter().any(|end| url.path().ends_with(end))
}
