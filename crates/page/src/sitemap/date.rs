//! Parsing of the dates in sitemaps and feeds.

use frontier::Time;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;

/// Longer text is not a date.
const MAX_BYTES: usize = 64;

/// Parses a W3C datetime (<https://www.w3.org/TR/NOTE-datetime>, from `1997` to fractions of a second) or an RFC 2822
/// date, as feeds use it.
///
/// An incomplete date means its first moment, and a time without an offset is in UTC. Returns `None` for other text,
/// and for dates before 1970.
pub fn parse(text: &str) -> Option<Time> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_BYTES {
        return None;
    }
    let instant = text.parse::<Timestamp>().ok();
    let timestamp = instant
        .or_else(|| civil(text))
        .or_else(|| rfc2822::DateTimeParser::new().parse_timestamp(text).ok())?;
    let milliseconds = u64::try_from(timestamp.as_millisecond()).ok()?;
    Some(Time::from_millis(milliseconds))
}

fn civil(text: &str) -> Option<Timestamp> {
    let whole = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => text.to_owned(),
    };
    let datetime: DateTime = whole.parse().ok()?;
    Some(datetime.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Formats a time as RFC 3339 in UTC; `None` beyond the year 9999.
pub fn format(time: Time) -> Option<String> {
    let milliseconds = i64::try_from(time.as_millis()).ok()?;
    Some(Timestamp::from_millisecond(milliseconds).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_date_is_read_as_its_first_moment() {
        for (text, expected) in [
            ("1997", "1997-01-01T00:00:00Z"),
            ("1997-07", "1997-07-01T00:00:00Z"),
            ("1997-07-16", "1997-07-16T00:00:00Z"),
            ("1997-07-16T19:20+01:00", "1997-07-16T18:20:00Z"),
            ("1997-07-16T19:20:30+01:00", "1997-07-16T18:20:30Z"),
            ("1997-07-16T19:20:30.45+01:00", "1997-07-16T18:20:30.45Z"),
            ("1997-07-16T19:20:30Z", "1997-07-16T19:20:30Z"),
            ("1997-07-16T19:20Z", "1997-07-16T19:20:00Z"),
            ("1997-07-16T19:20:30", "1997-07-16T19:20:30Z"),
            ("1997-07-16 19:20:30", "1997-07-16T19:20:30Z"),
            (" \n1997-07-16\t", "1997-07-16T00:00:00Z"),
            ("Wed, 16 Jul 1997 19:20:30 GMT", "1997-07-16T19:20:30Z"),
            ("16 Jul 1997 19:20:30 +0200", "1997-07-16T17:20:30Z"),
        ] {
            let time = parse(text).and_then(format);
            assert_eq!(time.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_date_is_none() {
        let long = "1".repeat(1_000_000);
        for text in [
            "",
            "yesterday",
            "1997-13-01",
            "1997-02-30",
            "0000-00-00",
            "1969-12-31",
            "97",
            long.as_str(),
        ] {
            assert_eq!(parse(text), None, "{text:.20}");
        }
    }
}
