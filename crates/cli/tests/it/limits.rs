//! What a limit takes away is missing: the summary, its JSON form, the log and the exit code say so alike.

use crate::program::{crawler, folder, lines, one_line};
use crate::servers::{answer, path_in, server_of};

/// Returns links to this many URLs, which have a number.
fn links(count: usize, url: &str) -> String {
    let link = |n: usize| format!("<a href={}>x</a>", url.replace("{n}", &n.to_string()));
    (0..count).map(link).collect()
}

/// A site that bites on each limit, which only the options of a case make low.
fn site(head: &str) -> String {
    // Through a proxy, a whole URL is asked for.
    let path = path_in(head).trim_start_matches("http://");
    let (host, path) = path.split_at(path.find('/').unwrap_or_default());
    let moved = |to: &str| answer(&format!("302 Found\r\nLocation: {to}"), "");
    let listed: String = (0..5).map(|n| format!("<url><loc>/listed/{n}</loc></url>")).collect();
    let urlset = format!("<?xml version='1.0'?><urlset>{listed}</urlset>");
    match path.split(|c: char| c.is_ascii_digit()).next().unwrap_or_default() {
        "/robots.txt" => answer("200 OK", "User-agent: *\nSitemap: /a.xml\nSitemap: /b.xml\n"),
        "/a.xml" | "/b.xml" => answer("200 OK", &urlset),
        "/thread?t=" => {
            let n: u32 = path["/thread?t=".len()..].parse().unwrap_or_default();
            answer("200 OK", &format!("<a href=/thread?t={}>x</a>", n + 1))
        }
        "/many" => answer("200 OK", &links(7, "/page/{n}")),
        "/alike" => answer("200 OK", &links(300, "/product/{n}")),
        "/product/" => answer("200 OK", &"one two three four five six seven eight nine ten ".repeat(3)),
        "/long" => answer("200 OK", &" ".repeat(5000)),
        "/redirects" => answer("200 OK", "<a href=/moved>x</a>"),
        "/moved" => moved("/moved-again"),
        "/moved-again" => moved("/target"),
        "/longer-than-others" => answer("200 OK", &format!("<a href=/{}>x</a>", "l".repeat(100))),
        "/hosts" => answer("200 OK", &links(5, "http://w{n}.a.example/")),
        _ if host.starts_with('w') => answer("200 OK", ""),
        _ => answer("200 OK", "a page"),
    }
}

/// The seed, the options, and what is missing.
const CASES: &str = "\
/thread?t=0 | --set max-queries-per-path=2 | too many queries of one path: 1 link refused (raise --set max-queries-per-path)
/many | --set max-links-per-page=3 | too many links on a page: 4 links cut off (raise --set max-links-per-page)
/alike | --set max-near-duplicates-in-all=9 --set hash-seed=7 | pages not fetched (raise --set max-near-duplicates-in-all)
/hosts | --set max-hosts-per-site=3 | too many hosts of one site: 3 links refused (raise --set max-hosts-per-site)
/many | --set max-select-values=3 --select x=a -o /dev/null | selected fields too long: 4 values cut off (raise --set max-select-values or max-select-bytes)
/many | --max-pages-per-host 3 | page budget of the host spent: 5 pages not fetched (raise --max-pages-per-host, or max-pages of the host)
/long | --max-body 1KiB | body too long: 1 page cut off (raise --max-body)
/ | --sitemaps --set max-sitemap-urls=2 | too many URLs in a sitemap: 6 URLs cut off (raise --set max-sitemap-urls)
/ | --sitemaps --set max-sitemap-bytes=100 | sitemap too long or broken: 2 sitemaps cut off (if too long, raise --set max-sitemap-bytes)
/ | --sitemaps --set max-sitemaps=1 | too many sitemaps: 1 link refused (raise --set max-sitemaps)
/redirects | --set max-redirects=1 | too many redirects: 1 link refused (raise --set max-redirects)
/longer-than-others | --set max-url-bytes=60 | URL too long: 1 link refused (raise --set max-url-bytes)
/many | --set max-queued=4 | queue full: 3 links refused (raise --set max-queued)
/hosts | --set max-hosts=4 | too many hosts: 2 links refused (raise --set max-hosts)";

#[test]
fn what_each_limit_takes_away_is_in_summary_json_log_and_exit_code_alike() {
    let seed = server_of(site);
    let proxy = format!("--proxy {} --scope site", seed.trim_end_matches('/'));
    let (folder, mut wrong) = (folder("limits"), Vec::new());
    for (at, case) in CASES.lines().enumerate() {
        let [path, limit, expected] = case.split(" | ").collect::<Vec<_>>().try_into().unwrap();
        let (seed, through) = match path {
            "/hosts" => ("http://a.example/hosts".to_owned(), proxy.as_str()),
            path => (format!("{}{path}", seed.trim_end_matches('/')), ""),
        };
        let crawl = format!("-q --delay 0 --exact {through} {limit} --fail-on-incomplete {seed}");
        let run = |options: &str| {
            let output = crawler(&format!("{options} {crawl}"));
            let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
            assert_eq!(output.status.code(), Some(3), "{limit}: {stdout}{stderr}");
            (stdout, stderr)
        };
        let (summary, _) = run("");
        if !(summary.contains("INCOMPLETE") && one_line(&summary).contains(expected)) {
            wrong.push(format!("{limit}: {summary}"));
            continue;
        }
        // A directory does not offer it again.
        if !limit.contains("/dev/null") {
            let (summary, _) = run(&format!("--state {}", folder.path(&at.to_string())));
            let anew = expected.replace(')', ", in a new directory)");
            assert!(one_line(&summary).contains(&anew), "{limit}: {summary}");
        }
        let records = lines(&run("--log-format json").1);
        let of_target = |target: &str| {
            records
                .iter()
                .filter(|record| record["target"] == target)
                .collect::<Vec<_>>()
        };
        let end = of_target("crawler::summary")[0];
        let is_named = |missing: &serde_json::Value| missing.as_str().unwrap().contains(expected);
        assert_eq!(end["complete"], false, "{limit}: {end}");
        assert!(
            end["missing"].as_array().unwrap().iter().any(is_named),
            "{limit}: {end}"
        );
        let warned = of_target("crawler::loss");
        let is_warning = |record: &&&serde_json::Value| record["level"] == "WARN" && is_named(&record["message"]);
        assert_eq!(warned.iter().filter(is_warning).count(), 1, "{limit}: {warned:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
