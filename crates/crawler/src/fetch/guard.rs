//! The address guard, and the resolver that applies it. The addresses that pass are those that are dialled: there is no second
//! look-up that could answer otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use frontier::{Link, Origin};
use reqwest::dns::{Addrs, Name, Resolve};
use serde::{Deserialize, Serialize};
use url::Url;

use super::classify::is_out_of_handles;
use super::error::FetchError;
use super::lock;
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
/// use crawler::{Crawl, CrawlOptions, Request};
///
/// # async fn run(request: Request) -> Result<(), Box<dyn std::error::Error>> {
/// let options = CrawlOptions { seeds: vec!["example.com".to_owned()], ..CrawlOptions::default() };
/// let guard = AddressGuard::new(Crawl::builder(options)?.config().seeds());
/// // Your `Fetcher::fetch` connects to these addresses, and looks up no name again.
/// let addresses = guard.resolve(&request.url, &SystemResolver).await?;
/// let client = reqwest::Client::builder()
///     .redirect(reqwest::redirect::Policy::none())
///     .resolve_to_addrs(request.url.host_str().unwrap_or_default(), &addresses);
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
    pub fn new(seeds: &[Link]) -> Self {
        let guard = Self::default();
        lock(&guard.known).seed_origins = seeds.iter().map(|seed| seed.url.origin()).collect();
        guard
    }

    /// Takes what earlier runs knew. Their seeds stay exempt, because their pages are still queued.
    pub(super) fn restore(&self, saved: SavedGuard) {
        let mut known = lock(&self.known);
        known.seed_origins.extend(saved.seed_origins);
        known.first_looks.extend(saved.first_looks);
    }

    /// Returns what a later run must know. An origin that is public anyway needs no exemption.
    pub(super) fn save(&self) -> SavedGuard {
        let mut saved = lock(&self.known).clone();
        let first_looks = &saved.first_looks;
        saved.seed_origins.retain(|origin| {
            let url = origin.robots_url();
            let host = url.host_str().unwrap_or_default();
            literal(host).map_or(first_looks.get(host) != Some(&false), |address| !is_public(address))
        });
        saved
    }

    pub(super) fn first_looks(&self) -> usize {
        lock(&self.known).first_looks.len()
    }

    /// Looks up the host of a URL, and returns the addresses that may be dialled, with the port of the URL. A host that is an
    /// address is not looked up. Has no time limit of its own.
    ///
    /// # Errors
    ///
    /// [`FetchError::AddressForbidden`] if no address passes, [`FetchError::Unresolved`] if there is none,
    /// [`FetchError::OutOfHandles`] if this process has no file handle left for the look-up.
    pub async fn resolve(&self, url: &Url, resolver: &impl Resolver) -> Result<Vec<SocketAddr>, FetchError> {
        let host = url.host_str().unwrap_or_default();
        let found = look_up(resolver, host).await?;
        let port = url.port_or_known_default().unwrap_or_default();
        let dials = Origin::of(url).map_or(Dials::PublicOnly, |origin| self.dials(&origin));
        self.allowed(dials, host, found, port)
    }

    /// It may be the origin of a seed.
    pub(super) fn dials(&self, origin: &Origin) -> Dials {
        match lock(&self.known).seed_origins.contains(origin) {
            true => Dials::AsAtFirst,
            false => Dials::PublicOnly,
        }
    }

    fn allowed(
        &self,
        dials: Dials,
        name: &str,
        mut found: Vec<IpAddr>,
        port: u16,
    ) -> Result<Vec<SocketAddr>, FetchError> {
        let allows_private = match dials {
            Dials::PublicOnly => false,
            Dials::AsAtFirst => {
                let is_private = || found.iter().any(|address| !is_public(*address));
                let first_looks = &mut lock(&self.known).first_looks;
                *first_looks.entry(name.to_owned()).or_insert_with(is_private)
            }
            Dials::All => true,
        };
        found.retain(|address| allows_private || is_public(*address));
        if found.is_empty() {
            return Err(FetchError::AddressForbidden);
        }
        Ok(found.into_iter().map(|address| (address, port).into()).collect())
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

pub(super) fn literal(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok()
}

/// Looks up a host, unless it is an address, and says why there is no address.
pub(super) async fn look_up(resolver: &(impl Resolver + ?Sized), host: &str) -> Result<Vec<IpAddr>, FetchError> {
    if let Some(address) = literal(host) {
        return Ok(vec![address]);
    }
    match resolver.resolve(host).await {
        Ok(found) if found.is_empty() => Err(FetchError::Unresolved("it has no address".to_owned())),
        Ok(found) => Ok(found),
        Err(error) if is_out_of_handles(&error) || none_is_left() => Err(FetchError::OutOfHandles),
        Err(error) => Err(FetchError::Unresolved(error.to_string())),
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

/// A resolver that returns only addresses that may be dialled. Addresses in URLs are dialled without asking it.
#[derive(Debug, Clone)]
pub(super) struct Guarded {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) guard: AddressGuard,
    pub(super) dials: Dials,
    /// The hosts of proxies, which may be anywhere.
    pub(super) proxies: Vec<String>,
    /// Whether the addresses of a host are tried in the same [`order`] each time.
    pub(super) in_order: bool,
}

impl Guarded {
    async fn look_up(self, name: String) -> Result<Vec<SocketAddr>, FetchError> {
        let is_proxy = self.proxies.contains(&name);
        let dials = if is_proxy { Dials::All } else { self.dials };
        // A SOCKS proxy that looks up no names is the reason why this is asked for addresses, too.
        let mut found = look_up(&*self.resolver, &name).await?;
        if self.in_order {
            found.sort_by_key(order);
        }
        // The HTTP library puts in the port.
        self.guard.allowed(dials, &name, found, 0)
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

    fn is_allowed(guard: &AddressGuard, url: &str, address: [u8; 4]) -> bool {
        let url = Url::parse(url).unwrap();
        let found = vec![address.into()];
        guard
            .allowed(
                guard.dials(&Origin::of(&url).unwrap()),
                url.host_str().unwrap(),
                found,
                80,
            )
            .is_ok()
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
        let guard = AddressGuard::new(&seeds.map(|seed| Link::seed(canonicalizer.parse(seed).unwrap())));
        is_allowed(&guard, "https://inside.example/", [10, 0, 0, 6]);
        is_allowed(&guard, "https://public.example/", [8, 8, 8, 8]);
        let later = AddressGuard::new(&[]);
        later.restore(guard.save());
        for (url, is_exempt) in [
            (seeds[0], true),
            (seeds[1], true),
            (seeds[2], false),
            (seeds[3], true),
            (seeds[4], false),
            (seeds[5], true),
            ("http://10.0.0.5/", false),
            ("https://10.0.0.5:8000/", false),
            ("http://inside.example/", false),
            ("http://10.0.0.7/", false),
        ] {
            assert_eq!(is_allowed(&later, url, [10, 0, 0, 7]), is_exempt, "{url}");
        }
    }
}
