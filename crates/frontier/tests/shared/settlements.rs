//! Configurations, links and settlements of random calls.

use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::time::Duration;

use super::calls::{End, How, Setting, Target};
use super::common::{self, Forbid, failure, url};
use super::frontier::{
    Class, CrawlPolicy, Fingerprint, FrontierConfig, HostPolicy, Lease, Link, NotFetched, Outcome, Purpose, Settlement,
};

pub(crate) fn config(setting: &Setting) -> FrontierConfig {
    let mut config = common::config();
    config.politeness.per_host = NonZeroU32::new(setting.per_host).unwrap();
    config.politeness.delay = Duration::from_millis(setting.delay);
    config.politeness.ask_robots = setting.ask_robots;
    config.politeness.per_address = setting.per_address;
    config.limits.max_pages = setting.max_pages;
    config.limits.max_pages_per_host = setting.max_pages_per_host;
    config.traps.max_near_duplicates = setting.near_duplicates.and_then(NonZeroU32::new);
    config.traps.max_near_duplicates_in_all = setting.near_duplicates_in_all.and_then(NonZeroU32::new);
    config.retries.max_throttles = NonZeroU32::new(setting.max_throttles).unwrap();
    config.retries.max_host_downtime = Duration::from_secs(40);
    config.retries.max_first_downtime = Duration::from_secs(10);
    config
}

pub(crate) fn host_url(host: u8) -> String {
    format!("http://host{host}.example/")
}

/// Paths lie in two directories, some with numbers.
pub(crate) fn address(target: Target) -> String {
    let Target { host, port, path, .. } = target;
    let directory = ["", "dir/"][usize::from(path % 2)];
    format!(
        "http://host{host}.example:{}/{path:02}/{directory}x{path}",
        80 + u16::from(port)
    )
}

/// Some policy of a host, of its number.
pub(crate) fn policy(number: u64) -> HostPolicy {
    let per_host = NonZeroU32::new((number % 4) as u32);
    HostPolicy {
        delay: (!number.is_multiple_of(3)).then(|| Duration::from_millis(number)),
        per_host,
        max_pages: number.is_multiple_of(5).then_some(number % 7),
        class: Class::try_from((number % 16) as u8).ok(),
        closed: number.is_multiple_of(11).then_some(number.is_multiple_of(2)),
        ..HostPolicy::default()
    }
}

/// What is ordered for the whole crawl.
pub(crate) fn crawl_policy(number: u64) -> CrawlPolicy {
    CrawlPolicy {
        delay: (!number.is_multiple_of(3)).then(|| Duration::from_millis(number)),
        max_pages_per_host: number.is_multiple_of(5).then_some(number % 7),
        max_depth: number.is_multiple_of(7).then_some((number % 3) as u32),
        exclude: number.is_multiple_of(11).then(|| vec!["2".to_owned()]),
        dropped: [format!("{}$", number % 10)][..usize::from(number.is_multiple_of(2))].to_vec(),
        ..CrawlPolicy::default()
    }
}

/// Half of the pages have a class of their own.
fn class_of(path: u8) -> Option<Class> {
    Class::try_from(path / 2 % 8).ok().filter(|_| path < 20)
}

pub(crate) fn link(target: Target) -> Link {
    let url = url(&address(target));
    if target.is_sitemap {
        let origin = url.origin();
        Link::sitemap(url, origin, 0, None)
    } else {
        Link {
            class: class_of(target.path),
            ..Link::found(url, 1, "http://host0.example/".into())
        }
    }
}

pub(crate) fn settlement(lease: &Lease, end: &End) -> Settlement {
    let retry_after = end.retry_after.map(Duration::from_secs);
    let links: Vec<_> = end.links.iter().copied().map(link).collect();
    let failed = |kind| Outcome::Failed {
        failure: failure(kind),
        retry_after,
    };
    let (outcome, links_of_page) = match end.how {
        How::Good | How::Rules(..) => (Outcome::Done, links),
        How::Elsewhere(target) => (Outcome::Redirected, vec![lease.entry.redirected(url(&address(target)))]),
        How::Bad => (Outcome::Rejected, Vec::new()),
        How::Failed(kind) => (failed(kind), Vec::new()),
        How::NotFetched => (Outcome::NotFetched(NotFetched::AddressForbidden), Vec::new()),
    };
    let fingerprint = Fingerprint::new(
        end.content.map(|content| u128::from(content).into()),
        end.text.map(|text| (u64::from(text) * 0x1111_1111_1111_1111).into()),
    );
    let settlement = lease.settle(outcome);
    match lease.entry.purpose {
        Purpose::Page => settlement
            .with_links(links_of_page)
            .with_known_links(end.links_known)
            .with_fingerprint(fingerprint),
        Purpose::Sitemap(_) => settlement.with_links(links_of_page),
        Purpose::Address => {
            let last = u8::try_from(end.links_known).unwrap();
            let address = end.text.map(|_| Ipv4Addr::new(192, 0, 2, last).into());
            let lifetime = Duration::from_secs(end.retry_after.unwrap_or(1));
            lease.settle(Outcome::Done).with_address(address).valid_for(lifetime)
        }
        Purpose::Robots(_) => match end.how {
            How::Good => settlement.with_rules(Forbid::nothing()),
            How::Rules(below, lifetime) => settlement
                .with_rules(Forbid::below(["/0", "/1", "/2", "/3"][usize::from(below / 10)]))
                .valid_for(Duration::from_secs(lifetime)),
            How::Elsewhere(_) => settlement.with_links(links_of_page),
            How::Bad | How::Failed(_) | How::NotFetched => settlement,
        },
    }
}
