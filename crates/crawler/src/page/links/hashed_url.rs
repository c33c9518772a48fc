//! URLs in a table that is searched by their hashes, which are computed once.

use std::hash::{Hash, Hasher};

use indexmap::Equivalent;
use url::Url;

/// A URL with its keyed hash.
pub(super) struct HashedUrl {
    pub(super) hash: u64,
    pub(super) url: Url,
}

impl Hash for HashedUrl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialEq for HashedUrl {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.url == other.url
    }
}

impl Eq for HashedUrl {}

/// The hash of a URL, to find it in a table.
#[derive(Hash)]
pub(super) struct UrlHash(pub(super) u64);

impl Equivalent<HashedUrl> for UrlHash {
    fn equivalent(&self, key: &HashedUrl) -> bool {
        self.0 == key.hash
    }
}
