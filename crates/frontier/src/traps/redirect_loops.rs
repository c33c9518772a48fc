//! Redirect loops, which lead to no page.

use std::collections::HashMap;

/// The redirects that are remembered. When there are more, all are forgotten: a loop closes within a few requests.
const MOST: usize = 10_000;

/// The targets of the latest redirects.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct RedirectLoops(HashMap<Box<str>, Box<str>>);

impl RedirectLoops {
    /// Records a redirect. Returns the URLs of the loop that it closes, its own first.
    pub(crate) fn closed_by(&mut self, from: &str, to: &str) -> Vec<Box<str>> {
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
                // It leads into a loop that was reported before, and is not part of it.
                Some(_) => return vec![from.into()],
                None => return Vec::new(),
            }
        }
        around
    }

    /// Forgets where a URL redirects to.
    pub(crate) fn forget(&mut self, from: &str) {
        self.0.remove(from);
    }
}
