//! Rows, numbers and times as the commands about a state directory print them.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::time::Duration;

use frontier::Time;
use jiff::Timestamp;

/// The widest line, in characters.
const WIDTH: usize = 80;
/// Where the values of rows begin.
const INDENT: usize = 20;

/// Rows with a name and a value each, as in the summary of a crawl.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) text: String,
}

impl Rows {
    /// Adds a row. A long value continues in further lines, and a word that is too long for a line is shortened in its middle.
    pub(super) fn add(&mut self, name: &str, value: impl Display) {
        let room = WIDTH - INDENT;
        let mut lines: Vec<String> = Vec::new();
        for word in value.to_string().split_whitespace() {
            let word = shortened(word, room);
            match lines.last_mut() {
                Some(line) if length(line) + 1 + length(&word) <= room => {
                    line.push(' ');
                    line.push_str(&word);
                }
                _ => lines.push(word),
            }
        }
        for (at, line) in lines.iter().enumerate() {
            self.line(if at == 0 { name } else { "" }, line);
        }
    }

    /// Adds a row whose value is printed whole in one line.
    pub(super) fn add_whole(&mut self, name: &str, value: impl Display) {
        self.line(name, &value.to_string());
    }

    fn line(&mut self, name: &str, value: &str) {
        let width = INDENT - 3;
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "  {name:<width$} {value}");
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn shortened(word: &str, room: usize) -> String {
    let length = length(word);
    if length <= room {
        return word.to_owned();
    }
    let end = (room - 1) / 2;
    let start: String = word.chars().take(room - 1 - end).collect();
    start + "…" + &word.chars().skip(length - end).collect::<String>()
}

/// Returns a number with a space between groups of three digits, from five digits up.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let is_long = digits.len() > 4;
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if is_long && at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Returns a number with its noun.
pub(super) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// Returns counts by key, as in `200: 312, 404: 3`; or `none`.
pub(super) fn listed<K: Display>(counts: &BTreeMap<K, u64>) -> String {
    if counts.is_empty() {
        return "none".to_owned();
    }
    let counts = counts.iter().map(|(key, count)| format!("{key}: {}", grouped(*count)));
    counts.collect::<Vec<_>>().join(", ")
}

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
    fn rows_are_at_most_80_columns_wide() {
        let mut rows = Rows::default();
        rows.add(
            "away",
            format!("https://{}.example since 3 m: {}", "a".repeat(90), "word ".repeat(30)),
        );
        rows.add("failed", "2 pages");
        for line in rows.text.lines() {
            assert!(length(line) <= WIDTH, "{line}");
            assert!(line.len() > INDENT, "an empty line: {:?}", rows.text);
        }
        assert!(rows.text.ends_with("  failed            2 pages\n"), "{}", rows.text);
    }

    #[test]
    fn numbers_and_times_are_easy_to_read() {
        assert_eq!([9_999, 12_345].map(grouped), ["9999", "12 345"]);
        assert_eq!(counted(1, "page"), "1 page");
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
