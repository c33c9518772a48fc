//! What repairs have lost.

use std::fmt;

/// What all repairs of a directory together have lost (`Frontier::repair`). What they dropped and the crawl does again is not among it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct RepairLosses {
    /// Pages that waited. Most of them are marked as seen, so they are not fetched, nor what only they link to.
    pub pages: u64,
    /// Rows of records, each with the pages that ended between two calls of `Frontier::persist`. Their pages are not listed, nor
    /// fetched again when they are old.
    pub record_rows: u64,
}

impl fmt::Display for RepairLosses {
    /// Writes the pages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.pages == 1 { "" } else { "s" };
        write!(f, "{} waiting page{plural}", self.pages)
    }
}

impl RepairLosses {
    /// Returns whether pages are missing from the crawl.
    pub fn lacks_pages(&self) -> bool {
        self.pages > 0
    }
}
