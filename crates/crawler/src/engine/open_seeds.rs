//! Seeds that have no final answer yet. While there is one, it may redirect, and its target extends the reach of the crawl.

use frontier::{Entry, Fate, Link, Purpose, Settled, Verdict};

/// The number of such seeds; `None` if it is not known.
#[derive(Debug, Default)]
pub(super) struct OpenSeeds(Option<u64>);

impl OpenSeeds {
    /// Begins to count in a crawl that has none yet.
    pub(super) fn none() -> Self {
        Self(Some(0))
    }

    /// Returns whether the reach of the crawl stays as it is.
    pub(super) fn are_none(&self) -> bool {
        self.0 == Some(0)
    }

    /// Counts those of offered links that are seeds, or targets of redirected seeds.
    pub(super) fn offered(&mut self, links: &[Link], verdicts: &[Verdict]) {
        let Some(open) = &mut self.0 else { return };
        let queued = links.iter().zip(verdicts);
        let queued = queued.filter(|(link, verdict)| link.seed && **verdict == Verdict::Queued);
        *open += queued.count() as u64;
    }

    /// Counts the target of a redirected seed, and that the seed itself has ended.
    pub(super) fn settled(&mut self, entry: &Entry, links: &[Link], settled: &Settled) {
        self.offered(links, &settled.verdicts);
        if matches!(settled.fate, Fate::Final | Fate::GaveUp) {
            self.ended(entry);
        }
    }

    /// Counts an entry that will not be requested any more, if it is a seed.
    pub(super) fn ended(&mut self, entry: &Entry) {
        if let Some(open) = self
            .0
            .as_mut()
            .filter(|_| entry.metadata.seed && entry.purpose == Purpose::Page)
        {
            *open = open.saturating_sub(1);
        }
    }
}
