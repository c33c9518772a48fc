//! The HTTP client: one request at a time, by one of two connection pools.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frontier::{Origin, Validators};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, COOKIE, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, PROXY_AUTHORIZATION, TRANSFER_ENCODING, USER_AGENT,
};
use hyper::{Uri, Version};
use hyper_util::client::legacy::connect::HttpInfo;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout, timeout_at};
use url::{Host, Url};

use super::address_cache::CachedResolver;
use super::body::Receiving;
use super::cookies::Jars;
use super::decoding::{ACCEPTED, Decoding};
use super::exchange::{Head, SentRequest};
use super::guard::{AddressGuard, Guard, Resolver, SystemResolver, is_localhost, none_is_left, order};
use super::head_limit::HeadLimit;
use super::headers::{self, is_css, is_html};
use super::kept::Kept;
use super::options::{HttpOptions, HttpOptionsError};
use super::own_headers::OwnHeaders;
use super::pools::{ClientError, ClientSettings, Pool};
use super::tls_end::UnannouncedEnd;
use super::{
    BodyExtent, FetchError, Fetcher, MAX_OTHER_BODY_BYTES, MAX_ROBOTS_BYTES, Request, ResourceKind, Response,
    TruncationReason, error,
};
use crate::config::{CrawlConfig, CrawlOptions};
use crate::fetch::address_guard::is_public;

/// The `Accept` header, for servers that can choose.
const ACCEPTED_TYPES: HeaderValue = HeaderValue::from_static("text/html,application/xhtml+xml;q=0.9,*/*;q=0.5");

/// After the last file handle was used, failed connections are not the host's fault for this long.
const EXHAUSTION_LASTS: Duration = Duration::from_secs(2);

/// Fetches over HTTP/1.1 and HTTP/2, with TLS by rustls.
#[derive(Debug)]
pub struct HttpFetcher {
    guarded: Pool,
    open: Pool,
    address_guard: AddressGuard,
    allow_private: bool,
    untrusted_seeds: bool,
    resolver: Arc<dyn Resolver>,
    /// The maximum time to look up an address.
    look_up_timeout: Duration,
    /// The headers of every request.
    headers: HeaderMap,
    own_headers: OwnHeaders,
    /// The login of an HTTP proxy. For `https` the connector sends it.
    proxy_login: Option<HeaderValue>,
    jars: Jars,
    /// How many first looks the last [`save`](Fetcher::save) had; at first a number that none has, because it may lack seeds.
    saved_looks: AtomicUsize,
    has_proxy: bool,
    /// The maximum time of a request, its body included.
    timeout: Duration,
    max_body: u64,
    max_sitemap: u64,
    max_header_bytes: usize,
    keep_exchanges: bool,
    keep_bodies: bool,
    /// Whether style sheets are read.
    assets: bool,
    /// When the file handles were last exhausted.
    handles_exhausted: Mutex<Option<Instant>>,
    /// Whether an unannounced end of a body was logged.
    has_logged_end: AtomicBool,
}

impl HttpFetcher {
    /// Sets up connection pools for a crawl. It takes the user agent, the seeds and the politeness of the crawl from `config`.
    ///
    /// # Errors
    ///
    /// [`ClientError::Options`] for a header, a login or a proxy that cannot be used. [`ClientError::Tls`] when the TLS roots of the
    /// system cannot be read, and a seed needs them.
    pub fn new(config: &CrawlConfig, http: &HttpOptions) -> Result<Self, ClientError> {
        Self::with_resolver(config, http, CachedResolver::new(SystemResolver))
    }

    /// Sets up connection pools for a crawl that resolves host names in its own way. The address guard checks what the resolver
    /// returns before anything connects to it. The resolver is asked for each connection: wrap it in a [`CachedResolver`] to change that.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_resolver(
        config: &CrawlConfig,
        http: &HttpOptions,
        resolver: impl Resolver,
    ) -> Result<Self, ClientError> {
        // Only the first call of a process has an effect, and a provider that the program chose itself stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = config.options();
        if http.untrusted_seeds && !(http.headers.is_empty() && http.logins.is_empty()) {
            return Err(HttpOptionsError::SecretsForUntrustedSeeds.into());
        }
        let own_headers = OwnHeaders::new(&config.seeds_with_logins(), &http.headers, &http.logins);
        let own_headers = own_headers.map_err(HttpOptionsError::from)?;
        let resolver: Arc<dyn Resolver> = Arc::new(resolver);
        let trusted_seeds = if http.untrusted_seeds { &[] } else { config.seeds() };
        let settings = ClientSettings::new(config, http, Arc::clone(&resolver), Guard::PublicOnly)?;
        Ok(Self {
            has_proxy: settings.proxy().is_some(),
            address_guard: AddressGuard::sharing(settings.first_look().clone(), trusted_seeds),
            saved_looks: AtomicUsize::new(usize::MAX),
            proxy_login: settings.proxy().and_then(|proxy| proxy.basic_auth().cloned()),
            timeout: http.timeout,
            open: Pool::new(settings.guarded_by(if http.allow_private_addresses {
                Guard::Off
            } else {
                Guard::AsAtFirst
            })),
            guarded: Pool::new(settings),
            allow_private: http.allow_private_addresses,
            untrusted_seeds: http.untrusted_seeds,
            resolver,
            look_up_timeout: http.timeout.min(http.connect_timeout),
            headers: common_headers(options),
            own_headers,
            jars: match (&http.cookie_file, http.cookies) {
                (Some(file), _) => Jars::starting_from(file.clone()),
                (None, true) => Jars::default(),
                (None, false) => Jars::unused(),
            },
            max_body: http.max_body_bytes,
            max_sitemap: options.max_sitemap_bytes,
            max_header_bytes: http.max_header_bytes,
            keep_exchanges: http.keep_exchanges,
            keep_bodies: options.keep_bodies,
            assets: options.assets,
            handles_exhausted: Mutex::default(),
            has_logged_end: AtomicBool::default(),
        })
    }

    /// Chooses the pool: connections that were opened without the guard are never used for a guarded origin.
    fn pool_for(&self, url: &Url) -> Result<&Pool, FetchError> {
        if self.allow_private || self.address_guard.exempts(url) {
            return Ok(&self.open);
        }
        // Addresses are dialled without asking the resolver, which guards the names.
        let literal = match url.host() {
            Some(Host::Ipv4(v4)) => Some(IpAddr::V4(v4)),
            Some(Host::Ipv6(v6)) => Some(IpAddr::V6(v6)),
            _ => None,
        };
        match literal {
            Some(address) if !is_public(address) => Err(FetchError::AddressForbidden),
            // The proxy looks names up itself; what this one means needs no look-up.
            None if self.has_proxy && url.host_str().is_some_and(is_localhost) => Err(FetchError::AddressForbidden),
            _ => Ok(&self.guarded),
        }
    }

    /// Sends a request and waits for the head of the answer.
    async fn send(
        &self,
        pool: &Pool,
        url: &Url,
        headers: HeaderMap,
        deadline: Instant,
    ) -> Result<hyper::Response<Incoming>, FetchError> {
        let uri = url.as_str().parse::<Uri>();
        let uri = uri.map_err(|error| FetchError::Broken(format!("the URL cannot be sent: {error}")))?;
        let mut request = hyper::Request::new(Empty::<Bytes>::new());
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        if let Some(login) = self.proxy_login.as_ref().filter(|_| url.scheme() == "http") {
            request.headers_mut().insert(PROXY_AUTHORIZATION, login.clone());
        }
        let client = pool.client_for(Origin::of(url));
        let error = match timeout_at(deadline, client.request(request)).await {
            Ok(Ok(response)) => {
                if let Some(limit) = response.extensions().get::<HeadLimit>() {
                    limit.restart();
                }
                return Ok(response);
            }
            Ok(Err(error)) => error::classify(&error),
            Err(_) => FetchError::Timeout,
        };
        let error = match error {
            // Of the addresses of a host the last one speaks, and may be refused where the first found no handle left.
            FetchError::Connect(_) if self.has_just_exhausted_handles() || none_is_left() => FetchError::OutOfHandles,
            error => error,
        };
        if matches!(error, FetchError::OutOfHandles) {
            self.note_exhausted_handles(&error);
            self.guarded.close_idle();
            self.open.close_idle();
        }
        Err(error)
    }

    fn has_just_exhausted_handles(&self) -> bool {
        let last = *self.handles_exhausted.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| last.elapsed() < EXHAUSTION_LASTS)
    }

    /// Logs it the first time.
    fn note_exhausted_handles(&self, error: &FetchError) {
        let mut last = self.handles_exhausted.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none() {
            log::warn!(target: "crawler::fetch", "{error}; until then requests that meet the limit are repeated");
        }
        // What is only taken for it does not prolong it.
        if last.is_none_or(|last| last.elapsed() >= EXHAUSTION_LASTS) || none_is_left() {
            *last = Some(Instant::now());
        }
    }

    fn request_headers(&self, url: &Url, validators: Option<&Validators>) -> HeaderMap {
        let mut headers = self.headers.clone();
        self.own_headers.add_to(&mut headers, url);
        if let Some(cookies) = self.jars.header(url) {
            let own = headers
                .get(COOKIE)
                .map(|own| [own.as_bytes(), b"; ", cookies.as_bytes()].concat());
            let joined = own.and_then(|bytes| HeaderValue::from_bytes(&bytes).ok());
            headers.insert(COOKIE, joined.unwrap_or(cookies));
        }
        if let Some(validators) = validators {
            insert_text(&mut headers, IF_NONE_MATCH, validators.etag.as_deref());
            insert_text(&mut headers, IF_MODIFIED_SINCE, validators.last_modified.as_deref());
        }
        headers
    }

    fn check_head(&self, response: &hyper::Response<Incoming>) -> Result<(), FetchError> {
        if headers::total_bytes(response.headers()) > self.max_header_bytes {
            return Err(FetchError::HeadTooLarge(format!("{} bytes", self.max_header_bytes)));
        }
        Ok(())
    }

    /// Returns how many bytes of the body to read; `None` to skip it.
    fn cap(&self, kind: ResourceKind, answer: &Response, announced: Option<u64>) -> Option<u64> {
        let content_type = answer.content_type.as_deref();
        match kind {
            ResourceKind::Robots => Some(MAX_ROBOTS_BYTES),
            // One byte more, to see that there is more.
            ResourceKind::Sitemap => Some(self.max_sitemap.saturating_add(1)),
            // Archives and saved files need what a crawl does not.
            ResourceKind::Page if self.keep_exchanges || self.keep_bodies => Some(self.max_body),
            ResourceKind::Page if is_html(content_type) || self.assets && is_css(content_type) => Some(self.max_body),
            ResourceKind::Page => {
                let is_small = announced.is_some_and(|bytes| bytes <= MAX_OTHER_BODY_BYTES);
                is_small.then_some(self.max_body.min(MAX_OTHER_BODY_BYTES))
            }
        }
    }
}

impl Fetcher for HttpFetcher {
    fn save(&self) -> Option<Vec<u8>> {
        let looks = self.address_guard.first_looks();
        let has_looked = self.saved_looks.swap(looks, Ordering::Relaxed) != looks;
        let has_cookies = self.jars.take_changed();
        (has_looked || has_cookies).then(|| Kept::new(self.address_guard.save(), self.jars.save()).write())
    }

    fn restore(&self, saved: &[u8]) -> Result<(), String> {
        let mut kept = Kept::read(saved)?;
        if self.untrusted_seeds {
            kept.guard.seed_origins.clear();
        }
        self.address_guard.restore(kept.guard);
        self.jars.restore(kept.jars);
        Ok(())
    }

    async fn address(&self, host: &str) -> Option<IpAddr> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let found = match bare.parse() {
            Ok(address) => vec![address],
            Err(_) => timeout(self.look_up_timeout, self.resolver.resolve(host))
                .await
                .ok()?
                .ok()?,
        };
        let found = found.into_iter().map(|address: IpAddr| address.to_canonical());
        found.min_by_key(order)
    }

    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let started = Instant::now();
        let pool = self.pool_for(&request.url)?;
        let headers = self.request_headers(&request.url, request.validators.as_ref());
        let sent = self.keep_exchanges.then(|| SentRequest::new(&request.url, &headers));
        let deadline = started + self.timeout;
        let mut response = self.send(pool, &request.url, headers, deadline).await?;
        self.check_head(&response)?;
        let mut answer = headers::read(response.status().as_u16(), response.headers());
        answer.cookies_dropped = self.jars.keep(&request.url, response.headers());
        let address = response.extensions().get().map(HttpInfo::remote_addr);
        answer.exchange = sent.map(|sent| Box::new(sent.answered(&Head::of(&response, address))));
        let announced = response.body().size_hint().exact();
        let Some(cap) = self.cap(request.kind, &answer, announced) else {
            answer.extent = BodyExtent::Skipped;
            answer.elapsed = started.elapsed();
            return Ok(answer);
        };
        let received = receive(&mut response, cap, deadline, answer.exchange.is_some()).await;
        answer.elapsed = started.elapsed();
        let is_delimited = announced.is_some() || response.headers().contains_key(TRANSFER_ENCODING);
        let end = match is_delimited {
            true => UnannouncedEnd::default(),
            false => response.extensions().get().cloned().unwrap_or_default(),
        };
        drop(response);
        match received {
            Ok((receiving, cut)) => {
                // Parsing, and decoding what was held back, run through other code than receiving. So other tasks of this thread, which may
                // receive, go on first, and the processor loads that code less often.
                yield_now().await;
                receiving.finish(cut, end.of_codings(), &mut answer);
                if answer.truncation.is_none() {
                    end.log_first(&request.url, &self.has_logged_end);
                }
            }
            Err(cut) => (answer.extent, answer.truncation) = (BodyExtent::Truncated, Some(cut)),
        }
        Ok(answer)
    }
}

/// Reads the body as far as it comes and may be read; whatever goes wrong, what was read by then is worth having. Returns it with the
/// reason why it is not whole, or only a reason if nothing can be read.
async fn receive(
    response: &mut hyper::Response<Incoming>,
    cap: u64,
    deadline: Instant,
    keeps_exchange: bool,
) -> Result<(Receiving, Option<TruncationReason>), TruncationReason> {
    let encodings = response.headers().get_all(CONTENT_ENCODING).iter();
    let announced = response.body().size_hint().exact();
    let announced = announced.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let decoding = Decoding::of(encodings.map(HeaderValue::as_bytes), announced);
    let decoding = decoding.map_err(|_| TruncationReason::Coding)?;
    let mut receiving = Receiving::new(decoding, announced, cap, keeps_exchange);
    // HTTP/2 does not count bodies.
    let counts_bodies = response.version() < Version::HTTP_2;
    let limit = response.extensions().get::<HeadLimit>().cloned();
    let limit = limit.filter(|_| counts_bodies);
    let cut = loop {
        match timeout_at(deadline, response.frame()).await {
            Ok(Some(Ok(frame))) => {
                if let Some(limit) = &limit {
                    limit.restart();
                }
                // Trailers are not read.
                if let Some(Err(cut)) = frame.data_ref().map(|piece| receiving.take(piece)) {
                    break Some(cut);
                }
            }
            Ok(None) => break None,
            Ok(Some(Err(error))) if !error::has_timed_out(&error) => break Some(TruncationReason::Connection),
            Ok(Some(Err(_))) | Err(_) => break Some(TruncationReason::Time),
        }
    };
    Ok((receiving, cut))
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
