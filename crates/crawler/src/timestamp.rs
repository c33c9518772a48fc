//! Times as records and archives write them.

use std::time::Duration;

use frontier::Time;
use jiff::Timestamp;

/// Returns a time of a frontier, whose clock is `ahead` of the time of day, as a time of day.
pub(crate) fn less_ahead(time: Time, ahead: Duration) -> Time {
    Time::since_epoch(Duration::from_millis(time.as_millis()).saturating_sub(ahead))
}

/// Formats a time as RFC 3339, in UTC, with milliseconds. Times after the year 9999 become its end.
pub fn rfc3339(time: Time) -> String {
    let milliseconds = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let timestamp = Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX);
    format!("{timestamp:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_milliseconds_and_is_clamped_to_the_year_9999() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_007, "2000-02-29T00:00:00.007Z"),
            (u64::MAX, "9999-12-30T22:00:00.999Z"),
        ] {
            assert_eq!(rfc3339(Time::from_millis(milliseconds)), text);
        }
    }
}
