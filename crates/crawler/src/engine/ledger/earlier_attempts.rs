//! Pages that are retried after an attempt that had links: their links are reported once, with the last attempt.

use std::collections::{HashMap, HashSet};

use frontier::Verdict;

use crate::page::link_graph::LinkRecord;

/// What came of earlier attempts at pages that are still to come. As many pages as are to be asked for again.
#[derive(Debug, Default)]
pub(crate) struct EarlierAttempts(HashMap<Box<str>, ReportedLinks>);

#[derive(Debug, Default)]
struct ReportedLinks {
    new: usize,
    /// Where the new links lead to, if a graph wants to know.
    queued: HashSet<String>,
}

impl EarlierAttempts {
    /// Returns how many new links a page has led to in all. While it is not over, takes note of them; once it is, the links that
    /// an earlier attempt had queued are reported as queued.
    pub(crate) fn new_links(
        &mut self,
        url: &str,
        is_over: bool,
        verdicts: &[Verdict],
        links: &mut [LinkRecord],
    ) -> usize {
        let new = verdicts.iter().filter(|verdict| **verdict == Verdict::Queued).count();
        if !is_over {
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

    /// The page does not come again.
    pub(crate) fn forget(&mut self, url: &str) {
        self.0.remove(url);
    }
}
