//! Points in time, which the caller passes in.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use jiff::Timestamp;

/// A point in time: milliseconds since the Unix epoch.
///
/// This crate reads no clock. Take the time from a monotonic clock that you anchor to the epoch once. Then a step of the wall clock
/// does no harm, and a stored time is still valid after a restart:
///
/// ```
/// use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
/// use frontier::Time;
///
/// let (epoch, start) = (SystemTime::now().duration_since(UNIX_EPOCH)?, Instant::now());
/// let now = || Time::since_epoch(epoch + start.elapsed()); // from now on, take every time from here
///
/// let later = now() + Duration::from_secs(5);
/// let wait = later.since(now()); // to sleep until then
/// assert!(wait <= Duration::from_secs(5));
/// # Ok::<(), std::time::SystemTimeError>(())
/// ```
///
/// Displayed as RFC 3339 has it, in UTC with milliseconds, as in `2023-11-14T22:13:20.250Z`. Times after the year 9999 are its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
pub struct Time(u64);

impl Time {
    /// The Unix epoch, the earliest time.
    pub const EPOCH: Self = Self(0);

    /// Creates a time from milliseconds since the epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Creates a time from a duration since the epoch, rounded down to a millisecond.
    pub const fn since_epoch(elapsed: Duration) -> Self {
        let millis = elapsed.as_millis();
        Self(if millis > u64::MAX as u128 {
            u64::MAX
        } else {
            millis as u64
        })
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the duration since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, delay: Duration) -> Self {
        let millis = delay.as_nanos().div_ceil(1_000_000);
        Self(self.0.saturating_add(u64::try_from(millis).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since_epoch = i64::try_from(self.0).unwrap_or(i64::MAX);
        let timestamp = Timestamp::from_millisecond(since_epoch).unwrap_or(Timestamp::MAX);
        write!(f, "{timestamp:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_rfc_3339() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_007, "2000-02-29T00:00:00.007Z"),
            (u64::MAX, "9999-12-30T22:00:00.999Z"),
        ] {
            assert_eq!(Time::from_millis(millis).to_string(), text);
        }
    }

    #[test]
    fn a_delay_is_never_cut_short_and_never_overflows() {
        let now = Time::from_millis(5);
        assert_eq!(now + Duration::from_micros(1), Time::from_millis(6));
        assert_eq!(now + Duration::from_millis(2), Time::from_millis(7));
        assert_eq!(now + Duration::MAX, Time::from_millis(u64::MAX));
        assert_eq!(now.since(Time::from_millis(9)), Duration::ZERO);
    }
}
