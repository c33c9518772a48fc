//! What hosts do, and which are to blame, so that an alert can name one.

use std::fmt;
use std::time::Duration;

use crawler::summary::Summary;
use frontier::Health;

use super::page::Page;

/// A host that is asked holds the crawl up if what waits for it takes longer.
const HELD_UP: Duration = Duration::from_secs(60);

pub(super) fn encode(page: &mut Page<'_>, summary: &Summary, is_finished: bool) -> fmt::Result {
    let states = Health::ALL.map(|state| {
        let hosts = summary.host_table.by_health.get(&state).copied().unwrap_or_default();
        ([("state", state.name())], hosts as f64)
    });
    page.gauges("crawler_hosts_by_state", "Hosts by what they do", states)?;
    let failing = summary.host_table.hosts.iter().max_by_key(|host| host.failures);
    let failing = failing.filter(|host| host.failures > 0);
    let failing = failing.map(|host| {
        (
            [("kind", "failing"), ("host", host.host.as_str())],
            host.failures as f64,
        )
    });
    let given_up = summary.given_up_origins.first();
    let given_up = given_up.map(|origin| ([("kind", "given_up"), ("host", origin.as_str())], 1.0));
    page.gauges(
        "crawler_host_to_blame",
        "The worst host: failing has the most failed requests, and counts them; given_up was the first, and is 1",
        failing.into_iter().chain(given_up),
    )?;
    // One series at a time, and none for what passes soon.
    let held_up_by = summary.host_table.held_up_by().filter(|_| !is_finished);
    let held_up_by = held_up_by.filter(|host| host.health.state > Health::Asked || host.left > Some(HELD_UP));
    page.gauges(
        "crawler_held_up_seconds",
        "How long what waits for the host takes that holds the crawl up longest, and what that host does",
        held_up_by.map(|host| {
            let labels = [("host", host.host.as_str()), ("state", host.health.state.name())];
            (labels, host.left.unwrap_or_default().as_secs_f64())
        }),
    )
}
