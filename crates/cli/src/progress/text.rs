//! The text of the progress view, shortened to the width of the terminal.

use std::time::Duration;

use crawler::Progress;
use indicatif::HumanBytes;

use super::pace::{Pace, Remaining};

/// The text between the parts of the status line.
const SEPARATOR: &str = ", ";

/// The numbers of the status line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Status {
    pub(super) elapsed: Duration,
    pub(super) pages: u64,
    /// Pages per second.
    pub(super) rate: f64,
    pub(super) queued: u64,
    pub(super) in_flight: u64,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    pub(super) remaining: Remaining,
}

impl Status {
    pub(super) fn new(progress: &Progress, pace: &Pace) -> Self {
        Self {
            elapsed: progress.elapsed,
            pages: progress.pages,
            rate: pace.rate(),
            queued: progress.report.queued,
            in_flight: progress.report.leased,
            failed: progress.failed,
            bytes: progress.bytes,
            remaining: pace.remaining(),
        }
    }

    /// Returns the parts in the order of the line, each with its rank. On a narrow terminal the part of the highest rank is dropped
    /// first.
    fn parts(&self) -> Vec<(u8, String)> {
        vec![
            (0, format!("{} {}", clock(self.elapsed), counted(self.pages, "page"))),
            (4, format!("{:.1}/s", self.rate)),
            (1, format!("{} queued", self.queued)),
            (6, format!("{} in flight", self.in_flight)),
            (2, format!("{} failed", self.failed)),
            (5, HumanBytes(self.bytes).to_string()),
            (3, format!("ETA {}", remaining(self.remaining))),
        ]
    }

    /// Returns the most important parts of the status that fit into the width.
    pub(super) fn line(&self, width: usize) -> String {
        let mut parts = self.parts();
        loop {
            let line = joined(&parts);
            let least = parts.iter().map(|(rank, _)| *rank).max().unwrap_or(0);
            if line.chars().count() <= width || least == 0 {
                return cut(&line, width);
            }
            parts.retain(|(rank, _)| *rank != least);
        }
    }
}

fn joined(parts: &[(u8, String)]) -> String {
    let texts: Vec<&str> = parts.iter().map(|(_, text)| text.as_str()).collect();
    texts.join(SEPARATOR)
}

/// Returns the status and the URL of a page. The middle of a long URL is left out.
pub(super) fn page_line(status: u16, url: &str, width: usize) -> String {
    let line = format!("{status} {url}");
    let length = line.chars().count();
    if length <= width || width < 2 {
        return cut(&line, width);
    }
    let end = (width - 1) / 2;
    let start: String = line.chars().take(width - 1 - end).collect();
    start + "…" + &line.chars().skip(length - end).collect::<String>()
}

/// Cuts a text to a width, in characters. The view has no wide characters.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    if width == 0 { kept } else { kept + "…" }
}

fn counted(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn remaining(remaining: Remaining) -> String {
    match remaining {
        Remaining::Unknown => "–".to_owned(),
        Remaining::About(time) => format!("~{}", rounded(time)),
        Remaining::AtMost(time) => format!("≤{}", rounded(time)),
    }
}

/// Formats a time as on a clock: `0:05`, `12:34`, `1:02:03`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Formats an estimated time in its largest unit: `40s`, `12m`, `3h`, `2d`.
fn rounded(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", (seconds + 30) / 60),
        3600..36_000 => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        36_000..172_800 => format!("{}h", (seconds + 1800) / 3600),
        _ => format!("{}d", (seconds + 43_200) / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: Status = Status {
        elapsed: Duration::from_secs(83),
        pages: 12_345,
        rate: 148.73,
        queued: 56_789,
        in_flight: 16,
        failed: 12,
        bytes: 345 * 1024 * 1024,
        remaining: Remaining::About(Duration::from_secs(380)),
    };

    #[test]
    fn a_narrow_terminal_shows_the_most_important_parts() {
        for (width, line) in [
            (
                120,
                "1:23 12345 pages, 148.7/s, 56789 queued, 16 in flight, 12 failed, 345.00 MiB, ETA ~6m",
            ),
            (
                78,
                "1:23 12345 pages, 148.7/s, 56789 queued, 12 failed, 345.00 MiB, ETA ~6m",
            ),
            (50, "1:23 12345 pages, 56789 queued, 12 failed, ETA ~6m"),
            (38, "1:23 12345 pages, 56789 queued"),
            (10, "1:23 1234…"),
            (0, ""),
        ] {
            let shown = STATUS.line(width);
            assert_eq!(shown, line);
            assert!(shown.chars().count() <= width);
        }
    }

    #[test]
    fn an_unknown_end_is_shown_as_a_dash() {
        let line = |remaining| {
            Status {
                remaining,
                pages: 1,

                ..STATUS
            }
            .line(200)
        };
        assert!(line(Remaining::Unknown).ends_with(", ETA –"));
        assert!(line(Remaining::AtMost(Duration::from_secs(5))).ends_with(", ETA ≤5s"));
        assert!(line(Remaining::Unknown).contains(" 1 page, "));
        for (seconds, text) in [
            (59, "59s"),
            (100, "2m"),
            (4000, "1h 06m"),
            (90_000, "25h"),
            (864_000, "10d"),
        ] {
            assert_eq!(rounded(Duration::from_secs(seconds)), text);
        }
        assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
    }

    #[test]
    fn a_long_url_is_shortened_in_the_middle() {
        let url = "https://example.com/a/long/path/to/a/page.html";
        for (width, line) in [
            (80, "200 https://example.com/a/long/path/to/a/page.html"),
            (50, "200 https://example.com/a/long/path/to/a/page.html"),
            (38, "200 https://example…ath/to/a/page.html"),
            (1, "…"),
            (0, ""),
        ] {
            let shown = page_line(200, url, width);
            assert_eq!(shown, line);
            assert!(shown.chars().count() <= width);
        }
    }
}
