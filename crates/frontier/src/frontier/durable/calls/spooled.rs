//! Links that wait to be looked up, as the spool and the journal store them.

use serde::{Deserialize, Serialize};

use super::StoredLink;
use crate::link::Link;

/// A link that was taken for seen.
#[derive(Debug, Serialize, Deserialize)]
pub(in super::super) struct SpooledLink<'a> {
    #[serde(borrow)]
    link: StoredLink<'a>,
    is_postponed: bool,
}

impl<'a> SpooledLink<'a> {
    pub(in super::super) fn bytes_of(link: &Link, is_postponed: bool) -> Result<Vec<u8>, postcard::Error> {
        let link = StoredLink::of(link, &mut None);
        postcard::to_allocvec(&SpooledLink { link, is_postponed })
    }

    pub(in super::super) fn of_bytes(bytes: &'a [u8]) -> Result<Self, postcard::Error> {
        postcard::from_bytes(bytes)
    }

    /// Returns the link, and whether it is postponed, unless a URL is none.
    pub(in super::super) fn read(&self) -> Option<(Link, bool)> {
        Some((self.link.read(&mut None)?, self.is_postponed))
    }
}
