//! The metrics of a crawl, in the text format of Prometheus (version 0.0.4).
//!
//! No label has values that a site can choose, such as hosts, types or titles, but those of [`blamed`]. What may fall is a gauge, also if it
//! is a count: a page that failed is asked again in a later run. All names begin with `crawler_`: the node exporter, which reads them from a
//! file, has `process_*` of its own.

mod blamed;
mod disks;
mod page;

use std::fmt;

use crawler::summary::Summary;
use crawler::{Ending, Phase};
use frontier::report::MemoryReport;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text};
use prometheus_client::registry::Registry;
use sieve::SelfCheck;

use self::page::Page;
use crate::process;
use crate::status::Status;

/// The media type of [`Status::metrics`].
pub use prometheus_text::CONTENT_TYPE;

impl Status {
    /// Returns the metrics as text of the media type [`CONTENT_TYPE`]. `docs/metrics.md` lists them. Cost: some thousand short writes.
    pub fn metrics(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = prometheus_text::encode(&mut text, &registry);
        text
    }
}

impl Collector for Status {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut page = Page::new(encoder);
        self.encode_process(&mut page)?;
        disks::encode(&mut page, &self.disks)?;
        self.encode_requests(&mut page)?;
        self.encode_ending(&mut page)?;
        let Some(summary) = &self.summary else { return Ok(()) };
        encode_pages(&mut page, summary)?;
        encode_links(&mut page, summary)?;
        encode_exchange(&mut page, summary)?;
        encode_missing(&mut page, summary)?;
        self.encode_hosts(&mut page, summary)?;
        blamed::encode(&mut page, summary, self.is_finished)?;
        self.encode_seen_set(&mut page, summary)?;
        self.encode_state(&mut page, summary)
    }
}

impl Status {
    fn encode_process(&self, page: &mut Page<'_>) -> fmt::Result {
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        page.gauges(
            "crawler_build_info",
            "The version of the crawler: always 1",
            [(version, 1.0)],
        )?;
        page.gauge(
            "crawler_process_start_time_seconds",
            "When the process began to crawl, since 1970",
            self.started_at,
        )?;
        page.optional(
            "crawler_process_resident_memory_bytes",
            "Resident memory of the process",
            process::resident_memory_bytes(),
        )?;
        page.optional(
            "crawler_process_open_fds",
            "Open file descriptors of the process",
            process::open_files(),
        )?;
        let is_in = |phase: Phase| f64::from(phase == self.phase && !self.is_finished);
        let phases = Phase::ALL.map(|phase| ([("phase", phase.name())], is_in(phase)));
        page.gauges(
            "crawler_phase",
            "What the crawl does: 1 for one of the phases, 0 for all of them at its end",
            phases,
        )
    }

    fn encode_requests(&self, page: &mut Page<'_>) -> fmt::Result {
        let requests = &self.requests;
        let codes: Vec<_> = requests
            .by_code
            .iter()
            .map(|(code, number)| (code.to_string(), *number))
            .collect();
        let codes = codes.iter().map(|(code, number)| ([("code", code.as_str())], *number));
        page.counters(
            "crawler_responses",
            "Answers to requests for pages, robots.txt files and sitemaps, by HTTP status, in this process",
            codes,
        )?;
        let failures = requests
            .failures
            .iter()
            .map(|(kind, number)| ([("kind", kind.name())], *number));
        page.counters(
            "crawler_request_failures",
            "Requests that failed, also those that are repeated, in this process",
            failures,
        )?;
        page.histogram(
            "crawler_response_duration_seconds",
            "Time from the start of a request to the end of its body, in this process",
            &requests.answer_seconds,
        )?;
        page.histogram(
            "crawler_body_size_bytes",
            "Sizes of the bodies of answers, after decompression, in this process",
            &requests.body_bytes,
        )
    }

    fn encode_hosts(&self, page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
        let report = &summary.report;
        page.gauge("crawler_hosts", "Hosts that are known", report.hosts as f64)?;
        page.gauges(
            "crawler_politeness_slack_seconds",
            "By how much a host was left alone for longer than it was owed, at least: below 0 is a broken promise",
            summary.least_slack_seconds.map(|slack| ([], slack)),
        )?;
        let origins = [
            ("away", summary.host_table.away()),
            ("given_up", report.origins_given_up),
        ];
        let origins = origins.map(|(state, number)| ([("state", state)], number as f64));
        page.gauges(
            "crawler_origins",
            "Origins that do not answer: away at present, or given up",
            origins,
        )
    }

    fn encode_seen_set(&self, page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
        let set = &summary.report.saturation;
        page.optional(
            "crawler_seen_set_capacity_keys",
            "Distinct URLs that the seen-set was made for",
            set.capacity,
        )?;
        page.gauge(
            "crawler_seen_set_estimated_keys",
            "Distinct URLs that were offered: an estimate",
            set.estimated,
        )?;
        page.gauge(
            "crawler_seen_set_accepted_keys",
            "URLs that were accepted as new",
            set.accepted as f64,
        )?;
        page.gauge(
            "crawler_seen_set_fill_ratio",
            "The share of the bits of the filter that are set",
            set.fill,
        )?;
        page.gauge(
            "crawler_seen_set_false_positive_ratio",
            "The share of new URLs that is wrongly dropped at present",
            set.rate,
        )?;
        page.gauge(
            "crawler_seen_set_lost_keys",
            "New URLs that were wrongly dropped: an estimate",
            set.lost,
        )?;
        page.gauge(
            "crawler_seen_set_lost_keys_lower_bound",
            "New URLs that were wrongly dropped: at least, with a confidence of 97 %",
            set.lost_at_least() as f64,
        )?;
        page.gauge(
            "crawler_seen_set_layers",
            "Layers of the filter: more than 1 if it has grown",
            set.layers.into(),
        )?;
        page.gauge(
            "crawler_seen_set_memory_bytes",
            "Memory of the filter",
            set.memory_bytes as f64,
        )?;
        let is_suspicious = matches!(set.check, SelfCheck::Suspicious { .. });
        page.gauge(
            "crawler_seen_set_suspicious",
            "1 if the bits that are set and the accepted URLs disagree: crafted URLs, a broken hash or a damaged filter",
            is_suspicious.into(),
        )?;
        let next = self.next_level_seconds.filter(|_| !self.is_finished);
        page.gauges(
            "crawler_seen_set_next_level_seconds",
            "Time until the next level of saturation, at the present pace",
            next.map(|seconds| ([], seconds)),
        )
    }

    fn encode_state(&self, page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
        if let Some(memory) = &summary.report.memory {
            let parts = memory_parts(memory).map(|(part, bytes)| ([("part", part)], bytes as f64));
            page.gauges(
                "crawler_memory_bytes",
                "Memory of the frontier, by its parts: estimates",
                parts,
            )?;
            page.optional(
                "crawler_memory_limit_bytes",
                "The limit of the memory of the frontier",
                memory.bound,
            )?;
        }
        let commits = &self.commits;
        let Some(last) = commits.last_at else { return Ok(()) };
        page.histogram(
            "crawler_state_commit_duration_seconds",
            "Time that a commit to the state directory took, in this process",
            &commits.seconds,
        )?;
        page.gauge(
            "crawler_state_last_commit_timestamp_seconds",
            "When the last commit was, since 1970",
            last,
        )?;
        page.optional(
            "crawler_state_disk_bytes",
            "Size of the database in the state directory",
            commits.database_bytes,
        )
    }

    fn encode_ending(&self, page: &mut Page<'_>) -> fmt::Result {
        let ending = match &self.summary {
            _ if !self.is_finished => return Ok(()),
            Some(summary) => summary.ending.name(),
            None => Ending::Error.name(),
        };
        let ending = [("ending", ending)];
        page.gauges(
            "crawler_finished",
            "1 for the way in which the crawl has ended",
            [(ending, 1.0)],
        )
    }
}

fn encode_pages(page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
    let report = &summary.report;
    page.gauge(
        "crawler_elapsed_seconds",
        "The duration of the crawl, without pauses, over all runs",
        summary.elapsed.as_secs_f64(),
    )?;
    let states = [
        ("ok", summary.pages),
        ("other_status", summary.by_status.get(&304).copied().unwrap_or_default()),
        ("redirected", report.pages.redirected),
        ("failed", summary.failed_pages()),
        ("not_fetched", report.not_fetched.values().sum()),
        ("queued", report.queued_pages),
    ];
    let states = states.map(|(state, pages)| ([("state", state)], pages as f64));
    page.gauges(
        "crawler_pages",
        "Pages by what became of them: ok is a status 2xx, not_fetched left the queue without a request",
        states,
    )?;
    page.gauge(
        "crawler_pages_postponed",
        "Queued pages that wait behind everything else",
        report.postponed as f64,
    )?;
    page.gauge(
        "crawler_requests_in_flight",
        "Requests without an answer yet",
        report.leased as f64,
    )?;
    let failed = summary
        .failed
        .iter()
        .map(|(kind, pages)| ([("reason", kind.name())], *pages as f64));
    page.gauges("crawler_failed_pages", "Pages that failed, by reason", failed)?;
    let not_fetched = report
        .not_fetched
        .iter()
        .map(|(why, pages)| ([("reason", why.name())], *pages as f64));
    page.gauges(
        "crawler_not_fetched_pages",
        "Pages that left the queue without a request, by reason",
        not_fetched,
    )?;
    page.counters(
        "crawler_body_bytes",
        "Bytes of bodies of pages, after decompression, over all runs",
        [([], summary.bytes)],
    )
}

fn encode_links(page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
    let links = summary.found_links();
    let refused: u64 = links.refused.values().sum();
    let verdicts = [("queued", links.queued), ("seen", links.seen), ("refused", refused)];
    let elsewhere = summary.report.partition.map(|_| ("elsewhere", links.elsewhere));
    let verdicts = verdicts.into_iter().chain(elsewhere);
    let verdicts = verdicts.map(|(verdict, number)| ([("verdict", verdict)], number));
    page.counters("crawler_links", "Links that were offered, over all runs", verdicts)?;
    let reasons = links
        .refused
        .iter()
        .map(|(why, number)| ([("reason", why.name())], *number));
    page.counters(
        "crawler_links_refused",
        "Links that were refused, by reason, over all runs",
        reasons,
    )
}

/// Writes nothing if one process has the whole crawl.
fn encode_exchange(page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
    let (report, exchange) = (&summary.report, &summary.report.exchange);
    let Some(partition) = report.partition.map(|partition| partition.to_string()) else {
        return Ok(());
    };
    page.gauges(
        "crawler_cluster_info",
        "The partition of this process: always 1; without one there is no metric of crawler_cluster",
        [([("partition", partition.as_str())], 1.0)],
    )?;
    page.counters(
        "crawler_cluster_links_sent",
        "Links put in the outbox for other partitions, over all runs",
        [([], exchange.sent)],
    )?;
    page.counters(
        "crawler_cluster_links_received",
        "Links received from other partitions, over all runs",
        [([], exchange.received)],
    )?;
    page.gauge(
        "crawler_cluster_links_waiting",
        "Links that wait in the outbox until other partitions have them",
        exchange.waiting as f64,
    )?;
    page.gauge(
        "crawler_cluster_links_waiting_limit",
        "Links that may wait: at the limit, no more pages are fetched",
        report.max_outbox as f64,
    )?;
    page.counters(
        "crawler_cluster_batches_repeated",
        "Batches of links that were sent again, in this process",
        [([], summary.repeated_batches)],
    )?;
    page.counters(
        "crawler_cluster_batches_lost",
        "Batches of links that were given up, over all runs",
        [([], exchange.lost_batches)],
    )
}

fn encode_missing(page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
    let missing = summary.missing();
    page.gauge(
        "crawler_complete",
        "1 while nothing is missing; what is queued is missing only at the end",
        missing.is_empty().into(),
    )?;
    page.gauge(
        "crawler_lost",
        "Pages, links and URLs that are lost, for all reasons: an estimate",
        summary.lost(),
    )?;
    page.gauge(
        "crawler_lost_pages_lower_bound",
        "Pages that are lost, for all reasons: at least",
        summary.lost_at_least() as f64,
    )?;
    let kinds = missing.iter().map(|one| ([("reason", one.kind())], one.lost() as f64));
    page.gauges(
        "crawler_missing",
        "What is missing, by reason, in pages, links or URLs; of the seen-set at least",
        kinds,
    )
}

fn memory_parts(memory: &MemoryReport) -> [(&'static str, u64); 5] {
    [
        ("seen_set", memory.seen_set),
        ("hosts", memory.hosts),
        ("host_names", memory.host_names),
        ("fingerprints", memory.fingerprints),
        ("store", memory.store),
    ]
}
