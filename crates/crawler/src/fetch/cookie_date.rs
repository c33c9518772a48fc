//! When a cookie ends by its `Expires`, in every form that RFC 6265, section 5.1.1, accepts.

use std::ops::RangeInclusive;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The cookie library reads dates in a few forms only.
pub(super) fn with_max_age(header: &str) -> String {
    let mut end = None;
    let attributes = header.split(';').skip(1);
    for (name, value) in attributes.filter_map(|attribute| attribute.split_once('=')) {
        let (name, value) = (name.trim(), value.trim());
        let digits = value.strip_prefix('-').unwrap_or(value);
        let is_seconds = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_seconds && name.eq_ignore_ascii_case("max-age") {
            return header.to_owned();
        } else if name.eq_ignore_ascii_case("expires") {
            end = parse(value).or(end);
        }
    }
    let left = |end: Timestamp| end.as_second().saturating_sub(Timestamp::now().as_second()).max(0);
    header.to_owned() + &end.map(|end| format!("; Max-Age={}", left(end))).unwrap_or_default()
}

/// Parses a date: a time, a day, a month and a year, each the first token that may be one, in any order and between anything.
fn parse(date: &str) -> Option<Timestamp> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for token in date.split(|c: char| c.is_ascii_punctuation() && c != ':' || matches!(c, ' ' | '\t')) {
        if time.is_none() && time_of(token).is_some() {
            time = time_of(token);
        } else if day.is_none() && number::<i8>(token, 1..=2).is_some() {
            day = number(token, 1..=2);
        } else if month.is_none() && month_of(token).is_some() {
            month = month_of(token);
        } else if year.is_none() {
            year = number(token, 2..=4);
        }
    }
    let year = match year? {
        year @ 0..=69 => year + 2000,
        year @ 70..=99 => year + 1900,
        year => year,
    };
    let [hour, minute, second] = time?;
    let moment = DateTime::new(year, month?, day?, hour, minute, second, 0).ok()?;
    TimeZone::UTC.to_timestamp(moment).ok().filter(|_| year >= 1601)
}

fn time_of(token: &str) -> Option<[i8; 3]> {
    let mut parts = token.splitn(3, ':');
    let mut field = |may_go_on| {
        let digits = |part: &&str| may_go_on || part.bytes().all(|byte| byte.is_ascii_digit());
        number(parts.next().filter(digits)?, 1..=2)
    };
    Some([field(false)?, field(false)?, field(true)?])
}

fn month_of(token: &str) -> Option<i8> {
    let months = "jan feb mar apr may jun jul aug sep oct nov dec";
    let start = token.get(..3)?.to_ascii_lowercase();
    let place = months.split(' ').position(|month| month == start)?;
    i8::try_from(place + 1).ok()
}

fn number<T: FromStr>(token: &str, digits: RangeInclusive<usize>) -> Option<T> {
    let end = token.find(|c: char| !c.is_ascii_digit()).unwrap_or(token.len());
    digits.contains(&end).then(|| token.get(..end)?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_in_every_form_of_rfc_6265() {
        let expected = 784_111_777;
        for form in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "06 Nov 1994 08:49:37",
            "6 november 94 8:49:37 UTC",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun 06-Nov-1994 08:49:37 GMT+0000 (Coordinated Universal Time)",
            "1994 6 Nov 08:49:37",
            "Nov-6-1994;08:49:37",
            "08:49:37 6 Nov 1994",
            "\"Sun, 06 Nov 1994 08:49:37 GMT\"",
            "Sun,06Nov 6th Nov 1994th 08:49:37.123Z",
            "Sonntag, 06. Nov. 1994, 08:49:37 Uhr",
            "\t06/NOV/1994/8:49:37x",
        ] {
            assert_eq!(parse(form).map(Timestamp::as_second), Some(expected), "{form}");
        }
        for (form, year) in [
            ("1 Jan 70 0:0:0", 1970),
            ("1 Jan 69 0:0:0", 2069),
            ("1 Jan 1601 0:0:0", 1601),
        ] {
            let zoned = parse(form).map(|end| end.to_zoned(TimeZone::UTC).year());
            assert_eq!(zoned, Some(year), "{form}");
        }
        for no_date in [
            "",
            "tomorrow",
            "0",
            "06 Nov 1994",
            "08:49:37 Nov 1994",
            "08:49:37 06 1994",
            "06 Nov 08:49:37",
            "31 Feb 1994 08:49:37",
            "06 Nov 1600 08:49:37",
            "06 Nov 1994 24:00:00",
            "06 Nov 1994 08:60:37",
            "06 Nov 1994 08:49:60",
            "06 Nov 1994 08:49",
            "06 Nov 1994 008:49:37",
            "06 Nov 1994 08:+9:37",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(parse(no_date), None, "{no_date}");
        }
    }
}
