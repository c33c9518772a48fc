//! Times as records and archives write them.

use std::time::Duration;

use frontier::Time;

pub(crate) fn less_ahead(time: Time, ahead: Duration) -> Time {
    Time::since_epoch(Duration::from_millis(time.as_millis()).saturating_sub(ahead))
}

/// Formats a time as RFC 3339, in UTC, with milliseconds.
pub fn rfc3339(time: Time) -> String {
    time.to_string()
}
