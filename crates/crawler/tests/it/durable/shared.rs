//! A crawl that several processes share, begun again: what it tells the others first.

use std::sync::Arc;

use crawler::peers::{Exchanged, Peers, PeersError};
use frontier::{Frontier, Time};

use super::*;

/// The other processes, which end when this one does. They note whether it said that nothing is left.
#[derive(Clone, Default)]
struct Others(Arc<Mutex<Vec<bool>>>);

impl Peers for Others {
    fn exchange(&mut self, _: &mut Frontier, _: Time) -> Result<Exchanged, PeersError> {
        Ok(Exchanged::default())
    }

    fn unsaved(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn synced(&mut self, _: &Frontier, is_drained: bool, _: &Summary, _: Time) {
        self.0.lock().unwrap().push(is_drained);
    }

    fn knows_end(&self) -> bool {
        false
    }

    fn has_ended(&self, _: Time) -> bool {
        true
    }

    fn has_lost(&self) -> bool {
        false
    }

    fn repeated(&self) -> u64 {
        0
    }

    fn woken(&self) -> Arc<tokio::sync::Notify> {
        Arc::default()
    }

    fn leave(&mut self) {}
}

/// Else the others, who may have ended with what it said before, take its directory for an old copy.
#[test]
fn a_process_that_has_nothing_left_says_so_with_its_first_word() {
    for max_pages in [None, Some(2)] {
        let folder = Folder::new("shared");
        let others = [(), ()].map(|()| {
            let mut options = scripted::everywhere("http://a.example/");
            options.frontier.partition = Some("0/1".parse().unwrap());
            options.frontier.limits.max_pages = max_pages;
            let others = Others::default();
            let site = scripted::Scripted::new(|_| Ok(scripted::page("<a href=/1>x</a><a href=/2>x</a>")));
            let run = site.crawl_in_with(&folder.state(), options, |crawl| crawl.share(others.clone()).unwrap());
            assert_eq!(run.summary.pages, max_pages.unwrap_or(3));
            others.0.lock().unwrap().clone()
        });
        assert_eq!(others[0].first(), Some(&false), "pages were left");
        assert_eq!(others[1].first(), Some(&true));
    }
}
