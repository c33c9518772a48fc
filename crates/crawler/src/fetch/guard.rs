//! The address guard, and the resolver that applies it. The addresses that pass are those that are dialled: there is no second
//! look-up that could answer otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use frontier::{CanonicalUrl, Origin};
use reqwest::dns::{Addrs, Name, Resolve};
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::error::{FetchError, is_out_of_handles};
use crate::fetch::address_guard::is_public;

/// A look-up under way.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a host name.
pub trait Resolver: Send + Sync + 'static {
    /// Looks up a name, which is in ASCII and may end in a dot. No address at all is an error.
    fn resolve(&self, name: &str) -> Resolving;

    /// Takes note that a connection to the addresses of a name could not be made. A resolver that remembers them should forget them.
    fn not_connected(&self, _name: &str) {}
}

impl fmt::Debug for dyn Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

/// The resolver of the operating system, but for `localhost` and all below it: RFC 6761, section 6.3, has these never asked of
/// a name server.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: &str) -> Resolving {
        let name = name.to_owned();
        Box::pin(async move {
            if is_localhost(&name) {
                return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
            }
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Says whether a name means this machine whatever a name server says.
pub(super) fn is_localhost(name: &str) -> bool {
    let bare = name.trim_end_matches('.').to_ascii_lowercase();
    bare == "localhost" || bare.ends_with(".localhost")
}

/// Decides to which addresses a crawl connects, for a [`Fetcher`](crate::Fetcher) of your own: the
/// [`HttpFetcher`](crate::HttpFetcher) has one already.
///
/// Only [public](super::address_guard::is_public) addresses pass, whatever name leads to them. The origin of a seed is exempt: it may be
/// private. A seed whose name had only public addresses at its first look-up stays public, so that its name server cannot lead the
/// crawl into the network later.
///
/// Redirects must not be followed by the client: their targets would not be checked.
///
/// ```no_run
/// use crawler::fetch::{AddressGuard, SystemResolver};
/// use crawler::{Crawl, CrawlOptions, FetchError, Fetcher, Request, Response};
///
/// struct MyFetcher {
///     guard: AddressGuard,
/// }
///
/// impl Fetcher for MyFetcher {
///     async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
///         let addresses = self.guard.resolve(&request.url, &SystemResolver).await?;
///         // Connects to these addresses, and looks up no name.
///         let client = reqwest::Client::builder()
///             .no_proxy()
///             .redirect(reqwest::redirect::Policy::none())
///             .resolve_to_addrs(request.url.host_str().unwrap_or_default(), &addresses)
///             .build();
///         let broken = |error: reqwest::Error| FetchError::Broken(error.to_string());
///         let answer = client.map_err(broken)?.get(request.url).send().await.map_err(broken)?;
///         Ok(Response {
///             status: answer.status().as_u16(),
///             body: answer.bytes().await.map_err(broken)?.into(),
///             ..Response::default()
///         })
///     }
/// }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
/// let builder = Crawl::builder(options)?;
/// let fetcher = MyFetcher { guard: AddressGuard::new(builder.config().seeds()) };
/// let summary = builder.build_with(fetcher)?.run().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct AddressGuard {
    known: Arc<Mutex<SavedGuard>>,
}

/// What an address guard knows, and keeps for later runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SavedGuard {
    /// Whether the names of seeds had a private address at the first look-up.
    pub(super) first_looks: BTreeMap<String, bool>,
    /// The origins of seeds, also of those of earlier runs.
    #[serde(default)]
    pub(super) seed_origins: BTreeSet<Origin>,
}

impl AddressGuard {
    /// Makes the guard of a crawl with these seeds. For a crawl that is continued, these are the seeds of all its runs.
    pub fn new(seeds: &[CanonicalUrl]) -> Self {
        let guard = Self::default();
        guard.lock().seed_origins = seeds.iter().map(CanonicalUrl::origin).collect();
        guard
    }

    fn lock(&self) -> MutexGuard<'_, SavedGuard> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what earlier runs knew. Their seeds stay exempt, because their pages are still queued.
    pub(super) fn restore(&self, saved: SavedGuard) {
        let mut known = self.lock();
        known.seed_origins.extend(saved.seed_origins);
        known.first_looks.extend(saved.first_looks);
    }

    /// Returns what a later run must know. An origin that is public anyway needs no exemption.
    pub(super) fn save(&self) -> SavedGuard {
        let mut saved = self.lock().clone();
        let first_looks = &saved.first_looks;
        saved.seed_origins.retain(|origin| match origin.robots_url().host() {
            Some(Host::Ipv4(v4)) => !is_public(v4.into()),
            Some(Host::Ipv6(v6)) => !is_public(v6.into()),
            Some(Host::Domain(name)) => first_looks.get(name) != Some(&false),
            None => false,
        });
        saved
    }

    /// Returns how many names had their first look.
    pub(super) fn first_looks(&self) -> usize {
        self.lock().first_looks.len()
    }

    /// Looks up the host of a URL, and returns the addresses that may be dialled, with the port of the URL. A host that is an
    /// address is not looked up. Has no time limit of its own.
    ///
    /// # Errors
    ///
    /// [`FetchError::AddressForbidden`] if no address passes, [`FetchError::Unresolved`] if there is none,
    /// [`FetchError::OutOfHandles`] if this process has no file handle left for the look-up.
    pub async fn resolve(&self, url: &Url, resolver: &impl Resolver) -> Result<Vec<SocketAddr>, FetchError> {
        let found = match url.host() {
            Some(Host::Ipv4(v4)) => vec![v4.into()],
            Some(Host::Ipv6(v6)) => vec![v6.into()],
            Some(Host::Domain(name)) => look_up(resolver.resolve(name)).await?,
            None => return Err(FetchError::Unresolved("the URL has no host".to_owned())),
        };
        let port = url.port_or_known_default().unwrap_or(0);
        let allowed = self.allowed(url, found).into_iter();
        let allowed: Vec<_> = allowed.map(|address| SocketAddr::new(address, port)).collect();
        if allowed.is_empty() {
            return Err(FetchError::AddressForbidden);
        }
        Ok(allowed)
    }

    /// Returns those of the addresses of a URL's host that may be dialled, in their order. `found` are all addresses that a look-up
    /// has returned; the first look-up of a seed's name decides whether it may be private.
    pub fn allowed(&self, url: &Url, found: Vec<IpAddr>) -> Vec<IpAddr> {
        let dials = if self.exempts(url) {
            Dials::AsAtFirst
        } else {
            Dials::PublicOnly
        };
        self.allowed_by(dials, url.host_str().unwrap_or_default(), found)
    }

    /// Says whether a URL has the origin of a seed.
    pub fn exempts(&self, url: &Url) -> bool {
        Origin::of(url).is_some_and(|origin| self.lock().seed_origins.contains(&origin))
    }

    /// Returns those of the addresses of a name that may be dialled, in their order.
    fn allowed_by(&self, dials: Dials, name: &str, mut found: Vec<IpAddr>) -> Vec<IpAddr> {
        let allows_private = match dials {
            Dials::PublicOnly => false,
            Dials::AsAtFirst => {
                let is_private = || found.iter().any(|address| !is_public(*address));
                *self
                    .lock()
                    .first_looks
                    .entry(name.to_owned())
                    .or_insert_with(is_private)
            }
            Dials::All => true,
        };
        found.retain(|address| allows_private || is_public(*address));
        found
    }
}

/// Which addresses are dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dials {
    PublicOnly,
    /// For names of seeds: private addresses are allowed if the first look-up returned one.
    AsAtFirst,
    All,
}

/// Waits for a look-up, and says why there is no address.
async fn look_up(resolving: Resolving) -> Result<Vec<IpAddr>, FetchError> {
    let found = resolving.await.map_err(|error| {
        if is_out_of_handles(&error) || none_is_left() {
            FetchError::OutOfHandles
        } else {
            FetchError::Unresolved(error.to_string())
        }
    })?;
    if found.is_empty() {
        return Err(FetchError::Unresolved("it has no address".to_owned()));
    }
    Ok(found)
}

/// The order in which the addresses of a host are tried where requests count by address: the first is that by which they do.
pub(super) fn order(address: &IpAddr) -> (bool, IpAddr) {
    (!is_public(*address), *address)
}

/// Says whether no socket can be opened any more. A look-up that cannot open one only reports an unknown name.
pub(super) fn none_is_left() -> bool {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_err_and(|error| is_out_of_handles(&error))
}

/// A resolver that returns only addresses that may be dialled. Addresses in URLs are dialled without asking it.
#[derive(Debug, Clone)]
pub(super) struct Guarded {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) guard: AddressGuard,
    pub(super) dials: Dials,
    /// The host of the proxy, which may be anywhere.
    pub(super) proxy: Option<String>,
    /// Whether the addresses of a host are tried in the same [`order`] each time.
    pub(super) in_order: bool,
}

impl Guarded {
    async fn look_up(self, name: String) -> Result<Vec<SocketAddr>, FetchError> {
        let is_proxy = self.proxy.as_deref() == Some(&name);
        let dials = if is_proxy { Dials::All } else { self.dials };
        // A SOCKS proxy that looks up no names is the reason why this is asked for addresses, too.
        let mut found = match name.trim_matches(['[', ']']).parse() {
            Ok(address) => vec![address],
            Err(_) => look_up(self.resolver.resolve(&name)).await?,
        };
        if self.in_order {
            found.sort_by_key(order);
        }
        let allowed = self.guard.allowed_by(dials, &name, found);
        if allowed.is_empty() {
            return Err(FetchError::AddressForbidden);
        }
        // The HTTP library puts in the port.
        Ok(allowed.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect())
    }
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> reqwest::dns::Resolving {
        let looking_up = self.clone().look_up(name.as_str().to_owned());
        Box::pin(async move { Ok(Box::new(looking_up.await?.into_iter()) as Addrs) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn origins_of_seeds_are_kept_that_may_be_private_and_no_other_is_exempt_later() {
        let canonicalizer = frontier::Canonicalizer::default();
        let seeds = [
            "http://10.0.0.5:8000/x",
            "http://[fd00::1]/",
            "http://8.8.8.8/",
            "https://inside.example/",
            "https://public.example/",
            "https://waiting.example/",
        ];
        let guard = AddressGuard::new(&seeds.map(|seed| canonicalizer.parse(seed).unwrap()));
        guard.allowed(&url("https://inside.example/"), vec![[10, 0, 0, 6].into()]);
        guard.allowed(&url("https://public.example/"), vec![[8, 8, 8, 8].into()]);
        let later = AddressGuard::new(&[]);
        later.restore(guard.save());
        let private = |of: &str| later.allowed(&url(of), vec![[10, 0, 0, 7].into()]).len() == 1;
        for seed in [seeds[0], seeds[1], seeds[3], seeds[5]] {
            assert!(later.exempts(&url(seed)) && private(seed), "{seed}");
        }
        for other in [
            seeds[2],
            seeds[4],
            "http://10.0.0.5/",
            "https://10.0.0.5:8000/",
            "http://inside.example/",
            "http://10.0.0.7/",
        ] {
            assert!(!later.exempts(&url(other)) && !private(other), "{other}");
        }
    }
}
