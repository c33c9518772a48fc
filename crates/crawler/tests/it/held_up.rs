//! What holds a crawl up: the state of each host, and the notices about it. The fetcher is scripted, and the clock is paused.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::scripted::{self, Scripted};
use crawler::{CrawlOptions, Event, FetchError, Request, Summary};
use frontier::Notice;

const TIMEOUT: Duration = Duration::from_secs(30);
const ANSWER: Duration = Duration::from_millis(500);

/// Crawls hosts of which each does something else, for some seconds. Returns the notices with their seconds, and the summary of each second.
fn crawl(seconds: u64) -> (Vec<(u64, &'static str, String)>, Vec<Summary>) {
    let hosts = ["throttles", "robots", "hangs", "refuses", "answers"];
    let mut options = CrawlOptions {
        seeds: hosts.map(|host| format!("http://{host}.example/")).to_vec(),
        max_time: Some(Duration::from_secs(seconds)),
        ..scripted::everywhere("http://a.example/")
    };
    options.frontier.politeness.delay = Duration::from_secs(1);
    options.frontier.retries.retry_jitter = 0;
    let links: String = (0..400).map(|n| format!("<a href=/{n}></a>")).collect();
    let reply = move |call: &scripted::Call<'_>| {
        let is_page = !call.is_robots();
        let answer = match call.request.url.host_str().unwrap() {
            "refuses.example" => Err(FetchError::Connect("refused".to_owned())),
            "hangs.example" if is_page => Err(FetchError::Timeout),
            "robots.example" => Ok(scripted::status(503)),
            "throttles.example" if is_page => {
                let mut answer = scripted::status(429);
                answer.retry_after = Some(Duration::from_secs(4));
                Ok(answer)
            }
            "answers.example" if is_page => Ok(scripted::page(links.as_str())),
            _ => Ok(scripted::status(404)),
        };
        answer.map(|answer| crawler::Response {
            elapsed: ANSWER,
            ..answer
        })
    };
    let latency = |_: &Request, reply: &scripted::Reply| match reply {
        Err(FetchError::Timeout) => TIMEOUT,
        _ => ANSWER,
    };
    let seen = Arc::new(Mutex::new((Vec::new(), Vec::new())));
    let noted = Arc::clone(&seen);
    Scripted::new(reply).taking(latency).crawl_with(options, |crawl| {
        crawl.on_event(move |event| {
            let (notices, ticks) = &mut *noted.lock().unwrap();
            match event {
                Event::Tick(summary) => ticks.push((*summary).clone()),
                Event::Notice(notice) => {
                    let word = match notice {
                        Notice::Throttled { .. } => "resting",
                        Notice::RobotsFailing { .. } => "robots_failing",
                        Notice::Hanging { .. } => "hanging",
                        Notice::Away { .. } => "away",
                        _ => "other",
                    };
                    notices.push((ticks.len() as u64, word, notice.to_string()));
                }
                _ => {}
            }
        })
    });
    let (notices, ticks) = &mut *seen.lock().unwrap();
    (std::mem::take(notices), std::mem::take(ticks))
}

#[test]
fn each_second_says_what_each_host_does_and_a_notice_says_it_once_at_once() {
    let (notices, ticks) = crawl(28);
    let first: BTreeMap<_, _> = notices.iter().map(|(second, word, _)| (*word, *second)).collect();
    assert_eq!(first.len(), notices.len(), "each once: {notices:?}");
    assert!(
        first["away"] <= 1 && first["robots_failing"] <= 1 && first["resting"] <= 3,
        "{notices:?}"
    );
    assert!((11..=13).contains(&first["hanging"]), "after ten seconds: {notices:?}");
    let texts: String = notices.iter().map(|(_, _, text)| format!("{text}\n")).collect();
    for text in [
        "http://throttles.example rests for 4.0 s",
        "Retry-After: 4 s",
        "http://hangs.example/ is in flight for 1",
        "nothing of http://robots.example is fetched yet: its robots.txt fails",
    ] {
        assert!(texts.contains(text), "{text}: {texts}");
    }

    let summary = ticks.last().unwrap();
    let json = summary.to_json(str::to_owned);
    let table = json["host_table"].as_array().unwrap();
    let state = |name: &str| {
        let host = table.iter().find(|one| one["host"] == format!("{name}.example"));
        host.unwrap_or_else(|| panic!("{name}: {json}"))["state"].clone()
    };
    for (host, expected) in [
        ("throttles", "resting"),
        ("robots", "robots_failing"),
        ("hangs", "hanging"),
        ("refuses", "away"),
        ("answers", "asked"),
    ] {
        assert_eq!(state(host), expected, "{host}");
        assert_eq!(json["hosts_by_state"][expected], 1, "{json}");
    }
    let resting = table.iter().find(|one| one["state"] == "resting").unwrap();
    assert_eq!(resting["retry_after_seconds"], 4.0);
    assert!(
        resting["times"].as_u64() > Some(3) && resting["until"].is_string(),
        "{resting}"
    );
}

/// 400 pages at 1.5 s each: the others take less.
#[test]
fn the_host_that_takes_longest_is_named_first_with_what_waits_times_its_delay_and_its_answer() {
    let (_, ticks) = crawl(5);
    let held_up_by = ticks.last().unwrap().host_table.held_up_by().unwrap();
    assert_eq!(held_up_by.host.as_str(), "answers.example");
    let waiting = held_up_by.queued + u64::from(held_up_by.in_flight);
    let left = Duration::from_millis(1500 * waiting);
    assert!(waiting > 390 && held_up_by.left == Some(left), "{held_up_by:?}");
    for tick in &ticks {
        let left: Vec<_> = tick.host_table.hosts.iter().map(|host| host.left).collect();
        assert!(left.is_sorted_by(|one, next| one >= next), "{left:?}");
    }
}

/// Pages that fail take up to three requests each: the next may have an answer, and some have spent two.
#[test]
fn a_host_that_fails_takes_at_least_a_request_for_each_page() {
    let mut options = CrawlOptions {
        seeds: ["fails", "lacks"]
            .iter()
            .flat_map(|host| (0..100).map(move |n| format!("http://{host}.example/{n}")))
            .collect(),
        max_time: Some(Duration::from_secs(20)),
        ..scripted::everywhere("http://a.example/")
    };
    options.frontier.politeness.delay = Duration::from_secs(1);
    options.frontier.politeness.ask_robots = false;
    let reply = |call: &scripted::Call<'_>| {
        let fails = call.request.url.host_str() == Some("fails.example");
        Ok(scripted::status(if fails { 500 } else { 404 }))
    };
    let left = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&left);
    Scripted::new(reply).crawl_with(options, |crawl| {
        crawl.on_event(move |event| {
            let Event::Tick(summary) = event else { return };
            *seen.lock().unwrap() = summary.host_table.hosts.clone();
        })
    });
    let hosts = left.lock().unwrap();
    let left = |name: &str| {
        let host = hosts.iter().find(|one| one.host.as_str() == name).unwrap();
        let waiting = host.queued + u64::from(host.in_flight);
        assert!(waiting > 70, "{host:?}");
        host.left.unwrap().as_secs() / waiting
    };
    assert_eq!([left("fails.example"), left("lacks.example")], [1, 1], "{hosts:?}");
}

/// Its robots.txt is the probe of an origin that may be away, and answers each time.
#[test]
fn a_host_whose_pages_hang_says_so_since_its_last_page_and_takes_as_long_as_the_attempts_that_are_left() {
    let mut options = CrawlOptions {
        seeds: (0..30).map(|n| format!("http://hangs.example/{n}")).collect(),
        ..scripted::everywhere("http://a.example/")
    };
    options.frontier.politeness.delay = Duration::from_secs(1);
    options.frontier.retries.retry_jitter = 0;
    let reply = |call: &scripted::Call<'_>| match call.is_robots() || call.at < Duration::from_secs(10) {
        true => Ok(scripted::status(404)),
        false => Err(FetchError::Timeout),
    };
    let latency = |_: &Request, reply: &scripted::Reply| match reply {
        Err(_) => TIMEOUT,
        Ok(_) => ANSWER,
    };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    Scripted::new(reply).taking(latency).crawl_with(options, |crawl| {
        crawl.on_event(move |event| {
            let Event::Tick(summary) = event else { return };
            noted.lock().unwrap().push(summary.host_table.clone());
        })
    });
    let seen = seen.lock().unwrap();
    assert!(seen.len() > 1_800, "one each second");
    // After the probe that three silent pages lead to, and a fourth.
    for (second, table) in seen.iter().enumerate().skip(190) {
        let host = table.held_up_by().unwrap();
        let explained = host.explained(table.as_of, &str::to_owned);
        assert!(explained.starts_with("hanging for "), "{explained}");
        let since = table.as_of.since(host.health.since.unwrap()).as_secs();
        let elapsed = table.as_of.since(seen[0].as_of).as_secs();
        assert!(since + 45 > elapsed, "{since} of {elapsed} s: {explained}");
        let left = (seen.len() as u64 - second as u64, host.left.unwrap().as_secs());
        assert!(left.0.abs_diff(left.1) < 60 + left.0 / 4, "{left:?} s: {explained}");
    }
}
