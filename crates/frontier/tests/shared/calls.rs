//! What is called, in which order, and how what is leased ends.

use proptest::prelude::*;

use super::frontier::FailureKind;

const KINDS: [FailureKind; 14] = [
    FailureKind::AddressForbidden,
    FailureKind::Unresolved,
    FailureKind::Connect,
    FailureKind::Tls,
    FailureKind::Timeout,
    FailureKind::HeadTooLarge,
    FailureKind::Broken,
    FailureKind::Incomplete,
    FailureKind::Status,
    FailureKind::Throttled,
    FailureKind::OutOfHandles,
    FailureKind::Redirect,
    FailureKind::HostDown,
    FailureKind::Panic,
];

/// How a lease ends, whatever it is for.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) how: How,
    pub(crate) retry_after: Option<u64>,
    pub(crate) links: Vec<Target>,
    pub(crate) links_known: u64,
    pub(crate) content: Option<u8>,
    pub(crate) text: Option<u8>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum How {
    Good,
    Elsewhere(Target),
    Bad,
    Failed(FailureKind),
    NotFetched,
    /// Of a robots.txt: what is below this number is forbidden, for so many seconds.
    Rules(u8, u64),
}

/// A page or a sitemap: which of four hosts, of two ports and of some paths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) host: u8,
    pub(crate) port: u8,
    pub(crate) path: u8,
    pub(crate) is_sitemap: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Call {
    Offer(Vec<Target>),
    Seed(Target),
    Lease(usize),
    Settle(usize, End),
    /// Gives leases back from this one on, whose requests were not made.
    GiveBack(usize),
    /// Settles what was settled before.
    Again(usize),
    /// Settles a lease that never was.
    Wrong(usize),
    Block(u8, u64),
    Delay(u8, u64),
    Order(u64),
    Pass(u64),
    /// Until the frontier says to come back.
    Wait,
}

#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) per_host: u32,
    pub(crate) delay: u64,
    pub(crate) ask_robots: bool,
    pub(crate) per_address: bool,
    pub(crate) max_pages: Option<u64>,
    pub(crate) max_pages_per_host: Option<u64>,
    pub(crate) near_duplicates: Option<u32>,
    pub(crate) near_duplicates_in_all: Option<u32>,
    pub(crate) max_throttles: u32,
}

pub(crate) fn target() -> impl Strategy<Value = Target> {
    (0_u8..4, 0_u8..2, 0_u8..40, prop::bool::weighted(0.1)).prop_map(|(host, port, path, is_sitemap)| Target {
        host,
        port,
        path,
        is_sitemap,
    })
}

pub(crate) fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        4 => Just(How::Good),
        1 => target().prop_map(How::Elsewhere),
        1 => Just(How::Bad),
        5 => (0..KINDS.len()).prop_map(|at| How::Failed(KINDS[at])),
        1 => Just(How::NotFetched),
        2 => (0_u8..40, prop_oneof![Just(0_u64), 1_u64..100, Just(86_400)])
            .prop_map(|(below, lifetime)| How::Rules(below, lifetime)),
    ]
}

pub(crate) fn ends() -> impl Strategy<Value = End> {
    (
        how(),
        prop::option::of(prop_oneof![0_u64..10, Just(86_400)]),
        prop::collection::vec(target(), 0..8),
        0_u64..4,
        prop::option::of(0_u8..4),
        prop::option::of(0_u8..4),
    )
        .prop_map(|(how, retry_after, links, links_known, content, text)| End {
            how,
            retry_after,
            links,
            links_known,
            content,
            text,
        })
}

pub(crate) fn calls() -> impl Strategy<Value = Call> {
    prop_oneof![
        3 => prop::collection::vec(target(), 1..12).prop_map(Call::Offer),
        1 => target().prop_map(Call::Seed),
        8 => (0_usize..6).prop_map(Call::Lease),
        10 => (0_usize..20, ends()).prop_map(|(which, end)| Call::Settle(which, end)),
        1 => (0_usize..20).prop_map(Call::GiveBack),
        1 => (0_usize..20).prop_map(Call::Again),
        1 => (0_usize..20).prop_map(Call::Wrong),
        1 => (0_u8..4, 0_u64..100).prop_map(|(host, seconds)| Call::Block(host, seconds)),
        1 => (0_u8..4, 0_u64..5_000).prop_map(|(host, millis)| Call::Delay(host, millis)),
        1 => (0_u64..5_000).prop_map(Call::Order),
        2 => prop_oneof![0_u64..2_000, Just(100_000_000)].prop_map(Call::Pass),
        4 => Just(Call::Wait),
    ]
}

pub(crate) fn settings() -> impl Strategy<Value = Setting> {
    let on_switches = (any::<bool>(), prop::bool::weighted(0.2));
    let budgets = (
        prop::option::weighted(0.2, 0_u64..20),
        prop::option::weighted(0.2, 0_u64..6),
    );
    let alike = (prop::option::of(1_u32..4), prop::option::of(1_u32..8));
    let pace = (1_u32..4, prop_oneof![Just(0_u64), 1_u64..3_000], 2_u32..13);
    (on_switches, budgets, alike, pace).prop_map(
        |((ask_robots, per_address), (max_pages, max_pages_per_host), alike, (per_host, delay, max_throttles))| {
            Setting {
                per_host,
                delay,
                ask_robots,
                per_address,
                max_pages,
                max_pages_per_host,
                near_duplicates: alike.0,
                near_duplicates_in_all: alike.1,
                max_throttles,
            }
        },
    )
}
