//! The connections that are kept open between requests: how many, and for how long. Alone in making clients of the HTTP library.
//!
//! A client bounds what is idle per host, but not in all: a crawl of many hosts would use up the process's file handles. So a few clients have a
//! part of the origins each, and the one that was used least recently is left for a new one. Then its idle connections are closed; requests in
//! flight keep theirs until they end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use frontier::Origin;
use reqwest::{Client, Proxy, redirect, retry};
use url::Url;

use super::classify::{PROXY_ERRORS, dialled};
use super::error::FetchError;
use super::guard::{AddressGuard, Dials, Guarded, Resolver, is_localhost};
use super::options::{ClientError, HttpOptions};
use super::proxy::proxies_of;
use super::{lock, tls};
use crate::config::CrawlConfig;

/// How much longer than the delay an idle connection is kept, so that the next request of a host finds it.
const KEPT_BEYOND_DELAY: Duration = Duration::from_secs(5);

/// Idle connections are kept no longer: less than the 65 s after which servers such as nginx close them, at the moment when
/// a request may be on its way.
const LONGEST_KEPT: Duration = Duration::from_secs(60);

/// The most headers of an answer, whatever the options allow: room for all of them is allocated, and the map that holds them
/// panics beyond 24 576.
const MAX_HEADERS: usize = 16_384;

/// The most clients at once: the first page of a host mostly finds the connection of its robots.txt.
const MOST_CLIENTS: usize = 4;

/// The most origins that are remembered to answer over HTTP/1.1 only, or to lose connections. With one more, all are forgotten.
const MOST_REMEMBERED: usize = 16_384;

/// Once an origin has closed this many reused connections, each request gets a new one. Requests that such a connection loses are repeated at
/// once, so a server that closes them all would get more requests than it allows. For the same reason HTTP/1.1 fails no more often in the place
/// of HTTP/2.
const MOST_LOST: u8 = 3;

/// This number of requests that succeed on a reused connection takes back one of those losses.
const REUSES_PER_LOSS: u8 = 8;

/// The connections of a crawl.
#[derive(Debug)]
pub(super) struct Connections {
    http: HttpOptions,
    idle_timeout: Duration,
    per_host: usize,
    proxies: Vec<Proxy>,
    pub(super) guarded: Guarded,
    tls: rustls::ClientConfig,
    max_clients: usize,
    /// The most origins of a client.
    max_origins: usize,
    /// The last one used is first.
    clients: Mutex<Vec<Serving>>,
    /// The origins with some peculiarity.
    known: Mutex<HashMap<Origin, Known>>,
}

/// What is remembered of an origin.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// It offers HTTP/2 and does not mean it.
    only_http1: bool,
    /// How often it did not answer over HTTP/1.1 either.
    http1_failures: u8,
    /// How many used connections it lost, times [`REUSES_PER_LOSS`].
    lost: u8,
}

/// How a request goes.
#[derive(Debug)]
pub(super) struct Route {
    origin: Origin,
    pub(super) kind: Kind,
    /// Whether it goes over a connection of its own.
    is_alone: bool,
    /// Whether it may be repeated over HTTP/1.1 at once.
    pub(super) may_try_http1: bool,
}

/// What connections a request may use: those that were opened without the guard are never used for a guarded origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) dials: Dials,
    /// Not HTTP/2.
    pub(super) only_http1: bool,
}

/// A client, and the origins that it serves, each with whether a connection to it may be idle.
#[derive(Debug)]
struct Serving {
    client: Client,
    kind: Kind,
    origins: HashMap<Origin, bool>,
}

impl Connections {
    pub(super) fn new(
        config: &CrawlConfig,
        http: &HttpOptions,
        resolver: Arc<dyn Resolver>,
        guard: AddressGuard,
    ) -> Result<Self, ClientError> {
        let frontier = &config.options().frontier;
        let (proxies, proxy_hosts): (Vec<_>, _) = proxies_of(http)?.into_iter().unzip();
        if !proxies.is_empty() && frontier.politeness.per_address {
            return Err(ClientError::AddressesBehindProxy);
        }
        let starts_secure = config.seeds().iter().any(|seed| seed.url.url().scheme() == "https");
        let tls = tls::config(http.accept_any_certificate, starts_secure, config.options().max_memory);
        let per_host = frontier.politeness.per_host.get() as usize;
        let kept = frontier.politeness.delay.saturating_add(KEPT_BEYOND_DELAY);
        // Each may have several connections.
        let origins = (http.max_idle_connections.get() / per_host).max(1);
        let max_clients = origins.min(MOST_CLIENTS);
        Ok(Self {
            http: http.clone(),
            idle_timeout: kept.min(LONGEST_KEPT),
            per_host,
            proxies,
            guarded: Guarded {
                resolver,
                guard,
                dials: Dials::PublicOnly,
                proxies: proxy_hosts,
                in_order: frontier.politeness.per_address,
            },
            tls: tls.map_err(|error| ClientError::Setup(error.to_string()))?,
            max_clients,
            max_origins: origins / max_clients,
            clients: Mutex::default(),
            known: Mutex::default(),
        })
    }

    pub(super) fn route(&self, origin: Origin, dials: Dials) -> Route {
        let known = lock(&self.known).get(&origin).copied().unwrap_or_default();
        let only_http1 = self.http.only_http1 || known.only_http1;
        Route {
            origin,
            kind: Kind { dials, only_http1 },
            is_alone: known.lost >= MOST_LOST * REUSES_PER_LOSS,
            may_try_http1: known.http1_failures < MOST_LOST,
        }
    }

    pub(super) fn client_for(&self, route: &Route) -> Result<(Client, bool), FetchError> {
        let (origin, kind) = (&route.origin, route.kind);
        if route.is_alone {
            return Ok((self.new_client(kind)?, false));
        }
        let mut clients = lock(&self.clients);
        let find = |fits: &dyn Fn(&Serving) -> bool| clients.iter().position(|one| one.kind == kind && fits(one));
        let known = find(&|one| one.origins.contains_key(origin));
        let mut serving = match known.or_else(|| find(&|one| one.origins.len() < self.max_origins)) {
            Some(place) => clients.remove(place),
            None => Serving {
                client: self.new_client(kind)?,
                kind,
                origins: HashMap::new(),
            },
        };
        let may_be_idle = *serving.origins.entry(origin.clone()).or_default();
        let client = serving.client.clone();
        clients.insert(0, serving);
        clients.truncate(self.max_clients);
        Ok((client, may_be_idle))
    }

    /// Notes an answer, and whether its connection may serve further requests.
    pub(super) fn note_answer(&self, route: &Route, is_reused: bool, keeps_alive: bool) {
        if is_reused && let Some(known) = lock(&self.known).get_mut(&route.origin) {
            known.lost = known.lost.saturating_sub(1);
        }
        if !route.is_alone {
            self.note_idle(route, keeps_alive);
        }
    }

    /// Notes that a used connection lost a request, which then goes over a new one.
    pub(super) fn note_lost(&self, route: &mut Route) {
        self.note_idle(route, false);
        self.note(route, |known| known.lost = known.lost.saturating_add(REUSES_PER_LOSS));
        route.is_alone = true;
    }

    /// Notes whether an origin answers over HTTP/1.1, after it did not over HTTP/2.
    pub(super) fn note_http1(&self, route: &Route, is_answered: bool) {
        self.note(route, |known| match is_answered {
            true => known.only_http1 = true,
            false => known.http1_failures = known.http1_failures.saturating_add(1),
        });
    }

    fn note_idle(&self, route: &Route, may_be_idle: bool) {
        let mut clients = lock(&self.clients);
        let mut of_kind = clients.iter_mut().filter(|one| one.kind == route.kind);
        if let Some(noted) = of_kind.find_map(|one| one.origins.get_mut(&route.origin)) {
            *noted = may_be_idle;
        }
    }

    fn note(&self, route: &Route, change: impl FnOnce(&mut Known)) {
        let mut known = lock(&self.known);
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        change(known.entry(route.origin.clone()).or_default());
    }

    /// Says whether a name leads inside without being guarded: it is that of a proxy, which may be anywhere, or this machine for a proxy, which
    /// looks names up itself.
    pub(super) fn is_unguarded(&self, host: &str) -> bool {
        let proxies = &self.guarded.proxies;
        !proxies.is_empty() && is_localhost(host) || proxies.iter().any(|proxy| proxy == host)
    }

    /// It is to another port than that of the URL, or all go through one.
    pub(super) fn which_failed(&self, error: &reqwest::Error, url: &Url, why: String) -> String {
        let address = dialled(error).filter(|address| Some(address.port()) != url.port_or_known_default());
        let is_of_proxy = self.http.proxy.is_some() || PROXY_ERRORS.iter().any(|start| why.starts_with(start));
        match address {
            Some(address) => format!("the proxy at {address} does not answer: {why}"),
            None if is_of_proxy => format!("the proxy does not connect: {why}"),
            None => why,
        }
    }

    /// Closes what is idle.
    pub(super) fn close_idle(&self) {
        lock(&self.clients).clear();
    }

    fn new_client(&self, kind: Kind) -> Result<Client, FetchError> {
        let resolver = Guarded {
            dials: kind.dials,
            ..self.guarded.clone()
        };
        let mut tls = self.tls.clone();
        if kind.only_http1 {
            tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        // What the server closed before the request was sent is sent once more, on a new connection. Nothing else is.
        let mut builder = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .retry(retry::never())
            .dns_resolver(resolver)
            .tls_backend_preconfigured(tls)
            .connect_timeout(self.http.timeout.min(self.http.connect_timeout))
            .pool_max_idle_per_host(self.per_host)
            .pool_idle_timeout(self.idle_timeout)
            .http1_max_headers(self.http.max_headers.get().min(MAX_HEADERS))
            .http2_max_header_list_size(u32::try_from(self.http.max_header_bytes).unwrap_or(u32::MAX))
            // Some servers refuse names in lower case.
            .http1_title_case_headers()
            // As browsers do: a line that is no header costs that line only.
            .http1_ignore_invalid_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_allow_obsolete_multiline_headers_in_responses(true);
        for proxy in &self.proxies {
            builder = builder.proxy(proxy.clone());
        }
        builder.build().map_err(|error| FetchError::Other(error.to_string()))
    }
}
