//! The log records of a crawl: their targets and fields, as docs/logs.md lists them.

use std::path::Path;
use std::time::Duration;

use crawler::summary::{duration, resident_memory_bytes};
use crawler::{Crawl, CrawlOptions, Ending, FailureKind, HttpOptions, Missing, PageRecord, Summary};
use frontier::{CrawlPolicy, Failure, Fate, NotFetched, Notice, Report};
use log::Level;

use crate::flag;
use crate::logging;
use crate::options::show_policy;

/// Logs the progress of the crawl: each few seconds, or as the answer to SIGUSR1, which no option hides.
pub(crate) fn progress(target: &str, summary: &Summary, message: &str) {
    let (report, hosts) = (&summary.report, &summary.host_table);
    let held_up_by = hosts.held_up_by();
    let saturation = &report.saturation;
    log::info!(
        target: target,
        elapsed_seconds = summary.elapsed.as_secs_f64(),
        pages = summary.pages,
        mean_pages_per_second = summary.mean_pages_per_second(),
        recent_pages_per_second = summary.recent_pages_per_second(),
        queued = report.queued_pages,
        in_flight = report.leased,
        origins_away = hosts.away(),
        hosts = report.hosts,
        held_up_by = held_up_by.map(|host| host.host.as_str()),
        held_up_seconds = held_up_by.and_then(|host| host.left).map(|left| left.as_secs_f64()),
        host_state = held_up_by.map(|host| host.health.state.name()),
        host_until = held_up_by.and_then(|host| host.health.until).map(|time| time.to_string()),
        refused = report.links.refused.values().sum::<u64>(),
        failed = summary.failed_pages(),
        retries = report.pages.retries,
        bytes = summary.answers.bytes,
        saturation_level:% = saturation.level,
        estimated = saturation.estimated,
        capacity = saturation.capacity,
        lost = summary.lost(),
        lost_at_least = summary.lost_at_least(),
        resident_memory_bytes = resident_memory_bytes();
        "{message}"
    );
}

/// Warns of options by which the crawl is less polite or less safe.
pub(crate) fn risks(crawl: &CrawlOptions, http: &HttpOptions) {
    let risks = [
        (
            !crawl.frontier.politeness.ask_robots,
            "robots.txt is NOT fetched: the crawl fetches forbidden pages and ignores Crawl-delay",
        ),
        (
            http.accept_any_certificate,
            "certificates are NOT checked (--insecure): an attacker on the network can read and change all data, including logins and cookies",
        ),
        (
            http.proxy.is_some(),
            "all requests go through a proxy: the crawler cannot check whether the proxy connects to private addresses",
        ),
    ];
    for (_, risk) in risks.iter().filter(|(is_taken, _)| *is_taken) {
        log::warn!(target: "crawler", "{risk}");
    }
}

/// Logs by which name robots.txt is read, and warns if the user agent has none.
pub(crate) fn robots_name(crawl: &Crawl) {
    let (config, name) = (crawl.config(), crawl.config().product_token());
    if !config.options().frontier.politeness.ask_robots {
        return;
    }
    if name == "*" {
        log::warn!(
            target: "crawler",
            "no name of a crawler is found in the user agent {:?}: of robots.txt, only the rules for all crawlers count; try --set robots-name=NAME",
            config.options().user_agent
        );
    } else {
        log::debug!(target: "crawler", "robots.txt is read as {name}");
    }
}

/// Logs that a crawl is continued, or that there is nothing to continue.
pub(crate) fn continued(crawl: &Crawl, state: &Path) {
    let report = crawl.report();
    let (shown, queued) = (state.display(), report.queued_pages);
    let for_new_links: Vec<_> = crawl
        .options_for_new_links()
        .iter()
        .map(|option| flag::of(option))
        .collect();
    if !for_new_links.is_empty() {
        let options = for_new_links.join(", ");
        log::warn!(
            target: "crawler::state",
            state:% = shown, queued;
            "{options}: changed for links that are found from now on. What is queued is not checked again, nor what was refused"
        );
    }
    let (ordered, hosts) = crawl.ordered();
    if *ordered != CrawlPolicy::default() || hosts > 0 {
        let ordered = show_policy(ordered);
        log::warn!(
            target: "crawler::orders",
            "orders of earlier runs hold: for the crawl {ordered}, and for {hosts} hosts; crawler set and crawler allow take them back"
        );
    }
    let options = crawl.config().options();
    let is_fetched_again = options.refresh.is_some() || options.frontier.freshness.keeps_fresh;
    let message = if report.is_drained() && crawl.has_unanswered() {
        format!("the crawl in {shown} has ended: pages that got no answer are tried again")
    } else if report.is_drained() && report.partition.is_none() && !is_fetched_again {
        format!("the crawl in {shown} has ended: nothing is left to fetch")
    } else {
        format!("continuing the crawl in {shown}: {queued} pages are queued")
    };
    log::info!(target: "crawler::state", state:% = shown, queued; "{message}");
}

/// Logs what the same command does: it continues a crawl that did not end by itself, and tries again what got no answer.
pub(crate) fn can_continue(summary: &Summary, state: &Path) {
    let (shown, queued) = (state.display(), summary.report.queued_pages);
    let how = match summary.ending {
        Ending::Drained if summary.has_unanswered() => "the same command tries again what got no answer",
        Ending::Drained => return,
        // It has ended in all processes.
        Ending::BudgetSpent if summary.report.partition.is_some() => return,
        Ending::BudgetSpent if summary.report.ordered_max_pages.is_some() => {
            "crawler set with max-pages=default, and then the same command, continues it"
        }
        Ending::BudgetSpent => "the same command with a higher --max-pages continues it",
        _ => "the same command continues it",
    };
    log::info!(target: "crawler::state", state:% = shown, queued; "the crawl is saved in {shown}: {how}");
}

/// Warns that pages are missing, for one reason.
pub(crate) fn loss(missing: &Missing, report: &Report) {
    let lost = match missing.kind {
        Missing::SEEN_SET => report.saturation.lost,
        _ => missing.lost as f64,
    };
    log::warn!(
        target: "crawler::loss",
        kind = missing.kind, lost, lost_at_least = missing.lost_at_least;
        "the crawl is incomplete: {}",
        missing.with_names(flag::of)
    );
}

/// Logs a page that was fetched.
pub(crate) fn page(page: &PageRecord) {
    log::debug!(
        target: "crawler::pages",
        url = page.url,
        status = page.status,
        bytes = page.bytes,
        milliseconds = page.milliseconds,
        links_new = page.links_new;
        "{} {}, {} new links",
        page.status,
        page.url,
        page.links_new
    );
}

/// Logs a request that failed.
pub(crate) fn failure(level: Level, url: &str, kind: FailureKind, fate: Fate, message: &str) {
    let fate = match fate {
        Fate::Requeued { .. } => "retried",
        Fate::Final => "final",
        Fate::GaveUp => "gave_up",
        Fate::Stale => "stale",
    };
    log::log!(target: "crawler::failures", level, url, kind = kind.name(), fate; "{message}");
}

/// Logs a sitemap that was not read.
pub(crate) fn sitemap(level: Level, url: &str, why: &str) {
    let (kind, fate) = ("sitemap", "final");
    log::log!(
        target: "crawler::failures",
        level, url, kind, fate;
        "the sitemap {url}: {why}; the summary counts further ones, and --refused lists each"
    );
}

/// Logs a URL that was not fetched.
pub(crate) fn not_fetched(url: &str, why: NotFetched, cause: Option<&Failure>) {
    let (reason, cause) = (why.name(), cause.map(ToString::to_string));
    let after = cause.as_ref().map_or_else(String::new, |cause| format!(": {cause}"));
    log::debug!(target: "crawler::not_fetched", url, reason, cause; "{url}: {why}{after}");
}

/// Logs a notice of the frontier, about an origin or about near-duplicates.
pub(crate) fn notice(level: Level, notice: &Notice, message: &str) {
    let seconds = |duration: &Duration| Some(duration.as_secs_f64());
    let (event, origin, cause, seconds, lost) = match notice {
        Notice::Away {
            origin,
            cause,
            patience,
        } => ("away", origin, Some(cause), seconds(patience), None),
        Notice::Back { origin, after } => ("back", origin, None, seconds(after), None),
        Notice::GivenUp {
            origin,
            cause,
            after,
            lost,
        } => ("given_up", origin, Some(cause), seconds(after), Some(*lost)),
        Notice::Closed { origin, cause, rest } => ("robots_unreachable", origin, Some(cause), seconds(rest), None),
        Notice::Throttled {
            origin, cause, rest, ..
        } => ("resting", origin, Some(cause), seconds(rest), None),
        Notice::RobotsFailing {
            origin, cause, next, ..
        } => ("robots_failing", origin, Some(cause), seconds(next), None),
        Notice::Hanging { origin, after, .. } => ("hanging", origin, None, seconds(after), None),
        Notice::RulesExtended { origin, cause } => ("rules_extended", origin, Some(cause), None, None),
        Notice::Postponed { place, first } => return near_duplicates(level, "postponed", place, first, message),
        Notice::PrefixClosed { place, first } => return near_duplicates(level, "closed", place, first, message),
        _ => return log::log!(target: "crawler::hosts", level, "{message}"),
    };
    log::log!(
        target: "crawler::hosts",
        level,
        event,
        origin:% = origin,
        kind = cause.map(|cause| cause.kind.name()),
        cause = cause.map(ToString::to_string),
        seconds,
        lost;
        "{message}"
    );
}

fn near_duplicates(level: Level, event: &str, place: &str, resembles: &str, message: &str) {
    log::log!(target: "crawler::near_duplicates", level, event, place, resembles; "{message}");
}

/// Logs the number of omitted lines about one subject.
pub(crate) fn omitted(lines: u64, about: &str) {
    log::warn!(
        target: "crawler::omitted",
        lines, about;
        "{lines} more lines about {about} were omitted; -v shows them"
    );
}

/// Writes the summary as one JSON line. No filter hides it, because it is a result of the command.
pub(crate) fn summary(summary: &Summary) {
    let message = format!("{} after {}", summary.ending, duration(summary.elapsed));
    logging::write_json(Level::Info, "crawler::summary", &message, &summary.to_json(flag::of));
}
