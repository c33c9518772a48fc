//! One record: its fields, its block, its digests.

use std::fmt::Display;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::BASE32;
use frontier::Time;
use page::fingerprint::content_hash;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use uuid::Uuid;

use super::ArchiveOptions;
use super::payloads::Original;
use crate::event::Capture;
use crate::fetch::{BodyExtent, Header, HttpVersion, TruncationReason};

/// The profile of a `revisit` record for a payload that is in the archive (section 6.7.2 of the standard).
const IDENTICAL_PAYLOAD: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// The profile of a `revisit` record for an answer 304, which has no payload (section 6.7.3).
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// The address of the standard.
const FORMAT: &str = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/";

/// Request headers that are secret, and left out of archives.
const SECRET: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];

/// A record, ready to be written.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) id: Uuid,
    pub(super) bytes: Vec<u8>,
}

/// Returns the identifier of a file of a series. It follows from the number, so that later runs know that of the file that they continue.
pub(super) fn id_of_file(series_id: Uuid, number: u32) -> Uuid {
    let mut name = series_id.as_bytes().to_vec();
    name.extend(number.to_le_bytes());
    let hash = content_hash(&name).map_or(0, |hash| hash.value());
    uuid::Builder::from_random_bytes(hash.to_le_bytes()).into_uuid()
}

impl Record {
    /// The first record of a file: all later ones of the file refer to it.
    pub(super) fn info(id: Uuid, file: &Path, options: &ArchiveOptions) -> Self {
        let robots = if options.obeys_robots { "RFC 9309" } else { "ignored" };
        let operator = options.operator.as_deref().map(|name| ("operator", name));
        let fields = [
            ("software", concat!("crawler/", env!("CARGO_PKG_VERSION"))),
            ("format", "WARC File Format 1.1"),
            ("conformsTo", FORMAT),
            ("robots", robots),
            ("http-header-user-agent", options.user_agent.as_str()),
        ];
        let lines = fields
            .into_iter()
            .chain(operator)
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let mut record = Self::begin("warcinfo", id, SystemTime::now());
        if let Some(name) = file.file_name() {
            record.field("WARC-Filename", &name.to_string_lossy());
        }
        record.field("Content-Type", &"application/warc-fields");
        record.with_block(lines.collect::<String>().as_bytes())
    }

    pub(super) fn response(capture: &Capture, file: Uuid) -> Self {
        let mut record = Self::of_capture("response", capture, file);
        record.field("WARC-Payload-Digest", &sha1(&capture.body));
        if let Some(reason) = truncation(capture) {
            record.field("WARC-Truncated", &reason);
        }
        record.field("Content-Type", &"application/http; msgtype=response");
        let mut block = response_head(capture);
        block.extend_from_slice(&capture.body);
        record.with_block(&block)
    }

    /// Without an original, it is of an answer 304: the unchanged payload may be in another archive.
    pub(super) fn revisit(capture: &Capture, original: Option<&Original>, file: Uuid) -> Self {
        let mut record = Self::of_capture("revisit", capture, file);
        if let Some(original) = original {
            record.field("WARC-Profile", &IDENTICAL_PAYLOAD);
            record.id_field("WARC-Refers-To", original.id);
            record.field("WARC-Refers-To-Target-URI", &original.url);
            record.field("WARC-Refers-To-Date", &date(original.started));
            record.field("WARC-Payload-Digest", &sha1(&capture.body));
            record.field("WARC-Truncated", &"length");
        } else {
            record.field("WARC-Profile", &NOT_MODIFIED);
        }
        record.field("Content-Type", &"application/http; msgtype=response");
        record.with_block(&response_head(capture))
    }

    pub(super) fn request(capture: &Capture, answer: Uuid, file: Uuid) -> Self {
        let mut record = Self::of_capture("request", capture, file);
        record.id_field("WARC-Concurrent-To", answer);
        record.field("Content-Type", &"application/http; msgtype=request");
        let exchange = &capture.exchange;
        let mut block = format!("GET {} HTTP/1.1\r\n", exchange.target).into_bytes();
        let is_public = |(name, _): &&Header| !SECRET.contains(&name.as_str());
        for (name, value) in exchange.request_headers.iter().filter(is_public) {
            push_header(&mut block, name, value);
        }
        block.extend_from_slice(b"\r\n");
        record.with_block(&block)
    }

    fn begin(kind: &str, id: Uuid, at: SystemTime) -> Self {
        let bytes = b"WARC/1.1\r\n".to_vec();
        let mut record = Self { id, bytes };
        record.field("WARC-Type", &kind);
        record.id_field("WARC-Record-ID", id);
        record.field("WARC-Date", &date(at));
        record
    }

    fn of_capture(kind: &str, capture: &Capture, file: Uuid) -> Self {
        let mut record = Self::begin(kind, Uuid::new_v4(), capture.started);
        record.field("WARC-Target-URI", &capture.url);
        if let Some(address) = capture.exchange.address {
            record.field("WARC-IP-Address", &address.ip());
        }
        record.id_field("WARC-Warcinfo-ID", file);
        if capture.exchange.version == HttpVersion::HTTP_2 {
            record.field("WARC-Protocol", &"h2");
        }
        record
    }

    fn field(&mut self, name: &str, value: &dyn Display) {
        self.bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }

    fn id_field(&mut self, name: &str, id: Uuid) {
        self.field(name, &format_args!("<{}>", id.urn()));
    }

    fn with_block(mut self, block: &[u8]) -> Self {
        self.field("WARC-Block-Digest", &sha1(block));
        self.field("Content-Length", &block.len());
        for part in [&b"\r\n"[..], block, b"\r\n\r\n"] {
            self.bytes.extend_from_slice(part);
        }
        self
    }
}

fn response_head(capture: &Capture) -> Vec<u8> {
    let exchange = &capture.exchange;
    let mut head = format!("{} {} ", version(exchange.version), exchange.status).into_bytes();
    head.extend_from_slice(&exchange.reason);
    head.extend_from_slice(b"\r\n");
    for (name, value) in &exchange.response_headers {
        let name = match name.as_str() {
            "transfer-encoding" => "x-archive-orig-transfer-encoding",
            name => name,
        };
        push_header(&mut head, name, value);
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn push_header(block: &mut Vec<u8>, name: &str, value: &[u8]) {
    block.extend_from_slice(name.as_bytes());
    block.extend_from_slice(b": ");
    block.extend_from_slice(value);
    block.extend_from_slice(b"\r\n");
}

fn version(version: HttpVersion) -> &'static str {
    match version {
        HttpVersion::HTTP_09 | HttpVersion::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

/// Returns why a body is not whole, in the words of section 5.13 of the standard.
fn truncation(capture: &Capture) -> Option<&'static str> {
    match (capture.extent, capture.truncation) {
        (_, Some(TruncationReason::Size)) | (BodyExtent::Skipped, _) => Some("length"),
        (_, Some(TruncationReason::Time)) => Some("time"),
        (_, Some(TruncationReason::Connection)) => Some("disconnect"),
        (BodyExtent::Truncated, _) => Some("unspecified"),
        (BodyExtent::Complete, _) => None,
    }
}

fn sha1(bytes: &[u8]) -> String {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    format!("sha1:{}", BASE32.encode(digest.as_ref()))
}

/// Formats a time for `WARC-Date`, which has fractions of a second since version 1.1 (section 5.4).
fn date(time: SystemTime) -> String {
    let since_epoch = time.duration_since(UNIX_EPOCH);
    Time::since_epoch(since_epoch.unwrap_or_default()).to_string()
}
