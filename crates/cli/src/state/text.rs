//! Times as the commands about a state directory print them.

use std::time::Duration;

use frontier::Time;
use jiff::Timestamp;

/// Returns a time in UTC, as `2026-11-22T14:05:20.000Z`.
pub(super) fn rfc3339(time: Time) -> String {
    let milliseconds = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let timestamp = Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX);
    format!("{timestamp:.3}")
}

/// Returns a duration in its two largest units: `0.4 s`, `4 m 10 s`, `3 h 5 m`, `2 d 7 h`.
pub(super) fn duration(duration: Duration) -> String {
    // Rounded up, it would be a minute.
    if duration < Duration::from_millis(59_950) {
        return format!("{:.1} s", duration.as_secs_f64());
    }
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let seconds = duration.as_secs().max(60);
    let first = UNITS.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(3);
    let mut parts = Vec::new();
    let mut rest = seconds;
    for (unit, name) in UNITS.iter().skip(first).take(2) {
        if rest >= *unit || parts.is_empty() {
            parts.push(format!("{} {name}", rest / unit));
        }
        rest %= unit;
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_easy_to_read() {
        let shown = |milliseconds| duration(Duration::from_millis(milliseconds));
        assert_eq!(
            [0, 149, 59_949, 59_950, 60_000, 250_000].map(shown),
            ["0.0 s", "0.1 s", "59.9 s", "1 m", "1 m", "4 m 10 s"]
        );
        assert_eq!(
            [3_600_000, 11_100_000, 200_000_000].map(shown),
            ["1 h", "3 h 5 m", "2 d 7 h"]
        );
        assert_eq!(rfc3339(Time::from_millis(951_782_400_007)), "2000-02-29T00:00:00.007Z");
    }
}
