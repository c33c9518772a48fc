//! Redirects that lead back to themselves, and so to no page.

use std::collections::HashMap;

use frontier::{Entry, Fate, Verdict};
use sieve::Filter;

use crate::engine::Crawl;
use crate::event::Event;
use crate::fetch::{FailureKind, Fetcher};

/// Redirects that are remembered. When there are as many, all are forgotten: a loop is met within a few requests.
const MOST: usize = 10_000;

/// Where the latest redirects led to.
#[derive(Debug, Default)]
pub(crate) struct Redirects(HashMap<Box<str>, Box<str>>);

impl Redirects {
    /// Takes note of a redirect. Returns the URLs of the loop that it closes, itself the first.
    fn closes_loop(&mut self, from: &str, to: &str) -> Vec<Box<str>> {
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(from.into(), to.into());
        let mut around = vec![Box::from(from)];
        let mut next = to;
        while next != from {
            around.push(next.into());
            match self.0.get(next) {
                Some(after) if around.len() <= self.0.len() => next = after,
                // It leads into a loop that was told when it was closed, and is no part of it.
                Some(_) => return vec![from.into()],
                None => return Vec::new(),
            }
        }
        around
    }
}

impl<S: Fetcher, F: Filter> Crawl<S, F> {
    /// Tells of redirects that lead to no page: nobody else would.
    pub(super) fn follow_up_redirect(&mut self, entry: &Entry, to: Box<str>, verdicts: &[Verdict]) {
        let mut lost = self.redirects.closes_loop(&entry.url, &to);
        if lost.is_empty() || verdicts != [Verdict::Seen] {
            return;
        }
        let first = entry.metadata.redirected_from.as_deref();
        lost.extend(
            first
                .filter(|first| !lost.iter().any(|url| **url == **first))
                .map(Box::from),
        );
        for url in lost {
            let entry = Entry { url, ..entry.clone() };
            self.tell(&Event::Failed {
                url: &entry.url,
                why: "its redirects lead back to themselves",
                kind: FailureKind::Redirect,
                fate: Fate::Final,
                entry: &entry,
            });
        }
    }
}
