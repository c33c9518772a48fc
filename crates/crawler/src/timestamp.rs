//! Times as records and archives write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Formats a time since the Unix epoch as RFC 3339, in UTC, with milliseconds. Times after the year 9999 become its end.
pub(crate) fn rfc3339(since_epoch: Duration) -> String {
    let milliseconds = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
    let timestamp = Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX);
    format!("{timestamp:.3}")
}

/// Formats a time of the system's clock as [`rfc3339`] does. Times before 1970 become its start.
pub(crate) fn rfc3339_of(time: SystemTime) -> String {
    rfc3339(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_milliseconds_and_is_clamped_to_the_years_1970_to_9999() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_007, "2000-02-29T00:00:00.007Z"),
            (u64::MAX, "9999-12-30T22:00:00.999Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_millis(milliseconds)), text);
        }
        assert_eq!(
            rfc3339_of(UNIX_EPOCH - Duration::from_secs(1)),
            "1970-01-01T00:00:00.000Z"
        );
    }
}
