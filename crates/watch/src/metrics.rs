//! The metrics of a crawl, in the text format of Prometheus (version 0.0.4): one line each, with its name, its help and its values.
//!
//! No label has values that a site can choose, such as hosts, types or titles, but those of [`blamed`]. What may fall is a gauge, also if it
//! is a count: a page that failed is asked again in a later run. All names begin with `crawler_`: the node exporter, which reads them from a
//! file, has `process_*` of its own.

mod blamed;
mod page;

use std::fmt;

use crawler::summary::{Summary, resident_memory_bytes};
use crawler::{Ending, Phase};
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
        self.encode_requests(&mut page)?;
        let Some(summary) = &self.summary else { return Ok(()) };
        encode_pages(&mut page, summary)?;
        encode_links(&mut page, summary)?;
        encode_exchange(&mut page, summary)?;
        encode_missing(&mut page, summary)?;
        encode_hosts(&mut page, summary)?;
        blamed::encode(&mut page, summary, self.phase == Phase::Running && !self.is_finished)?;
        self.encode_seen_set(&mut page, summary)?;
        self.encode_state(&mut page, summary)
    }
}

#[rustfmt::skip]
impl Status {
    fn encode_process(&self, page: &mut Page<'_>) -> fmt::Result {
        let phases = Phase::ALL.map(|phase| (phase.name(), u64::from(phase == self.phase && !self.is_finished)));
        page.gauges("crawler_build_info", "The version of the crawler: always 1", "version", [(env!("CARGO_PKG_VERSION"), 1)])?;
        page.gauge("crawler_process_start_time_seconds", "When the process began to crawl, since 1970", self.started_at)?;
        page.gauge("crawler_process_resident_memory_bytes", "Resident memory of the process", resident_memory_bytes().map(|bytes| bytes as f64))?;
        page.gauge("crawler_process_open_fds", "Open file descriptors of the process", process::open_files().map(|files| files as f64))?;
        page.gauges("crawler_phase", "What the crawl does: 1 for one of the phases, 0 for all of them at its end", "phase", phases)?;
        page.gauges("crawler_disk_free_bytes", "Free space of the disks with the state directory and with the outputs", "files", self.disks.free_bytes())?;
        page.gauge("crawler_output_bytes", "Size of the outputs, with all files of a series", self.disks.output_bytes() as f64)
    }

    fn encode_requests(&self, page: &mut Page<'_>) -> fmt::Result {
        let requests = &self.measured;
        let codes = requests.by_code.iter().map(|(code, number)| (*code, *number));
        let classes = requests.by_class.iter().map(|(class, number)| (*class, *number));
        let failures = requests.failures.iter().map(|(kind, number)| (kind.name(), *number));
        page.counters("crawler_responses", "Answers to requests for pages, robots.txt files and sitemaps, by HTTP status, in this process", "code", codes)?;
        page.counters("crawler_page_responses", "Answers to requests for pages, by class, from 0 that comes first to 7, in this process", "class", classes)?;
        page.counters("crawler_request_failures", "Requests that failed, also those that are repeated, in this process", "kind", failures)?;
        page.histogram("crawler_response_duration_seconds", "Time from the start of a request to the end of its body, in this process", &requests.answer_seconds)?;
        page.histogram("crawler_body_size_bytes", "Sizes of the bodies of answers, after decompression, in this process", &requests.body_bytes)?;
        if !self.is_finished {
            return Ok(());
        }
        let ending = self.summary.as_ref().map_or(Ending::Error, |summary| summary.ending);
        page.gauges("crawler_finished", "1 for the way in which the crawl has ended", "ending", [(ending.name(), 1)])
    }

    fn encode_seen_set(&self, page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
        let set = &summary.report.saturation;
        let is_suspicious = matches!(set.check, SelfCheck::Suspicious { .. });
        page.gauge("crawler_seen_set_capacity_keys", "Distinct URLs that the seen-set was made for", set.capacity.map(|keys| keys as f64))?;
        page.gauge("crawler_seen_set_estimated_keys", "Distinct URLs that were offered: an estimate", set.estimated)?;
        page.gauge("crawler_seen_set_accepted_keys", "URLs that were accepted as new", set.accepted as f64)?;
        page.gauge("crawler_seen_set_fill_ratio", "The share of the bits of the filter that are set", set.fill)?;
        page.gauge("crawler_seen_set_false_positive_ratio", "The share of new URLs that is wrongly dropped at present", set.rate)?;
        page.gauge("crawler_seen_set_lost_keys", "New URLs that were wrongly dropped: an estimate", set.lost)?;
        page.gauge("crawler_seen_set_lost_keys_lower_bound", "New URLs that were wrongly dropped: at least, with a confidence of 97 %", set.lost_at_least() as f64)?;
        page.gauge("crawler_seen_set_layers", "Layers of the filter: more than 1 if it has grown", f64::from(set.layers))?;
        page.gauge("crawler_seen_set_memory_bytes", "Memory of the filter", set.memory_bytes as f64)?;
        page.gauge("crawler_seen_set_suspicious", "1 if the bits that are set and the accepted URLs disagree: crafted URLs, a broken hash or a damaged filter", f64::from(is_suspicious))?;
        page.gauge("crawler_seen_set_next_level_seconds", "Time until the next level of saturation, at the present pace", self.next_level_seconds())
    }

    fn encode_state(&self, page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
        if let Some(memory) = &summary.report.memory {
            let parts = [
                ("seen_set", memory.seen_set),
                ("hosts", memory.hosts),
                ("host_names", memory.host_names),
                ("fingerprints", memory.fingerprints),
                ("store", memory.store),
            ];
            page.gauges("crawler_memory_bytes", "Memory of the frontier, by its parts: estimates", "part", parts)?;
            page.gauge("crawler_memory_limit_bytes", "The limit of the memory of the frontier", memory.bound.map(|bytes| bytes as f64))?;
        }
        let commits = &self.measured;
        let Some(last) = commits.last_commit_at else { return Ok(()) };
        page.histogram("crawler_state_commit_duration_seconds", "Time that a commit to the state directory took, in this process", &commits.commit_seconds)?;
        page.gauge("crawler_state_last_commit_timestamp_seconds", "When the last commit was, since 1970", last)?;
        page.gauge("crawler_state_disk_bytes", "Size of the database in the state directory", commits.database_bytes.map(|bytes| bytes as f64))
    }
}

#[rustfmt::skip]
fn encode_pages(page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
    let report = &summary.report;
    let states = [
        ("ok", summary.pages),
        ("other_status", summary.by_status.get(&304).copied().unwrap_or_default()),
        ("redirected", report.pages.redirected),
        ("failed", summary.failed_pages()),
        ("not_fetched", report.not_fetched.values().sum()),
        ("queued", report.queued_pages),
    ];
    let failed = summary.failures.by_kind.iter().map(|(kind, pages)| (kind.name(), *pages));
    let not_fetched = report.not_fetched.iter().map(|(why, pages)| (why.name(), *pages));
    page.gauge("crawler_elapsed_seconds", "The duration of the crawl, without pauses, over all runs", summary.elapsed.as_secs_f64())?;
    page.gauges("crawler_pages", "Pages by what became of them: ok is a status 2xx, not_fetched left the queue without a request", "state", states)?;
    page.gauge("crawler_pages_postponed", "Queued pages that wait behind everything else", report.postponed as f64)?;
    page.gauge("crawler_requests_in_flight", "Requests without an answer yet", report.leased as f64)?;
    page.gauges("crawler_failed_pages", "Pages that failed, by reason", "reason", failed)?;
    page.gauges("crawler_not_fetched_pages", "Pages that left the queue without a request, by reason", "reason", not_fetched)?;
    let (freshness, visits) = (summary.freshness.as_ref(), &summary.refreshed);
    let changed = visits.pages.saturating_sub(visits.unchanged + visits.gone + visits.failed);
    let visits = [("unchanged", visits.unchanged), ("changed", changed), ("gone", visits.gone), ("failed", visits.failed)];
    page.gauge("crawler_fresh_ratio", "With --keep-fresh: the share of pages that have not changed since their last visit, by importance: an estimate", freshness.map(|of| of.fresh))?;
    page.gauge("crawler_oldest_visit_seconds", "With --keep-fresh: since the visit of the page that was visited longest ago", freshness.map(|of| of.oldest.as_secs_f64()))?;
    page.gauge("crawler_max_age_seconds", "With --keep-fresh: max-age, or the age at which the budget lets pages be visited", freshness.map(|of| of.max_age.as_secs_f64()))?;
    page.counters("crawler_revisits", "Pages fetched again, by what was found, over all runs", "outcome", visits)?;
    page.counter("crawler_body_bytes", "Bytes of bodies of pages, after decompression, over all runs", summary.answers.bytes)
}

#[rustfmt::skip]
fn encode_links(page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
    let links = summary.found_links();
    let verdicts = [("queued", links.queued), ("seen", links.seen), ("refused", links.refused.values().sum())];
    let elsewhere = summary.report.partition.map(|_| ("elsewhere", links.elsewhere));
    let reasons = links.refused.iter().map(|(why, number)| (why.name(), *number));
    page.counters("crawler_links", "Links that were offered, over all runs", "verdict", verdicts.into_iter().chain(elsewhere))?;
    page.counters("crawler_links_refused", "Links that were refused, by reason, over all runs", "reason", reasons)
}

/// Writes nothing if one process has the whole crawl.
#[rustfmt::skip]
fn encode_exchange(page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
    let (report, exchange) = (&summary.report, &summary.report.exchange);
    let Some(partition) = report.partition else { return Ok(()) };
    let (partition, waiting, limit) = ([(partition.to_string(), 1)], exchange.waiting as f64, report.max_outbox as f64);
    page.gauges("crawler_cluster_info", "The partition of this process: always 1; without one there is no metric of crawler_cluster", "partition", partition)?;
    page.counter("crawler_cluster_links_sent", "Links put in the outbox for other partitions, over all runs", exchange.sent)?;
    page.counter("crawler_cluster_links_received", "Links received from other partitions, over all runs", exchange.received)?;
    page.gauge("crawler_cluster_links_waiting", "Links that wait in the outbox until other partitions have them", waiting)?;
    page.gauge("crawler_cluster_links_waiting_limit", "Links that may wait: at the limit, no more pages are fetched", limit)?;
    page.counter("crawler_cluster_batches_repeated", "Batches of links that were sent again, in this process", summary.repeated_batches)?;
    page.counter("crawler_cluster_batches_lost", "Batches of links that were given up, over all runs", exchange.lost_batches)
}

#[rustfmt::skip]
fn encode_missing(page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
    let missing = summary.missing();
    let kinds = missing.iter().map(|one| (one.kind, one.lost));
    page.gauge("crawler_complete", "1 while nothing is missing; what is queued is missing only at the end", f64::from(missing.is_empty()))?;
    page.gauge("crawler_lost", "Pages, links and URLs that are lost, for all reasons: an estimate", summary.lost())?;
    page.gauge("crawler_lost_pages_lower_bound", "Pages that are lost, for all reasons: at least", summary.lost_at_least() as f64)?;
    page.gauges("crawler_missing", "What is missing, by reason, in pages, links or URLs; of the seen-set at least", "reason", kinds)
}

#[rustfmt::skip]
fn encode_hosts(page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
    let report = &summary.report;
    let origins = [("away", summary.host_table.away()), ("given_up", report.origins_given_up)];
    page.gauge("crawler_hosts", "Hosts that are known", report.hosts as f64)?;
    page.gauge("crawler_politeness_slack_seconds", "By how much a host was left alone for longer than it was owed, at least: below 0 is a broken promise", summary.answers.least_slack_seconds)?;
    page.gauges("crawler_origins", "Origins that do not answer: away at present, or given up", "state", origins)
}
