//! The summary as rows of text.

use std::collections::BTreeMap;
use std::fmt;

use bytesize::ByteSize;
use frontier::HostReport;

use super::grouped::{Counted, Grouped};
use super::{SitemapCounts, Summary};
use crate::fetch::TruncationReason;

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
        let (pages, pace) = (Grouped(self.pages), self.pages_per_second());
        row(f, "pages", format_args!("{pages} ({pace:.1} per second)"))?;
        row(f, "by status", format_args!("{}", Listed(&self.by_status)))?;
        row(f, "redirects", format_args!("{}", Grouped(report.pages.redirected)))?;
        row(f, "bytes", format_args!("{}", ByteSize(self.bytes)))?;
        row(
            f,
            "bodies truncated",
            format_args!("{}", Listed(&named(&self.bodies_truncated, TruncationReason::name))),
        )?;
        row(f, "bodies skipped", format_args!("{}", Grouped(self.bodies_skipped)))?;
        row(f, "failed", format_args!("{}", Counted(self.failed_pages(), "page")))?;
        row(f, "failed by reason", format_args!("{}", Listed(&self.failed)))?;
        row(
            f,
            "retries",
            format_args!("{}", Counted(report.pages.retries, "request")),
        )?;
        row(f, "retried because", format_args!("{}", Listed(&self.retried)))?;
        row(
            f,
            "not fetched",
            format_args!("{}", Listed(&named(&report.not_fetched, |why| why.name()))),
        )?;
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
        let (left, in_flight) = (Counted(self.pages_left(), "page"), Grouped(self.cut_short));
        row(
            f,
            "left in queue",
            format_args!("{left}, {in_flight} of them stopped in flight"),
        )?;
        row(
            f,
            "hosts",
            format_args!("{}{}", Grouped(report.hosts), ShortestPause(&self.hosts)),
        )?;
        let saturation = report.saturation.to_string();
        for (at, part) in saturation.split("; ").enumerate() {
            row(f, if at == 0 { "seen-set" } else { "" }, format_args!("{part}"))?;
        }
        row(
            f,
            "seen-set memory",
            format_args!("{}", ByteSize(report.saturation.memory_bytes)),
        )?;
        match self.peak_memory_bytes {
            Some(bytes) => row(f, "peak memory", format_args!("{}", ByteSize(bytes))),
            None => Ok(()),
        }
    }

    fn show_links(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links = &self.report.links;
        let (offered, new, seen) = (Grouped(links.offered()), Grouped(links.queued), Grouped(links.seen));
        row(f, "links", format_args!("{offered} offered, {new} new, {seen} seen"))?;
        row(
            f,
            "links refused",
            format_args!("{}", Listed(&named(&links.refused, |why| why.name()))),
        )?;
        let not_followed = BTreeMap::from([
            ("nofollow", self.links_nofollow),
            ("over the limit", self.links_dropped),
            ("other scheme", self.links_other_scheme),
            ("not crawlable", self.links_unresolvable),
        ]);
        let not_followed: BTreeMap<_, _> = not_followed.into_iter().filter(|(_, count)| *count > 0).collect();
        row(f, "not followed", format_args!("{}", Listed(&not_followed)))
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
        row(
            f,
            "duplicates",
            format_args!(
                "{} exact, {} near, {} forgotten",
                Grouped(counts.exact),
                Grouped(counts.near),
                Grouped(counts.forgotten)
            ),
        )?;
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
        let more = if closed > self.closed_prefixes.len() as u64 {
            ", ..."
        } else {
            ""
        };
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

fn row(f: &mut fmt::Formatter<'_>, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
    writeln!(f, "  {name:<17} {value}")
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
