//! Notices: what an operator should know of a crawl.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::failure::Failure;
use crate::url::Origin;

/// Something that an operator should know, once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// An origin went away: it is probed less and less often until it is back, or given up. One whose pages alone are silent
    /// [hangs](crate::Health::HANGING).
    Away {
        /// Which.
        origin: Origin,
        /// What went wrong.
        cause: Arc<Failure>,
        /// How long it may be away before it is given up.
        patience: Duration,
    },
    /// A host throttles and rests, for the first time in a row.
    Throttled {
        /// Which of its origins.
        origin: Origin,
        /// What it answered.
        cause: Arc<Failure>,
        /// What its `Retry-After` asked for.
        asked_for: Option<Duration>,
        /// For how long it rests. If it throttles again, it rests for longer.
        rest: Duration,
    },
    /// The robots.txt of an origin fails, for the first time in a row: it is asked for again before anything else.
    RobotsFailing {
        /// Which.
        origin: Origin,
        /// What went wrong.
        cause: Arc<Failure>,
        /// In how long it is asked for again.
        next: Duration,
    },
    /// The first request to a host without an answer [hangs](crate::Health::HANGING). Only
    /// [`began_to_hang`](crate::Frontier::began_to_hang) returns it: ask every few seconds.
    Hanging {
        /// Which of its origins.
        origin: Origin,
        /// What was requested.
        url: Box<str>,
        /// For how long it is in flight.
        after: Duration,
    },
    /// A page of an origin that was away was answered.
    Back {
        /// Which.
        origin: Origin,
        /// For how long it was away.
        after: Duration,
    },
    /// An origin was given up with all that waited for it.
    GivenUp {
        /// Which.
        origin: Origin,
        /// What went wrong last.
        cause: Arc<Failure>,
        /// For how long it was away; zero if it was not, but did nothing but throttle.
        after: Duration,
        /// The pages that waited for it. They come out as [`Leasing::Dropped`](crate::Leasing::Dropped).
        lost: u64,
    },
    /// The robots.txt of an origin could not be fetched, and nothing of it is fetched for a while.
    Closed {
        /// Which.
        origin: Origin,
        /// What went wrong.
        cause: Arc<Failure>,
        /// For how long.
        rest: Duration,
    },
    /// The robots.txt of an origin could not be fetched, and its last rules are extended.
    RulesExtended {
        /// Which.
        origin: Origin,
        /// What went wrong.
        cause: Arc<Failure>,
    },
    /// Too many pages resemble one another: what is found there waits behind everything else.
    Postponed {
        /// The [path prefix](crate::TrapConfig::max_near_duplicates), or the site.
        place: Box<str>,
        /// The page that its pages resemble.
        first: Box<str>,
    },
    /// Far too many pages resemble one another: nothing more is fetched there.
    PrefixClosed {
        /// The [path prefix](crate::TrapConfig::max_near_duplicates), or the site.
        place: Box<str>,
        /// The page that its pages resemble.
        first: Box<str>,
    },
}

impl fmt::Display for Notice {
    /// One sentence for people, without a full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::Away {
                origin,
                cause,
                patience,
            } => {
                let seconds = patience.as_secs_f64();
                format!("{origin} is away: {cause}; it is probed for {seconds} s before it is given up")
            }
            Self::Throttled {
                origin,
                cause,
                asked_for,
                rest,
            } => {
                let (rest, asked_for) = (rest.as_secs_f64(), asked_for.map(|time| time.as_secs()));
                let asked_for = asked_for.map_or_else(String::new, |seconds| format!("; Retry-After: {seconds} s"));
                format!("{origin} rests for {rest:.1} s, and for longer each time in a row: {cause}{asked_for}")
            }
            Self::RobotsFailing { origin, cause, next } => {
                let (next, fails) = (next.as_secs_f64(), "its robots.txt fails, and is asked for again");
                format!("nothing of {origin} is fetched yet: {fails} in {next:.1} s: {cause}")
            }
            Self::Hanging { origin, url, after } => {
                let after = after.as_secs_f64();
                format!("{origin} does not answer: {url} is in flight for {after:.0} s")
            }
            Self::Back { origin, after } => format!("{origin} is back after {:.1} s", after.as_secs_f64()),
            Self::GivenUp {
                origin,
                cause,
                after,
                lost,
            } => {
                // One that throttles answers all the time.
                let was_away = (!after.is_zero()).then(|| format!(" after {:.1} s", after.as_secs_f64()));
                let (was_away, pages) = (was_away.unwrap_or_default(), if *lost == 1 { "page" } else { "pages" });
                format!("{origin} is given up{was_away}: {cause}; {lost} {pages} that waited for it failed")
            }
            Self::Closed { origin, cause, rest } => {
                let why = format!("its robots.txt could not be fetched: {cause}");
                format!("nothing of {origin} is fetched for {} s: {why}", rest.as_secs())
            }
            Self::RulesExtended { origin, cause } => {
                format!("the robots.txt of {origin} could not be fetched, so its last rules are extended: {cause}")
            }
            Self::Postponed { place, first } => {
                let why = format!("too many of them resemble {first}");
                format!("pages below {place} are postponed until everything else is fetched: {why}")
            }
            Self::PrefixClosed { place, first } if !place.contains("://") => {
                let links = format!("links of pages of {place} that resemble {first}");
                format!("{links} are no longer followed: there are far too many")
            }
            Self::PrefixClosed { place, first } => {
                format!("{place} is closed: far too many pages there resemble {first}")
            }
        })
    }
}
