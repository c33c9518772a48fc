//! TLS sessions, which are resumed when a server is connected to again: then it sends no certificates, and none are verified
//! (RFC 8446, section 2.2; RFC 5077).
//!
//! The store of rustls keeps 32 servers by default: in a crawl of more hosts, none is left when its turn comes again. This one keeps many.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// The servers with a session, at most. A session has the certificates of its server. It took 1.7 KiB in the bench of broad crawls, with one
/// short certificate. A server that sends the longest messages can make it some 128 KiB: the library does not tell its length.
const MOST_SERVERS: usize = 16_384;
/// If the memory has a bound, sessions of one server are kept for each MiB of it.
const MEMORY_PER_SERVER: u64 = 1 << 20;
/// A ticket is used once. So while there are few servers, each has some, for connections that are made together.
const FEW_SERVERS: usize = 32;
const TICKETS_OF_FEW: usize = 8;

/// The sessions of all connection pools.
pub(super) struct Sessions {
    most: usize,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    servers: IndexMap<ServerName<'static>, Server>,
    /// How many were forgotten.
    forgotten: u64,
}

/// What is known of a server.
#[derive(Default)]
struct Server {
    /// The key exchange that it has chosen.
    group: Option<NamedGroup>,
    tls12: Option<Box<Tls12ClientSessionValue>>,
    /// Its last tickets. One that was used is not used again, so that connections cannot be linked (RFC 8446, appendix C.4).
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl fmt::Debug for Sessions {
    /// Shows no hosts and no tickets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.lock().servers.len();
        f.debug_struct("Sessions")
            .field("servers", &servers)
            .finish_non_exhaustive()
    }
}

impl Sessions {
    /// Makes room for the sessions of a crawl whose memory has this bound.
    pub(super) fn within(max_memory: Option<u64>) -> Self {
        let servers = max_memory.map_or(u64::MAX, |bytes| bytes / MEMORY_PER_SERVER);
        Self::new(usize::try_from(servers).unwrap_or(usize::MAX).min(MOST_SERVERS))
    }

    fn new(most: usize) -> Self {
        Self {
            most,
            known: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known of a server. `change` also gets the number of tickets that the server may have. If there is one server too
    /// many, a random other one is forgotten: the crawler visits hosts in a circle, so the oldest one would be needed next.
    fn change(&self, name: ServerName<'static>, change: impl FnOnce(&mut Server, usize)) {
        let mut known = self.lock();
        let Known { servers, forgotten } = &mut *known;
        if servers.len() >= self.most && !servers.contains_key(&name) {
            *forgotten += 1;
            let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(*forgotten);
            let index = hash % servers.len().max(1) as u64;
            servers.swap_remove_index(usize::try_from(index).unwrap_or_default());
        }
        let are_few = servers.len() <= FEW_SERVERS;
        change(
            servers.entry(name).or_default(),
            if are_few { TICKETS_OF_FEW } else { 1 },
        );
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.change(name, |server, _| server.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().servers.get(name)?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.change(name, |server, _| server.tls12 = Some(Box::new(session)));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.lock().servers.get(name)?.tls12.as_deref().cloned()
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        if let Some(server) = self.lock().servers.get_mut(name) {
            server.tls12 = None;
        }
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.change(name, |server, most| {
            let surplus = (server.tls13.len() + 1).saturating_sub(most);
            server.tls13.drain(..surplus);
            server.tls13.push_back(ticket);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.lock().servers.get_mut(name)?.tls13.pop_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_of_the_memory_bounds_the_servers() {
        for (memory, servers) in [
            (None, 16_384),
            (Some(256 << 20), 256),
            (Some(1 << 40), 16_384),
            (Some(0), 0),
        ] {
            assert_eq!(Sessions::within(memory).most, servers);
        }
        let none = Sessions::new(0);
        for n in 0..3 {
            none.set_kx_hint(
                ServerName::try_from(format!("host{n}.example")).unwrap(),
                NamedGroup::X25519,
            );
        }
        assert!(none.lock().servers.len() <= 1);
    }

    #[test]
    fn many_servers_are_remembered_and_no_more_than_that() {
        let sessions = Sessions::new(1000);
        let name = |n: usize| ServerName::try_from(format!("host{n}.example")).unwrap();
        let known = |range: std::ops::Range<usize>| range.filter(|n| sessions.kx_hint(&name(*n)).is_some()).count();
        (0..1000).for_each(|n| sessions.set_kx_hint(name(n), NamedGroup::X25519));
        assert_eq!(known(0..1000), 1000);
        (1000..1500).for_each(|n| sessions.set_kx_hint(name(n), NamedGroup::X25519));
        assert_eq!(known(0..1500), 1000);
        assert_eq!(
            sessions.kx_hint(&name(1499)),
            Some(NamedGroup::X25519),
            "the last one is there"
        );
        // (1 - 1/1000)^500, or 61 %, of the first ones are left. The bounds are five standard deviations away.
        assert!((530..690).contains(&known(0..1000)), "{}", known(0..1000));
    }
}
