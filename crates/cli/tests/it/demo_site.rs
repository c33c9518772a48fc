//! The demo site: a crawler finds over HTTP exactly the pages that the tables list.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crawler_cli::demo::{DemoServer, serve};
use robotxt::Robots;
use scraper::{ElementRef, Html, Selector};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

const USUAL_LIMIT: usize = 5;

/// A parsed HTTP answer.
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

async fn get(server: &DemoServer, url: &Url) -> Answer {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: naive\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&answer[..end]).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let fields = head.lines().skip(1).map(|line| line.split_once(": ").unwrap());
    let headers = fields
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    Answer {
        status,
        headers,
        body: answer[end + 4..].to_vec(),
    }
}

/// A small crawler that does not use the demo's tables: it reads the HTML, robots.txt and the status line.
struct SmallCrawler<'a> {
    server: &'a DemoServer,
    robots: HashMap<String, Robots>,
    limit: usize,
}

impl SmallCrawler<'_> {
    /// Crawls the site, and returns every URL that answered 200.
    async fn visit(&mut self) -> BTreeSet<String> {
        let seed = self.server.site().seed();
        let mut seen = BTreeSet::from([seed.clone()]);
        let mut to_visit = vec![seed];
        let mut found = BTreeSet::new();
        while let Some(url) = to_visit.pop() {
            if !self.is_allowed(&url).await {
                continue;
            }
            let mut answer = get(self.server, &url).await;
            if answer.status == 503 {
                answer = get(self.server, &url).await;
            }
            if answer.status == 200 {
                found.insert(url.to_string());
            }
            let links = links(&url, &answer).into_iter().filter(|link| self.is_in_scope(link));
            to_visit.extend(links.filter(|link| seen.insert(link.clone())));
        }
        found
    }

    async fn is_allowed(&mut self, url: &Url) -> bool {
        let host = url.host_str().unwrap().to_owned();
        if !self.robots.contains_key(&host) {
            let mut answer = get(self.server, &url.join("/robots.txt").unwrap()).await;
            if let Some(location) = answer.headers.get("location") {
                answer = get(self.server, &url.join(location).unwrap()).await;
            }
            let text = if answer.status == 200 { answer.body } else { Vec::new() };
            self.robots.insert(host.clone(), Robots::parse(&text, "naive"));
        }
        self.robots[&host].is_url_allowed(url)
    }

    fn is_in_scope(&self, url: &Url) -> bool {
        let segments: Vec<_> = url
            .path_segments()
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        let repeats_few_segments = segments
            .iter()
            .all(|part| segments.iter().filter(|other| *other == part).count() <= self.limit);
        repeats_few_segments
            && url.scheme() == "http"
            && url.host_str().is_some_and(|host| host.ends_with(".demo.localhost"))
    }
}

/// Returns the links of an answer.
fn links(url: &Url, answer: &Answer) -> Vec<Url> {
    let content_type = answer.headers.get("content-type").map_or("", String::as_str);
    let mut written: Vec<String> = answer.headers.get("location").cloned().into_iter().collect();
    let mut base = url.clone();
    if answer.status == 200 && content_type.starts_with("text/html") {
        let declared = content_type
            .split_once("charset=")
            .map_or("windows-1252", |(_, charset)| charset);
        let charset = encoding_rs::Encoding::for_label(declared.as_bytes()).unwrap();
        let html = Html::parse_document(&charset.decode(&answer.body).0);
        if select(&html, "meta[name=robots][content=nofollow]").is_empty() {
            if let Some(declared) = select(&html, "base[href]").first() {
                base = url.join(declared.attr("href").unwrap()).unwrap();
            }
            written.extend(hrefs(&html));
        }
    }
    let resolved = written.iter().filter_map(|link| base.join(link).ok());
    resolved
        .map(|mut link| {
            link.set_fragment(None);
            link
        })
        .collect()
}

fn select<'a>(html: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    html.select(&Selector::parse(selector).unwrap()).collect()
}

fn hrefs(html: &Html) -> Vec<String> {
    let followed = |element: &ElementRef<'_>| {
        let rel = element.attr("rel").unwrap_or_default().to_lowercase();
        let templated = element
            .ancestors()
            .filter_map(ElementRef::wrap)
            .any(|above| above.value().name() == "template");
        !templated && !rel.split_whitespace().any(|token| token == "nofollow")
    };
    let carriers = select(
        html,
        "a[href], area[href], link[rel=next][href], iframe[src], frame[src]",
    );
    let carried = carriers
        .into_iter()
        .filter(followed)
        .filter_map(|element| element.attr("href").or(element.attr("src")));
    let refreshes = select(html, "meta[http-equiv=refresh]");
    let moved = refreshes
        .iter()
        .filter_map(|element| element.attr("content")?.split_once("url=").map(|(_, url)| url));
    carried.chain(moved).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_crawler_that_reads_the_html_finds_exactly_the_reachable_pages() {
    let server = serve().await.unwrap();
    for limit in [USUAL_LIMIT, 2] {
        let found = SmallCrawler {
            server: &server,
            robots: HashMap::new(),
            limit,
        }
        .visit()
        .await;
        let promised = server.site().reachable(limit);
        assert_eq!(
            found.difference(&promised).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "found, but not listed as reachable"
        );
        assert_eq!(
            promised.difference(&found).collect::<Vec<_>>(),
            Vec::<&String>::new(),
            "listed as reachable, but not found"
        );
    }
}

#[tokio::test]
async fn every_reachable_page_answers_200_and_one_answers_503_first() {
    let server = serve().await.unwrap();
    let reachable = server.site().reachable(USUAL_LIMIT);
    assert!((250..=450).contains(&reachable.len()), "{} pages", reachable.len());
    let mut unavailable = Vec::new();
    for url in &reachable {
        let parsed = Url::parse(url).unwrap();
        assert_eq!(parsed.as_str(), url, "not in canonical form");
        let mut answer = get(&server, &parsed).await;
        if answer.status == 503 {
            assert_eq!(answer.headers["retry-after"], "0");
            unavailable.push(url.as_str());
            answer = get(&server, &parsed).await;
        }
        assert_eq!(answer.status, 200, "{url}");
        assert!(!answer.body.is_empty(), "{url}");
    }
    assert_eq!(
        unavailable,
        [server.site().seed().join("/lab/unavailable-once").unwrap().as_str()]
    );
}

#[tokio::test]
async fn pages_that_a_polite_crawler_must_not_fetch_are_not_reachable() {
    let server = serve().await.unwrap();
    let reachable = server.site().reachable(USUAL_LIMIT);
    for part in [
        "/lab/hidden/",
        "/calendar/",
        "/private/ledger",
        "private.demo",
        "/drafts/",
        "/old/ping",
        "robots",
    ] {
        assert!(!reachable.iter().any(|url| url.contains(part)), "{part}");
    }
    assert!(reachable.iter().any(|url| url.ends_with("/private/open.html")));
}

#[tokio::test]
async fn the_path_trap_is_as_deep_as_the_limit_and_the_calendar_never_ends() {
    let server = serve().await.unwrap();
    let site = server.site();
    assert_eq!(site.reachable(7).len(), site.reachable(5).len() + 2);
    assert!(site.reachable(usize::MAX).len() < 1_000);
    let last_week = site.seed().join("/calendar/4294967295").unwrap();
    assert_eq!(get(&server, &last_week).await.status, 200);
}

/// Follows redirects to another answer, or to a URL that was requested before.
async fn path_of_redirects(server: &DemoServer, start: &str) -> Vec<(u16, String)> {
    let mut url = server.site().seed().join(start).unwrap();
    let mut path: Vec<(u16, String)> = Vec::new();
    loop {
        let answer = get(server, &url).await;
        let step = (
            answer.status,
            url.to_string().replace(&format!(":{}", server.address().port()), ""),
        );
        if path.contains(&step) {
            return path;
        }
        path.push(step);
        match answer.headers.get("location") {
            Some(location) => url = url.join(location).unwrap(),
            None => return path,
        }
    }
}

#[tokio::test]
async fn the_redirect_chain_ends_and_the_redirect_loop_does_not() {
    let server = serve().await.unwrap();
    let statuses = |path: &[(u16, String)]| path.iter().map(|(status, _)| *status).collect::<Vec<_>>();

    let chain = path_of_redirects(&server, "/old/one").await;
    assert_eq!(statuses(&chain), [301, 302, 307, 200]);
    assert_eq!(chain[3].1, "http://www.demo.localhost/lab/found/after-redirects");
    let across = path_of_redirects(&server, "/old/handbook").await;
    assert_eq!(statuses(&across), [308, 200]);
    assert_eq!(across[1].1, "http://docs.demo.localhost/moved-here");
    assert_eq!(statuses(&path_of_redirects(&server, "/catalog").await), [301, 200]);
    assert_eq!(statuses(&path_of_redirects(&server, "/old/ping").await), [302, 302]);
}

#[tokio::test]
async fn every_host_has_its_own_robots_txt() {
    let server = serve().await.unwrap();
    let robots = |host: &str| {
        let mut url = server.site().seed().join("/robots.txt").unwrap();
        url.set_host(Some(host)).unwrap();
        url
    };
    let www = get(&server, &robots("www.demo.localhost")).await;
    let text = String::from_utf8(www.body).unwrap();
    assert!(text.contains("Crawl-delay: 0.02\n"), "{text}");
    let sitemap = text.lines().find_map(|line| line.strip_prefix("Sitemap: ")).unwrap();
    assert_eq!(get(&server, &robots("docs.demo.localhost")).await.status, 404);
    assert_eq!(
        get(&server, &robots("blog.demo.localhost")).await.headers["location"],
        robots_of_blog(&server)
    );
    assert!(
        get(&server, &robots("private.demo.localhost"))
            .await
            .body
            .ends_with(b"Disallow: /\n")
    );

    let sitemap = get(&server, &Url::parse(sitemap).unwrap()).await;
    let xml = String::from_utf8(sitemap.body).unwrap();
    let listed: BTreeSet<_> = xml
        .split("<loc>")
        .skip(1)
        .map(|rest| rest.split("</loc>").next().unwrap())
        .collect();
    let reachable = server.site().reachable(USUAL_LIMIT);
    assert!(listed.len() > 100);
    assert!(listed.iter().all(|url| reachable.contains(&url.replace("&amp;", "&"))));
}

fn robots_of_blog(server: &DemoServer) -> String {
    server.site().seed().join("/robots-blog.txt").unwrap().to_string()
}

#[tokio::test]
async fn the_huge_page_is_about_a_megabyte_and_the_index_has_some_1500_links() {
    let server = serve().await.unwrap();
    let seed = server.site().seed();
    let huge = get(&server, &seed.join("/lab/huge").unwrap()).await.body.len();
    assert!((900_000..1 << 20).contains(&huge), "{huge} bytes");
    let index = get(&server, &seed.join("/index-of-everything").unwrap()).await;
    let links = links(&seed, &index).len();
    assert!((1_400..1_700).contains(&links), "{links} links");
}

#[tokio::test]
async fn two_servers_write_the_same_pages_except_for_the_port() {
    let (one, other) = (serve().await.unwrap(), serve().await.unwrap());
    for path in ["/", "/lab/upper-case", "/catalog/lamps/", "/sitemap.xml"] {
        let text = |body: Vec<u8>, server: &DemoServer| {
            String::from_utf8(body)
                .unwrap()
                .replace(&server.address().port().to_string(), "PORT")
        };
        let first = text(get(&one, &one.site().seed().join(path).unwrap()).await.body, &one);
        let second = text(get(&other, &other.site().seed().join(path).unwrap()).await.body, &other);
        assert_eq!(first, second, "{path}");
    }
}

#[tokio::test]
async fn a_dropped_server_closes_its_connections_too() {
    let server = serve().await.unwrap();
    let mut idle = TcpStream::connect(server.address()).await.unwrap();
    let head = b"GET / HTTP/1.1\r\nHost: www.demo.localhost\r\n\r\n";
    idle.write_all(head).await.unwrap();
    idle.read_u8().await.unwrap();
    drop(server);
    let mut rest = Vec::new();
    // This ends when the server closes or resets the connection.
    let _ = idle.read_to_end(&mut rest).await;
    assert!(!rest.is_empty());
}
