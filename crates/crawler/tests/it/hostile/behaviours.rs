//! The table of hostile behaviours, each with its expected result.

use std::time::Duration;

use crawler::{CrawlOptions, FailureKind, TruncationReason};

use crate::scripted::everywhere;

use super::codings::{BROTLI_BOMB, GZIP_BOMB, NESTED_BOMB, ZSTD_BOMB, gzip};
use super::pages;
use super::server::{ReceivedRequest, Script, Then, html, page, redirect};

/// The maximum size of a body in these tests, in bytes.
pub(crate) const MAX_BODY: u64 = 1 << 20;
/// The pause between the pieces of a slow answer.
const SLOW: Duration = Duration::from_millis(50);

/// The expected result of a crawl of the first page of a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ends {
    /// A page of this status, whole.
    Page(u16),
    /// A page of this status with a truncated body.
    TruncationReason(u16, TruncationReason),
    /// A page whose body was skipped.
    Skipped(u16),
    /// No page; the last failure is of this kind.
    Fails(FailureKind),
    /// A page after failures of this kind, with the bytes that arrived.
    KeptAfter(FailureKind, u16, TruncationReason),
    /// A page that throttles in all attempts, after failures of this kind.
    GivesUp(FailureKind, u16),
    /// Neither page nor failure: a redirect to a URL that is forbidden or seen.
    Leaves,
    /// This number of redirects to seen URLs, each of which is reported as failed.
    Loops(u64),
}

impl Ends {
    pub(crate) fn takes_all_the_time(self) -> bool {
        matches!(
            self,
            Self::Fails(FailureKind::Timeout) | Self::KeptAfter(_, _, TruncationReason::Time)
        )
    }
}

/// The number of requests for a page that is never answered: two attempts.
pub(crate) const REQUESTS_IF_SILENT: usize = 2;

/// One row of the table.
pub(crate) struct Behaviour {
    /// The name of its host.
    pub(crate) name: &'static str,
    pub(crate) does: &'static str,
    pub(crate) ends: Ends,
    /// The maximum number of requests.
    pub(crate) requests: usize,
}

const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";

fn endless(head: &str, piece: impl Into<Vec<u8>>) -> Script {
    Script::say(head).for_ever(piece, Duration::ZERO)
}

fn coded(coding: &str, body: &[u8]) -> Script {
    Script::say(page(
        "200 OK",
        &format!("Content-Type: text/html\r\nContent-Encoding: {coding}\r\n"),
        body,
    ))
}

fn busy(retry_after: &str) -> Script {
    Script::say(page("503 Busy", &format!("Retry-After: {retry_after}\r\n"), ""))
}

/// An endless gzip file of empty stored blocks (RFC 1951, section 3.2.4).
fn endless_empty_blocks() -> Script {
    let head = format!("{HTML}Content-Encoding: gzip\r\n\r\n");
    let gzip_head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    Script::say([head.as_bytes(), &gzip_head].concat()).for_ever([0, 0, 0, 0xff, 0xff].repeat(10_000), Duration::ZERO)
}

/// Returns options with the limits that end a crawl of such a host.
pub(crate) fn limits(seed: &str) -> CrawlOptions {
    let mut options = everywhere(seed);
    options.frontier.limits.max_pages_per_host = Some(50);
    options.frontier.scope.max_depth = Some(6);
    options
}

/// Returns all behaviours. Each has a host of its own.
pub(crate) fn table() -> Vec<Behaviour> {
    use Ends::{Fails, GivesUp, KeptAfter, Leaves, Loops, Page, Skipped};
    let cut = Ends::TruncationReason;
    let broken = Fails(FailureKind::Broken);
    let malformed = Fails(FailureKind::Malformed);
    let timeout = Fails(FailureKind::Timeout);
    let too_large = Fails(FailureKind::HeadTooLarge);
    let broke_off = KeptAfter(FailureKind::Incomplete, 200, TruncationReason::Connection);
    let mut table = Vec::new();
    let mut add = |ends, requests, hosts: &[(&'static str, &'static str)]| {
        table.extend(hosts.iter().map(|&(name, does)| Behaviour {
            name,
            does,
            ends,
            requests,
        }));
    };
    add(
        timeout,
        2,
        &[
            ("silent", "takes the request and never answers"),
            ("half-a-head", "stops in the middle of the head"),
            ("slow-head", "sends the head byte by byte"),
            ("continues-for-ever", "sends only 100 Continue, for ever"),
        ],
    );
    add(
        broken,
        2,
        &[
            ("closes", "closes without an answer"),
            ("resets", "resets the connection"),
            ("cut-head", "closes in the middle of the head"),
        ],
    );
    add(Page(999), 1, &[("unknown-status", "has an unknown status")]);
    add(
        Page(200),
        1,
        &[
            ("long-reason", "has a reason phrase of 64 KiB"),
            ("bare-lf", "ends lines with LF only"),
            ("cookie-flood", "sets 150 cookies of a kilobyte"),
            ("no-colon", "has a header without a colon"),
            ("folded", "folds a header over two lines"),
            ("continues", "sends 100 Continue a thousand times before its answer"),
            ("early-hints", "sends 103 Early Hints first"),
            ("too-long", "sends more than it declares"),
            ("length-and-chunks", "declares a length and sends chunks"),
            ("crumbs", "sends 20 000 chunks of a byte"),
            ("film-as-page", "sends noise as a page"),
        ],
    );
    add(
        Page(200),
        2,
        &[
            ("content-location", "has the Content-Location of another host"),
            ("no-type", "has no Content-Type"),
            ("odd-type", "has an invalid Content-Type"),
            ("gzip-and-more", "sends other bytes after its gzip"),
            ("own-coding", "uses an unknown coding"),
            ("refreshes", "sends a Refresh header"),
            ("megabyte-url", "links to a URL of a megabyte"),
            ("open-end", "opens a comment, a tag and a quote, and ends nothing"),
            ("credentials", "has a link with a password"),
        ],
    );
    add(
        Page(200),
        3,
        &[
            ("deep-nesting", "nests 100 000 elements"),
            ("attribute-flood", "has a tag with 100 000 attributes"),
        ],
    );
    add(
        Page(200),
        20,
        &[("repeats-path", "has a relative link that repeats its path")],
    );
    add(Page(200), 60, &[("calendar", "has a next day on every page")]);
    add(Page(200), 300, &[("subdomains", "has a new host behind every link")]);
    add(
        too_large,
        1,
        &[
            ("header-crowd", "sends 10 000 headers"),
            ("header-giant", "sends a header of a megabyte"),
            ("header-large", "sends headers of 300 KiB, which HTTP could read"),
            ("header-stream", "never stops sending headers"),
        ],
    );
    add(
        malformed,
        1,
        &[
            ("ssh", "answers in another protocol"),
            ("icecast", "answers as a radio station does"),
            ("http09", "sends a page without a head"),
            ("http2-unasked", "answers in HTTP/2"),
            ("nul-header", "has a NUL in a header"),
            ("two-lengths", "declares two lengths"),
            ("negative", "declares a negative length"),
            ("astronomic", "declares a length beyond 64 bits"),
        ],
    );
    add(
        Fails(FailureKind::Other),
        REQUESTS_IF_SILENT,
        &[
            ("switches", "switches protocols without a request"),
            ("not-modified", "sends 304 with a body to an unconditional request"),
        ],
    );
    add(Page(204), 1, &[("no-content", "sends a body with 204")]);
    add(
        broke_off,
        2,
        &[
            ("announces-much", "declares an exabyte and sends two bytes"),
            ("too-short", "sends less than it declares"),
            ("chunk-lies", "declares a chunk of 4 GiB and sends two bytes"),
            ("chunk-overflow", "declares a chunk size beyond 64 bits"),
            ("chunk-nonsense", "has a chunk size that is not a number"),
            ("chunk-extension", "never ends the extension of a chunk"),
            ("trailer-flood", "never stops sending trailers"),
            ("resets-body", "resets the connection in the middle of a page"),
        ],
    );
    add(
        cut(200, TruncationReason::Size),
        1,
        &[
            ("endless", "never stops sending a page"),
            ("endless-chunks", "never stops sending chunks"),
            ("gzip-bomb", "sends a gzip bomb"),
            ("brotli-bomb", "sends 64 MiB in 106 bytes"),
            ("zstd-bomb", "sends a zstd bomb"),
            ("nested-bomb", "sends a gzip bomb in a gzip bomb"),
            ("endless-nothing", "sends an endless gzip of empty blocks"),
        ],
    );
    add(
        cut(200, TruncationReason::Size),
        60,
        &[("million-links", "has more links on a page than there are pages")],
    );
    add(
        cut(404, TruncationReason::Size),
        1,
        &[("endless-error", "never stops sending an error page")],
    );
    add(
        KeptAfter(FailureKind::Incomplete, 200, TruncationReason::Time),
        2,
        &[
            ("drips", "sends a page in small pieces with pauses"),
            ("stalls", "stops in the middle of a page"),
        ],
    );
    add(Skipped(200), 1, &[("film", "sends an endless film")]);
    add(
        cut(200, TruncationReason::Coding),
        1,
        &[
            ("three-layers", "compresses its page three times"),
            ("many-layers", "declares a thousand codings"),
            ("not-gzip", "declares gzip and sends plain text"),
            ("not-brotli", "declares br and sends random bytes"),
        ],
    );
    add(
        cut(200, TruncationReason::Coding),
        2,
        &[("half-a-gzip", "sends the first half of a gzip")],
    );
    add(Loops(1), 20, &[("loop", "redirects to itself")]);
    add(Loops(2), 20, &[("two-loop", "redirects between two URLs")]);
    add(Leaves, 1, &[("huge-location", "redirects to a URL of 100 KB")]);
    add(
        Leaves,
        2,
        &[
            ("to-bytes", "redirects to bytes that are not UTF-8"),
            ("logs-in", "redirects to a URL with a password"),
        ],
    );
    add(Leaves, 20, &[("chain", "redirects for ever")]);
    add(Page(302), 1, &[("no-location", "redirects without a Location")]);
    add(
        Fails(FailureKind::Redirect),
        1,
        &[
            ("to-a-file", "redirects to a file"),
            ("to-a-script", "redirects to a script"),
            ("to-nonsense", "redirects to an invalid URL"),
        ],
    );
    add(
        GivesUp(FailureKind::Throttled, 503),
        2,
        &[
            ("busy-for-ever", "is always busy"),
            ("busy-for-years", "is busy for a century"),
            ("busy-until", "is busy until a date of the past"),
        ],
    );
    add(
        GivesUp(FailureKind::Status, 503),
        2,
        &[("busy-nonsense", "is busy until nonsense")],
    );
    add(
        GivesUp(FailureKind::Throttled, 429),
        2,
        &[("throttles", "always says that we ask too much")],
    );
    table
}

/// Returns the answer of the behaviour with the name of the host.
pub(crate) fn play(request: &ReceivedRequest) -> Script {
    match request.name() {
        _ if request.target == "/robots.txt" => Script::say(page("404 Not Found", "", "")),
        // Connections.
        "silent" => Script::say("").then(Then::Hold),
        "closes" => Script::say(""),
        "resets" => Script::say("").then(Then::Reset),
        "half-a-head" => Script::say(HTML).then(Then::Hold),
        "cut-head" => Script::say(HTML),
        "slow-head" => Script::say("HTTP/1.1 200 OK\r\nX: ").for_ever("x", SLOW),
        // Answers that are not HTTP.
        "ssh" => Script::say("SSH-2.0-OpenSSH_9.6\r\n"),
        "icecast" => Script::say("ICY 200 OK\r\nContent-Type: text/html\r\n\r\nok"),
        "http09" => Script::say("<a href=/>a page</a>"),
        "http2-unasked" => Script::say(b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64".as_slice()),
        "unknown-status" => Script::say(page("999 Go Away", "", "")),
        "long-reason" => Script::say(page(&format!("200 {}", "x".repeat(65_536)), "", "")),
        "bare-lf" => Script::say("HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 2\n\nok"),
        // Headers.
        "header-crowd" => Script::say(format!("{HTML}{}\r\n", "X: y\r\n".repeat(10_000))),
        "header-giant" => Script::say(format!("{HTML}X: {}\r\n\r\n", "y".repeat(1 << 20))),
        "header-large" => Script::say(page("200 OK", &format!("X: {}\r\n", "y".repeat(300 << 10)), "")),
        "header-stream" => endless(HTML, "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"),
        "cookie-flood" => Script::say(page(
            "200 OK",
            &format!("Set-Cookie: a={}\r\n", "b".repeat(1000)).repeat(150),
            "",
        )),
        "nul-header" => Script::say(page("200 OK", "X: a\0b\r\nContent-Type: text/html\r\n", "ok")),
        "no-colon" => Script::say(page("200 OK", "what is this\r\nContent-Type: text/html\r\n", "ok")),
        "folded" => Script::say(page("200 OK", "X: a\r\n b\r\nContent-Type : text/html\r\n", "ok")),
        "content-location" => Script::say(page(
            "200 OK",
            "Content-Type: text/html\r\nContent-Location: /elsewhere/\r\n",
            "<a href=link>",
        )),
        // Interim answers, and answers without a body.
        "continues" => Script::say(["HTTP/1.1 100 Continue\r\n\r\n".repeat(1000).into_bytes(), html("ok")].concat()),
        "continues-for-ever" => Script::say("").for_ever("HTTP/1.1 100 Continue\r\n\r\n".repeat(1000), SLOW),
        "early-hints" => Script::say([b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec(), html("ok")].concat()),
        "switches" => Script::say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
            .then(Then::Hold),
        "no-content" => Script::say(page("204 No Content", "Content-Type: text/html\r\n", "body")),
        "not-modified" => Script::say(page("304 Not Modified", "Content-Type: text/html\r\n", "body")),
        // Lengths.
        "two-lengths" => Script::say(format!("{HTML}Content-Length: 2\r\nContent-Length: 20\r\n\r\nok")),
        "negative" => Script::say(format!("{HTML}Content-Length: -1\r\n\r\nok")),
        "astronomic" => Script::say(format!("{HTML}Content-Length: 99999999999999999999999\r\n\r\nok")),
        "announces-much" => Script::say(format!("{HTML}Content-Length: 1152921504606846976\r\n\r\nok")),
        "too-short" => Script::say(format!("{HTML}Content-Length: 100\r\n\r\nok")),
        "too-long" => Script::say(format!(
            "{HTML}Content-Length: 2\r\n\r\nok{}",
            "HTTP/1.1 200 OK\r\n\r\n".repeat(99)
        )),
        "length-and-chunks" => Script::say(format!(
            "{HTML}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nokok\r\n0\r\n\r\n"
        )),
        "chunk-lies" => Script::say(format!("{CHUNKED}FFFFFFFF\r\nok")),
        "chunk-overflow" => Script::say(format!("{CHUNKED}FFFFFFFFFFFFFFFFF\r\nok")),
        "chunk-nonsense" => Script::say(format!("{CHUNKED}2\r\nok\r\nxyz\r\n")),
        "chunk-extension" => endless(&format!("{CHUNKED}2;"), "xxxxxxxxxxxxxxxx"),
        "trailer-flood" => endless(&format!("{CHUNKED}2\r\nok\r\n0\r\n"), "X: y\r\n"),
        "crumbs" => Script::say(format!("{CHUNKED}{}0\r\n\r\n", "1\r\nx\r\n".repeat(20_000))),
        // Endless bodies.
        "endless" => endless(&format!("{HTML}\r\n"), "<p>more</p>".repeat(1000)),
        "endless-error" => endless("HTTP/1.1 404 Not Found\r\n\r\n", "<p>more</p>".repeat(1000)),
        "endless-chunks" => endless(CHUNKED, format!("1000\r\n{}\r\n", "<p>more</p> <p>x".repeat(256))),
        "drips" => Script::say(format!("{HTML}\r\n")).for_ever("<", SLOW),
        "stalls" => Script::say(format!("{HTML}Content-Length: 99\r\n\r\n<a href=/")).then(Then::Hold),
        "resets-body" => Script::say(format!("{HTML}Content-Length: 9\r\n\r\n")).then(Then::Reset),
        "film" => endless("HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n", [0; 9999]),
        "film-as-page" => pages::noise(request),
        "no-type" => Script::say(page("200 OK", "", "<a href=/next>")),
        "odd-type" => Script::say(page("200 OK", "Content-Type: \u{e9}\u{e9};;;=\r\n", "<a href=/next>")),
        // Codings.
        "gzip-bomb" => coded("gzip", &GZIP_BOMB),
        "brotli-bomb" => coded("br", &BROTLI_BOMB),
        "zstd-bomb" => coded("zstd", &ZSTD_BOMB),
        "nested-bomb" => coded("gzip, gzip", &NESTED_BOMB),
        "three-layers" => coded("gzip, gzip, gzip", &gzip(&gzip(&gzip(b"ok")))),
        "many-layers" => coded(&"gzip, ".repeat(1000), b"ok"),
        "not-gzip" => coded("gzip", b"<a href=/next>"),
        "not-brotli" => coded("br", &[0xa5; 5000]),
        "half-a-gzip" => coded("gzip", &gzip("<a href=/next>next</a>".repeat(99).as_bytes())[..40]),
        "gzip-and-more" => coded("gzip", &[gzip(b"<a href=/next>"), vec![0; 9]].concat()),
        "own-coding" => coded("rot13", b"<a href=/next>"),
        "endless-nothing" => endless_empty_blocks(),
        // Redirects.
        "loop" => Script::say(redirect("/")),
        "two-loop" => Script::say(redirect(if request.target == "/" { "/there" } else { "/" })),
        "chain" => Script::say(redirect(&format!("{}x", request.target))),
        "huge-location" => Script::say(redirect(&format!("/{}", "x".repeat(100_000)))),
        "no-location" => Script::say(page("302 Found", "", "")),
        "to-a-file" => Script::say(redirect("file:///etc/passwd")),
        "to-a-script" => Script::say(redirect("javascript:alert(1)")),
        "to-nonsense" => Script::say(redirect("http://[::1")),
        "to-bytes" => Script::say(if request.target == "/" {
            page("302 Found", "Location: /\u{ff}\u{fe}\r\n", "")
        } else {
            html("ok")
        }),
        "logs-in" => Script::say(if request.target == "/" {
            redirect(&format!("http://user:secret@{}/in", request.host))
        } else {
            html("ok")
        }),
        "refreshes" => Script::say(page(
            "200 OK",
            "Content-Type: text/html\r\nRefresh: 0; url=/next\r\n",
            "ok",
        )),
        // Throttling.
        "busy-for-ever" => busy("0"),
        "busy-for-years" => busy("3153600000"),
        "busy-until" => busy("Thu, 01 Jan 1970 00:00:00 GMT"),
        "busy-nonsense" => busy("\u{fc}ber morgen"),
        "throttles" => Script::say(page("429 Too Many", "Retry-After: 0\r\n", "")),
        // Pages.
        "million-links" => pages::a_million_links(request),
        "megabyte-url" => pages::a_url_of_a_megabyte(request),
        "deep-nesting" => pages::deep_nesting(request),
        "attribute-flood" => pages::an_attribute_flood(request),
        "open-end" => pages::an_open_end(request),
        "subdomains" => pages::infinite_subdomains(request),
        "calendar" => pages::a_calendar(request),
        "repeats-path" => pages::a_repeating_path(request),
        "credentials" => pages::credentials_in_a_link(request),
        _ => Script::say(page("404 Not Found", "", "no such behaviour")),
    }
}
