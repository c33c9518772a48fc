//! Reads and writes values with units: counts, sizes, durations and shares.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use frontier::Time;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use parse_size::{ByteSuffix, Config};

const COUNT: &str = "write a whole number such as 500, 64k or 10M";
const SIZE: &str = "write a size such as 512KiB, 64MiB or 10MB; a bare number is bytes";
const DURATION: &str = "write a duration such as 500ms, 30s, 5m, 1h or 2d; a bare number is seconds";

/// Reads a count: digits with an optional k, M or G, for 10³, 10⁶ or 10⁹.
///
/// # Errors
///
/// When the text is not a count, or `T` cannot hold it.
pub(super) fn parse_count<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    let counts = Config::new().with_byte_suffix(ByteSuffix::Deny);
    let count = counts.parse_size(text).ok().filter(|_| !text.contains(['i', 'I']));
    whole(text, count, COUNT)
}

/// Reads a size in bytes: KiB, MiB and GiB are powers of 1024; k, kB, MB and GB are powers of 1000.
///
/// # Errors
///
/// When the text is not a size, or `T` cannot hold it.
pub(super) fn parse_size<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    whole(text, parse_size::parse_size(text).ok(), SIZE)
}

/// Returns the number that was read of a text, if it is whole or has a unit. The library would round a bare 1.5 to 2.
fn whole<T: FromStr<Err = ParseIntError>>(text: &str, read: Option<u64>, example: &str) -> Result<T, String> {
    if text.starts_with('-') {
        return Err(format!("it must not be below 0: {example}"));
    }
    let has_unit = !text.ends_with(|last: char| last.is_ascii_digit());
    let is_whole = !text.contains(['+', '-']) && (has_unit || !text.contains('.'));
    let number = read.filter(|_| is_whole).ok_or_else(|| example.to_owned())?;
    number.to_string().parse().map_err(|error: ParseIntError| {
        if *error.kind() == IntErrorKind::Zero {
            format!("it must be 1 or more: {example}")
        } else {
            format!("it is too large: {example}")
        }
    })
}

/// Reads a duration with units, or a bare number of seconds.
///
/// # Errors
///
/// When the text is not a duration, or it is below zero.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|_| match seconds > 0.0 {
            true => format!("it is too large: {DURATION}"),
            false => format!("it must be 0 or more: {DURATION}"),
        });
    }
    let span = Span::from_str(text).map_err(|_| DURATION.to_owned())?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours());
    let duration = duration.map_err(|_| DURATION.to_owned())?;
    Duration::try_from(duration).map_err(|_| format!("it must be 0 or more: {DURATION}"))
}

/// Reads a time: RFC 3339, such as 2026-12-24T08:00:00Z.
///
/// # Errors
///
/// When the text is not a time since 1970.
pub(super) fn parse_time(text: &str) -> Result<Time, String> {
    let time = Timestamp::from_str(text)
        .ok()
        .and_then(|time| u64::try_from(time.as_millisecond()).ok());
    time.map(Time::from_millis)
        .ok_or_else(|| "write a time such as 2026-12-24T08:00:00Z".to_owned())
}

/// Reads a duration as [`parse_duration`] does.
///
/// # Errors
///
/// When the text is not a duration, or it is not above zero.
pub(super) fn parse_duration_above_zero(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => Err(format!("it must be more than 0: {DURATION}")),
        duration => Ok(duration),
    }
}

/// Reads the address of a server of ours: a port stands for one on loopback.
///
/// # Errors
///
/// When the text is neither a port nor an address with a port.
pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let of_port = || {
        text.parse()
            .map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    };
    let address = text.parse().or_else(|_| of_port());
    address.map_err(|_| "give a port, such as 8077, or ADDRESS:PORT, such as 127.0.0.1:8077 or [::1]:8077".to_owned())
}

/// Reads a share above 0 and below 1, as a fraction or in percent.
///
/// # Errors
///
/// When the text is not such a share.
pub(super) fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    match rate {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err("write a fraction above 0 and below 1, such as 0.01, or a percentage such as 1%".to_owned()),
    }
}

/// Writes a count in the largest unit that needs no fraction. Counts below ten thousand stay as they are.
pub(super) fn show_count(count: u64) -> String {
    match count {
        0..10_000 => count.to_string(),
        _ => in_largest(&[(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")], count),
    }
}

/// Writes a size in the largest power of 1024 that needs no fraction.
pub(super) fn show_size(bytes: u64) -> String {
    in_largest(&[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")], bytes)
}

fn in_largest(units: &[(u64, &str)], number: u64) -> String {
    let is_whole = |(unit, _): &&(u64, &str)| number > 0 && number.is_multiple_of(*unit);
    match units.iter().find(is_whole) {
        Some((unit, name)) => format!("{}{name}", number / unit),
        None => number.to_string(),
    }
}

/// Writes a duration with units, such as 5m or 500ms.
pub(super) fn show_duration(duration: Duration) -> String {
    match SignedDuration::try_from(duration) {
        Ok(duration) => format!("{duration:#}"),
        Err(_) => format!("{}s", duration.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[test]
    fn counts_have_decimal_units() {
        for (text, count) in [
            ("0", 0),
            ("500", 500),
            ("64k", 64_000),
            ("64K", 64_000),
            ("10M", 10_000_000),
            ("2G", 2_000_000_000),
            ("1.5M", 1_500_000),
            ("1_000", 1_000),
        ] {
            assert_eq!(parse_count::<u64>(text), Ok(count), "{text}");
        }
    }

    #[test]
    fn sizes_have_binary_and_decimal_units_and_a_bare_number_is_bytes() {
        for (text, bytes) in [
            ("4096", 4096),
            ("1B", 1),
            ("512KiB", 512 << 10),
            ("64MiB", 64 << 20),
            ("1GiB", 1 << 30),
            ("10MB", 10_000_000),
            ("10kB", 10_000),
            ("10M", 10_000_000),
            ("1.5MiB", 3 << 19),
        ] {
            assert_eq!(parse_size::<u64>(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn durations_have_units_and_a_bare_number_is_seconds() {
        for (text, milliseconds) in [
            ("0", 0),
            ("0s", 0),
            ("30", 30_000),
            ("0.5", 500),
            ("500ms", 500),
            ("30s", 30_000),
            ("1.5s", 1_500),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn an_invalid_value_is_refused_with_an_example() {
        for text in ["", "x", "-1", "10 pages", "10Mi", "10MB", "1.5", "1e-3", "99999999999G"] {
            let error = parse_count::<u64>(text).unwrap_err();
            assert!(error.contains("64k"), "{text}: {error}");
        }
        for text in ["", "x", "-1", "1.5", "10Mb/s", "10 pages"] {
            let error = parse_size::<u64>(text).unwrap_err();
            assert!(error.contains("64MiB"), "{text}: {error}");
        }
        for text in ["", "x", "-1", "-1s", "inf", "NaN", "1 month", "5 x", "1e400"] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains("500ms"), "{text}: {error}");
        }
        for text in ["1e20", "99999999999999999999", "1e400"] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains("too large"), "{text}: {error}");
        }
        for text in ["0", "0s", "0ms"] {
            assert!(parse_duration_above_zero(text).is_err(), "{text}");
        }
        for text in ["0", "1", "100%", "0%", "NaN", "x", "-0.1"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_that_does_not_fit_is_refused_and_never_truncated() {
        assert_eq!(parse_count::<u8>("255"), Ok(255));
        assert!(parse_count::<u8>("256").unwrap_err().contains("too large"));
        assert!(parse_count::<u32>("5G").unwrap_err().contains("too large"));
        assert!(parse_count::<NonZeroU32>("0").unwrap_err().contains("1 or more"));
    }

    #[test]
    fn a_written_value_is_read_as_the_same_value() {
        for count in [
            0,
            1,
            999,
            1_000,
            9_999,
            10_000,
            1_000_000,
            2_500_000,
            3_000_000_000,
            u64::MAX,
        ] {
            assert_eq!(parse_count(&show_count(count)), Ok(count));
        }
        for bytes in [0, 1, 1000, 1024, 2048, 10 << 20, (10 << 20) + 1, 3 << 30, u64::MAX] {
            assert_eq!(parse_size(&show_size(bytes)), Ok(bytes));
        }
        for milliseconds in [0, 1, 500, 1_000, 1_500, 300_000, 5_400_000, 86_400_000] {
            let duration = Duration::from_millis(milliseconds);
            assert_eq!(parse_duration(&show_duration(duration)), Ok(duration));
        }
        assert_eq!(show_count(1_000_000), "1M");
        assert_eq!(show_count(250_000), "250k");
        assert_eq!(show_size(10_485_760), "10MiB");
        assert_eq!(show_duration(Duration::from_secs(300)), "5m");
        assert_eq!(parse_rate("1%"), Ok(0.01));
    }
}
