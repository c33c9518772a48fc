//! Rows of text with a name and a value each, at most 80 columns wide, and numbers as people read them.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::time::Duration;

use bytesize::ByteSize;
pub use sieve::saturation::grouped;

/// The columns of a value: those of a terminal of 80 beside the name.
const VALUE_COLUMNS: usize = 60;

/// Rows with a name and a value each.
///
/// ```
/// use crawler::summary::Rows;
///
/// let mut rows = Rows::default();
/// rows.add("pages", "12 345 answered 2xx");
/// assert_eq!(rows.to_string(), "  pages             12 345 answered 2xx\n");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Rows {
    text: String,
}

impl Rows {
    /// Adds a row. A long value continues below its start, and no number is broken.
    pub fn add(&mut self, name: &str, value: impl Display) {
        let (mut name, mut line) = (name, String::new());
        for word in value.to_string().split(' ') {
            let is_full = line.chars().count() + 1 + word.chars().count() > VALUE_COLUMNS;
            if is_full && !line.is_empty() && !continues_number(&line, word) {
                self.add_whole(name, &line);
                (name, line) = ("", String::new());
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        self.add_whole(name, line);
    }

    /// Adds a row whose value is written in one line.
    pub fn add_whole(&mut self, name: &str, value: impl Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "  {name:<17} {value}");
    }

    /// Adds a row for each of several values; the first one has the name.
    pub fn add_all<V: Display>(&mut self, name: &str, values: impl IntoIterator<Item = V>) {
        for (at, value) in values.into_iter().enumerate() {
            self.add(if at == 0 { name } else { "" }, value);
        }
    }

    /// Adds a row of counts, if there are any.
    pub fn add_counts<K: Display>(&mut self, name: &str, counts: &BTreeMap<K, u64>) {
        if !counts.is_empty() {
            self.add(name, listed(counts));
        }
    }

    /// Adds a row of a number, unless it is 0.
    pub fn add_number(&mut self, name: &str, number: u64) {
        if number > 0 {
            self.add(name, grouped(number));
        }
    }
}

impl Display for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn continues_number(line: &str, word: &str) -> bool {
    if line.ends_with(':') && word.starts_with(|start: char| start.is_ascii_digit()) {
        return true;
    }
    let is_group = word.len() >= 3 && word.bytes().take(3).all(|byte| byte.is_ascii_digit());
    is_group && line.ends_with(|end: char| end.is_ascii_digit())
}

/// Returns a number and its noun, with a plural `s` unless the number is one.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// Returns a duration in its largest unit; of minutes and more there are at least one and a half.
///
/// ```
/// use std::time::Duration;
///
/// let shown = [0.3, 7.34, 89.0, 90.0, 8_000.0, 200_000.0].map(|seconds| {
///     crawler::summary::duration(Duration::from_secs_f64(seconds))
/// });
/// assert_eq!(shown, ["300 ms", "7.3 s", "89.0 s", "1.5 min", "2.2 h", "2.3 days"]);
/// ```
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        1..90 => format!("{seconds:.1} s"),
        90..5_400 => format!("{:.1} min", seconds / 60.0),
        5_400..129_600 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

/// Returns a number of bytes in its largest unit, as in `1.7 MiB`.
pub fn size(bytes: u64) -> impl Display {
    ByteSize(bytes)
}

/// Returns counts by key, as in `200: 312, 404: 3`; or `none`.
pub fn listed<K: Display>(counts: &BTreeMap<K, u64>) -> String {
    if counts.is_empty() {
        return "none".to_owned();
    }
    let counts = counts.iter().map(|(key, count)| format!("{key}: {}", grouped(*count)));
    counts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_five_digits_or_more_are_grouped_by_three() {
        let shown = [0, 999, 9_999, 12_345, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "9999", "12 345", "1 234 567"]);
        assert_eq!(counted(1, "page"), "1 page");
        assert_eq!(counted(20_000, "page"), "20 000 pages");
    }

    #[test]
    fn a_long_row_continues_below_its_value_and_no_number_is_broken() {
        let mut rows = Rows::default();
        rows.add(
            "name",
            "about 12 345 678 distinct keys for a capacity of 1 000 000, grown to hold 15 000 000 in 5 layers",
        );
        let shown = rows.to_string();
        let expected = "  name              about 12 345 678 distinct keys for a capacity of 1 000 000,\n                    grown to hold 15 000 000 in 5 layers\n";
        assert_eq!(shown, expected);
        assert!(shown.lines().all(|line| line.chars().count() <= 80));
        let mut long = Rows::default();
        long.add("name", "x".repeat(100));
        assert_eq!(long.to_string().lines().count(), 1);
    }
}
