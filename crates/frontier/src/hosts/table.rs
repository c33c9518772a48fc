//! All hosts by name. All changes of hosts go through this table, so that it can be copied while it changes.

use std::collections::HashMap;

use super::host::Host;
use crate::url::HostKey;

/// The hosts that are remembered.
#[derive(Debug, Default)]
pub(crate) struct HostTable {
    // Boxed, because a table of large values wastes memory in its free slots.
    hosts: HashMap<HostKey, Box<Host>>,
    #[cfg(feature = "durable")]
    copy: HostCopy,
}

impl HostTable {
    pub(crate) fn len(&self) -> usize {
        self.hosts.len()
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.hosts.contains_key(name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Host> {
        self.hosts.get(name).map(|host| &**host)
    }

    /// Returns the copy of a name that all references to the host share.
    pub(crate) fn shared_name(&self, key: &HostKey) -> HostKey {
        self.hosts
            .get_key_value(key)
            .map_or_else(|| key.clone(), |(own, _)| own.clone())
    }

    pub(crate) fn get_mut(&mut self, key: &HostKey) -> Option<&mut Host> {
        let host = self.hosts.get_mut(key)?;
        #[cfg(feature = "durable")]
        self.copy.before_change(key, host);
        Some(host)
    }

    /// Finds or creates a host.
    pub(crate) fn get_or_insert(&mut self, key: &HostKey) -> &mut Host {
        let host = self.hosts.entry(key.clone()).or_insert_with(|| {
            #[cfg_attr(not(feature = "durable"), expect(unused_mut, reason = "it is in no copy"))]
            let mut host = Box::<Host>::default();
            #[cfg(feature = "durable")]
            self.copy.is_new(&mut host);
            host
        });
        #[cfg(feature = "durable")]
        self.copy.before_change(key, host);
        host
    }

    pub(crate) fn remove(&mut self, key: &HostKey) -> Option<Box<Host>> {
        #[cfg_attr(not(feature = "durable"), expect(unused_mut, reason = "it is in no copy"))]
        let mut host = self.hosts.remove(key)?;
        #[cfg(feature = "durable")]
        self.copy.before_change(key, &mut host);
        Some(host)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&HostKey, &Host)> {
        self.hosts.iter().map(|(key, host)| (key, &**host))
    }
}

/// A copy of all hosts as they were when it began. A host is copied just before it changes, and the others one after the other.
#[cfg(feature = "durable")]
#[derive(Debug, Default)]
struct HostCopy {
    /// The number of the copy that is made, or of the last one.
    number: u32,
    /// Hosts that may not be copied yet; none if no copy is made.
    left: Vec<HostKey>,
    /// What is copied, as bytes.
    copied: Vec<u8>,
    error: Option<postcard::Error>,
}

#[cfg(feature = "durable")]
impl HostCopy {
    fn is_new(&self, host: &mut Host) {
        host.copied_in = self.number;
    }

    fn before_change(&mut self, key: &HostKey, host: &mut Host) {
        if host.copied_in == self.number || self.left.is_empty() {
            return;
        }
        host.copied_in = self.number;
        match postcard::to_extend(&(key, &*host), std::mem::take(&mut self.copied)) {
            Ok(copied) => self.copied = copied,
            Err(error) => self.error = Some(error),
        }
    }
}

#[cfg(feature = "durable")]
impl HostTable {
    /// Begins a copy of all hosts as they are now. A copy that was not finished is dropped.
    ///
    /// Cost: a reference to each host.
    pub(crate) fn begin_copy(&mut self) {
        self.copy.number = self.copy.number.wrapping_add(1);
        self.copy.left = self.hosts.keys().cloned().collect();
        self.copy.copied.clear();
    }

    /// Copies more hosts, until there are about `bytes` more or all are copied. Returns what was copied since the last call, and whether
    /// that was the rest.
    ///
    /// # Errors
    ///
    /// A host that cannot be written as bytes.
    pub(crate) fn copy_more(&mut self, bytes: usize) -> Result<(Vec<u8>, bool), postcard::Error> {
        while self.copy.copied.len() < bytes {
            let Some(key) = self.copy.left.pop() else { break };
            if let Some(host) = self.hosts.get_mut(&key) {
                // The last one, too.
                self.copy.left.push(key.clone());
                self.copy.before_change(&key, host);
                self.copy.left.pop();
            }
        }
        match self.copy.error.take() {
            Some(error) => Err(error),
            None => Ok((std::mem::take(&mut self.copy.copied), self.copy.left.is_empty())),
        }
    }

    /// Adds the hosts of a copy.
    ///
    /// # Errors
    ///
    /// Bytes that are no copy.
    pub(crate) fn read_copy(&mut self, mut copied: &[u8]) -> Result<(), postcard::Error> {
        while !copied.is_empty() {
            let ((key, host), rest) = postcard::take_from_bytes::<(HostKey, Box<Host>)>(copied)?;
            self.hosts.insert(key, host);
            copied = rest;
        }
        Ok(())
    }

    /// Changes all hosts, before the first copy.
    pub(crate) fn for_each_mut(&mut self, change: impl FnMut(&mut Host)) {
        self.hosts.values_mut().map(|host| &mut **host).for_each(change);
    }
}
