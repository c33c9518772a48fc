//! The connections that are kept open between requests: how many, and for how long. Alone in making clients of the HTTP library.
//!
//! A client bounds what is idle per host, but not in all: a crawl of many hosts would use up the process's file handles. So a few clients have a
//! part of the origins each, and the one that was used least recently is left for a new one. Then its idle connections are closed; requests in
//! flight keep theirs until they end.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frontier::Origin;
use reqwest::{Client, Proxy, redirect, retry};

use super::error::FetchError;
use super::guard::{AddressGuard, Dials, Guarded, Resolver};
use super::options::{ClientError, HttpOptions};
use super::proxy::proxies_of;
use super::tls;
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
/// once, so a server that closes them all would get more requests than it allows.
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
    resolver: Guarded,
    tls: rustls::ClientConfig,
    max_clients: usize,
    /// The most origins of a client.
    max_origins: usize,
    /// The last one used is first.
    clients: Mutex<Vec<Serving>>,
    /// The origins that offer HTTP/2 and do not mean it.
    only_http1: Mutex<HashSet<Origin>>,
    /// The origins that lost used connections: how many, times [`REUSES_PER_LOSS`].
    lost: Mutex<HashMap<Origin, u8>>,
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
        if !proxies.is_empty() && frontier.per_address {
            return Err(ClientError::AddressesBehindProxy);
        }
        let starts_secure = config.seeds().iter().any(|seed| seed.url().scheme() == "https");
        let tls = tls::config(http.accept_any_certificate, starts_secure, config.options().max_memory);
        let per_host = frontier.per_host.get() as usize;
        // Each may have several connections.
        let origins = (http.max_idle_connections.get() / per_host).max(1);
        let max_clients = origins.min(MOST_CLIENTS);
        Ok(Self {
            http: http.clone(),
            idle_timeout: frontier.delay.saturating_add(KEPT_BEYOND_DELAY).min(LONGEST_KEPT),
            per_host,
            proxies,
            resolver: Guarded {
                resolver,
                guard,
                dials: Dials::PublicOnly,
                proxies: proxy_hosts,
                in_order: frontier.per_address,
            },
            tls: tls.map_err(|error| ClientError::Setup(error.to_string()))?,
            max_clients,
            max_origins: origins / max_clients,
            clients: Mutex::default(),
            only_http1: Mutex::default(),
            lost: Mutex::default(),
        })
    }

    /// Returns what connections a request to an origin may use.
    pub(super) fn kind(&self, origin: &Origin, dials: Dials) -> Kind {
        let only_http1 = self.only_http1.lock().unwrap_or_else(PoisonError::into_inner);
        Kind {
            dials,
            only_http1: self.http.only_http1 || only_http1.contains(origin),
        }
    }

    /// Returns the client for a request to this origin, and whether its connection may have been used before.
    pub(super) fn client_for(&self, origin: &Origin, kind: Kind) -> Result<(Client, bool), FetchError> {
        let lost = self
            .lost
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(origin)
            .copied();
        if lost.is_some_and(|lost| lost >= MOST_LOST * REUSES_PER_LOSS) {
            return Ok((self.new_client(kind)?, false));
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Notes whether a connection to an origin may be idle after a request, or may soon be.
    pub(super) fn note_idle(&self, origin: &Origin, kind: Kind, may_be_idle: bool) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let mut of_kind = clients.iter_mut().filter(|one| one.kind == kind);
        if let Some(noted) = of_kind.find_map(|one| one.origins.get_mut(origin)) {
            *noted = may_be_idle;
        }
    }

    /// Notes that an origin answers over HTTP/1.1, but not over HTTP/2.
    pub(super) fn note_only_http1(&self, origin: &Origin) {
        let mut origins = self.only_http1.lock().unwrap_or_else(PoisonError::into_inner);
        if origins.len() >= MOST_REMEMBERED {
            origins.clear();
        }
        origins.insert(origin.clone());
    }

    /// Notes whether a request over a connection that was used before lost it.
    pub(super) fn note_reuse(&self, origin: &Origin, is_lost: bool) {
        let mut origins = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if is_lost {
            if origins.len() >= MOST_REMEMBERED {
                origins.clear();
            }
            let lost = origins.entry(origin.clone()).or_default();
            *lost = lost.saturating_add(REUSES_PER_LOSS);
        } else if let Some(lost) = origins.get_mut(origin) {
            *lost = lost.saturating_sub(1);
        }
    }

    /// Says whether requests may go through a proxy.
    pub(super) fn is_proxied(&self) -> bool {
        !self.proxies.is_empty()
    }

    /// Says whether a name is that of a proxy, which may be anywhere.
    pub(super) fn is_proxy(&self, host: &str) -> bool {
        self.resolver.proxies.iter().any(|proxy| proxy == host)
    }

    /// Closes what is idle.
    pub(super) fn close_idle(&self) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Makes a client without connections.
    pub(super) fn new_client(&self, kind: Kind) -> Result<Client, FetchError> {
        let resolver = Guarded {
            dials: kind.dials,
            ..self.resolver.clone()
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
