//! WARC archives: the records are read back and compared with the bytes of the server.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::output::warc::{Archive, ArchiveOptions};
use crawler::{Crawl, CrawlError, CrawlOptions, HttpOptions, PageOptions, Summary};
use data_encoding::BASE32;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use frontier::{FrontierConfig, PolitenessConfig, RetryPolicy};

const INDEX: &str = "<title>Index</title><a href=/gzip>g</a><a href=/chunked>c</a><a href=/moved>m</a><a href=/missing>n</a>
<a href=/same>s</a><a href=/busy>b</a><a href=/image>i</a><a href=/endless>e</a><a href='/q?a=b&amp;c=%C3%A4'>q</a><a href=/old>o</a>
<a href=/empty>0</a><a href=/empty2>0</a>";

/// The maximum size of a body in these crawls, in bytes.
const MAX_BODY: u64 = 600_000;

/// Returns the status line with the headers, and the encoded body, of a path.
fn answer(path: &str) -> (String, Vec<u8>) {
    let html = "content-type: text/html\r\n";
    let whole = |status: &str, headers: &str, body: &[u8]| {
        let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n", body.len());
        (head, body.to_vec())
    };
    match path {
        "/robots.txt" => whole(
            "200 OK",
            "content-type: text/plain\r\n",
            b"User-agent: *\nDisallow: /private\n",
        ),
        "/" => whole("200 OK", &format!("{html}x-two: a\r\nx-two: b\r\n"), INDEX.as_bytes()),
        "/gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(b"<h1>compressed</h1>").unwrap();
            let body = encoder.finish().unwrap();
            whole("200 OK", &format!("{html}content-encoding: gzip\r\n"), &body)
        }
        "/chunked" => {
            let body = b"5\r\n<p>on\r\n6\r\ne</p>!\r\n0\r\n\r\n".to_vec();
            (format!("HTTP/1.1 200 OK\r\n{html}transfer-encoding: chunked\r\n"), body)
        }
        "/moved" => whole("302 Found", "location: /target\r\n", b"over there"),
        "/target" | "/same" => whole("200 OK", html, b"<h1>the same on two pages</h1>"),
        "/image" => whole("200 OK", "content-type: image/png\r\n", &[7; 400_000]),
        "/endless" => {
            let head = format!("HTTP/1.1 200 OK\r\n{html}content-length: 5000000\r\n");
            (head, vec![b'x'; 5_000_000])
        }
        "/sitemap.xml" => {
            let body = b"<urlset><url><loc>http://elsewhere.example/</loc></url></urlset>";
            whole("200 OK", "content-type: application/xml\r\n", body)
        }
        "/busy" => whole("503 Service Unavailable", html, b"busy"),
        "/old" => (format!("HTTP/1.0 200 OK\r\n{html}"), b"until the end".to_vec()),
        "/empty" | "/empty2" => whole("204 No Content", "", b""),
        path if path.starts_with("/q?") => whole("200 OK", html, b"query"),
        _ => whole("404 Not Found", html, b"nothing"),
    }
}

/// A server on loopback that records its requests.
struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let noted = Arc::clone(&noted);
                std::thread::spawn(move || serve(stream, &noted));
            }
        });
        Self { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, asked: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut path) = (String::new(), None);
    while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) && line != "\r\n" {
        path = path.or_else(|| Some(line.split(' ').nth(1)?.to_owned()));
        line.clear();
    }
    let Some(path) = path else { return };
    asked.lock().unwrap().push(path.clone());
    let (head, body) = answer(&path);
    // The client may close the connection early.
    let _ = stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes());
    let _ = stream.write_all(&body);
}

fn file(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

fn options(path: &Path) -> ArchiveOptions {
    ArchiveOptions {
        path: path.to_owned(),
        max_file_bytes: None,
        operator: Some("A. Tester <a@example.org>".to_owned()),
        user_agent: "test-bot/1.0".to_owned(),
        obeys_robots: true,
    }
}

fn crawl(server: &Server, archive: ArchiveOptions) -> Result<Summary, CrawlError> {
    let options = CrawlOptions {
        seeds: vec![server.url("/")],
        frontier: FrontierConfig {
            retries: RetryPolicy {
                retry_wait: Duration::from_millis(1),
                ..RetryPolicy::default()
            },
            politeness: PolitenessConfig {
                delay: Duration::ZERO,
                ..PolitenessConfig::default()
            },
            ..FrontierConfig::default()
        },
        pages: PageOptions {
            sitemaps: true,
            ..PageOptions::default()
        },
        ..CrawlOptions::default()
    };
    let http = HttpOptions {
        max_body_bytes: MAX_BODY,
        keep_exchanges: true,
        ..HttpOptions::default()
    };
    let crawl = Crawl::builder(options).unwrap().http(http).build().unwrap();
    let crawl = crawl.observe(Archive::create(archive).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(crawl.run())
}

/// One record of a file.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) fields: BTreeMap<String, String>,
    block: Vec<u8>,
}

impl Record {
    /// Parses a text with one record.
    fn read(text: &[u8]) -> Self {
        let end = text.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&text[..end]).unwrap();
        let mut lines = head.split("\r\n");
        assert_eq!(lines.next(), Some("WARC/1.1"));
        let mut fields = BTreeMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            assert_eq!(fields.insert(name.to_owned(), value.to_owned()), None, "{name} twice");
        }
        let block = text[end + 4..].strip_suffix(b"\r\n\r\n").unwrap().to_vec();
        let record = Self { fields, block };
        assert_eq!(record.field("Content-Length"), record.block.len().to_string());
        assert_eq!(record.field("WARC-Block-Digest"), sha1(&record.block));
        record
    }

    #[track_caller]
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields
            .get(name)
            .unwrap_or_else(|| panic!("{name} is missing: {:?}", self.fields))
    }

    pub(crate) fn kind(&self) -> &str {
        self.field("WARC-Type")
    }

    fn path(&self, server: &Server) -> &str {
        self.field("WARC-Target-URI").strip_prefix(&server.url("")).unwrap()
    }

    /// Returns the status line or request line, the headers, and the body.
    fn message(&self) -> (String, Vec<String>, &[u8]) {
        let end = self.block.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&self.block[..end]).unwrap();
        let mut lines = head.split("\r\n").map(str::to_owned);
        (lines.next().unwrap(), lines.collect(), &self.block[end + 4..])
    }
}

fn sha1(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
    format!("sha1:{}", BASE32.encode(digest.as_ref()))
}

/// Returns the records of a file. In a compressed one each is a gzip member of its own.
pub(crate) fn records(path: &Path) -> Vec<Record> {
    let bytes = fs::read(path).unwrap();
    let is_compressed = path.to_str().unwrap().ends_with(".gz");
    let mut rest = &bytes[..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        if is_compressed {
            let mut member = GzDecoder::new(rest);
            let mut text = Vec::new();
            member.read_to_end(&mut text).unwrap();
            rest = member.into_inner();
            records.push(Record::read(&text));
        } else {
            let end = rest.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            let head = std::str::from_utf8(&rest[..end]).unwrap();
            let length: usize = head.rsplit_once("Content-Length: ").unwrap().1.parse().unwrap();
            let (record, after) = rest.split_at(end + 4 + length + 4);
            records.push(Record::read(record));
            rest = after;
        }
    }
    records
}

#[test]
fn the_archive_has_every_exchange_as_sent() {
    let (server, path) = (Server::start(), file("all.warc.gz"));
    crawl(&server, options(&path)).unwrap();
    let records = records(&path);

    let (info, exchanges) = records.split_first().unwrap();
    assert_eq!(info.kind(), "warcinfo");
    assert_eq!(info.field("WARC-Filename"), "all.warc.gz");
    assert_eq!(info.field("Content-Type"), "application/warc-fields");
    let says = String::from_utf8(info.block.clone()).unwrap();
    for line in [
        "format: WARC File Format 1.1\r\n",
        "robots: RFC 9309\r\n",
        "http-header-user-agent: test-bot/1.0\r\n",
        "operator: A. Tester <a@example.org>\r\n",
    ] {
        assert!(says.contains(line), "{says}");
    }

    let ids: BTreeSet<_> = records.iter().map(|record| record.field("WARC-Record-ID")).collect();
    assert_eq!(ids.len(), records.len());
    let mut archived = Vec::new();
    for pair in exchanges.chunks(2) {
        let [answered, request] = pair else {
            panic!("an answer without its request")
        };
        assert!(matches!(answered.kind(), "response" | "revisit"));
        assert_eq!(request.kind(), "request");
        assert_eq!(request.field("WARC-Concurrent-To"), answered.field("WARC-Record-ID"));
        for name in ["WARC-Target-URI", "WARC-Date", "WARC-IP-Address", "WARC-Warcinfo-ID"] {
            assert_eq!(request.field(name), answered.field(name), "{name}");
        }
        assert_eq!(answered.field("WARC-Warcinfo-ID"), info.field("WARC-Record-ID"));
        assert_eq!(answered.field("WARC-IP-Address"), "127.0.0.1");
        let date = answered.field("WARC-Date").as_bytes();
        assert!(
            date.len() == 24 && date[10] == b'T' && date[19] == b'.' && date[23] == b'Z',
            "{date:?}"
        );
        check_request(request, &server);
        check_answer(answered, &server);
        archived.push(answered.path(&server).to_owned());
    }
    let mut asked = server.asked();
    asked.sort();
    archived.sort();
    assert_eq!(archived, asked, "each exchange once");
    assert!(
        asked.iter().filter(|path| *path == "/busy").count() == 3,
        "every attempt is there"
    );
    for path in ["/robots.txt", "/sitemap.xml", "/moved"] {
        assert!(asked.iter().any(|asked| asked == path), "{path}");
    }
}

fn check_request(record: &Record, server: &Server) {
    assert_eq!(record.field("Content-Type"), "application/http; msgtype=request");
    let (line, headers, body) = record.message();
    assert_eq!(line, format!("GET {} HTTP/1.1", record.path(server)));
    assert!(headers.contains(&format!("Host: {}", server.address)), "{headers:?}");
    assert!(headers.iter().any(|header| header.starts_with("User-Agent: ")));
    assert_eq!(body, b"");
}

fn check_answer(record: &Record, server: &Server) {
    assert_eq!(record.field("Content-Type"), "application/http; msgtype=response");
    let path = record.path(server);
    let (line, headers, body) = record.message();
    let (head, mut sent) = answer(path);
    let mut lines = head.trim_end().split("\r\n").map(str::to_owned);
    assert_eq!(Some(line), lines.next(), "{path}");
    let mut expected: Vec<_> = lines.collect();
    expected.push("connection: close".to_owned());
    let mut truncated = None;
    match path {
        "/chunked" => {
            sent = b"<p>one</p>!".to_vec();
            expected.retain(|header| header != "transfer-encoding: chunked");
            expected.push("x-archive-orig-transfer-encoding: chunked".to_owned());
        }
        "/endless" => {
            sent.truncate(MAX_BODY as usize);
            truncated = Some("length");
        }
        _ => {}
    }
    let sorted = |mut headers: Vec<String>| {
        headers.sort();
        headers
    };
    assert_eq!(sorted(headers), sorted(expected), "{path}");
    assert_eq!(record.field("WARC-Payload-Digest"), sha1(&sent), "{path}");
    if record.kind() == "revisit" {
        assert_eq!(body, b"");
        truncated = Some("length");
    } else {
        assert!(body == sent, "{path}: the body differs");
    }
    assert_eq!(
        record.fields.get("WARC-Truncated").map(String::as_str),
        truncated,
        "{path}"
    );
}

#[test]
fn a_payload_that_is_in_the_archive_already_becomes_a_revisit() {
    let (server, path) = (Server::start(), file("revisit.warc.gz"));
    crawl(&server, options(&path)).unwrap();
    let records = records(&path);
    let by_id: HashMap<&str, &Record> = records.iter().map(|one| (one.field("WARC-Record-ID"), one)).collect();
    let revisits: Vec<_> = records.iter().filter(|record| record.kind() == "revisit").collect();
    let mut paths: Vec<_> = revisits.iter().map(|record| record.path(&server)).collect();
    paths.sort_unstable();
    paths.retain(|path| *path != "/busy");
    assert_eq!(paths.len(), 1, "one of the two, and no empty one: {paths:?}");
    for revisit in revisits {
        let profile = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
        assert_eq!(revisit.field("WARC-Profile"), profile);
        let original = by_id[revisit.field("WARC-Refers-To")];
        assert_eq!(original.kind(), "response");
        for (here, there) in [
            ("WARC-Refers-To-Target-URI", "WARC-Target-URI"),
            ("WARC-Refers-To-Date", "WARC-Date"),
            ("WARC-Payload-Digest", "WARC-Payload-Digest"),
        ] {
            assert_eq!(revisit.field(here), original.field(there), "{here}");
        }
    }
}

#[test]
fn an_uncompressed_archive_has_the_same_records() {
    let (server, path) = (Server::start(), file("plain.warc"));
    crawl(&server, options(&path)).unwrap();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for record in records(&path) {
        *kinds.entry(record.kind().to_owned()).or_default() += 1;
    }
    assert_eq!(kinds["warcinfo"], 1);
    assert_eq!(kinds["request"], server.asked().len());
    assert_eq!(kinds["response"] + kinds["revisit"], kinds["request"]);
}

#[test]
fn a_full_file_is_followed_by_the_next() {
    let (server, path) = (Server::start(), file("series.warc.gz"));
    let later: Vec<_> = (1..99)
        .map(|number| file(&format!("series-{number:05}.warc.gz")))
        .collect();
    fs::write(&later[1], "somebody else's").unwrap();
    let small = ArchiveOptions {
        max_file_bytes: NonZeroU64::new(3000),
        ..options(&path)
    };
    crawl(&server, small).unwrap();
    assert_eq!(fs::read(&later[1]).unwrap(), b"somebody else's");
    fs::remove_file(&later[1]).unwrap();
    let files = [path].into_iter().chain(later).filter(|path| path.exists());
    let mut requests = 0;
    let mut count = 0;
    for path in files {
        let records = records(&path);
        assert_eq!(records[0].kind(), "warcinfo");
        assert_eq!(
            records[0].field("WARC-Filename"),
            path.file_name().unwrap().to_str().unwrap()
        );
        assert_eq!(records.len() % 2, 1, "no answer is parted from its request");
        requests += records.len() / 2;
        count += 1;
    }
    assert!(count >= 3, "{count} files");
    assert_eq!(requests, server.asked().len());
}

#[cfg(target_os = "linux")]
#[test]
fn an_archive_on_a_full_disk_names_the_file() {
    let full = crawl(&Server::start(), options(Path::new("/dev/full"))).unwrap_err();
    assert!(full.to_string().contains("/dev/full"), "{full}");
}
