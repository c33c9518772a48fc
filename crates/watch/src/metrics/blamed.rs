//! The hosts to blame, so that an alert can name one.

use std::fmt;

use crawler::summary::Summary;

use super::page::Page;

pub(super) fn encode(page: &mut Page<'_>, summary: &Summary) -> fmt::Result {
    let failing = summary.host_table.iter().max_by_key(|host| host.failures);
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
    )
}
