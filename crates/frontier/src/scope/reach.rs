//! The reach of the seeds: one set per kind of [`Reach`], with one look-up per link.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use url::Url;

use super::{Reach, Refusal};
use crate::url::{CanonicalUrl, HostKey, host_name, site};

/// What is in reach of the seeds.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Reached {
    Hosts(HashSet<HostKey>),
    Sites(HashSet<Box<str>>),
    Directories(HashMap<HostKey, Directories>),
    Everywhere,
}

impl Reached {
    pub(super) fn new(reach: Reach) -> Self {
        match reach {
            Reach::Host => Self::Hosts(HashSet::new()),
            Reach::Site => Self::Sites(HashSet::new()),
            Reach::Prefix => Self::Directories(HashMap::new()),
            Reach::Any => Self::Everywhere,
        }
    }

    /// Adds a seed. Returns whether the reach has grown.
    pub(super) fn add(&mut self, seed: &CanonicalUrl) -> bool {
        match self {
            Self::Hosts(hosts) => hosts.insert(seed.host()),
            Self::Sites(sites) => sites.insert(site(seed.host_str()).into()),
            Self::Directories(directories) => directories.entry(seed.host()).or_default().add(&path(seed)),
            Self::Everywhere => false,
        }
    }

    /// Checks whether a URL is in reach.
    pub(super) fn judge(&self, url: &CanonicalUrl) -> Result<(), Refusal> {
        let (is_inside, refusal) = match self {
            Self::Hosts(hosts) => (hosts.contains(url.host_str()), Refusal::OtherHost),
            Self::Sites(sites) => (sites.contains(site(url.host_str())), Refusal::OtherSite),
            Self::Directories(directories) => {
                let open = directories.get(url.host_str());
                (open.is_some_and(|open| open.cover(&path(url))), Refusal::OutsidePrefix)
            }
            Self::Everywhere => return Ok(()),
        };
        if is_inside { Ok(()) } else { Err(refusal) }
    }

    pub(super) fn reaches(&self, url: &Url) -> bool {
        match self {
            Self::Hosts(hosts) => hosts.contains(host_name(url)),
            Self::Sites(sites) => sites.contains(site(host_name(url))),
            Self::Directories(directories) => directories.contains_key(host_name(url)),
            Self::Everywhere => true,
        }
    }
}

/// Returns the path of the key, with the final slash of the URL. A rule that drops the slash would turn the directory `/docs/` into
/// the file `/docs`, and put all of `/` in reach.
fn path(url: &CanonicalUrl) -> Cow<'_, str> {
    let path = url.key_path();
    if url.url().path().ends_with('/') && !path.ends_with('/') {
        Cow::Owned(format!("{path}/"))
    } else {
        Cow::Borrowed(path)
    }
}

/// The directories in reach on one host, none inside another.
///
/// That is why one look-up decides. If `/a/` is in the set, nothing that sorts between `/a/` and `/a/b/c` is. So only the last
/// directory that does not sort after a path can contain it.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Directories(BTreeSet<Box<str>>);

impl Directories {
    /// Adds the directory of a path: everything up to its last slash. Returns whether it was not covered.
    fn add(&mut self, path: &str) -> bool {
        let directory = path.rfind('/').map_or("/", |slash| &path[..=slash]);
        if self.cover(directory) {
            return false;
        }
        let from_here = (Bound::Included(directory), Bound::Unbounded);
        let opened = self.0.range::<str, _>(from_here);
        let inner: Vec<Box<str>> = opened
            .take_while(|inner| inner.starts_with(directory))
            .cloned()
            .collect();
        for directory in inner {
            self.0.remove(&directory);
        }
        self.0.insert(directory.into())
    }

    fn cover(&self, path: &str) -> bool {
        let up_to_path = (Bound::Unbounded, Bound::Included(path));
        let last = self.0.range::<str, _>(up_to_path).next_back();
        last.is_some_and(|directory| path.starts_with(&**directory))
    }
}
