//! The connections that are kept open between requests: how many, and for how long. Alone in making clients of the HTTP library.
//!
//! A client bounds what is idle per host, but not in all: a crawl of many hosts would use up the process's file handles. So a few clients have a
//! part of the origins each, and the one that was used least recently is left for a new one. Then its idle connections are closed; requests in
//! flight keep theirs until they end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frontier::Origin;
use reqwest::{Client, Proxy, redirect, retry};

use super::error::FetchError;
use super::guard::{AddressGuard, Dials, Guarded, Resolver};
use super::options::{ClientError, HttpOptions};
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

/// The most clients at once: the first page of a host mostly finds the connection of its robots.txt.
const MOST_CLIENTS: usize = 4;

/// The connections of a crawl.
#[derive(Debug)]
pub(super) struct Connections {
    http: HttpOptions,
    idle_timeout: Duration,
    per_host: usize,
    proxy: Option<Proxy>,
    resolver: Guarded,
    tls: rustls::ClientConfig,
    max_clients: usize,
    /// The most origins of a client.
    max_origins: usize,
    /// The last one used is first.
    clients: Mutex<Vec<Serving>>,
}

/// A client, and the origins that it serves. Connections that were opened without the guard are never used for a guarded origin.
#[derive(Debug)]
struct Serving {
    client: Client,
    dials: Dials,
    origins: HashSet<Origin>,
}

impl Connections {
    pub(super) fn new(
        config: &CrawlConfig,
        http: &HttpOptions,
        resolver: Arc<dyn Resolver>,
        guard: AddressGuard,
    ) -> Result<Self, ClientError> {
        let frontier = &config.options().frontier;
        let (proxy, proxy_host) = http.proxy.as_ref().map(proxy_of).transpose()?.unzip();
        if proxy.is_some() && frontier.per_address {
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
            proxy,
            resolver: Guarded {
                resolver,
                guard,
                dials: Dials::PublicOnly,
                proxy: proxy_host,
                in_order: frontier.per_address,
            },
            tls: tls.map_err(|error| ClientError::Setup(error.to_string()))?,
            max_clients,
            max_origins: origins / max_clients,
            clients: Mutex::default(),
        })
    }

    /// Returns the client for a request to this origin.
    pub(super) fn client_for(&self, origin: Origin, dials: Dials) -> Result<Client, FetchError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |fits: &dyn Fn(&Serving) -> bool| clients.iter().position(|one| one.dials == dials && fits(one));
        let known = find(&|one| one.origins.contains(&origin));
        let mut serving = match known.or_else(|| find(&|one| one.origins.len() < self.max_origins)) {
            Some(place) => clients.remove(place),
            None => Serving {
                client: self.client(dials)?,
                dials,
                origins: HashSet::new(),
            },
        };
        serving.origins.insert(origin);
        let client = serving.client.clone();
        clients.insert(0, serving);
        clients.truncate(self.max_clients);
        Ok(client)
    }

    /// Closes what is idle.
    pub(super) fn close_idle(&self) {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn client(&self, dials: Dials) -> Result<Client, FetchError> {
        let resolver = Guarded {
            dials,
            ..self.resolver.clone()
        };
        // What the server closed before the request was sent is sent once more, on a new connection. Nothing else is.
        let mut builder = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .retry(retry::never())
            .dns_resolver(resolver)
            .tls_backend_preconfigured(self.tls.clone())
            .connect_timeout(self.http.timeout.min(self.http.connect_timeout))
            .pool_max_idle_per_host(self.per_host)
            .pool_idle_timeout(self.idle_timeout)
            .http1_max_headers(self.http.max_headers.get().min(MAX_HEADERS))
            .http2_max_header_list_size(u32::try_from(self.http.max_header_bytes).unwrap_or(u32::MAX))
            // As browsers do: a line that is no header costs that line only.
            .http1_ignore_invalid_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_allow_obsolete_multiline_headers_in_responses(true);
        if let Some(proxy) = &self.proxy {
            builder = builder.proxy(proxy.clone());
        }
        builder.build().map_err(|error| FetchError::Other(error.to_string()))
    }
}
