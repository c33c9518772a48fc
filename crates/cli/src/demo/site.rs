//! The demo as a whole: its tables put together, and the walk through them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use url::Url;

use super::page::{Address, Content, Host, Page, home};
use super::{lab, places, well_known};

/// The demo's link graph and what is needed to write its pages.
///
/// Two sites with the same port are alike to the byte. The tables take some hundred kilobytes; bodies are written
/// when they are asked for.
#[derive(Debug)]
pub struct DemoSite {
    port: u16,
    pages: BTreeMap<Address, Page>,
}

impl DemoSite {
    /// Draws up the site. The port is needed because some links are absolute.
    #[must_use]
    pub fn new(port: u16) -> DemoSite {
        let mut pages: BTreeMap<Address, Page> = places::pages().into_iter().collect();
        let index = lab::index(pages.keys());
        pages.extend(lab::pages());
        pages.extend(index);
        pages.extend(well_known::pages(port, &pages));
        DemoSite { port, pages }
    }

    /// The front page, from which everything reachable can be reached.
    #[must_use]
    #[expect(clippy::expect_used, reason = "only the port varies, and every port parses")]
    pub fn seed(&self) -> Url {
        Url::parse(&self.url(&home())).expect("a fixed URL but for its port")
    }

    /// The URLs that a polite visitor who starts at the seed must find: those answered with 200.
    ///
    /// A visitor is polite who obeys robots.txt, follows neither `nofollow` links nor the links of a `nofollow` page,
    /// sees no links in comments, scripts, templates and text areas, stays on the hosts of the demo, and refuses a URL
    /// in whose path one segment occurs more than `max_segment_repeats` times. It asks again after a 503. Redirects
    /// and broken links are not among the answers; files that are no HTML (an image, a text, a PDF, a ZIP archive)
    /// are, as they are asked for and recorded like any page. robots.txt and the sitemap are linked from nowhere; the
    /// sitemap lists only pages that are found without it.
    ///
    /// Cost: one walk over the tables. Every page is at most a dozen links from the seed, the path trap aside.
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

    /// The page at an address: from the tables, or one of the endless ones, made on the spot.
    pub(super) fn page(&self, address: &Address) -> Option<Cow<'_, Page>> {
        let listed = self.pages.get(address).map(Cow::Borrowed);
        listed.or_else(|| lab::endless_page(address).map(Cow::Owned))
    }

    /// The whole URL of an address, in its canonical form.
    pub(super) fn url(&self, address: &Address) -> String {
        format!("http://{}{}", self.authority(address.host), address.path)
    }

    /// Host and port as they stand in a URL.
    pub(super) fn authority(&self, host: Host) -> String {
        match host {
            Host::Elsewhere => host.name().to_owned(),
            served => format!("{}:{}", served.name(), self.port),
        }
    }
}
