//! The server of a crawl that runs: what it tells, to whom, and what it takes.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crawler::{Crawl, CrawlOptions, Ending, FetchError, Fetcher, Phase, Request, Response, StopHandle, Summary};
use crawler_watch::{Server, Watch};
use tokio::sync::Semaphore;

/// A site with one page that leads to another. Each request waits until the test lets it through.
#[derive(Clone)]
struct Held {
    gate: Arc<Semaphore>,
    asked: Arc<Semaphore>,
}

impl Fetcher for Held {
    async fn fetch(&self, _request: Request) -> Result<Response, FetchError> {
        self.asked.add_permits(1);
        self.gate.acquire().await.unwrap().forget();
        Ok(Response {
            status: 200,
            body: b"<title><script>alert(1)</script></title><a href=/next></a>".to_vec(),
            ..Response::default()
        })
    }
}

/// A crawl that is held, with its server.
struct Watched {
    gate: Arc<Semaphore>,
    handle: StopHandle,
    server: Server,
    crawl: Option<JoinHandle<Summary>>,
}

impl Watched {
    /// Starts, and waits for the first request.
    fn start() -> Self {
        let answered = |order: Vec<u8>| async move {
            let order = String::from_utf8(order).unwrap();
            if order == "bad" { Err(order) } else { Ok(order) }
        };
        let [gate, asked] = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
        let site = Held {
            gate: Arc::clone(&gate),
            asked: Arc::clone(&asked),
        };
        let mut options = CrawlOptions {
            seeds: vec!["http://a.example/".to_owned()],
            ..CrawlOptions::default()
        };
        options.frontier.politeness.ask_robots = false;
        options.frontier.politeness.delay = std::time::Duration::ZERO;
        let crawl = Crawl::builder(options).unwrap().build_with(site).unwrap();
        let handle = crawl.stop_handle();
        let (watch, recorder) = Watch::new(&crawl, None);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = Server::new(address, &watch, handle.clone(), str::to_owned, answered).unwrap();
        let crawl = crawl.observe(recorder);
        let crawl = thread::spawn(move || runtime().block_on(crawl.run()).unwrap());
        runtime().block_on(asked.acquire()).unwrap().forget();
        Self {
            gate,
            handle,
            server,
            crawl: Some(crawl),
        }
    }

    /// Sends a request, and returns the whole answer.
    fn ask(&self, method: &str, path: &str, headers: &str) -> String {
        let mut stream = self.connect(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n",
            self.server.address()
        ));
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.server.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Waits for the end of the crawl.
    fn end(&mut self) -> Summary {
        self.crawl.take().unwrap().join().unwrap()
    }

    fn order(&self, path: &str) -> String {
        self.ask(
            "POST",
            path,
            &format!("Authorization: Bearer {}\r\n", self.server.token()),
        )
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn each_path_has_its_methods_and_no_other_host_name_is_answered() {
    let watched = Watched::start();
    let by_name = |host: &str| {
        let mut stream = watched.connect(&format!("GET /status.json HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        status(&answer).to_owned()
    };
    for (method, path, expected) in [
        ("GET", "/metrics", "200"),
        ("HEAD", "/metrics", "200"),
        ("GET", "/status.json", "200"),
        ("GET", "/status.json?x=1", "200"),
        ("POST", "/metrics", "405"),
        ("GET", "/pause", "405"),
        ("GET", "/stop", "405"),
        ("GET", "/", "200"),
        ("GET", "/page.js", "200"),
        ("GET", "/page.css", "200"),
        ("GET", "/series.json", "200"),
        ("GET", "/healthz", "200"),
        ("POST", "/healthz", "405"),
        ("GET", "/favicon.ico", "404"),
        ("GET", "/../status.json", "404"),
    ] {
        assert_eq!(status(&watched.ask(method, path, "")), expected, "{method} {path}");
    }
    let metrics = watched.ask("GET", "/metrics", "");
    assert!(
        metrics.contains("\r\ncontent-type: text/plain; version=0.0.4"),
        "{metrics}"
    );
    assert!(metrics.contains("crawler_phase{phase=\"running\"} 1"), "{metrics}");
    let page = watched.ask("GET", "/", "");
    assert!(
        page.contains("script-src 'self'; style-src 'self'; connect-src 'self';"),
        "{page}"
    );
    // The policy lets nothing else run, and nothing else is there.
    for outside in ["<script>", "<style>", "onclick", "style=", "//"] {
        let (_, body) = page.split_once("\r\n\r\n").unwrap();
        assert!(!body.contains(outside), "{outside}: {body}");
    }
    let json = watched.ask("GET", "/status.json", "");
    assert!(json.contains("\r\ncontent-type: application/json\r\n"), "{json}");
    assert!(
        json.contains("\r\ncache-control: no-store\r\n") && json.contains("nosniff"),
        "{json}"
    );
    for (host, expected) in [
        ("localhost", "200"),
        ("[::1]:7", "200"),
        ("crawler.example", "403"),
        ("127.0.0.1.crawler.example:80", "403"),
    ] {
        assert_eq!(by_name(host), expected, "{host}");
    }
    watched.handle.now();
}

#[test]
fn an_order_is_answered_by_who_obeys_it_and_needs_the_token() {
    let watched = Watched::start();
    let order = |token: &str, body: &str| {
        let length = body.len();
        let head = format!("Authorization: Bearer {token}\r\nContent-Length: {length}\r\n");
        watched.ask("POST", "/order", &format!("{head}\r\n{body}"))
    };
    let token = watched.server.token();
    let obeyed = order(token, "{\"pause\":null}");
    assert!(
        status(&obeyed) == "200" && obeyed.ends_with("\r\n\r\n{\"pause\":null}"),
        "{obeyed}"
    );
    assert_eq!(status(&order(token, "bad")), "400");
    assert_eq!(status(&order("0123", "good")), "403");
    assert_eq!(status(&watched.ask("GET", "/order", "")), "405");
}

#[test]
fn only_who_has_the_token_can_pause_resume_and_stop() {
    let mut watched = Watched::start();
    let token = watched.server.token().to_owned();
    for headers in [
        String::new(),
        "Authorization: Bearer \r\n".to_owned(),
        format!("Authorization: Bearer {}\r\n", token.to_uppercase() + "0"),
        format!("Authorization: Bearer {}\r\n", &token[1..]),
        format!("Authorization: Basic {token}\r\n"),
        format!("Cookie: token={token}\r\n"),
    ] {
        for path in ["/pause", "/stop"] {
            assert_eq!(status(&watched.ask("POST", path, &headers)), "403", "{path} {headers}");
        }
    }
    assert_eq!(watched.handle.phase(), Phase::Running);

    assert_eq!(status(&watched.order("/pause")), "204");
    watched.gate.add_permits(1);
    runtime().block_on(watched.handle.paused());
    assert_eq!(watched.handle.phase(), Phase::Paused);
    // The second page would pass now.
    watched.gate.add_permits(1);
    assert_eq!(status(&watched.order("/resume")), "204");
    let summary = watched.end();
    assert_eq!((summary.ending, summary.pages), (Ending::Drained, 2));

    let mut watched = Watched::start();
    assert_eq!(status(&watched.order("/stop")), "204");
    watched.gate.add_permits(1);
    let summary = watched.end();
    assert_eq!((summary.ending, summary.pages), (Ending::Stopped, 1));
}

#[test]
fn events_have_the_end_and_clients_that_never_read_delay_nothing() {
    let mut watched = Watched::start();
    let request = format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", watched.server.address());
    let mut reading = watched.connect(&request);
    let _hanging: Vec<_> = (0..40).map(|_| watched.connect(&request)).collect();
    let _silent: Vec<_> = (0..8).map(|_| watched.connect("GET /ev")).collect();
    // There is a place for an answer beside them.
    assert_eq!(status(&watched.ask("GET", "/status.json", "")), "200");
    watched.gate.add_permits(2);
    assert_eq!(watched.end().pages, 2);
    let mut events = String::new();
    reading.read_to_string(&mut events).unwrap();
    assert!(events.contains("\r\ncontent-type: text/event-stream\r\n"), "{events}");
    let last = events.rsplit("data: ").next().unwrap_or_default();
    assert!(
        last.contains("\"finished\":true") && last.contains("\"pages\":2"),
        "{last}"
    );
}

#[test]
fn connections_that_ask_for_nothing_keep_nobody_out() {
    let watched = Watched::start();
    // More than there are places, of which some have begun to ask.
    let mut silent: Vec<_> = (0..40).map(|_| watched.connect("")).collect();
    silent.extend((0..200).map(|_| watched.connect("GET /metrics HTTP/1.1\r\n")));
    for path in ["/metrics", "/healthz", "/"] {
        for _ in 0..20 {
            assert_eq!(status(&watched.ask("GET", path, "")), "200", "{path}");
        }
    }
    // One of the last of them still has its place.
    let last = silent.last_mut().unwrap();
    last.write_all(format!("Host: {}\r\n\r\n", watched.server.address()).as_bytes())
        .unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).unwrap();
    assert_eq!(status(&answer), "200");
    watched.handle.now();
}

#[test]
fn the_end_waits_for_who_asks_for_the_metrics_regularly() {
    let is_asked_again = [("never", 0), ("once", 1), ("regularly", 3)].map(|(name, times)| {
        let mut watched = Watched::start();
        let address = watched.server.address();
        let ask = || {
            let mut answer = String::new();
            let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n");
            let mut stream = TcpStream::connect(address).ok()?;
            stream.write_all(request.as_bytes()).ok()?;
            stream.read_to_string(&mut answer).ok()?;
            Some(answer)
        };
        for _ in 0..times {
            ask().unwrap();
        }
        watched.gate.add_permits(2);
        watched.end();
        runtime().block_on(async {
            let mut end = std::pin::pin!(watched.server.finish());
            tokio::select! {
                biased;
                () = &mut end => false,
                () = std::future::ready(()) => {
                    let answer = ask().unwrap();
                    assert!(answer.contains("crawler_finished"), "{name}: {answer}");
                    end.await;
                    true
                }
            }
        })
    });
    assert_eq!(is_asked_again, [false, false, true]);
}
