//! The summary as rows of text, and as one JSON object.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use frontier::report::MemoryReport;
use frontier::{Health, HostFreshness, NotFetched, Refusal};
use serde_json::{Value, json};

use super::counts::count_of;
use super::rows::{Rows, counted, duration, grouped, listed, size};
use super::{HostFigures, Summary};
use crate::fetch::TruncationReason;

/// The most hosts and origins that the rows name. JSON has more.
const HOSTS_SHOWN: usize = 5;

/// How many of them may be those that are asked, and only take longest.
const LONGEST_SHOWN: usize = 3;

/// The most hosts of the table that JSON has.
const HOSTS_LISTED: usize = 20;

impl fmt::Display for Summary {
    /// Writes one row per number, with the name in the first column.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.with_names(str::to_owned), f)
    }
}

impl Summary {
    /// Returns the same text with other names for the options: `name` returns that of a field, such as `--max-pages` of `max_pages`.
    pub fn with_names<'a>(&'a self, name: impl Fn(&str) -> String + 'a) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            let mut rows = Rows::default();
            rows.add("ended", format!("{} after {}", self.ending, duration(self.elapsed)));
            let incomplete = self.why_incomplete(&name);
            if incomplete.is_empty() {
                rows.add("complete", self.but_for());
            }
            rows.add_all("INCOMPLETE", incomplete);
            rows.add_all("hint", self.hint(&name));
            self.add_held_up(&mut rows, &name);
            self.add_rows(&mut rows, &name);
            fmt::Display::fmt(&rows, f)
        })
    }

    /// A complete crawl, but for what was dropped and refused by order.
    fn but_for(&self) -> String {
        let dropped = count_of(&self.report.not_fetched, NotFetched::ByOrder);
        let refused = count_of(&self.report.links.refused, Refusal::ByOrder);
        match (dropped, refused) {
            (0, 0) => "yes".to_owned(),
            (0, links) => format!("yes, but for {} refused by order", counted(links, "link")),
            (pages, _) => format!("yes, but for {} dropped by order or policy", counted(pages, "page")),
        }
    }

    fn why_incomplete(&self, name: &dyn Fn(&str) -> String) -> Vec<String> {
        let mut texts: Vec<_> = self
            .missing()
            .iter()
            .map(|one| one.with_names(name).to_string())
            .collect();
        // A partition may have no site.
        if texts.is_empty() && !self.has_pages() && self.report.partition.is_none() {
            let why = self.failures.first_failure.as_deref().unwrap_or("see the status");
            texts.push(format!("nothing was fetched: {why}"));
        }
        texts
    }

    /// Adds the rows of all numbers: the text without the ending and what is missing. `name` returns the name of an option by its field.
    pub fn add_rows(&self, rows: &mut Rows, name: &dyn Fn(&str) -> String) {
        let report = &self.report;
        let given_up = &self.failures.given_up_origins;
        if !given_up.is_empty() {
            rows.add("given up", first_of(report.origins_given_up, given_up));
        }
        self.add_pages(rows);
        self.add_failures(rows, name);
        if let Some(name) = &self.robots_name {
            rows.add("robots.txt", format!("read as {name}"));
        }
        self.add_links(rows);
        rows.add_number("cookies refused", self.cookies_dropped);
        self.add_duplicates(rows, name);
        let stopped = match self.cut_short {
            0 => String::new(),
            pages => format!(", {} of them stopped in flight", grouped(pages)),
        };
        if self.pages_left() > 0 {
            let left = counted(self.pages_left(), "page");
            rows.add("left in queue", format!("{left}{stopped}"));
        }
        rows.add("hosts", format!("{}{}", grouped(report.hosts), self.shortest_pause()));
        let seen_set = report.saturation.to_string().replace(" dropped, ", " dropped; ");
        rows.add_all("seen-set", seen_set.split("; "));
        rows.add("seen-set memory", size(report.saturation.memory_bytes));
        if let Some(memory) = &report.memory {
            rows.add_all("memory", memory_parts(memory));
        }
        if let Some(bytes) = self.peak_memory_bytes {
            rows.add("peak memory", size(bytes));
        }
    }

    fn add_pages(&self, rows: &mut Rows) {
        let pages = format!("{} answered 2xx", grouped(self.pages));
        match self.refreshed.pages {
            0 => {
                let (mean, recent) = (self.mean_pages_per_second(), self.recent_pages_per_second());
                rows.add(
                    "pages",
                    format!("{pages}; per second: mean {mean:.1}, recent {recent:.1}"),
                );
            }
            // The time has gone to others, too.
            _ => rows.add("pages", pages),
        }
        rows.add("by status", listed(&self.by_status));
        let refreshed = &self.refreshed;
        if refreshed.pages > 0 {
            let pages = counted(refreshed.pages, "page");
            let [unchanged, gone, failed] = [refreshed.unchanged, refreshed.gone, refreshed.failed].map(grouped);
            let text =
                format!("{pages}, {unchanged} of them unchanged, {gone} gone, {failed} with another error status");
            rows.add("refreshed", text);
        }
        if let Some(freshness) = &self.freshness {
            let [fresh, spread] = [freshness.fresh, freshness.spread].map(|share| share * 100.0);
            let [oldest, max_age] = [freshness.oldest, freshness.max_age].map(duration);
            let text = format!("about {fresh:.1} % ± {spread:.1}; oldest visit {oldest} ago, goal {max_age}");
            rows.add("fresh", text);
            let host = |one: &HostFreshness| format!("{} {:.1} %", one.host, one.fresh * 100.0);
            rows.add(
                "stalest",
                freshness.stalest.iter().map(host).collect::<Vec<_>>().join(", "),
            );
        }
        rows.add_number("redirects", self.report.pages.redirected);
        rows.add("bytes", size(self.answers.bytes));
        rows.add_counts(
            "bodies truncated",
            &named(&self.failures.bodies_truncated, TruncationReason::name),
        );
        rows.add_number("bodies skipped", self.failures.bodies_skipped);
        rows.add_counts("not HTML", &self.failures.not_html);
    }

    fn add_failures(&self, rows: &mut Rows, name: &dyn Fn(&str) -> String) {
        let report = &self.report;
        if self.failed_pages() > 0 {
            rows.add("failed", counted(self.failed_pages(), "page"));
        }
        rows.add_counts("failed by reason", &self.failures.by_kind);
        if report.pages.retries > 0 {
            rows.add("retries", counted(report.pages.retries, "request"));
        }
        rows.add_counts("retried because", &self.failures.retried);
        rows.add_counts("not fetched", &named(&report.not_fetched, |why| why.name()));
        if report.not_fetched.contains_key(&NotFetched::AddressForbidden) {
            let option = name("allow_private_addresses");
            rows.add("", format!("({option} also fetches from forbidden addresses)"));
        }
    }

    /// Adds the hosts that hold the crawl up, or did when it ended, and how many do what.
    pub fn add_held_up(&self, rows: &mut Rows, name: &dyn Fn(&str) -> String) {
        let table = &self.host_table;
        let waiting = table.hosts.iter().filter(|host| host.left.is_some());
        let others = waiting
            .clone()
            .skip(LONGEST_SHOWN)
            .filter(|host| host.health.state > Health::Asked);
        let shown = waiting.take(LONGEST_SHOWN).chain(others).take(HOSTS_SHOWN);
        rows.add_all(
            "held up by",
            shown.map(|host| format!("{}: {}", host.host, host.explained(table.as_of, name))),
        );
        let others = table.by_health.iter().filter(|(state, _)| **state != Health::Asked);
        let others: BTreeMap<_, _> = others
            .map(|(state, hosts)| (state.name().replace('_', " "), *hosts))
            .collect();
        rows.add_counts("hosts not asked", &others);
    }

    fn shortest_pause(&self) -> String {
        let Some(slack) = self.answers.least_slack_seconds else {
            return String::new();
        };
        let difference = Duration::from_secs_f64(slack.abs());
        let than = if slack < 0.0 { "shorter" } else { "longer" };
        match difference.as_millis() {
            0 => "; shortest pause as long as the delay".to_owned(),
            _ => format!("; shortest pause {} {than} than the delay", duration(difference)),
        }
    }

    fn add_links(&self, rows: &mut Rows) {
        let links = &self.found_links();
        let [found, new, seen] = [links.offered(), links.queued, links.seen].map(grouped);
        rows.add("links", format!("{found} found, {new} new, {seen} seen before"));
        rows.add_counts("links refused", &named(&links.refused, |why| why.name()));
        let mut not_followed = BTreeMap::from([
            ("nofollow", self.unfollowed.nofollow),
            ("over the limit", self.unfollowed.dropped),
            ("other scheme", self.unfollowed.other_scheme),
            ("not crawlable", self.unfollowed.unresolvable),
        ]);
        not_followed.retain(|_, count| *count > 0);
        rows.add_counts("not followed", &not_followed);
        if let Some(partition) = self.report.partition {
            let exchange = &self.report.exchange;
            let [received, waiting] = [exchange.received, exchange.waiting].map(grouped);
            let sent = counted(exchange.sent, "link");
            let text = format!("{partition}: {sent} sent to others, {waiting} of them waiting; {received} received");
            rows.add("partition", text);
        }
        let links = &self.report.sitemaps;
        if links.offered() > 0 {
            let counts = &self.sitemaps;
            let some = |number: u64, of: &str| match number {
                0 => String::new(),
                number => format!(", {} {of}", grouped(number)),
            };
            let (in_part, failed) = (some(counts.broken, "of them in part"), some(counts.failed, "failed"));
            let refused = match links.refused.is_empty() {
                true => String::new(),
                false => format!("; refused: {}", listed(&named(&links.refused, |why| why.name()))),
            };
            rows.add(
                "sitemaps",
                format!("{} read{in_part}{failed}{refused}", grouped(counts.read)),
            );
            let dropped = some(counts.urls_dropped, "over the limit");
            let invalid = some(counts.urls_invalid, "not crawlable");
            let text = format!("{}{dropped}{invalid}", grouped(counts.urls));
            rows.add("URLs in sitemaps", text);
        }
    }

    fn add_duplicates(&self, rows: &mut Rows, name: &dyn Fn(&str) -> String) {
        let (report, counts) = (&self.report, &self.report.resemblance);
        if counts.compared == 0 {
            return;
        }
        let [exact, near] = [counts.exact, counts.near].map(grouped);
        let compared = counted(counts.compared, "compared page");
        if counts.exact + counts.near + counts.forgotten > 0 {
            rows.add("duplicates", format!("{exact} exact, {near} near, of {compared}"));
        }
        if counts.forgotten > 0 {
            let (forgotten, option) = (grouped(counts.forgotten), name("max_fingerprints"));
            rows.add("", format!("(not with the {forgotten} oldest pages: {option})"));
        }
        let (postponed, closed) = (report.postponed_prefixes, report.closed_prefixes);
        if postponed > 0 {
            let text = format!("{postponed}, for near-duplicates: fetched after everything else");
            rows.add("paths postponed", text);
        }
        if closed > 0 {
            let names = first_of(closed, &self.failures.closed_prefixes);
            rows.add("paths closed", format!("{closed}, for near-duplicates: {names}"));
        }
    }

    /// Returns all numbers as one JSON object. `name` returns the name of an option by its field, for the texts of what is missing.
    pub fn to_json(&self, name: impl Fn(&str) -> String) -> Value {
        let name: &dyn Fn(&str) -> String = &name;
        let objects = [
            self.pages_to_json(name),
            self.links_to_json(),
            self.others_to_json(name),
        ];
        let fields = objects.into_iter().filter_map(|object| match object {
            Value::Object(fields) => Some(fields),
            _ => None,
        });
        Value::Object(fields.flatten().collect())
    }

    fn pages_to_json(&self, name: &dyn Fn(&str) -> String) -> Value {
        let (report, missing, freshness) = (&self.report, self.why_incomplete(name), self.freshness.as_ref());
        let by_time = self
            .answer_times()
            .map(|(seconds, pages)| json!({ "seconds": seconds, "pages": pages }));
        json!({
            "ending": self.ending,
            "complete": missing.is_empty(),
            "missing": missing,
            "hint": self.hint(name),
            "elapsed_seconds": self.elapsed.as_secs_f64(),
            "pages": self.pages,
            "mean_pages_per_second": self.mean_pages_per_second(),
            "recent_pages_per_second": self.recent_pages_per_second(),
            "by_status": self.by_status,
            "by_depth": self.answers.by_depth,
            "by_answer_time": by_time.collect::<Vec<_>>(),
            "redirects": report.pages.redirected,
            "bytes": self.answers.bytes,
            "failed": self.failed_pages(),
            "failed_by_kind": self.failures.by_kind,
            "retries": report.pages.retries,
            "retried_by_kind": self.failures.retried,
            "not_fetched": named(&report.not_fetched, |why| why.name()),
            "robots_name": self.robots_name,
            "bodies_truncated": named(&self.failures.bodies_truncated, TruncationReason::name),
            "bodies_skipped": self.failures.bodies_skipped,
            "not_html": self.failures.not_html,
            "refreshed": self.refreshed.pages,
            "refreshed_unchanged": self.refreshed.unchanged,
            "refreshed_gone": self.refreshed.gone,
            "refreshed_failed": self.refreshed.failed,
            "fresh": freshness.map(|freshness| freshness.fresh),
            "fresh_spread": freshness.map(|freshness| freshness.spread),
            "oldest_seconds": freshness.map(|freshness| freshness.oldest.as_secs_f64()),
            "stalest": freshness.map(|freshness| &freshness.stalest),
            "max_age_seconds": freshness.map(|freshness| freshness.max_age.as_secs_f64()),
        })
    }

    fn links_to_json(&self) -> Value {
        let (report, found) = (&self.report, self.found_links());
        json!({
            "links_offered": found.offered(),
            "links_queued": found.queued,
            "links_seen": found.seen,
            "links_refused": named(&found.refused, |why| why.name()),
            "links_nofollow": self.unfollowed.nofollow,
            "links_dropped": self.unfollowed.dropped,
            "links_other_scheme": self.unfollowed.other_scheme,
            "links_unresolvable": self.unfollowed.unresolvable,
            "exchange": report.partition.map(|_| report.exchange),
            "waits_for_others": self.waits_for_others(),
            "sitemaps": self.sitemaps.read,
            "sitemaps_failed": self.sitemaps.failed,
            "sitemap_urls": self.sitemaps.urls,
        })
    }

    fn others_to_json(&self, name: &dyn Fn(&str) -> String) -> Value {
        let (report, saturation, table) = (&self.report, &self.report.saturation, &self.host_table);
        let host = |one: &HostFigures| one.to_json(table.as_of, name);
        json!({
            "queued": report.queued_pages,
            "cut_short": self.cut_short,
            "hosts": report.hosts,
            "least_slack_seconds": self.answers.least_slack_seconds,
            "held_up_by": table.held_up_by().map(host),
            "hosts_as_of": table.as_of.to_string(),
            "host_table": table.hosts.iter().take(HOSTS_LISTED).map(host).collect::<Vec<_>>(),
            "hosts_by_state": named(&table.by_health, Health::name),
            "origins_given_up": report.origins_given_up,
            "duplicates": report.resemblance.exact,
            "near_duplicates": report.resemblance.near,
            "prefixes_postponed": report.postponed_prefixes,
            "prefixes_closed": report.closed_prefixes,
            "cookies_dropped": self.cookies_dropped,
            "saturation_level": saturation.level.to_string(),
            "estimated": saturation.estimated,
            "capacity": saturation.capacity,
            "accepted": saturation.accepted,
            "fill": saturation.fill,
            "rate": saturation.rate,
            "lost": self.lost(),
            "lost_at_least": self.lost_at_least(),
            "layers": saturation.layers,
            "memory_bytes": saturation.memory_bytes,
            "peak_memory_bytes": self.peak_memory_bytes,
        })
    }
}

fn memory_parts(memory: &MemoryReport) -> Vec<String> {
    let parts = [
        ("seen-set", memory.seen_set),
        ("hosts", memory.hosts),
        ("their names", memory.host_names),
        ("fingerprints", memory.fingerprints),
        ("store", memory.store),
    ];
    let parts = parts.iter().filter(|(_, bytes)| *bytes > 0);
    let parts: Vec<_> = parts.map(|(name, bytes)| format!("{name} {}", size(*bytes))).collect();
    let sum = |bound| format!("{} of {}", size(memory.total()), size(bound));
    let on_disk = (memory.hosts_on_disk > 0).then(|| format!("{} on disk", counted(memory.hosts_on_disk, "host")));
    let rows = std::iter::once(parts.join(", "))
        .chain(memory.bound.map(sum))
        .chain(on_disk);
    rows.collect()
}

fn first_of(all: u64, named: &[String]) -> String {
    let more = if all > named.len() as u64 { ", ..." } else { "" };
    named.join(", ") + more
}

fn named<K: Copy>(counts: &BTreeMap<K, u64>, name: impl Fn(K) -> &'static str) -> BTreeMap<&'static str, u64> {
    counts.iter().map(|(key, count)| (name(*key), *count)).collect()
}
