//! Servers that attack over HTTP/2: the crawl of each ends in time, with a bounded number of requests and bounded memory, and reports
//! the cause. The many ways to break the protocol are left to the tests of h2; here are those that only a limit of the crawler ends.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConnection, StreamOwned};

use crate::program::command;
use crate::servers::{AUTHORITY, tls_config};

/// The maximum number of attempts for a page, and the wait between them.
const ATTEMPTS: usize = 2;
const WAIT: Duration = Duration::from_millis(300);

/// How often a server that has never answered is probed before it is given up.
const PROBES: usize = 2;

/// The maximum time of a crawl: far more than two requests of a second each take, also on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(20);

/// The maximum memory of a crawl, if the system reports it. A debug build starts with half of it.
const MAX_MIB: f64 = 60.0;

/// Types of frames and their flags (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The status 200 from the static table of HPACK (RFC 7541).
const STATUS_200: u8 = 0x88;

/// Returns the head of a page, with its type as a literal.
fn head(stream: u32) -> Vec<u8> {
    let fields = [&[STATUS_200, 0x0F, 0x10, 9], b"text/html".as_slice()].concat();
    frame(HEADERS, END_HEADERS, stream, &fields)
}

/// Returns a field of 4000 bytes that is added to the table, and then many references to it of one byte each: 64 MB from 20 kB.
fn header_bomb(stream: u32) -> Vec<u8> {
    let field = [&[0x40, 1, b'x', 0x7F, 0xA1, 0x1E], [b'a'; 4000].as_slice()].concat();
    let head = [vec![STATUS_200], field, vec![0xBE; 12_000]].concat();
    let again = frame(CONTINUATION, END_HEADERS, stream, &[0xBE; 4_000]);
    [frame(HEADERS, 0, stream, &head), again].concat()
}

/// Makes frames for a stream.
type Frames = fn(u32) -> Vec<u8>;

const NOTHING: Frames = |_| Vec::new();

/// A server's behaviour for every request.
struct Behaviour {
    does: &'static str,
    begins: Frames,
    /// What it sends without end after that.
    again: Frames,
    /// The possible reasons of the failure; none for a page, several if the result depends on timing.
    ends: &'static [&'static str],
}

const BEHAVIOURS: [Behaviour; 7] = [
    Behaviour {
        does: "answers",
        begins: |stream| [head(stream), frame(DATA, END_STREAM, stream, b"<title>ok</title>")].concat(),
        again: NOTHING,
        ends: &[],
    },
    Behaviour {
        does: "sends nothing",
        begins: NOTHING,
        again: NOTHING,
        ends: &["timeout"],
    },
    Behaviour {
        does: "resets the stream with ENHANCE_YOUR_CALM",
        begins: |stream| frame(RST_STREAM, 0, stream, &11_u32.to_be_bytes()),
        again: NOTHING,
        ends: &["broken"],
    },
    Behaviour {
        does: "never ends its head",
        begins: |stream| frame(HEADERS, 0, stream, &[STATUS_200]),
        again: |stream| frame(CONTINUATION, 0, stream, &[0x00, 1, b'x', 1, b'y'].repeat(100)),
        ends: &["broken"],
    },
    Behaviour {
        does: "sends a header bomb of 64 MB",
        begins: header_bomb,
        again: NOTHING,
        ends: &["broken"],
    },
    Behaviour {
        does: "sends early hints for ever",
        begins: NOTHING,
        again: |stream| frame(HEADERS, END_HEADERS, stream, &[0x08, 3, b'1', b'0', b'3']),
        ends: &["timeout"],
    },
    // If the bytes arrive faster than they are read, the connection breaks, or stays in use. Otherwise there is a page.
    Behaviour {
        does: "sends an endless page",
        begins: head,
        again: |stream| frame(DATA, 0, stream, &[b'a'; 256]),
        ends: &[PAGE_CUT, "incomplete", "broken", "timeout"],
    },
];

const PAGE_CUT: &str = "no failure";

type Wire = StreamOwned<ServerConnection, TcpStream>;

/// Reads the next whole frame. Returns its type, flags and stream.
fn read_frame(wire: &mut Wire) -> io::Result<(u8, u8, u32)> {
    let mut start = [0; 9];
    wire.read_exact(&mut start)?;
    let [a, b, c, kind, flags, s, t, u, v] = start;
    wire.read_exact(&mut vec![0; u32::from_be_bytes([0, a, b, c]) as usize])?;
    Ok((kind, flags, u32::from_be_bytes([s, t, u, v])))
}

fn serve_connection(mut wire: Wire, behaviour: &Behaviour, asked: &Mutex<Vec<Instant>>) -> io::Result<()> {
    let mut preface = [0; 24];
    wire.read_exact(&mut preface)?;
    assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    wire.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    loop {
        let (kind, flags, stream) = read_frame(&mut wire)?;
        if kind == SETTINGS && flags & ACK == 0 {
            wire.write_all(&frame(SETTINGS, ACK, 0, &[]))?;
        }
        if kind == HEADERS {
            asked.lock().unwrap().push(Instant::now());
            wire.write_all(&(behaviour.begins)(stream))?;
            let pieces = (behaviour.again)(stream).repeat(64);
            // Until the crawler closes the connection. What it sends besides is not read.
            while !pieces.is_empty() {
                wire.write_all(&pieces)?;
            }
        }
    }
}

/// Starts a server. Returns its port, and the times of its requests.
fn start(behaviour: &'static Behaviour) -> (u16, Arc<Mutex<Vec<Instant>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (port, asked) = (listener.local_addr().unwrap().port(), Arc::default());
    let of_server = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let asked = Arc::clone(&of_server);
            thread::spawn(move || {
                let connection = ServerConnection::new(tls_config(&["h2"])).unwrap();
                // The crawler may close the connection, so errors are ignored.
                let _ = serve_connection(StreamOwned::new(connection, stream), behaviour, &asked);
            });
        }
    });
    (port, asked)
}

/// Returns the peak memory of a crawl, from its summary.
fn peak_mib(summary: &str) -> Option<f64> {
    let mut rows = summary.lines().map(str::trim);
    let peak = rows.find_map(|line| line.strip_prefix("peak memory"))?;
    peak.trim().strip_suffix(" MiB")?.parse().ok()
}

fn check(behaviour: &'static Behaviour) {
    let (port, asked) = start(behaviour);
    let begun = Instant::now();
    let output = command(&format!(
        "https://localhost:{port}/ --ignore-robots --refused - -q --delay 0 --timeout 1 --max-attempts {ATTEMPTS} --max-body 65536 \
         --set=retry-jitter=0 --set=retry-wait={} --set=max-first-downtime=0.9 --set=max-host-downtime=0.9",
        WAIT.as_secs_f64()
    ))
    .env("SSL_CERT_FILE", AUTHORITY)
    .output()
    .unwrap();
    let elapsed = begun.elapsed();
    let (lines, summary) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let asked = asked.lock().unwrap();
    let times: Vec<Duration> = asked.iter().map(|asked| *asked - begun).collect();
    let all = format!(
        "{}: asked at {times:?}, ended after {elapsed:?}\n{lines}{summary}",
        behaviour.does
    );

    let says = |reason: &&&str| lines.contains(&format!("\"class\":\"failed\",\"reason\":\"{reason}\""));
    let reason = behaviour.ends.iter().find(says).copied();
    let may_be_a_page = behaviour.ends.is_empty() || behaviour.ends.contains(&PAGE_CUT);
    assert!(reason.is_some() || may_be_a_page, "{all}");
    assert_eq!(lines.lines().count(), usize::from(reason.is_some()), "{all}");
    let has_page = summary.contains("pages             1 ");
    assert_eq!(has_page, matches!(reason, None | Some("incomplete")), "{all}");
    // An attempt that times out may end before its request is sent, and so may one that is overrun.
    let least = if reason == Some("broken") && !may_be_a_page {
        ATTEMPTS
    } else {
        1
    };
    let most = if reason.is_none() { 1 } else { ATTEMPTS + PROBES };
    assert!((least..=most).contains(&asked.len()), "{all}");
    assert!(asked.windows(2).all(|pair| pair[1] - pair[0] >= WAIT), "{all}");
    assert!(elapsed < MAX_TIME && !summary.contains("panicked"), "{all}");
    assert!(peak_mib(&summary).is_none_or(|peak| peak < MAX_MIB), "{all}");
}

#[test]
fn every_crawl_of_a_hostile_http2_server_ends_and_reports_the_cause() {
    thread::scope(|scope| {
        for behaviour in &BEHAVIOURS {
            scope.spawn(|| check(behaviour));
        }
    });
}
