//! The link graph of the demo: all its tables, and the walk through them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use url::Url;

use super::page::{Address, Content, Host, Page, home};
use super::{lab, places, well_known};

/// The link graph of the demo, from which its pages are written.
///
/// Two sites with the same port are identical. The tables take some hundred kilobytes. Bodies are written when they are requested.
#[derive(Debug)]
pub struct DemoSite {
    port: u16,
    pages: BTreeMap<Address, Page>,
}

impl DemoSite {
    /// Makes the site. It needs the port because some links are absolute.
    #[must_use]
    pub fn new(port: u16) -> DemoSite {
        let mut pages: BTreeMap<Address, Page> = places::pages().into_iter().collect();
        let index = lab::index(pages.keys());
        pages.extend(lab::pages());
        pages.extend(index);
        pages.extend(well_known::pages(port, &pages));
        DemoSite { port, pages }
    }

    /// Returns the URL of the front page, from which all reachable pages are linked.
    #[must_use]
    #[expect(clippy::expect_used, reason = "only the port varies, and every port is valid")]
    pub fn seed(&self) -> Url {
        Url::parse(&self.url(&home())).expect("a constant URL except for its port")
    }

    /// Returns the URLs that a polite crawler must find from the seed: those that answer 200.
    ///
    /// A polite crawler:
    ///
    /// * obeys robots.txt, and follows neither `nofollow` links nor the links of a `nofollow` page;
    /// * ignores links in comments, scripts, templates and text areas;
    /// * stays on the hosts of the demo;
    /// * refuses a URL if one segment of its path occurs more than `max_segment_repeats` times;
    /// * retries after a 503.
    ///
    /// Redirects and broken links are left out. Files that are not HTML (an image, a text, a PDF, a ZIP archive) are included. No page
    /// links to robots.txt or to the sitemap, and the sitemap lists only pages that are found without it.
    ///
    /// Cost: one walk over the tables. Every page is at most a dozen links from the seed, except in the path trap.
    #[must_use]
    pub fn reachable(&self, max_segment_repeats: usize) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::from([home()]);
        let mut to_visit = VecDeque::from([home()]);
        while let Some(address) = to_visit.pop_front() {
            let Some(page) = self.page(&address).filter(|page| !page.forbidden) else {
                continue;
            };
            if !matches!(page.content, Content::Redirect(_)) {
                found.insert(self.url(&address));
            }
            for link in page.followed() {
                if link.to.segment_repeats() <= max_segment_repeats && seen.insert(link.to.clone()) {
                    to_visit.push_back(link.to.clone());
                }
            }
        }
        found
    }

    /// Returns the page at an address: from the tables, or a generated page of a trap.
    pub(super) fn page(&self, address: &Address) -> Option<Cow<'_, Page>> {
        let listed = self.pages.get(address).map(Cow::Borrowed);
        listed.or_else(|| lab::endless_page(address).map(Cow::Owned))
    }

    /// Returns the URL of an address, in canonical form.
    pub(super) fn url(&self, address: &Address) -> String {
        format!("http://{}{}", self.authority(address.host), address.path)
    }

    /// Returns host and port as in a URL.
    pub(super) fn authority(&self, host: Host) -> String {
        match host {
            Host::Elsewhere => host.name().to_owned(),
            served => format!("{}:{}", served.name(), self.port),
        }
    }
}
