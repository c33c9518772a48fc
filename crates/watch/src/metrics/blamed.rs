//! What hosts do, and which are to blame, so that an alert can name one.

use std::fmt;
use std::time::Duration;

use crawler::summary::Summary;
use frontier::Health;

use super::page::Page;

/// A host that is asked holds the crawl up if what waits for it takes longer.
const HELD_UP: Duration = Duration::from_secs(60);

pub(super) fn encode(page: &mut Page<'_>, summary: &Summary, is_running: bool) -> fmt::Result {
    let table = &summary.host_table;
    let hosts = |state: Health| table.by_health.get(&state).copied().unwrap_or_default();
    page.gauges(
        "crawler_hosts_by_state",
        "Hosts by what they do",
        "state",
        Health::ALL.map(|state| (state.name(), hosts(state))),
    )?;
    let failing = table.hosts.iter().max_by_key(|host| host.failures);
    let failing = failing.filter(|host| host.failures > 0);
    let failing = failing.map(|host| ("failing", host.host.as_str(), host.failures as f64));
    let given_up = summary.failures.given_up_origins.first();
    let given_up = given_up.map(|origin| ("given_up", origin.as_str(), 1.0));
    let blamed = failing.into_iter().chain(given_up);
    page.labelled(
        "crawler_host_to_blame",
        "The worst host: failing has the most failed requests, and counts them; given_up was the first, and is 1",
        blamed.map(|(kind, host, value)| ([("kind", kind), ("host", host)], value)),
    )?;
    // One series at a time, and none for what passes soon.
    let held_up_by = table.held_up_by().filter(|_| is_running);
    let held_up_by = held_up_by.filter(|host| host.health.state > Health::Asked || host.left > Some(HELD_UP));
    page.labelled(
        "crawler_held_up_seconds",
        "How long what waits for the host takes that holds the crawl up longest, and what that host does",
        held_up_by.map(|host| {
            let labels = [("host", host.host.as_str()), ("state", host.health.state.name())];
            (labels, host.left.unwrap_or_default().as_secs_f64())
        }),
    )
}
