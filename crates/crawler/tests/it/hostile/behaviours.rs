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
    pub(crate) play: fn(&ReceivedRequest) -> Script,
    pub(crate) ends: Ends,
    /// The maximum number of requests.
    pub(crate) requests: usize,
}

const fn row(
    name: &'static str,
    does: &'static str,
    play: fn(&ReceivedRequest) -> Script,
    ends: Ends,
    requests: usize,
) -> Behaviour {
    Behaviour {
        name,
        does,
        play,
        ends,
        requests,
    }
}

const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";

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
    options.frontier.max_pages_per_host = Some(50);
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
    vec![
        // Connections.
        row(
            "silent",
            "takes the request and never answers",
            |_| Script::say("").then(Then::Hold),
            timeout,
            REQUESTS_IF_SILENT,
        ),
        row(
            "closes",
            "closes without an answer",
            |_| Script::say(""),
            broken,
            REQUESTS_IF_SILENT,
        ),
        row(
            "resets",
            "resets the connection",
            |_| Script::say("").then(Then::Reset),
            broken,
            REQUESTS_IF_SILENT,
        ),
        row(
            "half-a-head",
            "stops in the middle of the head",
            |_| Script::say(HTML).then(Then::Hold),
            timeout,
            REQUESTS_IF_SILENT,
        ),
        row(
            "cut-head",
            "closes in the middle of the head",
            |_| Script::say(HTML),
            broken,
            REQUESTS_IF_SILENT,
        ),
        row(
            "slow-head",
            "sends the head byte by byte",
            |_| Script::say("HTTP/1.1 200 OK\r\nX: ").for_ever("x", SLOW),
            timeout,
            REQUESTS_IF_SILENT,
        ),
        // Answers that are not HTTP.
        row(
            "ssh",
            "answers in another protocol",
            |_| Script::say("SSH-2.0-OpenSSH_9.6\r\n"),
            malformed,
            1,
        ),
        row(
            "icecast",
            "answers as a radio station does",
            |_| Script::say("ICY 200 OK\r\nContent-Type: text/html\r\n\r\nok"),
            malformed,
            1,
        ),
        row(
            "http09",
            "sends a page without a head",
            |_| Script::say("<a href=/>a page</a>"),
            malformed,
            1,
        ),
        row(
            "http2-unasked",
            "answers in HTTP/2",
            |_| Script::say(b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64".as_slice()),
            malformed,
            1,
        ),
        row(
            "unknown-status",
            "has an unknown status",
            |_| Script::say(page("999 Go Away", "", "")),
            Page(999),
            1,
        ),
        row(
            "long-reason",
            "has a reason phrase of 64 KiB",
            |_| Script::say(page(&format!("200 {}", "x".repeat(65_536)), "", "")),
            Page(200),
            1,
        ),
        row(
            "bare-lf",
            "ends lines with LF only",
            |_| Script::say("HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: 2\n\nok"),
            Page(200),
            1,
        ),
        // Headers.
        row(
            "header-crowd",
            "sends 10 000 headers",
            |_| Script::say(format!("{HTML}{}\r\n", "X: y\r\n".repeat(10_000))),
            too_large,
            1,
        ),
        row(
            "header-giant",
            "sends a header of a megabyte",
            |_| Script::say(format!("{HTML}X: {}\r\n\r\n", "y".repeat(1 << 20))),
            too_large,
            1,
        ),
        row(
            "header-large",
            "sends headers of 300 KiB, which HTTP could read",
            |_| Script::say(page("200 OK", &format!("X: {}\r\n", "y".repeat(300 << 10)), "")),
            too_large,
            1,
        ),
        row(
            "header-stream",
            "never stops sending headers",
            |_| endless(HTML, "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"),
            too_large,
            1,
        ),
        row(
            "cookie-flood",
            "sets 150 cookies of a kilobyte",
            |_| {
                Script::say(page(
                    "200 OK",
                    &format!("Set-Cookie: a={}\r\n", "b".repeat(1000)).repeat(150),
                    "",
                ))
            },
            Page(200),
            1,
        ),
        row(
            "nul-header",
            "has a NUL in a header",
            |_| Script::say(page("200 OK", "X: a\0b\r\nContent-Type: text/html\r\n", "ok")),
            malformed,
            1,
        ),
        row(
            "no-colon",
            "has a header without a colon",
            |_| Script::say(page("200 OK", "what is this\r\nContent-Type: text/html\r\n", "ok")),
            Page(200),
            1,
        ),
        row(
            "folded",
            "folds a header over two lines",
            |_| Script::say(page("200 OK", "X: a\r\n b\r\nContent-Type : text/html\r\n", "ok")),
            Page(200),
            1,
        ),
        row(
            "content-location",
            "has the Content-Location of another host",
            |_| {
                Script::say(page(
                    "200 OK",
                    "Content-Type: text/html\r\nContent-Location: /elsewhere/\r\n",
                    "<a href=link>",
                ))
            },
            Page(200),
            2,
        ),
        // Interim answers, and answers without a body.
        row(
            "continues",
            "sends 100 Continue a thousand times before its answer",
            |_| Script::say(["HTTP/1.1 100 Continue\r\n\r\n".repeat(1000).into_bytes(), html("ok")].concat()),
            Page(200),
            1,
        ),
        row(
            "continues-for-ever",
            "sends only 100 Continue, for ever",
            |_| Script::say("").for_ever("HTTP/1.1 100 Continue\r\n\r\n".repeat(1000), SLOW),
            timeout,
            REQUESTS_IF_SILENT,
        ),
        row(
            "early-hints",
            "sends 103 Early Hints first",
            |_| Script::say([b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec(), html("ok")].concat()),
            Page(200),
            1,
        ),
        row(
            "switches",
            "switches protocols without a request",
            |_| {
                Script::say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
                    .then(Then::Hold)
            },
            Page(101),
            1,
        ),
        row(
            "no-content",
            "sends a body with 204",
            |_| Script::say(page("204 No Content", "Content-Type: text/html\r\n", "body")),
            Page(204),
            1,
        ),
        row(
            "not-modified",
            "sends 304 with a body to an unconditional request",
            |_| Script::say(page("304 Not Modified", "Content-Type: text/html\r\n", "body")),
            Page(304),
            1,
        ),
        // Lengths.
        row(
            "two-lengths",
            "declares two lengths",
            |_| Script::say(format!("{HTML}Content-Length: 2\r\nContent-Length: 20\r\n\r\nok")),
            malformed,
            1,
        ),
        row(
            "negative",
            "declares a negative length",
            |_| Script::say(format!("{HTML}Content-Length: -1\r\n\r\nok")),
            malformed,
            1,
        ),
        row(
            "astronomic",
            "declares a length beyond 64 bits",
            |_| Script::say(format!("{HTML}Content-Length: 99999999999999999999999\r\n\r\nok")),
            malformed,
            1,
        ),
        row(
            "announces-much",
            "declares an exabyte and sends two bytes",
            |_| Script::say(format!("{HTML}Content-Length: 1152921504606846976\r\n\r\nok")),
            broke_off,
            REQUESTS_IF_SILENT,
        ),
        row(
            "too-short",
            "sends less than it declares",
            |_| Script::say(format!("{HTML}Content-Length: 100\r\n\r\nok")),
            broke_off,
            REQUESTS_IF_SILENT,
        ),
        row(
            "too-long",
            "sends more than it declares",
            |_| {
                Script::say(format!(
                    "{HTML}Content-Length: 2\r\n\r\nok{}",
                    "HTTP/1.1 200 OK\r\n\r\n".repeat(99)
                ))
            },
            Page(200),
            1,
        ),
        row(
            "length-and-chunks",
            "declares a length and sends chunks",
            |_| {
                Script::say(format!(
                    "{HTML}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nokok\r\n0\r\n\r\n"
                ))
            },
            Page(200),
            1,
        ),
        row(
            "chunk-lies",
            "declares a chunk of 4 GiB and sends two bytes",
            |_| Script::say(format!("{HTML}Transfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\nok")),
            broke_off,
            REQUESTS_IF_SILENT,
        ),
        row(
            "chunk-overflow",
            "declares a chunk size beyond 64 bits",
            |_| {
                Script::say(format!(
                    "{HTML}Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nok"
                ))
            },
            broke_off,
            REQUESTS_IF_SILENT,
        ),
        row(
            "chunk-nonsense",
            "has a chunk size that is not a number",
            |_| Script::say(format!("{HTML}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\nxyz\r\n")),
            broke_off,
            REQUESTS_IF_SILENT,
        ),
        row(
            "chunk-extension",
            "never ends the extension of a chunk",
            |_| {
                endless(
                    &format!("{HTML}Transfer-Encoding: chunked\r\n\r\n2;"),
                    "xxxxxxxxxxxxxxxx",
                )
            },
            broke_off,
            REQUESTS_IF_SILENT,
        ),
        row(
            "trailer-flood",
            "never stops sending trailers",
            |_| {
                endless(
                    &format!("{HTML}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"),
                    "X: y\r\n",
                )
            },
            broke_off,
            REQUESTS_IF_SILENT,
        ),
        row(
            "crumbs",
            "sends 20 000 chunks of a byte",
            |_| {
                Script::say(format!(
                    "{HTML}Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
                    "1\r\nx\r\n".repeat(20_000)
                ))
            },
            Page(200),
            1,
        ),
        // Endless bodies.
        row(
            "endless",
            "never stops sending a page",
            |_| endless(&format!("{HTML}\r\n"), "<p>more</p>".repeat(1000)),
            cut(200, TruncationReason::Size),
            1,
        ),
        row(
            "endless-error",
            "never stops sending an error page",
            |_| endless("HTTP/1.1 404 Not Found\r\n\r\n", "<p>more</p>".repeat(1000)),
            cut(404, TruncationReason::Size),
            1,
        ),
        row(
            "endless-chunks",
            "never stops sending chunks",
            |_| {
                endless(
                    &format!("{HTML}Transfer-Encoding: chunked\r\n\r\n"),
                    format!("1000\r\n{}\r\n", "<p>more</p> <p>x".repeat(256)),
                )
            },
            cut(200, TruncationReason::Size),
            1,
        ),
        row(
            "drips",
            "sends a page in small pieces with pauses",
            |_| Script::say(format!("{HTML}\r\n")).for_ever("<", SLOW),
            KeptAfter(FailureKind::Incomplete, 200, TruncationReason::Time),
            REQUESTS_IF_SILENT,
        ),
        row(
            "stalls",
            "stops in the middle of a page",
            |_| Script::say(format!("{HTML}Content-Length: 99\r\n\r\n<a href=/")).then(Then::Hold),
            KeptAfter(FailureKind::Incomplete, 200, TruncationReason::Time),
            REQUESTS_IF_SILENT,
        ),
        row(
            "resets-body",
            "resets the connection in the middle of a page",
            |_| Script::say(format!("{HTML}Content-Length: 9\r\n\r\n")).then(Then::Reset),
            broke_off,
            REQUESTS_IF_SILENT,
        ),
        row(
            "film",
            "sends an endless film",
            |_| endless("HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n", [0; 9999]),
            Skipped(200),
            1,
        ),
        row("film-as-page", "sends noise as a page", pages::noise, Page(200), 1),
        row(
            "no-type",
            "has no Content-Type",
            |_| Script::say(page("200 OK", "", "<a href=/next>")),
            Page(200),
            2,
        ),
        row(
            "odd-type",
            "has an invalid Content-Type",
            |_| Script::say(page("200 OK", "Content-Type: \u{e9}\u{e9};;;=\r\n", "<a href=/next>")),
            Page(200),
            2,
        ),
        // Codings.
        row(
            "gzip-bomb",
            "sends a gzip bomb",
            |_| coded("gzip", &GZIP_BOMB),
            cut(200, TruncationReason::Size),
            1,
        ),
        row(
            "brotli-bomb",
            "sends 64 MiB in 106 bytes",
            |_| coded("br", &BROTLI_BOMB),
            cut(200, TruncationReason::Size),
            1,
        ),
        row(
            "zstd-bomb",
            "sends a zstd bomb",
            |_| coded("zstd", &ZSTD_BOMB),
            cut(200, TruncationReason::Size),
            1,
        ),
        row(
            "nested-bomb",
            "sends a gzip bomb in a gzip bomb",
            |_| coded("gzip, gzip", &NESTED_BOMB),
            cut(200, TruncationReason::Size),
            1,
        ),
        row(
            "three-layers",
            "compresses its page three times",
            |_| coded("gzip, gzip, gzip", &gzip(&gzip(&gzip(b"ok")))),
            cut(200, TruncationReason::Coding),
            1,
        ),
        row(
            "many-layers",
            "declares a thousand codings",
            |_| coded(&"gzip, ".repeat(1000), b"ok"),
            cut(200, TruncationReason::Coding),
            1,
        ),
        row(
            "not-gzip",
            "declares gzip and sends plain text",
            |_| coded("gzip", b"<a href=/next>"),
            cut(200, TruncationReason::Coding),
            1,
        ),
        row(
            "not-brotli",
            "declares br and sends random bytes",
            |_| coded("br", &[0xa5; 5000]),
            cut(200, TruncationReason::Coding),
            1,
        ),
        row(
            "half-a-gzip",
            "sends the first half of a gzip",
            |_| coded("gzip", &gzip("<a href=/next>next</a>".repeat(99).as_bytes())[..40]),
            cut(200, TruncationReason::Coding),
            2,
        ),
        row(
            "gzip-and-more",
            "sends other bytes after its gzip",
            |_| coded("gzip", &[gzip(b"<a href=/next>"), vec![0; 9]].concat()),
            Page(200),
            2,
        ),
        row(
            "own-coding",
            "uses an unknown coding",
            |_| coded("rot13", b"<a href=/next>"),
            Page(200),
            2,
        ),
        row(
            "endless-nothing",
            "sends an endless gzip of empty blocks",
            |_| endless_empty_blocks(),
            cut(200, TruncationReason::Size),
            1,
        ),
        // Redirects.
        row(
            "loop",
            "redirects to itself",
            |_| Script::say(redirect("/")),
            Loops(1),
            20,
        ),
        row(
            "two-loop",
            "redirects between two URLs",
            |request| Script::say(redirect(if request.target == "/" { "/there" } else { "/" })),
            Loops(2),
            20,
        ),
        row(
            "chain",
            "redirects for ever",
            |request| Script::say(redirect(&format!("{}x", request.target))),
            Leaves,
            20,
        ),
        row(
            "huge-location",
            "redirects to a URL of 100 KB",
            |_| Script::say(redirect(&format!("/{}", "x".repeat(100_000)))),
            Leaves,
            1,
        ),
        row(
            "no-location",
            "redirects without a Location",
            |_| Script::say(page("302 Found", "", "")),
            Page(302),
            1,
        ),
        row(
            "to-a-file",
            "redirects to a file",
            |_| Script::say(redirect("file:///etc/passwd")),
            Fails(FailureKind::Redirect),
            1,
        ),
        row(
            "to-a-script",
            "redirects to a script",
            |_| Script::say(redirect("javascript:alert(1)")),
            Fails(FailureKind::Redirect),
            1,
        ),
        row(
            "to-nonsense",
            "redirects to an invalid URL",
            |_| Script::say(redirect("http://[::1")),
            Fails(FailureKind::Redirect),
            1,
        ),
        row(
            "to-bytes",
            "redirects to bytes that are not UTF-8",
            |request| {
                Script::say(if request.target == "/" {
                    page("302 Found", "Location: /\u{ff}\u{fe}\r\n", "")
                } else {
                    html("ok")
                })
            },
            Leaves,
            2,
        ),
        row(
            "logs-in",
            "redirects to a URL with a password",
            |request| {
                Script::say(if request.target == "/" {
                    redirect(&format!("http://user:secret@{}/in", request.host))
                } else {
                    html("ok")
                })
            },
            Leaves,
            2,
        ),
        row(
            "refreshes",
            "sends a Refresh header",
            |_| {
                Script::say(page(
                    "200 OK",
                    "Content-Type: text/html\r\nRefresh: 0; url=/next\r\n",
                    "ok",
                ))
            },
            Page(200),
            2,
        ),
        // Throttling.
        row(
            "busy-for-ever",
            "is always busy",
            |_| busy("0"),
            GivesUp(FailureKind::Throttled, 503),
            2,
        ),
        row(
            "busy-for-years",
            "is busy for a century",
            |_| busy("3153600000"),
            GivesUp(FailureKind::Throttled, 503),
            2,
        ),
        row(
            "busy-until",
            "is busy until a date of the past",
            |_| busy("Thu, 01 Jan 1970 00:00:00 GMT"),
            GivesUp(FailureKind::Throttled, 503),
            2,
        ),
        row(
            "busy-nonsense",
            "is busy until nonsense",
            |_| busy("\u{fc}ber morgen"),
            GivesUp(FailureKind::Status, 503),
            2,
        ),
        row(
            "throttles",
            "always says that we ask too much",
            |_| Script::say(page("429 Too Many", "Retry-After: 0\r\n", "")),
            GivesUp(FailureKind::Throttled, 429),
            2,
        ),
        // Pages.
        row(
            "million-links",
            "has more links on a page than there are pages",
            pages::a_million_links,
            cut(200, TruncationReason::Size),
            60,
        ),
        row(
            "megabyte-url",
            "links to a URL of a megabyte",
            pages::a_url_of_a_megabyte,
            Page(200),
            2,
        ),
        row(
            "deep-nesting",
            "nests 100 000 elements",
            pages::deep_nesting,
            Page(200),
            3,
        ),
        row(
            "attribute-flood",
            "has a tag with 100 000 attributes",
            pages::an_attribute_flood,
            Page(200),
            3,
        ),
        row(
            "open-end",
            "opens a comment, a tag and a quote, and ends nothing",
            pages::an_open_end,
            Page(200),
            2,
        ),
        row(
            "subdomains",
            "has a new host behind every link",
            pages::infinite_subdomains,
            Page(200),
            300,
        ),
        row(
            "calendar",
            "has a next day on every page",
            pages::a_calendar,
            Page(200),
            60,
        ),
        row(
            "repeats-path",
            "has a relative link that repeats its path",
            pages::a_repeating_path,
            Page(200),
            20,
        ),
        row(
            "credentials",
            "has a link with a password",
            pages::credentials_in_a_link,
            Page(200),
            2,
        ),
    ]
}

/// Returns the answer of the behaviour with the name of the host.
pub(crate) fn play(table: &[Behaviour], request: &ReceivedRequest) -> Script {
    let found = table.iter().find(|behaviour| behaviour.name == request.name());
    match found {
        _ if request.target == "/robots.txt" => Script::say(page("404 Not Found", "", "")),
        Some(behaviour) => (behaviour.play)(request),
        None => Script::say(page("404 Not Found", "", "no such behaviour")),
    }
}
