//! Pages that are asked for again though something came of them: what is told of their links is told once, when they are over.

use std::collections::{HashMap, HashSet};

use frontier::Verdict;

use crate::page::link_graph::LinkRecord;

/// What came of earlier attempts at pages that are still to come. As many pages as are to be asked for again.
#[derive(Debug, Default)]
pub(crate) struct EarlierAttempts(HashMap<Box<str>, Links>);

#[derive(Debug, Default)]
struct Links {
    new: usize,
    /// Where the new links lead to, if a graph wants to know.
    queued: HashSet<String>,
}

impl EarlierAttempts {
    /// Returns how many new links a page has led to in all. While it is not over, takes note of them; once it is, the edges that
    /// an earlier attempt had queued are told as queued.
    pub(crate) fn new_links(
        &mut self,
        url: &str,
        is_over: bool,
        verdicts: &[Verdict],
        edges: &mut [LinkRecord],
    ) -> usize {
        let new = verdicts.iter().filter(|verdict| **verdict == Verdict::Queued).count();
        if !is_over {
            if new > 0 {
                let earlier = self.0.entry(url.into()).or_default();
                earlier.new += new;
                let queued = edges.iter().filter(|edge| edge.verdict == Some(Verdict::Queued));
                earlier.queued.extend(queued.map(|edge| edge.to.clone()));
            }
            return new;
        }
        let Some(earlier) = self.0.remove(url) else {
            return new;
        };
        for edge in edges.iter_mut().filter(|edge| earlier.queued.contains(&edge.to)) {
            edge.verdict = Some(Verdict::Queued);
        }
        earlier.new + new
    }

    /// The page does not come again.
    pub(crate) fn forget(&mut self, url: &str) {
        self.0.remove(url);
    }
}
