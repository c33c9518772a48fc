//! The connections that are kept open between requests: how many, and for how long. Alone in making clients of the HTTP library.
//!
//! A client bounds what is idle per host, but not in all: a crawl of many hosts would use up the process's file handles. So a client that has
//! served half as many origins as may have idle connections takes no further ones. It still serves its own until the next one is left, too: the
//! first page of a host mostly finds the connection of its robots.txt. Then its idle connections are closed; requests in flight keep theirs
//! until they end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frontier::Origin;
use reqwest::{Client, Proxy, redirect, retry};

use super::guard::{AddressGuard, Dials, Guarded, Resolver};
use super::options::{HttpOptions, HttpOptionsError};
use super::proxy::proxy_of;
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

/// Why the HTTP fetcher cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The options cannot be used.
    #[error(transparent)]
    Options(#[from] HttpOptionsError),
    /// The HTTP client cannot be made, mostly because the certificates that the system trusts cannot be read.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

/// What all clients of a crawl have in common.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    connect_timeout: Duration,
    idle_timeout: Duration,
    per_host: usize,
    max_idle: usize,
    max_headers: usize,
    max_header_bytes: usize,
    proxy: Option<Proxy>,
    resolver: Guarded,
    tls: rustls::ClientConfig,
}

impl Settings {
    pub(super) fn new(
        config: &CrawlConfig,
        http: &HttpOptions,
        resolver: Arc<dyn Resolver>,
        guard: AddressGuard,
    ) -> Result<Self, ClientError> {
        let frontier = &config.options().frontier;
        let proxy = http.proxy.as_ref().map(proxy_of).transpose();
        let (proxy, proxy_host) = proxy.map_err(HttpOptionsError::from)?.unzip();
        if proxy.is_some() && frontier.per_address {
            return Err(HttpOptionsError::AddressesBehindProxy.into());
        }
        let starts_secure = config.seeds().iter().any(|seed| seed.url().scheme() == "https");
        let tls = tls::config(http.accept_any_certificate, starts_secure, config.options().max_memory);
        Ok(Self {
            connect_timeout: http.timeout.min(http.connect_timeout),
            idle_timeout: frontier.delay.saturating_add(KEPT_BEYOND_DELAY).min(LONGEST_KEPT),
            per_host: frontier.per_host.get() as usize,
            max_idle: http.max_idle_connections.get(),
            max_headers: http.max_headers.get().min(MAX_HEADERS),
            max_header_bytes: http.max_header_bytes,
            proxy,
            resolver: Guarded {
                resolver,
                guard,
                dials: Dials::PublicOnly,
                proxy: proxy_host,
                in_order: frontier.per_address,
            },
            tls: tls.map_err(|error| ClientError::Client(error.to_string()))?,
        })
    }

    fn client(&self) -> Result<Client, ClientError> {
        // What the server closed before the request was sent is sent once more, on a new connection. Nothing else is.
        let mut builder = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .retry(retry::never())
            .dns_resolver(self.resolver.clone())
            .tls_backend_preconfigured(self.tls.clone())
            .connect_timeout(self.connect_timeout)
            .pool_max_idle_per_host(self.per_host)
            .pool_idle_timeout(self.idle_timeout)
            .http1_max_headers(self.max_headers)
            .http2_max_header_list_size(u32::try_from(self.max_header_bytes).unwrap_or(u32::MAX))
            // As browsers do: a line that is no header costs that line only.
            .http1_ignore_invalid_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_allow_obsolete_multiline_headers_in_responses(true);
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(proxy.clone());
        }
        builder.build().map_err(|error| ClientError::Client(error.to_string()))
    }
}

/// One guard's connections.
#[derive(Debug)]
pub(super) struct Connections {
    settings: Settings,
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

impl Connections {
    pub(super) fn new(mut settings: Settings, dials: Dials) -> Result<Self, ClientError> {
        settings.resolver.dials = dials;
        // There are two guards, and each origin may have several connections.
        let max_origins = settings.max_idle / (2 * settings.per_host);
        Ok(Self {
            max_origins: (max_origins / 2).max(1),
            keeps_last: max_origins > 1,
            clients: Mutex::new(Clients {
                current: Serving {
                    client: settings.client()?,
                    origins: HashSet::new(),
                },
                last: None,
            }),
            settings,
        })
    }

    /// Returns the client for a request to this origin.
    pub(super) fn client_for(&self, origin: Option<Origin>) -> Client {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(origin) = origin.filter(|origin| !clients.current.origins.contains(origin)) {
            if let Some(last) = clients.last.as_ref().filter(|last| last.origins.contains(&origin)) {
                return last.client.clone();
            }
            if clients.current.origins.len() >= self.max_origins {
                let full = self.replace(&mut clients);
                clients.last = full.filter(|_| self.keeps_last);
            }
            clients.current.origins.insert(origin);
        }
        clients.current.client.clone()
    }

    /// Closes what is idle.
    pub(super) fn close_idle(&self) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        self.replace(&mut clients);
        clients.last = None;
    }

    /// Replaces the current client, and returns it. If no other can be made, it stays.
    fn replace(&self, clients: &mut Clients) -> Option<Serving> {
        let client = self.settings.client().ok()?;
        let origins = HashSet::new();
        Some(std::mem::replace(&mut clients.current, Serving { client, origins }))
    }
}
