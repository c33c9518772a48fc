//! The numbers at the end as lines of text.

use std::collections::BTreeMap;
use std::fmt;

use frontier::HostReport;

use super::{SitemapCounts, Summary};
use crate::fetch::TruncationReason;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.report;
        row(
            f,
            "ended",
            format_args!("{} after {:.1} s", self.ending, self.elapsed.as_secs_f64()),
        )?;
        let missing = self.missing();
        if missing.is_empty() {
            row(f, "complete", format_args!("yes"))?;
        }
        for (at, reason) in missing.iter().enumerate() {
            row(f, if at == 0 { "INCOMPLETE" } else { "" }, format_args!("{reason}"))?;
        }
        row(
            f,
            "pages",
            format_args!("{} ({:.1} per second)", self.pages, self.pages_per_second()),
        )?;
        row(f, "by status", format_args!("{}", Listed(&self.by_status)))?;
        row(f, "redirects", format_args!("{}", report.pages.redirected))?;
        row(f, "bytes", format_args!("{}", Bytes(self.bytes)))?;
        let failed = report.pages.gave_up + report.pages.lost_with_host;
        row(
            f,
            "failed",
            format_args!("{failed} for good, {} retries", report.pages.retries),
        )?;
        row(f, "failed by reason", format_args!("{}", Listed(&self.failed)))?;
        row(f, "retried because", format_args!("{}", Listed(&self.retried)))?;
        row(
            f,
            "bodies cut",
            format_args!("{}", Listed(&named(&self.bodies_truncated, TruncationReason::name))),
        )?;
        row(f, "bodies skipped", format_args!("{}", self.bodies_skipped))?;
        row(
            f,
            "not fetched",
            format_args!("{}", Listed(&named(&report.not_fetched, |why| why.name()))),
        )?;
        let links = &report.links;
        let offered = links.offered();
        row(
            f,
            "links",
            format_args!("{offered} offered, {} new, {} seen", links.queued, links.seen),
        )?;
        row(
            f,
            "links refused",
            format_args!("{}", Listed(&named(&links.refused, |why| why.name()))),
        )?;
        row(
            f,
            "links unfollowed",
            format_args!(
                "{} nofollow, {} over the cap, {} neither http nor https, {} unresolvable",
                self.links_nofollow, self.links_dropped, self.links_other_scheme, self.links_unresolvable
            ),
        )?;
        self.write_sitemaps(f)?;
        if self.selected_cut + self.selected_incomplete > 0 {
            let (cut, incomplete) = (self.selected_cut, self.selected_incomplete);
            row(
                f,
                "selected",
                format_args!("{cut} values cut, {incomplete} pages too costly"),
            )?;
        }
        if self.cookies_dropped > 0 {
            row(f, "cookies dropped", format_args!("{}", self.cookies_dropped))?;
        }
        self.show_duplicates(f)?;
        row(
            f,
            "left in queue",
            format_args!("{}, {} cut short", report.queued, self.cut_short),
        )?;
        row(f, "hosts", format_args!("{}{}", report.hosts, Politest(&self.hosts)))?;
        row(
            f,
            "seen-set",
            format_args!("{} ({})", report.saturation, Bytes(report.saturation.memory_bytes)),
        )?;
        row(
            f,
            "estimated loss",
            format_args!("{:.1} pages never fetched", report.saturation.lost),
        )?;
        match self.peak_memory_bytes {
            Some(bytes) => row(f, "peak memory", format_args!("{}", Bytes(bytes))),
            None => Ok(()),
        }
    }
}

impl Summary {
    /// Two rows, of a crawl that asked for sitemaps.
    fn write_sitemaps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
            format_args!("{read} read, {broken} of them not to the end, {failed} failed; refused: {refused}"),
        )?;
        row(
            f,
            "URLs in sitemaps",
            format_args!("{urls}, {urls_dropped} over the cap, {urls_invalid} unusable"),
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
                counts.exact, counts.near, counts.forgotten
            ),
        )?;
        let postponed = self.report.postponed_prefixes;
        if postponed > 0 {
            row(
                f,
                "paths postponed",
                format_args!("{postponed} for near-duplicates, fetched after everything else"),
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
                "{closed} for near-duplicates: {}{more}",
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

/// `200: 312, 404: 3`, or `none`.
struct Listed<'a, K>(&'a BTreeMap<K, u64>);

impl<K: fmt::Display> fmt::Display for Listed<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (at, (key, count)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{key}: {count}")?;
        }
        Ok(())
    }
}

/// The shortest gap that was left to any host, against what was owed to it.
struct Politest<'a>(&'a [HostReport]);

impl fmt::Display for Politest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gaps = self.0.iter().filter_map(|host| Some((host.shortest_gap?, host)));
        let Some((gap, host)) = gaps.min_by_key(|(gap, host)| gap.saturating_sub(host.delay)) else {
            return Ok(());
        };
        let (gap, owed) = (gap.as_millis(), host.delay.as_millis());
        write!(f, "; shortest pause {gap} ms, owed {owed} ms ({})", host.host)
    }
}

/// A number of bytes with a binary unit.
struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["KiB", "MiB", "GiB", "TiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < units.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", units[unit])
    }
}
