//! The link graph of the demo: all its tables, and the walk through them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::AtomicBool;

use url::Url;

use super::page::{Content, Hosts, Page};
use super::{lab, places};

/// The link graph of the demo, from which its pages are written.
///
/// Two sites with the same port are identical. The tables take some hundred kilobytes. Bodies are written when they are requested.
#[derive(Debug)]
pub struct DemoSite {
    hosts: Hosts,
    pages: BTreeMap<Url, Page>,
    /// Whether the page that is unavailable once has been so.
    pub(super) was_unavailable: AtomicBool,
}

impl DemoSite {
    /// Makes the site. It needs the port because some links are absolute. The domain follows the names of the hosts: with `-demo.localhost`
    /// these are sites of their own (registrable domains), so that several processes can share a crawl of them.
    #[expect(
        clippy::expect_used,
        reason = "only the port varies beyond constants, and every port is valid"
    )]
    pub(super) fn new(domain: &str, port: u16) -> DemoSite {
        let front = |name: &str| {
            let url = format!("http://{name}{domain}:{port}/");
            Url::parse(&url).expect("a constant URL except for its port")
        };
        let hosts = Hosts {
            www: front("www"),
            docs: front("docs"),
            blog: front("blog"),
            private: front("private"),
        };
        let mut pages = places::pages(&hosts);
        let index = lab::index(&hosts.www, &pages);
        let well_known = lab::well_known(&hosts, &pages);
        pages.extend(lab::pages(&hosts).into_iter().chain(index).chain(well_known));
        let pages = pages.into_iter().map(|page| (page.address.clone(), page));
        DemoSite {
            pages: pages.collect(),
            hosts,
            was_unavailable: AtomicBool::default(),
        }
    }

    /// Returns the URL of the front page, from which all reachable pages are linked.
    #[must_use]
    pub fn seed(&self) -> &Url {
        &self.hosts.www
    }

    /// Returns the URLs of the front pages of all hosts: with these seeds, a crawl that stays on the hosts of its seeds finds all pages, too.
    #[must_use]
    pub fn front_pages(&self) -> [&Url; 4] {
        let hosts = &self.hosts;
        [&hosts.www, &hosts.docs, &hosts.blog, &hosts.private]
    }

    /// Returns the URLs that a polite crawler must find from the seed: those that answer 200.
    ///
    /// A polite crawler:
    ///
    /// * obeys robots.txt, and follows neither `nofollow` links nor the links of a `nofollow` page;
    /// * ignores links in comments, scripts, templates and text areas;
    /// * stays on the hosts of the demo;
    /// * refuses a URL if one segment of its path occurs more than `max_path_repeats` times;
    /// * retries after a 503.
    ///
    /// Redirects and broken links are left out. Files that are not HTML (an image, a text, a PDF, a ZIP archive) are included. No page
    /// links to robots.txt or to the sitemap, and the sitemap lists only pages that are found without it.
    ///
    /// Cost: one walk over the tables. Every page is at most a dozen links from the seed, except in the path trap.
    #[must_use]
    pub fn reachable(&self, max_path_repeats: usize) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::from([self.seed().clone()]);
        let mut to_visit = VecDeque::from([self.seed().clone()]);
        while let Some(address) = to_visit.pop_front() {
            let Some(page) = self.page(&address).filter(|page| !page.is_forbidden) else {
                continue;
            };
            if !matches!(page.content, Content::Redirect(..)) {
                found.insert(address.into());
            }
            for link in &page.followed {
                if Page::segment_repeats(link) <= max_path_repeats && seen.insert(link.clone()) {
                    to_visit.push_back(link.clone());
                }
            }
        }
        found
    }

    pub(super) fn page(&self, address: &Url) -> Option<Cow<'_, Page>> {
        let listed = self.pages.get(address).map(Cow::Borrowed);
        let is_on_www = || address.origin() == self.seed().origin();
        listed.or_else(|| lab::endless_page(address).filter(|_| is_on_www()).map(Cow::Owned))
    }

    /// Returns the page that a request asks for. `localhost` means the first host, for programs that do not resolve names below `localhost`
    /// to loopback (RFC 6761).
    pub(super) fn requested(&self, host: &str, path: &str) -> Option<Cow<'_, Page>> {
        let mut address = Url::parse(&format!("http://{host}{path}")).ok()?;
        if address.host_str() == Some("localhost") {
            address.set_host(self.seed().host_str()).ok()?;
        }
        address.set_port(self.seed().port()).ok()?;
        self.page(&address)
    }
}
