//! The address guard, and the resolver that applies it. The addresses that pass are those that are dialled: there is no second
//! look-up that could answer otherwise.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::vec;

use frontier::{CanonicalUrl, Origin};
use hyper_util::client::legacy::connect::dns::Name;
use serde::{Deserialize, Serialize};
use tower_service::Service;
use url::{Host, Url};

use super::error::{DialError, FetchError, is_out_of_handles};
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
/// use crawler::{Crawl, CrawlConfig, CrawlOptions, FetchError, Fetcher, Request, Response};
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
///             .build()
///             .map_err(|error| FetchError::Broken(error.to_string()))?;
///         let answer = client.get(request.url).send().await;
///         let answer = answer.map_err(|error| FetchError::Connect(error.to_string()))?;
///         let header = |name: &str| Some(answer.headers().get(name)?.to_str().ok()?.to_owned());
///         Ok(Response {
///             status: answer.status().as_u16(),
///             content_type: header("content-type"),
///             location: header("location"),
///             body: answer.bytes().await.map_err(|error| FetchError::Broken(error.to_string()))?.into(),
///             ..Response::default()
///         })
///     }
/// }
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
/// let config = CrawlConfig::new(options)?;
/// let fetcher = MyFetcher { guard: AddressGuard::new(config.seeds()) };
/// let summary = Crawl::with_fetcher(config, fetcher)?.run().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct AddressGuard {
    /// Also those of earlier runs.
    seed_origins: Arc<RwLock<HashSet<Origin>>>,
    first_look: FirstLook,
}

impl AddressGuard {
    /// Makes the guard of a crawl with these seeds. For a crawl that is continued, these are the seeds of all its runs.
    pub fn new(seeds: &[CanonicalUrl]) -> Self {
        Self::sharing(FirstLook::default(), seeds)
    }

    /// Makes the guard of a crawl whose names are also looked up by others.
    pub(super) fn sharing(first_look: FirstLook, seeds: &[CanonicalUrl]) -> Self {
        let seed_origins: HashSet<_> = seeds.iter().map(CanonicalUrl::origin).collect();
        Self {
            seed_origins: Arc::new(RwLock::new(seed_origins)),
            first_look,
        }
    }

    /// Takes what earlier runs knew. Their seeds stay exempt, because their pages are still queued.
    pub(super) fn restore(&self, saved: SavedGuard) {
        let mut origins = self.seed_origins.write().unwrap_or_else(PoisonError::into_inner);
        origins.extend(saved.seed_origins);
        self.first_look.restore(saved.first_looks);
    }

    /// Returns what a later run must know. An origin that is public anyway needs no exemption.
    pub(super) fn save(&self) -> SavedGuard {
        let first_looks = self.first_look.all();
        let may_be_private = |origin: &&Origin| match origin.robots_url().host() {
            Some(Host::Ipv4(v4)) => !is_public(v4.into()),
            Some(Host::Ipv6(v6)) => !is_public(v6.into()),
            Some(Host::Domain(name)) => first_looks.get(name) != Some(&false),
            None => false,
        };
        let origins = self.seed_origins.read().unwrap_or_else(PoisonError::into_inner);
        let seed_origins = origins.iter().filter(may_be_private).cloned().collect();
        SavedGuard {
            first_looks,
            seed_origins,
        }
    }

    /// Returns how many names had their first look.
    pub(super) fn first_looks(&self) -> usize {
        self.first_look.len()
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
            Some(Host::Domain(name)) => look_up(resolver.resolve(name)).await.map_err(FetchError::from)?,
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
        let guard = if self.exempts(url) {
            Guard::AsAtFirst
        } else {
            Guard::PublicOnly
        };
        guard.allowed(&self.first_look, url.host_str().unwrap_or_default(), found)
    }

    /// Says whether a URL has the origin of a seed.
    pub fn exempts(&self, url: &Url) -> bool {
        let origins = self.seed_origins.read().unwrap_or_else(PoisonError::into_inner);
        Origin::of(url).is_some_and(|origin| origins.contains(&origin))
    }
}

/// What an address guard keeps for later runs.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SavedGuard {
    /// Whether the names of seeds had a private address at the first look-up.
    pub(super) first_looks: BTreeMap<String, bool>,
    /// The origins of seeds that may be private.
    #[serde(default)]
    pub(super) seed_origins: BTreeSet<Origin>,
}

/// Which addresses may be dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    PublicOnly,
    /// For names of seeds: private addresses are allowed if the first look-up returned one.
    AsAtFirst,
    Off,
}

impl Guard {
    /// Returns those of the addresses of a name that may be dialled, in their order.
    fn allowed(self, first_look: &FirstLook, name: &str, mut found: Vec<IpAddr>) -> Vec<IpAddr> {
        let allows_private = match self {
            Self::PublicOnly => false,
            Self::AsAtFirst => first_look.was_private(name.to_owned(), &found),
            Self::Off => true,
        };
        found.retain(|address| allows_private || is_public(*address));
        found
    }
}

/// Waits for a look-up, and says why there is no address.
async fn look_up(resolving: Resolving) -> Result<Vec<IpAddr>, DialError> {
    let found = resolving.await.map_err(|error| {
        if is_out_of_handles(&error) || none_is_left() {
            DialError::OutOfHandles
        } else {
            DialError::Unresolved(error.to_string())
        }
    })?;
    if found.is_empty() {
        return Err(DialError::Unresolved("it has no address".to_owned()));
    }
    Ok(found)
}

/// Which names had a private address at their first look-up.
#[derive(Debug, Clone, Default)]
pub(super) struct FirstLook(Arc<Mutex<HashMap<String, bool>>>);

impl FirstLook {
    /// Returns all names that were looked up, and whether they had a private address. It only grows.
    pub(super) fn all(&self) -> BTreeMap<String, bool> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().map(|(name, was)| (name.clone(), *was)).collect()
    }

    /// Takes the names of an earlier run.
    pub(super) fn restore(&self, names: BTreeMap<String, bool>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(names);
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Says whether a name had a private address at its first look-up, which may be this one.
    fn was_private(&self, name: String, found: &[IpAddr]) -> bool {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *names
            .entry(name)
            .or_insert_with(|| found.iter().any(|address| !is_public(*address)))
    }
}

/// The order in which the addresses of a host are tried where requests count by address: the first is that by which they do.
pub(super) fn order(address: &IpAddr) -> (bool, IpAddr) {
    (!is_public(*address), *address)
}

/// Says whether no socket can be opened any more. A look-up that cannot open one only reports an unknown name.
pub(super) fn none_is_left() -> bool {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_err_and(|error| is_out_of_handles(&error))
}

/// A resolver that returns only addresses that may be dialled.
#[derive(Debug, Clone)]
pub(super) struct Guarded {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) guard: Guard,
    pub(super) first_look: FirstLook,
    /// The host of the proxy, which may be anywhere.
    pub(super) proxy: Option<String>,
    /// Whether the addresses of a host are tried in the same [`order`] each time.
    pub(super) in_order: bool,
}

impl Guarded {
    /// Looks up a name. The addresses have no port.
    fn look_up(&self, name: &str) -> impl Future<Output = Result<Vec<SocketAddr>, DialError>> + Send + use<> {
        let is_proxy = self.proxy.as_deref() == Some(name);
        let guard = if is_proxy { Guard::Off } else { self.guard };
        let in_order = self.in_order;
        let (first_look, asked) = (self.first_look.clone(), name.to_owned());
        let looking_up = self.resolver.resolve(name);
        async move {
            let mut found = look_up(looking_up).await?;
            if in_order {
                found.sort_by_key(order);
            }
            let allowed = guard.allowed(&first_look, &asked, found).into_iter();
            let allowed: Vec<SocketAddr> = allowed.map(|ip| SocketAddr::new(ip, 0)).collect();
            if allowed.is_empty() {
                return Err(DialError::Forbidden);
            }
            Ok(allowed)
        }
    }

    /// Takes note that a connection to a host, or to the proxy before it, could not be made.
    pub(super) fn not_connected(&self, host: &str) {
        for name in self.proxy.iter().map(String::as_str).chain([host]) {
            self.resolver.not_connected(name);
        }
    }

    /// Looks up a name, and returns the first address that may be dialled.
    pub(super) async fn first_address(&self, name: &str) -> Result<IpAddr, DialError> {
        let found = self.look_up(name).await?;
        found.first().map(SocketAddr::ip).ok_or(DialError::Forbidden)
    }
}

impl Service<Name> for Guarded {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, DialError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let looking_up = self.look_up(name.as_str());
        Box::pin(async move { Ok(looking_up.await?.into_iter()) })
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
