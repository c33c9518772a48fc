//! The last pages and failures, for people to look at.

use std::collections::VecDeque;

use crawler::PageRecord;
use frontier::{Failure, FailureKind, Fate};
use serde_json::{Value, json};

/// How many of each are kept.
const KEPT: usize = 10;

/// The longest text of a URL, a title or a reason, in bytes.
const LONGEST: usize = 300;

/// The last pages and failures. Sites have chosen the texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent {
    pages: VecDeque<(u16, String, Option<String>)>,
    failures: VecDeque<(FailureKind, String, String, bool)>,
}

impl Recent {
    pub(crate) fn add_page(&mut self, page: &PageRecord) {
        let title = page.title.as_deref().map(shortened);
        push(&mut self.pages, (page.status, shortened(&page.url), title));
    }

    pub(crate) fn add_failure(&mut self, url: &str, failure: &Failure, fate: Fate) {
        let is_retried = matches!(fate, Fate::Requeued { .. });
        let (kind, why) = (failure.kind, shortened(&failure.message));
        push(&mut self.failures, (kind, shortened(url), why, is_retried));
    }

    pub(crate) fn to_json(&self) -> (Value, Value) {
        let pages = self.pages.iter().rev();
        let pages = pages.map(|(status, url, title)| json!({ "status": status, "url": url, "title": title }));
        let failures = self.failures.iter().rev().map(|(kind, url, why, is_retried)| {
            json!({ "kind": kind.name(), "url": url, "why": why, "retried": is_retried })
        });
        (pages.collect(), failures.collect())
    }
}

fn push<T>(list: &mut VecDeque<T>, one: T) {
    if list.len() == KEPT {
        list.pop_front();
    }
    list.push_back(one);
}

pub(crate) fn shortened(text: &str) -> String {
    match text.floor_char_boundary(LONGEST) {
        end if end < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}
