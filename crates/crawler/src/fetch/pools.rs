//! The connections that are kept open between requests: how many, and for how long.
//!
//! A pool of the HTTP library bounds what is idle per host, but not in all: a crawl of many hosts would use up the
//! process's file handles. So a pool that has served half as many origins as may have idle connections takes no further
//! ones. It still serves its own until the next pool is left, too: the first page of a host mostly finds the connection
//! of its robots.txt. Then its idle connections are closed; requests in flight keep theirs until they end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frontier::Origin;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::connector::Connector;
use super::guard::{FirstLook, Guard, Guarded, Resolver};
use super::options::{HttpOptions, HttpOptionsError};
use super::proxy::UsableProxy;
use super::sessions::Sessions;
use super::trust;
use crate::config::CrawlConfig;

/// How much longer than the delay an idle connection is kept, so that the next request of a host finds it.
const KEPT_BEYOND_DELAY: Duration = Duration::from_secs(5);

/// Idle connections are kept no longer: less than the 65 s after which servers such as nginx close them, at the moment when
/// a request may be on its way.
const LONGEST_KEPT: Duration = Duration::from_secs(60);

/// Why the HTTP fetcher cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The options cannot be used.
    #[error(transparent)]
    Options(#[from] HttpOptionsError),
    /// The certificates that the system trusts cannot be read.
    #[error("the HTTP client cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

/// A client with its own idle connections.
pub(super) type Client = legacy::Client<Connector, Empty<Bytes>>;

/// One guard's connections.
#[derive(Debug)]
pub(super) struct Pool {
    settings: ClientSettings,
    /// Origins that a client may serve before it takes no further ones.
    max_origins: usize,
    /// Whether a client that takes no further origins still serves its own.
    keeps_last: bool,
    clients: Mutex<Clients>,
}

#[derive(Debug)]
struct Clients {
    current: Serving,
    /// The one before, which takes no further origins.
    last: Option<Serving>,
}

/// A client, and the origins that it serves.
#[derive(Debug)]
struct Serving {
    client: Client,
    origins: HashSet<Origin>,
}

impl Pool {
    pub(super) fn new(settings: ClientSettings) -> Self {
        // There are two pools, and each origin may have several connections.
        let per_origin = 2 * settings.per_host;
        let max_origins = settings.max_idle / per_origin;
        Self {
            max_origins: (max_origins / 2).max(1),
            keeps_last: max_origins > 1,
            clients: Mutex::new(Clients {
                current: settings.serving(),
                last: None,
            }),
            settings,
        }
    }

    /// Returns the client for a request to this origin.
    pub(super) fn client_for(&self, origin: Option<Origin>) -> Client {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let Clients { current, last } = &mut *clients;
        if let Some(origin) = origin.filter(|origin| !current.origins.contains(origin)) {
            if let Some(last) = last.as_ref().filter(|last| last.origins.contains(&origin)) {
                return last.client.clone();
            }
            if current.origins.len() >= self.max_origins {
                let full = std::mem::replace(current, self.settings.serving());
                *last = Some(full).filter(|_| self.keeps_last);
            }
            current.origins.insert(origin);
        }
        current.client.clone()
    }

    /// Closes what is idle.
    pub(super) fn close_idle(&self) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.current = self.settings.serving();
        clients.last = None;
    }
}

/// The most headers of an answer, whatever the options allow: room for all of them is allocated, and the map that holds them
/// panics beyond 24 576.
const MAX_HEADERS: usize = 16_384;

/// The settings of a client.
#[derive(Debug, Clone)]
pub(super) struct ClientSettings {
    connect_timeout: Duration,
    idle_timeout: Duration,
    per_host: usize,
    max_idle: usize,
    max_headers: usize,
    max_header_bytes: usize,
    proxy: Option<UsableProxy>,
    resolver: Arc<dyn Resolver>,
    in_order: bool,
    first_look: FirstLook,
    guard: Guard,
    tls: rustls::ClientConfig,
}

impl ClientSettings {
    pub(super) fn new(
        config: &CrawlConfig,
        http: &HttpOptions,
        resolver: Arc<dyn Resolver>,
        guard: Guard,
    ) -> Result<Self, ClientError> {
        let frontier = &config.options().frontier;
        let proxy = http.proxy.as_ref().map(UsableProxy::new).transpose();
        let proxy = proxy.map_err(HttpOptionsError::from)?;
        if proxy.is_some() && frontier.per_address {
            return Err(HttpOptionsError::AddressesBehindProxy.into());
        }
        // A crawl that starts with it should not start without.
        let is_secure = config.seeds().iter().any(|seed| seed.url().scheme() == "https");
        let sessions = Sessions::within(config.options().max_memory);
        let tls = if http.accept_any_certificate {
            trust::config_without_checks(sessions)
        } else {
            trust::config(is_secure, sessions)?
        };
        Ok(Self {
            connect_timeout: http.timeout.min(http.connect_timeout),
            idle_timeout: frontier.delay.saturating_add(KEPT_BEYOND_DELAY).min(LONGEST_KEPT),
            per_host: frontier.per_host.get() as usize,
            max_idle: http.max_idle_connections.get(),
            max_headers: http.max_headers.get().min(MAX_HEADERS),
            max_header_bytes: http.max_header_bytes,
            proxy,
            resolver,
            in_order: frontier.per_address,
            first_look: FirstLook::default(),
            guard,
            tls,
        })
    }

    pub(super) fn proxy(&self) -> Option<&UsableProxy> {
        self.proxy.as_ref()
    }

    pub(super) fn first_look(&self) -> &FirstLook {
        &self.first_look
    }

    pub(super) fn guarded_by(&self, guard: Guard) -> Self {
        Self { guard, ..self.clone() }
    }

    fn serving(&self) -> Serving {
        Serving {
            client: self.client(),
            origins: HashSet::new(),
        }
    }

    fn client(&self) -> Client {
        let resolver = Guarded {
            resolver: Arc::clone(&self.resolver),
            guard: self.guard,
            proxy: self.proxy.as_ref().map(|proxy| proxy.host.clone()),
            in_order: self.in_order,
            first_look: self.first_look.clone(),
        };
        let connector = Connector::new(
            resolver,
            self.proxy.clone(),
            self.tls.clone(),
            self.connect_timeout,
            self.max_header_bytes,
        );
        // What the server closed before the request was sent is sent once more, on a new connection. Nothing else is.
        legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(self.per_host)
            .pool_idle_timeout(self.idle_timeout)
            .http1_max_headers(self.max_headers)
            .http2_max_header_list_size(u32::try_from(self.max_header_bytes).unwrap_or(u32::MAX))
            // As browsers do: a line that is no header costs that line only.
            .http1_ignore_invalid_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .build(connector)
    }
}
