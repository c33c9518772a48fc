//! TLS sessions, which are resumed when a server is connected to again: then it sends no certificates, and none are verified
//! (RFC 8446, section 2.2; RFC 5077).
//!
//! The store of rustls keeps eight tickets of each server, and by default 32 servers: in a crawl of more hosts, none is left when its turn
//! comes again. This one keeps the last ticket of many.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// The servers with a session, at most. A session has the certificates of its server, and takes 1 to 5 KiB.
const MOST_SERVERS: usize = 16_384;

/// The sessions of all connection pools.
#[derive(Debug)]
pub(super) struct Sessions {
    most: usize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    servers: IndexMap<ServerName<'static>, Server>,
    /// How many were forgotten.
    forgotten: u64,
}

/// What is known of a server.
#[derive(Debug, Default)]
struct Server {
    /// The key exchange that it has chosen.
    group: Option<NamedGroup>,
    tls12: Option<Box<Tls12ClientSessionValue>>,
    /// Its last ticket. One that was used is not used again, so that connections cannot be linked (RFC 8446, appendix C.4).
    tls13: Option<Box<Tls13ClientSessionValue>>,
}

impl Default for Sessions {
    fn default() -> Self {
        Self::new(MOST_SERVERS)
    }
}

impl Sessions {
    fn new(most: usize) -> Self {
        Self {
            most,
            known: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known of a server. If that is one too many, any other is forgotten: hosts have their turns in a circle, where the
    /// oldest would always be the next one.
    fn change(&self, name: ServerName<'static>, change: impl FnOnce(&mut Server)) {
        let mut known = self.lock();
        let Known { servers, forgotten } = &mut *known;
        if servers.len() >= self.most && !servers.contains_key(&name) {
            *forgotten += 1;
            let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(*forgotten);
            let index = hash % servers.len().max(1) as u64;
            servers.swap_remove_index(usize::try_from(index).unwrap_or_default());
        }
        change(servers.entry(name).or_default());
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.change(name, |server| server.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock().servers.get(name)?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.change(name, |server| server.tls12 = Some(Box::new(session)));
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
        self.change(name, |server| server.tls13 = Some(Box::new(ticket)));
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.lock().servers.get_mut(name)?.tls13.take().map(|ticket| *ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Of the first ones (1 - 1/1000)^500, or 61 %, are left; all within five standard deviations.
        assert!((530..690).contains(&known(0..1000)), "{}", known(0..1000));
    }
}
