//! How the engine handles robots.txt, stops and limits. Uses a scripted fetcher and a paused clock.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::folder::Folder;
use crate::scripted::replies::{body, moved, status};
use crate::scripted::{self, Reply, Run, Scripted};
use crawler::{
    Crawl, CrawlOptions, Ending, Event, FailureKind, Fetcher, Request, ResourceKind, Response, StopHandle,
    TruncationReason,
};
use frontier::{Class, HostPolicy, NotFetched, OrderRule};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

fn options(seeds: &[&str], delay: u64) -> CrawlOptions {
    let mut options = scripted::everywhere("");
    options.seeds = seeds.iter().map(|&seed| seed.to_owned()).collect();
    options.frontier.politeness.delay = Duration::from_secs(delay);
    options.frontier.retries.retry_jitter = 0;
    options
}

fn run(options: CrawlOptions, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Run {
    Scripted::new(move |call| reply(call.url())).crawl(options)
}

/// Answers with this robots.txt and empty pages.
fn with_robots(robots: impl Fn() -> Reply) -> impl Fn(&str) -> Reply {
    move |url: &str| match url.ends_with("/robots.txt") {
        true => robots(),
        false => body(""),
    }
}

/// Crawls until a function asks for a stop.
fn run_until(
    options: CrawlOptions,
    is_enough: fn(&Event<'_>) -> bool,
    reply: impl Fn(&str) -> Reply + Send + Sync + 'static,
) -> Run {
    let run = Scripted::new(move |call| reply(call.url())).crawl_with(options, |crawl| {
        let stop = crawl.stop_handle();
        crawl.observe(move |event: &Event<'_>| {
            if is_enough(event) {
                stop.finish();
            }
        })
    });
    assert_eq!(run.summary.ending, Ending::Stopped);
    run
}

impl Run {
    /// How many pages of `a.example` were requested.
    fn pages_of_a(&self) -> usize {
        let is_page = |url: &&str| url.starts_with("http://a.example/") && !url.ends_with("/robots.txt");
        self.urls().into_iter().filter(is_page).count()
    }
}

#[test]
fn a_crawl_delay_is_obeyed_up_to_a_minute() {
    let reply = |url: &str| match url {
        "http://a.example/robots.txt" => body("User-agent: *\nCrawl-delay: 3600\n"),
        "http://a.example/" => body("<a href=1></a>"),
        _ => body(""),
    };
    let run = run(options(&["http://a.example/"], 1), reply);
    assert_eq!(run.seconds(), [0, 60, 120]);
}

#[test]
fn a_robots_txt_that_answers_5xx_forbids_its_origin_after_eight_attempts() {
    for failure in [500, 503] {
        let options = options(&["http://a.example/", "http://a.example/2"], 1);
        let run = run(options, with_robots(move || status(failure)));
        assert_eq!(run.urls(), ["http://a.example/robots.txt"; 8], "{failure}");
        assert_eq!(run.seconds(), [0, 1, 3, 7, 15, 31, 63, 127]);
        assert_eq!(run.not_fetched(NotFetched::RobotsUnreachable), 2);
        assert_eq!(run.summary.ending, Ending::Drained);
    }
}

#[test]
fn an_origin_whose_robots_txt_breaks_off_is_given_up_after_half_a_minute() {
    let run = run(options(&["http://a.example/", "http://a.example/2"], 1), |_| {
        Ok(Response {
            truncation: Some(TruncationReason::Connection),
            ..body("User-agent: *").unwrap()
        })
    });
    assert_eq!(run.urls(), ["http://a.example/robots.txt"; 6]);
    assert_eq!(run.seconds(), [0, 1, 3, 7, 15, 30]);
    assert_eq!(run.summary.report.pages.lost_with_host, 2);
    assert_eq!(run.summary.ending, Ending::Drained);
}

/// Links from a host with one request every five minutes to a host whose robots.txt fails for the first `minutes`.
fn closed_for(minutes: u64) -> Run {
    let mut options = options(&["http://slow.example/0", "http://a.example/seed"], 300);
    options.frontier.limits.max_pages = Some(40);
    let started = Mutex::new(None);
    run(options, move |url| {
        let started = *started.lock().unwrap().get_or_insert_with(Instant::now);
        let page = url.rsplit('/').next().unwrap();
        match url {
            "http://a.example/robots.txt" if started.elapsed() < Duration::from_secs(minutes * 60) => status(500),
            _ if page == "robots.txt" => body(""),
            _ if url.starts_with("http://slow.example/") => {
                let next = page.parse::<u32>().unwrap() + 1;
                body(&format!("<a href={next}></a><a href=http://a.example/{next}></a>"))
            }
            _ => body(""),
        }
    })
}

#[test]
fn a_closed_origin_opens_once_its_robots_txt_can_be_fetched() {
    let run = closed_for(60);
    let forbidden = run.not_fetched(NotFetched::RobotsUnreachable);
    assert!(forbidden > 0 && run.pages_of_a() > 5, "{forbidden}: {:?}", run.asked);
    let robots = run.seconds_of("http://a.example/robots.txt");
    assert!(robots.len() < 30, "few requests in between: {robots:?}");
}

#[test]
fn a_missing_robots_txt_allows_everything() {
    for missing in [404, 401, 403, 410] {
        let run = run(options(&["http://a.example/"], 1), with_robots(move || status(missing)));
        assert_eq!(run.urls(), ["http://a.example/robots.txt", "http://a.example/"]);
    }
}

#[test]
fn five_redirects_of_a_robots_txt_are_followed_across_hosts_and_the_sixth_is_not() {
    for (redirects, requests, pages) in [(5, 6, 0), (6, 6, 1)] {
        let reply = move |url: &str| {
            let step = url.strip_prefix("http://other.example/robots.txt?");
            match (url, step.map(|step| step.parse::<usize>().unwrap())) {
                ("http://a.example/robots.txt", _) => moved("http://other.example/robots.txt?1"),
                (_, None) => body(""),
                (_, Some(step)) if step < redirects => moved(&format!("?{}", step + 1)),
                (_, Some(_)) => body("User-agent: *\nDisallow: /\n"),
            }
        };
        let run = run(options(&["http://a.example/"], 1), reply);
        let robots = run.urls().iter().filter(|url| url.contains("robots.txt")).count();
        assert_eq!(robots, requests, "{:?}", run.asked);
        assert_eq!(run.summary.pages, pages);
        assert_eq!(run.not_fetched(NotFetched::RobotsForbid), 1 - pages);
    }
}

#[test]
fn a_robots_txt_is_valid_for_one_day() {
    let reply = |url: &str| {
        if url.ends_with("/robots.txt") {
            return body("");
        }
        let page: u64 = url.rsplit('/').next().unwrap().parse().unwrap();
        body(&format!("<a href={}></a>", page + 1))
    };
    let mut options = options(&["http://a.example/0"], 3600);
    options.frontier.limits.max_pages = Some(26);
    let run = run(options, reply);
    let day = 24 * 3600;
    assert_eq!(
        run.seconds_of("http://a.example/robots.txt"),
        [0, day],
        "{:?}",
        run.asked
    );
}

#[test]
fn retry_after_pauses_a_host_for_at_most_five_minutes() {
    for (requests, pause) in [(100, 100), (86_400, 300)] {
        let first = Mutex::new(true);
        let reply = move |url: &str| match url {
            "http://a.example/busy" if std::mem::take(&mut *first.lock().unwrap()) => Ok(Response {
                status: 429,
                retry_after: Some(Duration::from_secs(requests)),
                ..Response::default()
            }),
            _ => body(""),
        };
        let run = run(options(&["http://a.example/busy", "http://a.example/2"], 1), reply);
        assert_eq!(run.seconds(), [0, 1, 1 + pause, 2 + pause], "{:?}", run.asked);
        assert_eq!(run.summary.by_status[&200], 2);
        assert!(!run.summary.by_status.contains_key(&429), "it was not the final answer");
    }
}

#[test]
fn the_longest_duration_is_no_limit() {
    let options = CrawlOptions {
        max_time: Some(Duration::MAX),
        ..options(&["http://a.example/"], 1)
    };
    let run = run(options, |_| body(""));
    assert_eq!(run.summary.ending, Ending::Drained);
}

#[test]
fn no_request_starts_after_the_time_limit() {
    let options = CrawlOptions {
        max_time: Some(Duration::from_secs(10)),
        ..options(&["http://a.example/0"], 3)
    };
    let run = run(options, |url| body(&format!("<a href='{url}0'></a>")));
    assert_eq!(run.summary.ending, Ending::TimeUp);
    assert_eq!(run.seconds(), [0, 3, 6, 9]);
}

#[test]
fn a_stop_takes_effect_while_a_long_queue_of_forbidden_pages_is_dropped() {
    let links: String = (0..5_000).map(|n| format!("<a href=/no/{n}></a>")).collect();
    let reply = move |url: &str| match url {
        "http://a.example/robots.txt" => body("User-agent: *\nDisallow: /no/\n"),
        _ => body(&links),
    };
    let is_enough = |event: &Event<'_>| matches!(event, Event::NotFetched { .. });
    let run = run_until(options(&["http://a.example/"], 0), is_enough, reply);
    let forbidden = run.not_fetched(NotFetched::RobotsForbid);
    assert!(forbidden < 500, "{forbidden} pages were dropped after the stop");
}

#[test]
fn no_request_starts_after_an_observer_requests_a_stop() {
    let mut options = options(&["http://a.example/"], 0);
    options.frontier.politeness.ask_robots = false;
    let links = "<a href=http://b.example/></a><a href=http://c.example/></a>";
    let run = run_until(options, |event| matches!(event, Event::Page(_)), move |_| body(links));
    assert_eq!(run.urls(), ["http://a.example/"]);
}

#[test]
fn no_request_starts_after_a_stop_is_requested_for_a_seed() {
    let options = options(&["http://a.example/", "http://b.example/"], 0);
    let run = run_until(options, |event| matches!(event, Event::Offered { .. }), |_| body(""));
    assert_eq!((run.summary.pages_left(), run.urls()), (2, vec![]));
}

/// Answers for two hosts. The second one requests a stop, while the engine, which has the answer of the first, waits for more.
struct StopsAtSecond {
    request_stop: fn(&StopHandle),
    stop: Arc<OnceLock<StopHandle>>,
    has_first: Arc<Notify>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fetcher for StopsAtSecond {
    async fn fetch(&self, request: Request) -> Reply {
        self.asked.lock().unwrap().push(request.url.to_string());
        match request.url.as_str() {
            "http://a.example/" => {
                let has_first = Arc::clone(&self.has_first);
                tokio::spawn(async move { has_first.notify_one() });
                body("<a href=http://c.example/></a>")
            }
            "http://b.example/" => {
                self.has_first.notified().await;
                (self.request_stop)(self.stop.get().unwrap());
                body("<a href=http://d.example/></a>")
            }
            _ => body(""),
        }
    }
}

#[test]
fn no_request_starts_after_a_stop_while_the_engine_waits_for_more_answers() {
    let stops: [(fn(&StopHandle), _); 2] = [(StopHandle::finish, (2, 0)), (StopHandle::now, (1, 1))];
    for (request_stop, expected) in stops {
        let mut options = options(&["http://a.example/", "http://b.example/"], 0);
        options.frontier.politeness.ask_robots = false;
        let (stop, asked) = (Arc::default(), Arc::default());
        let fetcher = StopsAtSecond {
            request_stop,
            stop: Arc::clone(&stop),
            has_first: Arc::default(),
            asked: Arc::clone(&asked),
        };
        let crawl = Crawl::builder(options).unwrap().build_with(fetcher).unwrap();
        assert!(stop.set(crawl.stop_handle()).is_ok());
        let summary = scripted::paused_runtime().block_on(async { tokio::spawn(crawl.run()).await.unwrap().unwrap() });
        assert_eq!(summary.ending, Ending::Stopped);
        let mut asked = asked.lock().unwrap().clone();
        asked.sort();
        assert_eq!(asked, ["http://a.example/", "http://b.example/"]);
        assert_eq!(
            (summary.pages, summary.cut_short),
            expected,
            "the first answer is not lost"
        );
    }
}

#[test]
fn a_second_stop_aborts_the_requests_in_flight_and_counts_them() {
    let slow = Scripted::new(|_| body("")).taking(|request, _| match request.kind {
        ResourceKind::Robots => Duration::ZERO,
        _ => Duration::from_secs(1_000_000),
    });
    let options = options(&["http://a.example/", "http://b.example/"], 1);
    let summary = scripted::paused_runtime().block_on(async {
        let crawl = Crawl::builder(options).unwrap().build_with(slow).unwrap();
        let stop = crawl.stop_handle();
        let stopping = async {
            sleep(Duration::from_secs(60)).await;
            stop.finish();
            sleep(Duration::from_secs(60)).await;
            stop.now();
        };
        tokio::join!(crawl.run(), stopping).0.unwrap()
    });
    assert_eq!((summary.ending, summary.cut_short), (Ending::Stopped, 2));
    assert_eq!(summary.elapsed.as_secs(), 120);
}

#[test]
fn the_summary_lists_every_requested_host() {
    let mut options = options(&["http://a.example/"], 0);
    options.frontier.politeness.ask_robots = false;
    let first = Mutex::new(true);
    let run = run(options, move |url| match url {
        "http://a.example/" => body("<a href=http://b.example/></a><a href=http://c.example/></a>"),
        "http://b.example/" if std::mem::take(&mut *first.lock().unwrap()) => status(503),
        _ => body(""),
    });
    assert_eq!(run.summary.report.hosts, 3);
    let requested: u64 = run.summary.host_table.hosts.iter().map(|host| host.requests).sum();
    assert_eq!(requested, 4);
}

#[test]
fn the_failure_of_a_redirected_seed_names_its_cause() {
    for (target, why) in [
        ("http://a.example/", "redirect loop"),
        ("http://a.example/no", "an exclude pattern matches"),
        ("mailto:ann@a.example", "cannot be crawled"),
    ] {
        let mut options = options(&["http://a.example/"], 0);
        options.frontier.scope.exclude = vec!["/no".to_owned()];
        let run = run(options, move |url| match url {
            "http://a.example/" => moved(target),
            _ => body(""),
        });
        assert!(run.summary.is_empty());
        let failure = run.summary.counts.failures.first_failure.expect("something went wrong");
        assert!(failure.contains(why), "{target}: {failure}");
    }
}

#[test]
fn a_page_that_fails_permanently_is_reported_with_its_last_status() {
    let run = run(options(&["http://a.example/"], 1), |url| match url {
        "http://a.example/robots.txt" => status(404),
        _ => status(500),
    });
    assert_eq!(run.urls().len(), 1 + 3);
    assert_eq!(run.summary.by_status.iter().collect::<Vec<_>>(), [(&500, &1)]);
    assert_eq!(run.summary.report.pages.gave_up, 1);
    assert!(
        run.summary
            .counts
            .failures
            .first_failure
            .unwrap()
            .contains("status 500")
    );
}

#[test]
fn a_record_counts_all_links_and_new_links() {
    let mut options = options(&["http://a.example/"], 0);
    options.pages.max_links_per_page = 3;
    let run = run(options, |url: &str| match url {
        "http://a.example/" => body("<a href=/1></a><a href=/2 rel=nofollow></a><a href=/></a><a href=/4></a>"),
        "http://a.example/1" => body("<a href=/5></a>"),
        _ => body(""),
    });
    let records = run.reports.pages.iter().map(|page| {
        let numbers = (page.depth, page.links_found, page.links_new);
        (page.url.clone(), numbers, page.referrer.clone())
    });
    let url = |path: &str| format!("http://a.example/{path}");
    assert_eq!(
        records.collect::<Vec<_>>(),
        [
            (url(""), (0, 4, 1), None),
            (url("1"), (1, 1, 1), Some(url(""))),
            (url("5"), (2, 0, 0), Some(url("1"))),
        ]
    );
    let summary = run.summary;
    assert_eq!((summary.unfollowed.nofollow, summary.unfollowed.dropped), (1, 1));
    let links = summary.report.links;
    assert_eq!((links.offered(), links.queued, links.seen), (4, 3, 1));
}

/// The links of a site of `count` pages.
fn links(count: u64) -> String {
    (1..=count).map(|n| format!("<a href=/{n}></a>")).collect()
}

fn throttling(retry_after: Option<u64>) -> Reply {
    Ok(Response {
        status: 429,
        retry_after: retry_after.map(Duration::from_secs),
        ..Response::default()
    })
}

#[test]
fn a_site_that_throttles_for_two_minutes_loses_no_page() {
    let replies = [(1, None), (4, None), (1, Some(0)), (4, Some(1)), (4, Some(30))];
    // A single page gets every 429 itself: more of them than it has attempts.
    for (per_host, retry_after, pages) in replies.into_iter().flat_map(|(n, wait)| [(n, wait, 1), (n, wait, 200)]) {
        let started = Mutex::new(None);
        let mut options = options(&["http://a.example/"], 0);
        options.frontier.politeness.per_host = NonZeroU32::new(per_host).unwrap();
        let links = links(pages);
        let run = run(options, move |url| {
            let since = started.lock().unwrap().get_or_insert_with(Instant::now).elapsed();
            match url {
                "http://a.example/robots.txt" => body(""),
                "http://a.example/" => body(&links),
                _ if since < Duration::from_secs(120) => throttling(retry_after),
                _ => body(""),
            }
        });
        let case = format!("{pages} pages, {per_host} at once, {retry_after:?}");
        assert_eq!(run.summary.pages, pages + 1, "{case}: {}", run.summary);
        let while_throttling = run.asked.len() as u64 - (pages + 2);
        assert!(while_throttling < 40, "{case}: {while_throttling} requests");
        assert_eq!(run.summary.failures.retried[&FailureKind::Throttled], while_throttling);
    }
}

#[test]
fn the_pauses_of_a_throttling_host_double_up_to_five_minutes() {
    let run = run(options(&["http://a.example/"], 1), |_| throttling(None));
    let times = run.seconds();
    let rests: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(rests, [5, 10, 20, 40, 80, 160, 300, 300, 300, 300, 300]);
}

#[test]
fn forbidden_and_redirected_pages_cost_no_host_budget() {
    let mut options = options(&["http://a.example/"], 0);
    options.frontier.limits.max_pages_per_host = Some(10);
    let run = run(options, |url| {
        let path = url.strip_prefix("http://a.example/").unwrap();
        match path {
            "robots.txt" => body("User-agent: *\nDisallow: /no\n"),
            "" => {
                let links = |name: &str| (0..9).map(|n| format!("<a href=/{name}{n}></a>")).collect::<String>();
                body(&(links("no") + &links("old") + &links("page")))
            }
            _ if path.starts_with("old") => moved("/page0"),
            _ => body("a page"),
        }
    });
    // Ten pages may be fetched. Ten are: the first one, and the nine that are neither forbidden nor redirected.
    assert_eq!(run.summary.pages, 10, "{}", run.summary);
}

#[test]
fn most_of_what_comes_first_is_fetched_with_a_few_requests_more() {
    // Each page of the news leads to the next three, and each other page to forty.
    let reply = |url: &str| {
        let path = url.trim_start_matches("http://a.example/");
        let number = |text: &str| text.parse::<u32>().unwrap_or(0);
        let links: Vec<String> = match path.strip_prefix("news/") {
            _ if path == "robots.txt" => return status(404),
            Some(news) => (1..4)
                .map(|n| (number(news) + n).min(99))
                .map(|n| format!("/news/{n}"))
                .collect(),
            None => (1..41)
                .map(|n| (number(path) * 40 + n).min(1_899))
                .map(|n| format!("/{n}"))
                .collect(),
        };
        let links = links.iter().map(|link| format!("<a href={link}></a>"));
        body(&(links.collect::<String>() + "<a href=/news/0></a>"))
    };
    let mut options = options(&["http://a.example/0"], 0);
    options.frontier.order = vec![OrderRule {
        pattern: "/news/".to_owned(),
        class: Class::FIRST,
    }];
    let run = run(options, reply);
    let urls = run.urls();
    let is_news = |url: &&str| url.contains("/news/");
    let (all, pages) = (urls.iter().filter(|url| is_news(url)).count(), urls.len());
    let early = urls[..pages * 8 / 100].iter().filter(|url| is_news(url)).count();
    assert_eq!((all, pages), (100, 2_001));
    assert!(early >= 90, "{early} of {all} within 8 % of {pages} requests");
}

#[test]
fn a_crawl_of_which_a_host_was_closed_is_complete_but_for_what_waited_there() {
    let folder = Folder::new("policies-closed");
    let reply = |call: &scripted::Call<'_>| match call.url() {
        "http://a.example/" => body("<a href=/1></a><a href=/2></a><a href=/3></a>"),
        "http://a.example/1" => body("<a href=http://b.example/></a>"),
        url if url.ends_with("/robots.txt") => status(404),
        _ => body(""),
    };
    let mut options = options(&["http://a.example/"], 0);
    options.frontier.limits.max_pages = Some(2);
    Scripted::new(reply).crawl_in(&folder.state(), options.clone());
    options.frontier.limits.max_pages = None;
    let closed = HostPolicy {
        closed: Some(true),
        ..HostPolicy::default()
    };
    options.frontier.hosts.insert("a.example".to_owned(), closed);
    let run = Scripted::new(reply).crawl_in(&folder.state(), options);
    assert_eq!(run.urls(), ["http://b.example/robots.txt", "http://b.example/"]);
    assert!(run.summary.missing().is_empty(), "{:?}", run.summary.missing());
    let text = run.summary.to_string();
    assert!(
        text.contains("yes, but for 2 pages dropped by order or policy"),
        "{text}"
    );
}
