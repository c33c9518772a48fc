//! The resolver behind the address guard. What it lets through is what is dialled: a second look-up that could answer
//! otherwise does not happen.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::dns::{Addrs, Name, Resolve};

use super::error::{DialError, is_out_of_handles};
use crate::fetch::address_guard::is_public;

/// A look-up under way.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a host name.
pub trait Resolver: Send + Sync + 'static {
    /// Looks up a name, which is in ASCII and may end in a dot. No address at all is an error.
    fn resolve(&self, name: &str) -> Resolving;
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

/// Which addresses may be dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    PublicOnly,
    /// For names of seeds: one that points inside at first may, and one that does not may not later.
    AsAtFirst,
    Off,
}

/// Which names pointed inside when they were first looked up.
#[derive(Debug, Clone, Default)]
pub(super) struct FirstLook(Arc<Mutex<HashMap<String, bool>>>);

impl FirstLook {
    /// Says whether a name pointed inside at first, which is now if it was never looked up.
    fn led_inside(&self, name: String, found: &[IpAddr]) -> bool {
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

/// Says whether a socket can be opened no more. A look-up that cannot open its own says only that the name is not known.
pub(super) fn none_is_left() -> bool {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).is_err_and(|error| is_out_of_handles(&error))
}

/// A resolver that gives only what may be dialled.
pub(super) struct Guarded {
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) guard: Guard,
    pub(super) first_look: FirstLook,
    /// The host of the proxy, which may be anywhere.
    pub(super) proxy: Option<String>,
    /// Whether the addresses of a host are tried in the same [`order`] each time.
    pub(super) in_order: bool,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> reqwest::dns::Resolving {
        let is_proxy = self.proxy.as_deref() == Some(name.as_str());
        let guard = if is_proxy { Guard::Off } else { self.guard };
        let in_order = self.in_order;
        let (first_look, asked) = (self.first_look.clone(), name.as_str().to_owned());
        let looking_up = self.resolver.resolve(name.as_str());
        Box::pin(async move {
            let unresolved = |why: String| DialError::Unresolved(why);
            let mut found = looking_up.await.map_err(|error| {
                if is_out_of_handles(&error) || none_is_left() {
                    DialError::OutOfHandles
                } else {
                    unresolved(error.to_string())
                }
            })?;
            if in_order {
                found.sort_by_key(order);
            }
            if found.is_empty() {
                return Err(unresolved("it has no address".to_owned()).into());
            }
            let is_open = match guard {
                Guard::PublicOnly => false,
                Guard::AsAtFirst => first_look.led_inside(asked, &found),
                Guard::Off => true,
            };
            let allowed: Vec<SocketAddr> = found
                .into_iter()
                .filter(|ip| is_open || is_public(*ip))
                .map(|ip| SocketAddr::new(ip, 0))
                .collect();
            if allowed.is_empty() {
                return Err(DialError::Forbidden.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}
