//! `crawler hosts`: all hosts, what they do, and what waits for them.

use std::collections::HashSet;
use std::io::{self, BufWriter, Write};

use crawler::SavedCrawl;
use crawler::summary::{HostFigures, duration, grouped};
use frontier::{Health, HostPolicy};

use super::StateFailure;
use super::list::write_line;
use crate::flag;
use crate::options::{DirArgs, show_policy};

#[rustfmt::skip]
const HEADS: [&str; 9] = ["host", "state", "left", "waiting", "requests", "failed", "answer", "delay", "until, why"];

/// The most hosts that are sorted. The others follow in no particular order, so that the hosts of a large crawl take no memory.
const SORTED: usize = 10_000;

pub(super) fn run(args: &DirArgs) -> Result<(), StateFailure> {
    let crawl = SavedCrawl::read(&args.dir)?;
    let as_of = crawl.summary.host_table.as_of;
    let mut to = BufWriter::new(io::stdout().lock());
    if !args.json {
        let heads = HEADS.map(str::to_owned);
        writeln!(to, "as of {as_of}")?;
        match (crawl.is_running(), crawl.is_paused) {
            (false, _) => writeln!(to, "not running: no host is asked")?,
            (true, true) => writeln!(to, "in a pause: no host is asked")?,
            (true, false) => {}
        }
        writeln!(to, "{}", line_of(&heads))?;
    }
    let mut write = |host: &HostFigures| match args.json {
        true => write_line(&mut to, &host.to_json(as_of, &flag::of)),
        false => writeln!(to, "{}", line_of(&columns(host))),
    };
    let mut worst: Vec<HostFigures> = Vec::new();
    for host in crawl.hosts() {
        worst.push(host);
        if worst.len() >= 2 * SORTED {
            worst.sort_by(HostFigures::worst_first);
            worst.truncate(SORTED);
        }
    }
    worst.sort_by(HostFigures::worst_first);
    worst.truncate(SORTED);
    worst.iter().try_for_each(&mut write)?;
    if crawl.summary.report.hosts > worst.len() as u64 {
        let written: HashSet<_> = worst.iter().map(|one| one.host.clone()).collect();
        let mut others = crawl.hosts().filter(|one| !written.contains(&one.host));
        others.try_for_each(|one| write(&one))?;
    }
    Ok(to.flush()?)
}

fn columns(host: &HostFigures) -> [String; 9] {
    let time = |time: Option<_>| time.map_or_else(|| "-".to_owned(), duration);
    let health = &host.health;
    let why = health.cause.as_ref().map(ToString::to_string);
    let until = health
        .until
        .filter(|_| host.left.is_some() || health.state == Health::Closed)
        .map(|time| time.to_string());
    let ordered = (host.policy != HostPolicy::default()).then(|| show_policy(&host.policy));
    let spent = (host.budget == Some(0)).then(|| "its page budget is spent".to_owned());
    let until_why: Vec<_> = until.into_iter().chain(why).chain(spent).chain(ordered).collect();
    [
        host.host.to_string(),
        host.state_in_words(),
        host.left_in_words().unwrap_or_else(|| "-".to_owned()),
        grouped(host.queued + u64::from(host.in_flight)),
        grouped(host.requests),
        grouped(host.failures),
        time(host.median),
        duration(host.delay),
        until_why.join(": "),
    ]
}

fn line_of([host, state, left, waiting, requests, failed, answer, delay, why]: &[String; 9]) -> String {
    let numbers = format!("{left:>32} {waiting:>9} {requests:>9} {failed:>9} {answer:>9} {delay:>9}");
    format!("{host:<30} {state:<18} {numbers}  {why}").trim_end().to_owned()
}
