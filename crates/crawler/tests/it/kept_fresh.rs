//! Pages are kept fresh: what sitemaps say, and what counts as a change.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crawler::{CrawlOptions, Event, ResourceKind, Response};
use frontier::{FreshnessConfig, Time};

use crate::folder::Folder;
use crate::scripted::{self, Call, Reply, Run, Scripted};

const HOUR: Duration = Duration::from_secs(3600);

/// The time of day when a call is made.
fn date(at: Duration, begin: SystemTime) -> String {
    let since = begin.duration_since(SystemTime::UNIX_EPOCH).unwrap() + at;
    Time::from_millis(since.as_millis() as u64).to_string()
}

fn crawl(
    folder: &str,
    hours: u32,
    change: impl FnOnce(&mut CrawlOptions),
    reply: impl Fn(&Call<'_>) -> Reply + Send + Sync + 'static,
) -> (Run, Vec<(String, Option<bool>)>) {
    let folder = Folder::new(folder);
    let mut options = scripted::options("http://a.example/");
    options.pages.sitemaps = true;
    options.max_time = Some(HOUR * hours);
    options.frontier.freshness = FreshnessConfig {
        keeps_fresh: true,
        min_age: Duration::from_secs(600),
        ..FreshnessConfig::default()
    };
    change(&mut options);
    let unchanged = Arc::<Mutex<Vec<_>>>::default();
    let noted = Arc::clone(&unchanged);
    let run = Scripted::new(reply).crawl_in_with(&folder.state(), options, |crawl| {
        crawl.on_event(move |event| {
            if let Event::Page(page) = event {
                noted.lock().unwrap().push((page.url.clone(), page.unchanged));
            }
        })
    });
    let unchanged = std::mem::take(&mut *unchanged.lock().unwrap());
    (run, unchanged)
}

/// When a path was asked for, in hours.
fn hours_of(run: &Run, path: &str) -> Vec<f64> {
    let of_path = run.requests.iter().filter(|one| one.path == path);
    of_path.map(|one| one.at.as_secs_f64() / 3600.0).collect()
}

fn wrapped(name: &str, mut list: Response) -> Response {
    list.body = format!("<{name}>{}</{name}>", String::from_utf8(list.body).unwrap()).into_bytes();
    list
}

#[test]
fn what_sitemaps_list_or_date_later_is_fetched_within_hours() {
    let begin = SystemTime::now();
    let reply = move |call: &Call<'_>| {
        let hour = call.at.as_secs() / 3600;
        let changed = |hours: u64| date(HOUR * hours as u32, begin);
        let of_page = changed(if hour < 8 { 0 } else { 8 });
        let list = |kind: &str, entries: Vec<(String, String)>| {
            let entries = entries.iter().map(|(path, lastmod)| {
                format!("<{kind}><loc>http://a.example{path}</loc><lastmod>{lastmod}</lastmod></{kind}>")
            });
            scripted::page_of("application/xml", entries.collect::<String>())
        };
        let long_ago = || "2001-01-01".to_owned();
        Ok(match call.path() {
            "/robots.txt" => scripted::page_of("text/plain", "Sitemap: /index.xml"),
            "/index.xml" => {
                let parts = [
                    ("/news.xml".to_owned(), changed(hour)),
                    ("/old.xml".to_owned(), long_ago()),
                ];
                wrapped("sitemapindex", list("sitemap", parts.into()))
            }
            "/news.xml" => {
                let date = |n| match n {
                    7 => of_page.clone(),
                    _ => long_ago(),
                };
                let mut urls: Vec<_> = (0..30).map(|n| (format!("/{n}"), date(n))).collect();
                urls.extend((hour >= 4).then(|| ("/new".to_owned(), changed(4))));
                wrapped("urlset", list("url", urls))
            }
            "/7" => scripted::page(format!("version {of_page}")),
            path => scripted::page(format!("<p>page {path} of the site")),
        })
    };
    // A visit every four days for each.
    let budget = Some(31.0 / (4.0 * 86_400.0));
    let scarce = |options: &mut CrawlOptions| {
        options.frontier.freshness.revisits_per_second = budget;
        options.frontier.freshness.min_age = HOUR;
    };
    let (run, _) = crawl("dated", 16, scarce, reply);
    let read = hours_of(&run, "/index.xml");
    assert!((15..=17).contains(&read.len()), "{read:?}");
    assert!(hours_of(&run, "/news.xml").len() > 12);
    assert_eq!(hours_of(&run, "/old.xml").len(), 1, "its date is older");
    let new = hours_of(&run, "/new");
    assert!((4.0..5.2).contains(&new[0]), "{new:?}");
    let seven = hours_of(&run, "/7");
    assert!(seven[1..].iter().any(|hour| (8.0..13.0).contains(hour)), "{seven:?}");
}

#[test]
fn with_selected_values_a_page_has_changed_if_they_have() {
    let reply = |call: &Call<'_>| {
        if call.request.kind != ResourceKind::Page {
            return Ok(scripted::status(404));
        }
        let (visit, hour) = (call.earlier, call.at.as_secs() / 3600);
        let price = if hour < 5 { 100 } else { 120 };
        Ok(scripted::page(format!(
            "<p>visitor {visit} of our shop, dear friend</p><b class=price>{price}</b>"
        )))
    };
    let select = |options: &mut CrawlOptions| options.reports.fields = vec!["price=.price".parse().unwrap()];
    let changes =
        |seen: &[(String, Option<bool>)]| seen.iter().filter(|(_, unchanged)| *unchanged == Some(false)).count();
    let (run, seen) = crawl("prices", 10, select, reply);
    assert!(run.summary.missing().is_empty(), "it has no other end");
    assert!(seen.len() > 30, "{}", seen.len());
    assert_eq!(changes(&seen), 1);
    let (_, seen) = crawl("bytes", 10, |_| (), reply);
    assert_eq!(changes(&seen), seen.len() - 1, "each has other bytes");
}

#[test]
fn a_page_that_leads_to_new_pages_is_visited_more_often_than_one_that_does_not() {
    let reply = |call: &Call<'_>| {
        let links = |what: &str, pages: u64| {
            (0..pages)
                .map(|n| format!("<a href=/{what}/{n}>x</a>"))
                .collect::<String>()
        };
        Ok(match call.path() {
            "/" => scripted::page(links("front", 2) + &links("still", 8)),
            "/front/0" | "/front/1" => {
                scripted::page("<h1>News</h1>".to_owned() + &links("article", call.at.as_secs() / 7200))
            }
            _ if call.request.kind != ResourceKind::Page => scripted::status(404),
            path => scripted::page(format!("<p>page {path}</p>")),
        })
    };
    let scarce = |options: &mut CrawlOptions| {
        options.frontier.freshness.revisits_per_second = Some(1.0 / 900.0);
        // Those stay the same.
        options.reports.fields = vec!["title=h1".parse().unwrap()];
    };
    let (run, _) = crawl("front", 24, scarce, reply);
    let [front, still] = ["/front/", "/still/"].map(|prefix| {
        let asked = run
            .requests
            .iter()
            .filter(|one| one.path.starts_with(prefix) && one.at > HOUR * 8);
        asked.count()
    });
    // Two pages beside eight.
    assert!(front > 2 * still / 4, "{front} {still}");
    assert!(hours_of(&run, "/article/5").first().is_some_and(|hour| *hour < 16.0));
}
