//! Servers that attack by the means of HTTP/2: each is survived within its time, asked no more often than it may be, and reported.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says where by panicking"
)]

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Who signed the certificate of `localhost`, for the crawler to trust.
const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crawler/tests/data/tls/authority.pem");

/// How often the crawler may ask for a page, and how long it waits before it asks again.
const ATTEMPTS: usize = 2;
const WAIT: Duration = Duration::from_millis(300);

/// How long a server that has never answered may be away: asked after one wait and after two more, it is given up. A request that
/// takes its whole time is the last one.
const DOWNTIME: Duration = Duration::from_millis(900);
const PROBES: usize = 2;

/// Far more than two requests of a second each take, though another program may hold the processors for a while.
const LONGEST: Duration = Duration::from_secs(20);

/// Memory of a crawl, where the system tells; a debug build starts with half of it.
const MOST_MIB: f64 = 60.0;

/// Servers that are visited at a time.
const VISITORS: usize = 4;

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

/// Fields by HPACK (RFC 7541): the status from the static table, the type as a literal.
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

/// A head that is not over.
fn open_head(stream: u32) -> Vec<u8> {
    frame(HEADERS, 0, stream, &[STATUS_200])
}

/// A field of 4000 bytes that goes into the table, and then is meant by one byte each: 64 MB from 20 kB.
fn header_bomb(stream: u32) -> Vec<u8> {
    let field = [&[0x40, 1, b'x', 0x7F, 0xA1, 0x1E], [b'a'; 4000].as_slice()].concat();
    let head = [vec![STATUS_200], field, vec![0xBE; 12_000]].concat();
    let again = frame(CONTINUATION, END_HEADERS, stream, &[0xBE; 4_000]);
    [frame(HEADERS, 0, stream, &head), again].concat()
}

/// What comes after the answer's first bytes.
enum Then {
    /// The same bytes again and again.
    Again(fn(u32) -> Vec<u8>),
    Silence,
    Close,
}

type Ends = &'static [&'static str];
const TIMEOUT: Ends = &["timeout"];
/// More comes before the head of the answer than may.
const TOO_LARGE: Ends = &["head_too_large"];
const BROKEN: Ends = &["broken"];
const INCOMPLETE: Ends = &["incomplete"];
/// The head of the answer may have been handed over before the connection was found to be broken.
const BROKEN_SOMEWHERE: Ends = &["incomplete", "broken"];
/// What comes faster than it is read breaks the rules, and then the connection may go on to be used; else there is a page.
const OVERRUN: Ends = &[PAGE_CUT, "incomplete", "broken", "timeout"];
const PAGE_CUT: &str = "no failure";

/// What a server does with every request.
struct Behaviour {
    does: &'static str,
    begins: fn(u32) -> Vec<u8>,
    then: Then,
    /// What the crawler reports: the reason of the failure; none if it got a page, several where it depends on what arrives together.
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
    row("says nothing", NOTHING, Then::Silence, TIMEOUT),
    row("closes", NOTHING, Then::Close, BROKEN),
    row(
        "speaks another language",
        |_| b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
        Then::Silence,
        BROKEN,
    ),
    row(
        "announces a frame of 16 MiB",
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
        "wants it calmer",
        |stream| reset(stream, ENHANCE_YOUR_CALM),
        Then::Silence,
        BROKEN,
    ),
    row("goes away", |_| go_away(0, NO_ERROR), Then::Close, BROKEN),
    row(
        "goes away in anger",
        |stream| go_away(stream, ENHANCE_YOUR_CALM),
        Then::Close,
        BROKEN,
    ),
    row(
        "goes away in the middle of a page",
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
        "never ends its head, with fields",
        open_head,
        Then::Again(|stream| frame(CONTINUATION, 0, stream, &[0x00, 1, b'x', 1, b'y'].repeat(100))),
        BROKEN,
    ),
    row("unpacks its head to 64 MB", header_bomb, Then::Silence, BROKEN),
    row(
        "pings for ever",
        NOTHING,
        Then::Again(|_| frame(PING, 0, 0, &[0; 8])),
        TOO_LARGE,
    ),
    row(
        "sets for ever",
        NOTHING,
        Then::Again(|_| frame(SETTINGS, 0, 0, &[])),
        TOO_LARGE,
    ),
    row(
        "says early hints for ever",
        NOTHING,
        Then::Again(|stream| frame(HEADERS, END_HEADERS, stream, &[0x08, 3, b'1', b'0', b'3'])),
        TOO_LARGE,
    ),
    row(
        "sends empty frames for ever",
        |stream| frame(HEADERS, END_HEADERS, stream, &head(STATUS_200)),
        Then::Again(|stream| frame(DATA, 0, stream, &[])),
        BROKEN_SOMEWHERE,
    ),
    row(
        "sends a page without end",
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
        "sends what nobody asked for",
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
        "promises what nobody asked for",
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
        TOO_LARGE,
    ),
    row(
        "resets streams for ever",
        NOTHING,
        Then::Again(|stream| reset(stream + 2, NO_ERROR)),
        BROKEN,
    ),
    row(
        "sends frames of no known type for ever",
        NOTHING,
        Then::Again(|stream| frame(0xBA, 0, stream, &[0; 64])),
        TOO_LARGE,
    ),
    row(
        "says another length than it sends",
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
        "has a status that is none",
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
        "acknowledges what was not said",
        |_| frame(SETTINGS, ACK, 0, &[]).repeat(3),
        Then::Silence,
        BROKEN,
    ),
];

/// A server that was asked so often, and when.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Server {
    fn start(behaviour: &'static Behaviour) -> Self {
        let certificate = CertificateDer::from(include_bytes!("../../crawler/tests/data/tls/localhost.der").as_slice());
        let key = PrivatePkcs8KeyDer::from(include_bytes!("../../crawler/tests/data/tls/localhost_key.der").as_slice());
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
                    // Whoever hangs up on such a server is right.
                    let _ = converse(StreamOwned::new(connection, stream), behaviour, &asked);
                });
            }
        });
        server
    }
}

/// One end of a connection.
struct Wire {
    stream: StreamOwned<ServerConnection, TcpStream>,
    /// What was received of the next frame.
    begun: Vec<u8>,
}

impl Wire {
    /// The next frame, once it is whole: its type, flags and stream.
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

    /// The next request of which this server did not know before.
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

fn converse(
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
                // Fast enough that floods meet limits before their time is over.
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

/// The most memory that a crawl took, by its own account.
fn peak_mib(summary: &str) -> Option<f64> {
    let line = summary
        .lines()
        .find_map(|line| line.trim().strip_prefix("peak memory"))?;
    line.trim().strip_suffix(" MiB")?.parse().ok()
}

/// Crawls a server to its end, and says what was wrong with that, if anything was.
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
        .args(["--max-attempts", &ATTEMPTS.to_string(), "--retry-jitter", "0"])
        .args(["--max-body", "65536"])
        .args(["--retry-wait", &WAIT.as_secs_f64().to_string()])
        .args(["--max-first-downtime", &DOWNTIME.as_secs_f64().to_string()])
        .args(["--max-host-downtime", &DOWNTIME.as_secs_f64().to_string()])
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
        // With no answer between the attempts the server may be taken to be away, and probed.
        Some(_) => (ATTEMPTS..=ATTEMPTS + PROBES).contains(&asked.len()),
        None => asked.len() == 1,
    } || behaviour.ends == OVERRUN && asked.len() == 1;
    let is_modest = is_expected && is_patient && peak_mib(&summary).is_none_or(|peak| peak < MOST_MIB);
    let is_in_time = elapsed < LONGEST;
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
fn every_behaviour_is_survived_and_reported() {
    let complaints: Vec<String> = thread::scope(|scope| {
        let visits: Vec<_> = (0..VISITORS)
            .map(|first| {
                let some = BEHAVIOURS.iter().skip(first).step_by(VISITORS);
                scope.spawn(move || some.filter_map(complaint).collect::<Vec<_>>())
            })
            .collect();
        visits.into_iter().flat_map(|visit| visit.join().unwrap()).collect()
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
