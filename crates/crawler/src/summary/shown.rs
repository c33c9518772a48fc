//! The summary as rows of text.

use std::collections::BTreeMap;
use std::fmt;

use bytesize::ByteSize;
use frontier::{HostReport, NotFetched, Report};

use super::grouped::{Counted, Grouped};
use super::{SitemapCounts, Summary};
use crate::fetch::TruncationReason;

/// The columns of a value: those of a terminal of 80 beside the name.
const VALUE_COLUMNS: usize = 60;

/// Describes the seen-set, in parts for a row each.
pub fn seen_set(report: &Report) -> Vec<String> {
    let text = report.saturation.to_string().replace(" dropped, ", " dropped; ");
    text.split("; ").map(str::to_owned).collect()
}

impl fmt::Display for Summary {
    /// Writes one row per number, with the name in the first column.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &str::to_owned)
    }
}

impl Summary {
    /// Returns the same text with other names for the options: `name` returns that of a field, such as `--max-pages` of `max_pages`.
    pub fn with_names<'a>(&'a self, name: impl Fn(&str) -> String + 'a) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| self.write(f, &name))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, name: &dyn Fn(&str) -> String) -> fmt::Result {
        let report = &self.report;
        let seconds = self.elapsed.as_secs_f64();
        row(f, "ended", format_args!("{} after {seconds:.1} s", self.ending))?;
        let missing = self.missing();
        if missing.is_empty() {
            row(f, "complete", format_args!("yes"))?;
        }
        for (at, reason) in missing.iter().enumerate() {
            let reason = reason.with_names(name);
            row(f, if at == 0 { "INCOMPLETE" } else { "" }, format_args!("{reason}"))?;
        }
        if !self.given_up_origins.is_empty() {
            let more = more_than(report.origins_given_up, &self.given_up_origins);
            let names = self.given_up_origins.join(", ");
            row(f, "given up", format_args!("{names}{more}"))?;
        }
        let (pages, pace) = (Grouped(self.pages), self.pages_per_second());
        match self.refreshed.pages {
            0 => row(f, "pages", format_args!("{pages} answered 2xx, {pace:.1} per second"))?,
            // The time has gone to others, too.
            _ => row(f, "pages", format_args!("{pages} answered 2xx"))?,
        }
        row(f, "by status", format_args!("{}", Listed(&self.by_status)))?;
        let refreshed = &self.refreshed;
        if refreshed.pages > 0 {
            let (pages, unchanged) = (Counted(refreshed.pages, "page"), Grouped(refreshed.unchanged));
            let (gone, failed) = (Grouped(refreshed.gone), Grouped(refreshed.failed));
            row(
                f,
                "refreshed",
                format_args!("{pages}, {unchanged} of them unchanged, {gone} gone, {failed} with another error status"),
            )?;
        }
        row(f, "redirects", format_args!("{}", Grouped(report.pages.redirected)))?;
        row(f, "bytes", format_args!("{}", ByteSize(self.bytes)))?;
        let truncated = named(&self.bodies_truncated, TruncationReason::name);
        row_of_counts(f, "bodies truncated", &truncated)?;
        if self.bodies_skipped > 0 {
            row(f, "bodies skipped", format_args!("{}", Grouped(self.bodies_skipped)))?;
        }
        row(f, "failed", format_args!("{}", Counted(self.failed_pages(), "page")))?;
        row_of_counts(f, "failed by reason", &self.failed)?;
        if report.pages.retries > 0 {
            let requests = Counted(report.pages.retries, "request");
            row(f, "retries", format_args!("{requests}"))?;
        }
        row_of_counts(f, "retried because", &self.retried)?;
        self.show_not_fetched(f)?;
        self.show_links(f)?;
        self.show_sitemaps(f)?;
        if self.selected_cut + self.selected_incomplete > 0 {
            let (cut, incomplete) = (
                Counted(self.selected_cut, "value"),
                Counted(self.selected_incomplete, "page"),
            );
            row(f, "selected", format_args!("{cut} cut, {incomplete} too costly"))?;
        }
        if self.cookies_dropped > 0 {
            row(f, "cookies refused", format_args!("{}", Grouped(self.cookies_dropped)))?;
        }
        self.show_duplicates(f)?;
        let left = Counted(self.pages_left(), "page");
        if self.cut_short > 0 {
            let in_flight = Grouped(self.cut_short);
            row(
                f,
                "left in queue",
                format_args!("{left}, {in_flight} of them stopped in flight"),
            )?;
        } else {
            row(f, "left in queue", format_args!("{left}"))?;
        }
        row(
            f,
            "hosts",
            format_args!("{}{}", Grouped(report.hosts), ShortestPause(&self.hosts)),
        )?;
        for (at, part) in seen_set(report).iter().enumerate() {
            row(f, if at == 0 { "seen-set" } else { "" }, format_args!("{part}"))?;
        }
        row(
            f,
            "seen-set memory",
            format_args!("{}", ByteSize(report.saturation.memory_bytes)),
        )?;
        if let Some(memory) = &report.memory {
            for (at, part) in memory.to_string().split("; ").enumerate() {
                row(f, if at == 0 { "memory" } else { "" }, format_args!("{part}"))?;
            }
        }
        match self.peak_memory_bytes {
            Some(bytes) => row(f, "peak memory", format_args!("{}", ByteSize(bytes))),
            None => Ok(()),
        }
    }

    fn show_links(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links = &self.report.links;
        let (offered, new, seen) = (Grouped(links.offered()), Grouped(links.queued), Grouped(links.seen));
        row(
            f,
            "links",
            format_args!("{offered} found, {new} new, {seen} seen before"),
        )?;
        row_of_counts(f, "links refused", &named(&links.refused, |why| why.name()))?;
        let not_followed = BTreeMap::from([
            ("nofollow", self.links_nofollow),
            ("over the limit", self.links_dropped),
            ("other scheme", self.links_other_scheme),
            ("not crawlable", self.links_unresolvable),
        ]);
        let not_followed: BTreeMap<_, _> = not_followed.into_iter().filter(|(_, count)| *count > 0).collect();
        row_of_counts(f, "not followed", &not_followed)
    }

    fn show_not_fetched(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not_fetched = &self.report.not_fetched;
        row_of_counts(f, "not fetched", &named(not_fetched, |why| why.name()))?;
        if not_fetched.contains_key(&NotFetched::AddressForbidden) {
            row(
                f,
                "",
                format_args!("(--allow-private-addresses also fetches from forbidden addresses)"),
            )?;
        }
        Ok(())
    }

    /// Writes two rows, for a crawl that fetched sitemaps.
    fn show_sitemaps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links = &self.report.sitemaps;
        if links.offered() == 0 {
            return Ok(());
        }
        let SitemapCounts {
            read,
            broken,
            failed,
            urls,
            urls_dropped,
            urls_invalid,
        } = self.sitemaps;
        let refused = named(&links.refused, |why| why.name());
        let refused = Listed(&refused);
        row(
            f,
            "sitemaps",
            format_args!("{read} read, {broken} of them in part; {failed} failed; refused: {refused}"),
        )?;
        let (urls, urls_dropped, urls_invalid) = (Grouped(urls), Grouped(urls_dropped), Grouped(urls_invalid));
        row(
            f,
            "URLs in sitemaps",
            format_args!("{urls}, {urls_dropped} over the limit, {urls_invalid} not crawlable"),
        )
    }

    fn show_duplicates(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.report.resemblance;
        if counts.compared == 0 {
            return Ok(());
        }
        let (exact, near) = (Grouped(counts.exact), Grouped(counts.near));
        let compared = Counted(counts.compared, "compared page");
        row(
            f,
            "duplicates",
            format_args!("{exact} exact, {near} near, of {compared}"),
        )?;
        if counts.forgotten > 0 {
            let forgotten = Grouped(counts.forgotten);
            row(
                f,
                "",
                format_args!("(not with the {forgotten} oldest pages: --max-fingerprints)"),
            )?;
        }
        let postponed = self.report.postponed_prefixes;
        if postponed > 0 {
            row(
                f,
                "paths postponed",
                format_args!("{postponed}, for near-duplicates: fetched after everything else"),
            )?;
        }
        let closed = self.report.closed_prefixes;
        if closed == 0 {
            return Ok(());
        }
        let more = more_than(closed, &self.closed_prefixes);
        row(
            f,
            "paths closed",
            format_args!(
                "{closed}, for near-duplicates: {}{more}",
                self.closed_prefixes.join(", ")
            ),
        )
    }
}

/// Writes a row. A long value continues below its start.
fn row(f: &mut fmt::Formatter<'_>, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
    let mut name = name;
    let mut line = String::new();
    for word in value.to_string().split(' ') {
        let is_full = line.chars().count() + 1 + word.chars().count() > VALUE_COLUMNS;
        if is_full && !line.is_empty() && !continues_number(&line, word) {
            writeln!(f, "  {name:<17} {line}")?;
            (name, line) = ("", String::new());
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    writeln!(f, "  {name:<17} {line}")
}

/// Returns whether a word is a group of digits of the number at the end of a line, or the count of the name there.
fn continues_number(line: &str, word: &str) -> bool {
    if line.ends_with(':') && word.starts_with(|start: char| start.is_ascii_digit()) {
        return true;
    }
    let is_group = word.len() >= 3 && word.bytes().take(3).all(|byte| byte.is_ascii_digit());
    is_group && line.ends_with(|end: char| end.is_ascii_digit())
}

/// Writes a row of counts, if there are any.
fn row_of_counts<K: fmt::Display>(f: &mut fmt::Formatter<'_>, name: &str, counts: &BTreeMap<K, u64>) -> fmt::Result {
    match counts.is_empty() {
        true => Ok(()),
        false => row(f, name, format_args!("{}", Listed(counts))),
    }
}

/// Returns the end of a list that has more members than are named.
fn more_than(all: u64, named: &[String]) -> &'static str {
    if all > named.len() as u64 { ", ..." } else { "" }
}

fn named<K: Copy>(counts: &BTreeMap<K, u64>, name: impl Fn(K) -> &'static str) -> BTreeMap<&'static str, u64> {
    counts.iter().map(|(key, count)| (name(*key), *count)).collect()
}

/// Counts by key, as in `200: 312, 404: 3`; or `none`.
struct Listed<'a, K>(&'a BTreeMap<K, u64>);

impl<K: fmt::Display> fmt::Display for Listed<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (at, (key, count)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{key}: {}", Grouped(*count))?;
        }
        Ok(())
    }
}

/// The shortest pause between two requests to a host, compared with the required delay of that host.
struct ShortestPause<'a>(&'a [HostReport]);

impl fmt::Display for ShortestPause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gaps = self.0.iter().filter_map(|host| Some((host.shortest_gap?, host)));
        let Some((gap, host)) = gaps.min_by_key(|(gap, host)| gap.saturating_sub(host.delay)) else {
            return Ok(());
        };
        let (gap, delay) = (gap.as_millis(), host.delay.as_millis());
        write!(f, "; shortest pause {gap} ms, delay {delay} ms ({})", host.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(&'static str);

    impl fmt::Display for Row {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            row(f, "name", format_args!("{}", self.0))
        }
    }

    #[test]
    fn a_long_row_continues_below_its_value_and_no_number_is_broken() {
        let text = "about 12 345 678 distinct keys for a capacity of 1 000 000, grown to hold 15 000 000 in 5 layers";
        let shown = Row(text).to_string();
        let expected = "  name              about 12 345 678 distinct keys for a capacity of 1 000 000,\n                    grown to hold 15 000 000 in 5 layers\n";
        assert_eq!(shown, expected);
        assert!(shown.lines().all(|line| line.chars().count() <= 80));
        let long = "x".repeat(100);
        assert_eq!(Row(long.leak()).to_string().lines().count(), 1);
    }
}
