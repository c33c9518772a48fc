//! Any seen-set in front of a `VecDeque<String>`, one URL at a time.

use std::collections::VecDeque;

use super::Contender;
use crate::chunk::Chunk;

/// What knows which URLs were seen.
pub(crate) trait Seen {
    /// Marks a URL; `true` when it was new.
    fn insert(&mut self, url: &str) -> bool;

    fn contains(&self, url: &str) -> bool;

    fn bits(&self) -> u64;
}

pub(crate) struct Queued<S> {
    seen: S,
    queue: VecDeque<String>,
}

pub(crate) fn queued<S: Seen + 'static>(seen: S) -> Box<dyn Contender> {
    Box::new(Queued {
        seen,
        queue: VecDeque::new(),
    })
}

impl<S: Seen> Contender for Queued<S> {
    fn push(&mut self, chunk: &Chunk) -> u64 {
        let before = self.queue.len();
        for url in chunk.links() {
            if self.seen.insert(url) {
                self.queue.push_back(url.to_owned());
            }
        }
        (self.queue.len() - before) as u64
    }

    fn drain(&mut self) -> u64 {
        let mut popped = 0;
        while let Some(url) = self.queue.pop_front() {
            std::hint::black_box(url);
            popped += 1;
        }
        popped
    }

    fn knows(&self, url: &str) -> bool {
        self.seen.contains(url)
    }

    fn bits(&self) -> u64 {
        self.seen.bits()
    }
}
