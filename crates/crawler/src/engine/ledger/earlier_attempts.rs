//! Links of pages that are retried: they are reported once, after the last attempt.

use std::collections::{HashMap, HashSet};

use frontier::Verdict;

use crate::page::link_graph::LinkRecord;

/// The new links of earlier attempts, by page. Memory grows with the number of pages that wait for a retry.
#[derive(Debug, Default)]
pub(crate) struct EarlierAttempts(HashMap<Box<str>, ReportedLinks>);

#[derive(Debug, Default)]
struct ReportedLinks {
    new: usize,
    /// The targets of the new links, if an observer needs the link graph.
    queued: HashSet<String>,
}

impl EarlierAttempts {
    /// Returns how many new links all attempts at a page have found so far.
    ///
    /// Unless the attempt is the last one, stores its new links. After the last attempt, sets the verdict of links that
    /// an earlier attempt queued to `Queued`; the frontier now calls them seen.
    pub(crate) fn count_new_links(
        &mut self,
        url: &str,
        is_final: bool,
        verdicts: &[Verdict],
        links: &mut [LinkRecord],
    ) -> usize {
        let new = verdicts.iter().filter(|verdict| **verdict == Verdict::Queued).count();
        if !is_final {
            if new > 0 {
                let earlier = self.0.entry(url.into()).or_default();
                earlier.new += new;
                let queued = links.iter().filter(|link| link.verdict == Some(Verdict::Queued));
                earlier.queued.extend(queued.map(|link| link.to.clone()));
            }
            return new;
        }
        let Some(earlier) = self.0.remove(url) else {
            return new;
        };
        for link in links.iter_mut().filter(|link| earlier.queued.contains(&link.to)) {
            link.verdict = Some(Verdict::Queued);
        }
        earlier.new + new
    }

    /// Drops what is stored of a page that will not be fetched again.
    pub(crate) fn forget(&mut self, url: &str) {
        self.0.remove(url);
    }
}
