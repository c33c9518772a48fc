//! What is lost, in the progress and the summary of a crawl, and how its hosts answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::folder::Folder;
use crate::scripted::{self, Reply, Scripted};
use crawler::summary::Counts;
use crawler::{CrawlOptions, Ending, Event, FetchError, Missing, SavedCrawl, Summary};
use frontier::{Canonicalizer, Frontier, FrontierConfig, Health, Link, Reach, Time};
use sieve::OnSaturation;

/// A loss of less than one expected URL is still a loss: the crawl is not called complete.
#[test]
fn a_seen_set_that_may_have_dropped_a_url_makes_the_crawl_incomplete() {
    let mut config = FrontierConfig::default();
    (
        config.seen_set.exact,
        config.seen_set.capacity,
        config.seen_set.on_saturation,
    ) = (false, 1_000, OnSaturation::Warn);
    config.scope.reach = Reach::Any;
    let mut frontier = Frontier::in_memory(config).unwrap();
    let mut was_complete = false;
    for n in 0..1_000 {
        let url = Canonicalizer::default()
            .parse(&format!("https://a.example/{n}"))
            .unwrap();
        let link = Link::found(url, 1, "https://b.example/".into());
        frontier.offer(&[link], Time::from_millis(1_700_000_000_000)).unwrap();
        let report = frontier.report();
        let lost = report.saturation.lost;
        let summary = Summary::new(Ending::Drained, Counts::default(), report);
        let missing = summary.missing();
        assert_eq!(missing.is_empty(), lost < 0.1, "{lost}: {missing:?}");
        let shown = summary.to_json(str::to_owned)["lost"].to_string();
        let decimals = shown.split_once('.').map_or("", |(_, decimals)| decimals);
        assert!(decimals.len() <= 2 && !shown.contains('e'), "no noise: {shown}");
        assert!(missing.iter().all(|one| one.kind == Missing::SEEN_SET), "{missing:?}");
        was_complete |= missing.is_empty();
        if lost > 0.5 {
            let text = missing[0].to_string();
            assert!(
                text.starts_with("seen-set: one or a few URLs may be dropped, and"),
                "{text}"
            );
            assert!(was_complete);
            return;
        }
    }
    panic!("nothing was lost at the capacity");
}

/// Plays each kind of loss in a crawl of a minute. Returns the second at which the progress had it first, and the summary, which the state
/// directory has alike.
fn played(kind: &str, change: impl Fn(&mut CrawlOptions), reply: fn(&str) -> Reply) -> (u64, Summary) {
    let mut options = scripted::everywhere("http://a.example/");
    options.frontier.politeness.delay = Duration::from_millis(100);
    options.max_time = Some(Duration::from_secs(60));
    change(&mut options);
    let folder = Folder::new(kind);
    let first = Arc::new(Mutex::new(None));
    let (noted, wanted) = (Arc::clone(&first), kind.to_owned());
    let run = Scripted::new(move |call| reply(call.url())).crawl_in_with(&folder.state(), options, |crawl| {
        crawl.on_event(move |event| {
            if let Event::Tick(summary) = event {
                let missing = summary.missing();
                let of_kind = missing.iter().find(|one| one.kind == wanted);
                let lost = of_kind.map_or(0, |one| one.lost);
                assert!(summary.lost_at_least() as f64 <= summary.lost() + 1.0 && summary.lost() >= lost as f64);
                if lost > 0 {
                    noted.lock().unwrap().get_or_insert(summary.elapsed.as_secs());
                }
            }
        })
    });
    let first = first.lock().unwrap().take();
    let first = first.unwrap_or_else(|| panic!("{kind} is not in the progress: {}", run.summary));
    // The paused clock runs far ahead of the time of day, which goes on.
    let json = |summary: &Summary| {
        let mut json = summary.to_json(str::to_owned);
        json["host_table"][0]["robots_fetched_at"].take();
        json
    };
    let saved = json(&SavedCrawl::read(&folder.state()).unwrap().summary);
    let summary = json(&run.summary);
    for name in ["lost", "lost_at_least", "host_table"] {
        assert_eq!(saved[name], summary[name], "{kind}: {name}");
    }
    (first, run.summary)
}

fn filled(options: &mut CrawlOptions, on_saturation: OnSaturation) {
    let frontier = &mut options.frontier;
    (
        frontier.seen_set.exact,
        frontier.seen_set.capacity,
        frontier.seen_set.on_saturation,
    ) = (false, 50, on_saturation);
}

/// Returns a page of a tree without end.
fn endless(url: &str) -> Reply {
    if url.ends_with("/robots.txt") {
        return Ok(scripted::status(404));
    }
    let number = url.rsplit('/').next().unwrap().parse().unwrap_or(0_u64);
    let links = (number * 3 + 1..number * 3 + 4).map(|child| format!("<a href=/{child}>x</a>"));
    Ok(scripted::page(links.collect::<String>()))
}

#[test]
fn every_kind_of_loss_is_in_the_progress_while_it_happens_and_in_the_summary() {
    type Case = (&'static str, fn(&mut CrawlOptions), fn(&str) -> Reply);
    let cases: [Case; 8] = [
        ("seen_set", |options| filled(options, OnSaturation::Warn), endless),
        ("saturated", |options| filled(options, OnSaturation::Refuse), endless),
        ("queue_full", |options| options.frontier.limits.max_queued = 20, endless),
        (
            "too_many_hosts",
            |options| options.frontier.limits.max_hosts = 1,
            |url| match url {
                "http://a.example/7" => Ok(scripted::page("<a href=http://b.example/></a>")),
                _ => endless(url),
            },
        ),
        (
            "given_up",
            |_| {},
            |url| match url {
                "http://a.example/" => Ok(scripted::page("<a href=/1></a><a href=http://b.example/></a>")),
                _ if url.contains("//b.") => Err(FetchError::Connect("refused".to_owned())),
                _ => endless(url),
            },
        ),
        (
            "no_whole_answer",
            |_| {},
            |url| match url {
                "http://a.example/" => Ok(scripted::page("<a href=/1></a><a href=http://b.example/></a>")),
                "http://b.example/" => Err(FetchError::Other("of no kind".to_owned())),
                _ => endless(url),
            },
        ),
        (
            "unreadable",
            |_| {},
            |url| match url {
                "http://a.example/" => Ok(scripted::page("<a href=/1></a><a href=http://b.example/></a>")),
                "http://b.example/" => Err(FetchError::HeadTooLarge("100 KiB".to_owned())),
                _ => endless(url),
            },
        ),
        (
            "host_down",
            |options| options.frontier.retries.max_first_downtime = Duration::from_secs(5),
            |url| match url.strip_prefix("http://a.example/") {
                None => Err(FetchError::Connect("refused".to_owned())),
                Some(path) => {
                    let mut page = endless(url)?;
                    page.body
                        .extend(format!("<a href=http://b.example/{path}>x</a>").bytes());
                    Ok(page)
                }
            },
        ),
    ];
    for (kind, change, reply) in cases {
        let (first, summary) = played(kind, change, reply);
        assert!(first < 55, "{kind}: {first} s");
        let of_kind = summary.missing().into_iter().find(|one| one.kind == kind).unwrap();
        assert!(of_kind.lost > 0, "{kind}: {of_kind}");
        // The page of a refused link may be found elsewhere, so it is not surely lost.
        let is_sure = ["seen_set", "given_up", "no_whole_answer", "unreadable"].contains(&kind);
        assert_eq!(of_kind.lost_at_least > 0, is_sure, "{kind}: {of_kind}");
        let json = summary.to_json(str::to_owned);
        assert_eq!(json["lost_at_least"], summary.lost_at_least(), "{kind}");
        assert!(summary.lost_at_least() >= of_kind.lost_at_least, "{kind}");
        let texts = json["missing"].as_array().unwrap();
        assert!(texts.contains(&of_kind.to_string().into()), "{kind}: {texts:?}");
    }
}

/// A page at 300 ms from one host, each fifth of another after 20 s, and none of a third.
#[test]
fn the_table_of_hosts_has_their_times_and_failures_and_a_stopped_crawl_names_what_is_away() {
    let folder = Folder::new("hosts");
    let hosts = ["quick", "slow", "dead"];
    let home: String = hosts
        .map(|host| format!("<a href=http://{host}.example/></a>"))
        .concat();
    let reply = move |call: &scripted::Call<'_>| {
        let url = call.url();
        let host = call.request.url.host_str().unwrap();
        let seconds = match host {
            "slow.example" if call.earlier == 0 && url.ends_with('5') => 20.0,
            "slow.example" => 2.0,
            _ => 0.3,
        };
        let mut answer = match host {
            "dead.example" => return Err(FetchError::Connect("refused".to_owned())),
            "a.example" => scripted::page(home.as_str()),
            "slow.example" if url.ends_with('4') => scripted::status(404),
            _ => endless(url)?,
        };
        answer.elapsed = Duration::from_secs_f64(seconds);
        Ok(answer)
    };
    let mut options = scripted::everywhere("http://a.example/");
    options.frontier.politeness.delay = Duration::from_millis(500);
    options.frontier.retries.max_first_downtime = Duration::from_secs(3600);
    options.max_time = Some(Duration::from_secs(90));
    let minutes = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&minutes);
    let run = Scripted::new(reply)
        .taking(|_, reply| reply.as_ref().map_or(Duration::ZERO, |answer| answer.elapsed))
        .crawl_in_with(&folder.state(), options, |crawl| {
            crawl.on_event(move |event| {
                if let Event::Tick(summary) = event
                    && !summary.host_table.hosts.is_empty()
                {
                    noted.lock().unwrap().push(summary.host_table.hosts.clone());
                }
            })
        });
    let saved = SavedCrawl::read(&folder.state()).unwrap().summary;
    for summary in [&run.summary, &saved] {
        let table = &summary.host_table;
        let of = |name: &str| table.hosts.iter().find(|one| one.host.as_str() == name).unwrap();
        let (quick, slow) = (of("quick.example"), of("slow.example"));
        assert_eq!(quick.median, Some(Duration::from_millis(300)));
        assert_eq!(
            (slow.median, slow.longest),
            (Some(Duration::from_secs(2)), Some(Duration::from_secs(20)))
        );
        assert!(slow.failures >= 1 && quick.failures == 0, "{summary}");
        assert!(
            quick.requests > 90 && slow.requests < 30 && slow.queued > 5,
            "{summary}"
        );
        assert_eq!(slow.delay, Duration::from_millis(500));
        let pauses = [slow.shortest_gap, slow.median_pause].map(|pause| pause.unwrap().as_millis());
        assert_eq!(pauses, [500, 500]);
        assert!(slow.robots_at < Some(table.as_of) && slow.robots_at.is_some());
        let dead = of("dead.example");
        assert_eq!((dead.health.state, table.away()), (Health::Away, 1));
        let text = summary.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("dead.example: away for ") && text.contains("shortest pause as long as the delay"),
            "{text}"
        );
        let json = summary.to_json(str::to_owned);
        let of = |name: &str| {
            let mut hosts = json["host_table"].as_array().unwrap().iter();
            hosts.find(|one| one["host"] == name).unwrap()
        };
        assert_eq!(of("quick.example")["median_seconds"], 0.3);
        for pause in ["median_pause_seconds", "shortest_pause_seconds"] {
            assert_eq!(of("slow.example")[pause], 0.5);
        }
        let robots_at = slow.robots_at.map(|time| time.to_string());
        assert_eq!(of("slow.example")["robots_fetched_at"].as_str(), robots_at.as_deref());
        assert_eq!(of("dead.example")["kind"], "connect");
    }
    assert!(minutes.lock().unwrap().len() >= 89, "each second");
}

/// Five pages a second for a minute, then one in ten seconds.
#[test]
fn the_recent_rate_is_that_of_the_last_seconds_and_the_mean_that_of_the_crawl() {
    let mut options = scripted::options("http://a.example/");
    options.frontier.politeness.delay = Duration::ZERO;
    options.concurrency = 1.try_into().unwrap();
    options.max_time = Some(Duration::from_secs(120));
    let script = Scripted::new(|call| {
        let mut answer = endless(call.url())?;
        let is_quick = call.at < Duration::from_secs(60);
        answer.elapsed = Duration::from_millis(if is_quick { 200 } else { 10_000 });
        Ok(answer)
    });
    let script = script.taking(|_, reply| reply.as_ref().map_or(Duration::ZERO, |answer| answer.elapsed));
    let summary = script.crawl(options).summary;
    assert!((2.4..2.7).contains(&summary.mean_pages_per_second()), "{summary}");
    assert!((0.05..0.2).contains(&summary.recent_pages_per_second()), "{summary}");
    let text = summary.to_string();
    assert!(
        text.contains("per second: mean 2.") && text.contains(", recent 0.1"),
        "{text}"
    );
}
