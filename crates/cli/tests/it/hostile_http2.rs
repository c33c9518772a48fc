//! Servers that attack over HTTP/2: the crawl of each ends in time, with a bounded number of requests, and reports the cause.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The authority that signed the certificate of `localhost`. The crawler must trust it.
const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crawler/tests/data/tls/authority.pem");

/// The maximum number of attempts for a page, and the wait between them.
const ATTEMPTS: usize = 2;
const WAIT: Duration = Duration::from_millis(300);

/// How long a server that has never answered may be away. It is probed after one wait and two waits later, and then given up. After a
/// request that times out there is no other.
const DOWNTIME: Duration = Duration::from_millis(900);
const PROBES: usize = 2;

/// The maximum time of a crawl: far more than two requests of a second each take, also on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(20);

/// The maximum memory of a crawl, if the system reports it. A debug build starts with half of it.
const MAX_MIB: f64 = 60.0;

/// The number of concurrent crawls.
const CONCURRENT_CRAWLS: usize = 4;

/// Types of frames and their flags (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// Error codes (RFC 9113, section 7).
const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const ENHANCE_YOUR_CALM: u32 = 11;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns header fields in HPACK (RFC 7541): the status from the static table, the type as a literal.
fn head(status: u8) -> Vec<u8> {
    let content_type = [&[0x0F, 0x10, 9], b"text/html".as_slice()].concat();
    [vec![status], content_type].concat()
}

const STATUS_200: u8 = 0x88;
const PAGE: &[u8] = b"<title>ok</title>";

fn page(stream: u32) -> Vec<u8> {
    let head = frame(HEADERS, END_HEADERS, stream, &head(STATUS_200));
    [head, frame(DATA, END_STREAM, stream, PAGE)].concat()
}

fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

/// Returns a head without its end.
fn open_head(stream: u32) -> Vec<u8> {
    frame(HEADERS, 0, stream, &[STATUS_200])
}

/// Returns a field of 4000 bytes that is added to the table, and then many references to it of one byte each: 64 MB from 20 kB.
fn header_bomb(stream: u32) -> Vec<u8> {
    let field = [&[0x40, 1, b'x', 0x7F, 0xA1, 0x1E], [b'a'; 4000].as_slice()].concat();
    let head = [vec![STATUS_200], field, vec![0xBE; 12_000]].concat();
    let again = frame(CONTINUATION, END_HEADERS, stream, &[0xBE; 4_000]);
    [frame(HEADERS, 0, stream, &head), again].concat()
}

/// What the server does after the first bytes of the answer.
enum Then {
    /// It sends the same bytes repeatedly.
    Again(fn(u32) -> Vec<u8>),
    Silence,
    Close,
}

type Ends = &'static [&'static str];
const TIMEOUT: Ends = &["timeout"];
const BROKEN: Ends = &["broken"];
const INCOMPLETE: Ends = &["incomplete"];
/// The crawler may receive the head before the connection breaks.
const BROKEN_SOMEWHERE: Ends = &["incomplete", "broken"];
/// If the bytes arrive faster than they are read, the connection breaks, or stays in use. Otherwise there is a page.
const OVERRUN: Ends = &[PAGE_CUT, "incomplete", "broken", "timeout"];
const PAGE_CUT: &str = "no failure";

/// A server's behaviour for every request.
struct Behaviour {
    does: &'static str,
    begins: fn(u32) -> Vec<u8>,
    then: Then,
    /// The possible reasons of the failure; none for a page, several if the result depends on timing.
    ends: Ends,
}

const fn row(does: &'static str, begins: fn(u32) -> Vec<u8>, then: Then, ends: Ends) -> Behaviour {
    Behaviour {
        does,
        begins,
        then,
        ends,
    }
}

const NOTHING: fn(u32) -> Vec<u8> = |_| Vec::new();

const BEHAVIOURS: &[Behaviour] = &[
    row("answers", page, Then::Silence, &[]),
    row(
        "answers in many small frames",
        |stream| {
            let head = frame(HEADERS, END_HEADERS, stream, &head(STATUS_200));
            let bytes = PAGE.iter().flat_map(|byte| frame(DATA, 0, stream, &[*byte]));
            head.into_iter()
                .chain(bytes)
                .chain(frame(DATA, END_STREAM, stream, &[]))
                .collect()
        },
        Then::Silence,
        &[],
    ),
    row("sends nothing", NOTHING, Then::Silence, TIMEOUT),
    row("closes", NOTHING, Then::Close, BROKEN),
    row(
        "answers in another protocol",
        |_| b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        Then::Silence,
        BROKEN,
    ),
    row(
        "declares a frame of 16 MiB",
        |stream| {
            [
                &[0xFF, 0xFF, 0xFF, HEADERS, END_HEADERS],
                stream.to_be_bytes().as_slice(),
            ]
            .concat()
        },
        Then::Again(|_| vec![0; 16_384]),
        BROKEN,
    ),
    row(
        "refuses the stream",
        |stream| reset(stream, REFUSED_STREAM),
        Then::Silence,
        BROKEN,
    ),
    row(
        "resets the stream",
        |stream| reset(stream, INTERNAL_ERROR),
        Then::Silence,
        BROKEN,
    ),
    row(
        "resets the stream with ENHANCE_YOUR_CALM",
        |stream| reset(stream, ENHANCE_YOUR_CALM),
        Then::Silence,
        BROKEN,
    ),
    row("sends GOAWAY", |_| go_away(0, NO_ERROR), Then::Close, BROKEN),
    row(
        "sends GOAWAY with an error",
        |stream| go_away(stream, ENHANCE_YOUR_CALM),
        Then::Close,
        BROKEN,
    ),
    row(
        "sends GOAWAY in the middle of a page",
        |stream| {
            let head = frame(HEADERS, END_HEADERS, stream, &head(STATUS_200));
            [head, frame(DATA, 0, stream, b"<title>"), go_away(stream, NO_ERROR)].concat()
        },
        Then::Close,
        BROKEN_SOMEWHERE,
    ),
    row(
        "never ends its head",
        open_head,
        Then::Again(|stream| frame(CONTINUATION, 0, stream, &[])),
        BROKEN,
    ),
    row(
        "never ends its head, with header fields",
        open_head,
        Then::Again(|stream| frame(CONTINUATION, 0, stream, &[0x00, 1, b'x', 1, b'y'].repeat(100))),
        BROKEN,
    ),
    row("sends a header bomb of 64 MB", header_bomb, Then::Silence, BROKEN),
    row(
        "sends PING for ever",
        NOTHING,
        Then::Again(|_| frame(PING, 0, 0, &[0; 8])),
        TIMEOUT,
    ),
    row(
        "sends SETTINGS for ever",
        NOTHING,
        Then::Again(|_| frame(SETTINGS, 0, 0, &[])),
        TIMEOUT,
    ),
    row(
        "sends early hints for ever",
        NOTHING,
        Then::Again(|stream| frame(HEADERS, END_HEADERS, stream, &[0x08, 3, b'1', b'0', b'3'])),
        TIMEOUT,
    ),
    row(
        "sends empty frames for ever",
        |stream| frame(HEADERS, END_HEADERS, stream, &head(STATUS_200)),
        Then::Again(|stream| frame(DATA, 0, stream, &[])),
        BROKEN_SOMEWHERE,
    ),
    row(
        "sends an endless page",
        |stream| frame(HEADERS, END_HEADERS, stream, &head(STATUS_200)),
        Then::Again(|stream| frame(DATA, 0, stream, &[b'a'; 256])),
        OVERRUN,
    ),
    row(
        "sends a page without a head",
        |stream| frame(DATA, END_STREAM, stream, PAGE),
        Then::Silence,
        BROKEN,
    ),
    row(
        "sends data on an unrequested stream",
        |stream| {
            [
                frame(HEADERS, END_HEADERS, stream + 100, &head(STATUS_200)),
                page(stream),
            ]
            .concat()
        },
        Then::Silence,
        BROKEN,
    ),
    row(
        "sends PUSH_PROMISE",
        |stream| {
            frame(
                PUSH_PROMISE,
                END_HEADERS,
                stream,
                &[&2_u32.to_be_bytes(), head(STATUS_200).as_slice()].concat(),
            )
        },
        Then::Silence,
        BROKEN,
    ),
    row(
        "overflows the window",
        NOTHING,
        Then::Again(|_| frame(WINDOW_UPDATE, 0, 0, &0x7FFF_FFFF_u32.to_be_bytes())),
        BROKEN,
    ),
    row(
        "changes priorities for ever",
        NOTHING,
        Then::Again(|stream| frame(PRIORITY, 0, stream + 2, &[0, 0, 0, 0, 1])),
        TIMEOUT,
    ),
    row(
        "resets streams for ever",
        NOTHING,
        Then::Again(|stream| reset(stream + 2, NO_ERROR)),
        BROKEN,
    ),
    row(
        "sends frames of unknown types for ever",
        NOTHING,
        Then::Again(|stream| frame(0xBA, 0, stream, &[0; 64])),
        TIMEOUT,
    ),
    row(
        "declares another length than it sends",
        |stream| {
            let head = [head(STATUS_200), vec![0x0F, 0x0D, 2, b'9', b'9']].concat();
            [
                frame(HEADERS, END_HEADERS, stream, &head),
                frame(DATA, END_STREAM, stream, PAGE),
            ]
            .concat()
        },
        Then::Silence,
        INCOMPLETE,
    ),
    row(
        "has an invalid status",
        |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &[0x08, 3, b'a', b'b', b'c']),
        Then::Silence,
        BROKEN,
    ),
    row(
        "has no status",
        |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, &head(STATUS_200)[1..]),
        Then::Silence,
        BROKEN,
    ),
    row(
        "has a field name in capitals",
        |stream| {
            let head = [vec![STATUS_200], vec![0x00, 1, b'X', 1, b'y']].concat();
            frame(HEADERS, END_HEADERS | END_STREAM, stream, &head)
        },
        Then::Silence,
        BROKEN,
    ),
    row(
        "acknowledges settings that were not sent",
        |_| frame(SETTINGS, ACK, 0, &[]).repeat(3),
        Then::Silence,
        BROKEN,
    ),
];

/// A running server, with the times of its requests.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Server {
    fn start(behaviour: &'static Behaviour) -> Self {
        let certificate =
            CertificateDer::from(include_bytes!("../../../crawler/tests/data/tls/localhost.der").as_slice());
        let key =
            PrivatePkcs8KeyDer::from(include_bytes!("../../../crawler/tests/data/tls/localhost_key.der").as_slice());
        let mut tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], PrivateKeyDer::from(key))
            .unwrap();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let tls = Arc::new(tls);
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            asked: Arc::default(),
        };
        let asked = Arc::clone(&server.asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (tls, asked) = (Arc::clone(&tls), Arc::clone(&asked));
                thread::spawn(move || {
                    let connection = ServerConnection::new(tls).unwrap();
                    // The crawler may close the connection, so errors are ignored.
                    let _ = serve_connection(StreamOwned::new(connection, stream), behaviour, &asked);
                });
            }
        });
        server
    }
}

/// One end of a connection.
struct Wire {
    stream: StreamOwned<ServerConnection, TcpStream>,
    /// The received part of the next frame.
    begun: Vec<u8>,
}

impl Wire {
    /// Reads the next whole frame. Returns its type, flags and stream.
    fn frame(&mut self) -> io::Result<(u8, u8, u32)> {
        loop {
            if let Some((&[a, b, c, kind, flags, s, t, u, v], rest)) = self.begun.split_first_chunk() {
                let length = u32::from_be_bytes([0, a, b, c]) as usize;
                if let Some(next) = rest.get(length..) {
                    self.begun = next.to_vec();
                    return Ok((kind, flags, u32::from_be_bytes([s, t, u, v])));
                }
            }
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => self.begun.extend_from_slice(&piece[..length]),
            }
        }
    }

    /// Reads the next new request.
    fn request(&mut self, asked: &Mutex<Vec<Instant>>) -> io::Result<u32> {
        loop {
            let (kind, flags, stream) = self.frame()?;
            if kind == SETTINGS && flags & ACK == 0 {
                self.stream.write_all(&frame(SETTINGS, ACK, 0, &[]))?;
            }
            if kind == HEADERS {
                asked.lock().unwrap().push(Instant::now());
                return Ok(stream);
            }
        }
    }
}

fn serve_connection(
    stream: StreamOwned<ServerConnection, TcpStream>,
    behaviour: &Behaviour,
    asked: &Mutex<Vec<Instant>>,
) -> io::Result<()> {
    let mut wire = Wire {
        stream,
        begun: Vec::new(),
    };
    let mut preface = [0; 24];
    wire.stream.read_exact(&mut preface)?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    wire.stream.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    loop {
        let id = wire.request(asked)?;
        wire.stream.write_all(&(behaviour.begins)(id))?;
        match behaviour.then {
            Then::Silence => {}
            Then::Close => return Ok(()),
            Then::Again(piece) => {
                wire.stream.sock.set_read_timeout(Some(Duration::from_millis(1)))?;
                let pieces = piece(id);
                let pieces = pieces.repeat(64.max(16_384 / pieces.len()));
                loop {
                    wire.stream.write_all(&pieces)?;
                    match wire.request(asked) {
                        Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                            return Err(error);
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}

/// Returns the peak memory of a crawl, from its summary.
fn peak_mib(summary: &str) -> Option<f64> {
    let line = summary
        .lines()
        .find_map(|line| line.trim().strip_prefix("peak memory"))?;
    line.trim().strip_suffix(" MiB")?.parse().ok()
}

/// Crawls a server, and returns how the result differs from the expected one, if it does.
fn complaint(behaviour: &'static Behaviour) -> Option<String> {
    let server = Server::start(behaviour);
    let begun = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_crawler"))
        .arg(format!("https://localhost:{}/", server.port))
        .args([
            "--ignore-robots",
            "--refused",
            "-",
            "-q",
            "--delay",
            "0",
            "--timeout",
            "1",
        ])
        .args(["--max-attempts", &ATTEMPTS.to_string(), "--set=retry-jitter=0"])
        .args(["--max-body", "65536"])
        .arg(format!("--set=retry-wait={}", WAIT.as_secs_f64()))
        .arg(format!("--set=max-first-downtime={}", DOWNTIME.as_secs_f64()))
        .arg(format!("--set=max-host-downtime={}", DOWNTIME.as_secs_f64()))
        .env("SSL_CERT_FILE", AUTHORITY)
        .output()
        .unwrap();
    let elapsed = begun.elapsed();
    let lines = String::from_utf8_lossy(&output.stdout);
    let summary = String::from_utf8_lossy(&output.stderr);
    let says = |reason: &&&str| lines.contains(&format!("\"class\":\"failed\",\"reason\":\"{reason}\""));
    let reason = behaviour.ends.iter().find(says).copied();
    let may_be_a_page = behaviour.ends.is_empty() || behaviour.ends.contains(&PAGE_CUT);
    let is_reported = lines.lines().count() == usize::from(reason.is_some()) && (reason.is_some() || may_be_a_page);
    let asked = server.asked.lock().unwrap();
    let is_patient = asked.windows(2).all(|pair| pair[1] - pair[0] >= WAIT);
    let is_expected = match reason {
        // The second attempt may end before its request is sent.
        Some("timeout") => (1..=ATTEMPTS + PROBES).contains(&asked.len()),
        // Without an answer between the attempts, the server may count as away, and be probed.
        Some(_) => (ATTEMPTS..=ATTEMPTS + PROBES).contains(&asked.len()),
        None => asked.len() == 1,
    } || behaviour.ends == OVERRUN && asked.len() == 1;
    let is_modest = is_expected && is_patient && peak_mib(&summary).is_none_or(|peak| peak < MAX_MIB);
    let is_in_time = elapsed < MAX_TIME;
    let has_page = summary.contains("pages             1 ");
    let is_kept = has_page == matches!(reason, None | Some("incomplete"));
    (!(is_reported && is_modest && is_in_time && is_kept && !summary.contains("panicked"))).then(|| {
        let times: Vec<Duration> = asked.iter().map(|asked| *asked - begun).collect();
        format!(
            "{}: asked at {times:?}, ended after {elapsed:?}\n{lines}{summary}",
            behaviour.does
        )
    })
}

#[test]
fn every_crawl_of_a_hostile_http2_server_ends_and_reports_the_cause() {
    let complaints: Vec<String> = thread::scope(|scope| {
        let visits: Vec<_> = (0..CONCURRENT_CRAWLS)
            .map(|first| {
                let some = BEHAVIOURS.iter().skip(first).step_by(CONCURRENT_CRAWLS);
                scope.spawn(move || some.filter_map(complaint).collect::<Vec<_>>())
            })
            .collect();
        visits.into_iter().flat_map(|visit| visit.join().unwrap()).collect()
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
