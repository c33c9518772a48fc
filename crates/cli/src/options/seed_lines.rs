//! The lines of a file of seeds: seeds, and pages of an earlier crawl, which are links.

use std::io::{self, BufRead};
use std::mem::take;

use crawler::KnownLinks;
use crawler::config::{parse_seed, split_data};
use frontier::{Canonicalizer, Link};
use url::{Host, Url};

/// The most lines that are named as no seeds: a wrong file may have millions.
const LINES_NAMED: usize = 20;

/// Why the seeds cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeedsError {
    #[error("the seeds in {path} cannot be read: {source}")]
    Unreadable { path: String, source: io::Error },
    /// What the file is instead of text, and what to do.
    #[error("the seeds in {0} are {1}")]
    NotText(String, &'static str),
    /// The first lines that are no seeds, and how many more there are.
    #[error("{}{}", .0.join("\n"), if *.1 > 0 { format!("\nand {} more lines", .1) } else { String::new() })]
    Lines(Vec<String>, usize),
    /// There is no seed beside the links.
    #[error(
        "{path} has pages of an earlier crawl only, and these set no scope: name a page to start from, too, as in crawler {example} --seeds {path}"
    )]
    NoSeed { path: String, example: String },
}

/// What was read of a file so far.
pub(super) struct SeedLines<'a> {
    /// The name of the file, as messages show it.
    path: &'a str,
    canonicalizer: &'a Canonicalizer,
    seeds: Vec<String>,
    links: KnownLinks,
    /// The number of the line that is read.
    line: usize,
    bad: Vec<String>,
    more_bad: usize,
}

impl<'a> SeedLines<'a> {
    pub(super) fn new(path: &'a str, seeds: Vec<String>, canonicalizer: &'a Canonicalizer) -> Self {
        Self {
            path,
            canonicalizer,
            seeds,
            links: KnownLinks::default(),
            line: 0,
            bad: Vec::new(),
            more_bad: 0,
        }
    }

    /// Reads a file line by line: a line of an output has more than its link, and only the link stays in memory.
    pub(super) fn read(&mut self, mut file: impl BufRead) -> Result<(), SeedsError> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let read = file.read_until(b'\n', &mut bytes);
            let length = read.map_err(|source| SeedsError::Unreadable {
                path: self.path.to_owned(),
                source,
            })?;
            if length == 0 {
                return Ok(());
            }
            if let Some(what) = other_than_text(&bytes, self.line == 0) {
                return Err(SeedsError::NotText(self.path.to_owned(), what));
            }
            let text = String::from_utf8_lossy(&bytes);
            let whole = text.strip_suffix('\n');
            let lines = whole.map_or(&*text, |text| text.strip_suffix('\r').unwrap_or(text));
            for line in lines.split('\r') {
                self.line += 1;
                let line = line.trim_start_matches(|start| self.line == 1 && start == '\u{feff}');
                self.add(line, whole.is_some());
            }
        }
    }

    fn add(&mut self, line: &str, is_whole: bool) {
        let added = if line.trim_start().starts_with('{') {
            match self.links.add(line, self.canonicalizer) {
                Err(error) if is_whole => Err(format!(
                    "{error}: give lines of JSON as --output FILE.jsonl writes them"
                )),
                Err(_) => {
                    log::warn!(
                        target: "crawler::seeds",
                        path = self.path;
                        "the last line of {} is not whole and is skipped", self.path
                    );
                    Ok(())
                }
                Ok(()) => Ok(()),
            }
        } else {
            seed_of(line).map(|seed| self.seeds.extend(seed))
        };
        match added {
            Ok(()) => {}
            Err(_) if self.bad.len() >= LINES_NAMED => self.more_bad += 1,
            Err(why) => self.bad.push(format!("line {} of {}: {why}", self.line, self.path)),
        }
    }

    pub(super) fn finish(mut self) -> Result<(Vec<String>, Vec<Link>), SeedsError> {
        if !self.bad.is_empty() {
            return Err(SeedsError::Lines(take(&mut self.bad), self.more_bad));
        }
        if self.links.are_partial() {
            log::info!(
                target: "crawler::seeds",
                path = self.path;
                "the crawl of {} did not fetch all pages: each of its pages is requested whole, so that all links are found", self.path
            );
        }
        let links = self.links.into_links();
        match links.first() {
            Some(link) if self.seeds.is_empty() => Err(SeedsError::NoSeed {
                path: self.path.to_owned(),
                example: link.url.origin().to_string(),
            }),
            _ => Ok((self.seeds, links)),
        }
    }
}

fn other_than_text(bytes: &[u8], is_start: bool) -> Option<&'static str> {
    match bytes {
        [0x1f, 0x8b, ..] if is_start => Some("compressed: unpack the file with gunzip"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [b'P', b'K', 3, 4, ..] if is_start => Some("compressed: unpack the file"),
        // A byte order mark, or what UTF-16 makes of ASCII.
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] if is_start => {
            Some("in UTF-16: save the file as UTF-8")
        }
        [b'u', b'r', b'l', b',', ..] | [0xef, 0xbb, 0xbf, b'u', b'r', b'l', b',', ..] if is_start => {
            Some("in CSV: give lines of JSON, as --output FILE.jsonl writes them")
        }
        _ => bytes
            .contains(&0)
            .then_some("no text: give a file in UTF-8 with a seed on each line"),
    }
}

/// A text that is not a seed. The message names valid forms.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a seed: write a URL such as http://intranet/, a host with a dot such as example.com, an IP address, or localhost"
)]
pub(crate) struct NotASeed {
    pub(crate) text: String,
}

fn seed_of(line: &str) -> Result<Option<String>, String> {
    let (text, data) = split_data(line);
    let is_comment = |(at, _): &(usize, _)| text[..*at].chars().next_back().is_none_or(char::is_whitespace);
    let end = text.match_indices('#').find(is_comment);
    let seed = text[..end.map_or(text.len(), |(at, _)| at)].trim();
    // Within data, it belongs to them.
    let data = data.filter(|data| end.is_none() && !data.starts_with('#'));
    if seed.is_empty() {
        return Ok(None);
    }
    if seed.starts_with("[{") || seed == "[" {
        return Err("this is a JSON array: unpack it with jq -c '.[]'".to_owned());
    }
    if [seed, data.unwrap_or_default()]
        .iter()
        .any(|text| text.contains(char::REPLACEMENT_CHARACTER))
    {
        return Err(format!("{seed:?} is not UTF-8: save the file as UTF-8"));
    }
    let mut parts = seed
        .split(|end: char| end.is_whitespace() || matches!(end, ',' | ';'))
        .skip(1)
        .chain(data);
    if parts.any(|part| part.starts_with("http://") || part.starts_with("https://")) {
        return Err(format!("{seed:?} has two URLs: write one per line"));
    }
    let seed = data.map_or_else(|| seed.to_owned(), |data| format!("{seed}\t{data}"));
    check_whole(&seed).map(|()| Some(seed))
}

/// Checks a seed as the crawl does, too.
///
/// # Errors
///
/// Why it cannot be one.
pub(super) fn check_whole(seed: &str) -> Result<(), String> {
    check(seed).map_err(|error| error.to_string())?;
    parse_seed(seed, &Canonicalizer::default()).map_err(|error| error.to_string())?;
    Ok(())
}

/// Checks that a text is a URL, or starts with a host with a dot, an IP address or localhost.
///
/// Any other single word is probably a typing error, such as a misspelt subcommand. The library checks URLs in more detail.
///
/// # Errors
///
/// When the text is none of these.
pub(crate) fn check(text: &str) -> Result<(), NotASeed> {
    let (trimmed, _) = split_data(text);
    // WHATWG reads http:/host as http://host only without a base: it is a typing error, and must not become a host named http.
    let has_one_slash = ["http:/", "https:/"].iter().any(|start| {
        let (head, rest) = trimmed.split_at_checked(start.len()).unwrap_or(("", ""));
        head.eq_ignore_ascii_case(start) && !rest.starts_with('/')
    });
    let is_url =
        trimmed.contains("://") || Url::parse(trimmed).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    match !has_one_slash && (is_url || has_plain_host(trimmed)) {
        true => Ok(()),
        false => Err(NotASeed { text: text.to_owned() }),
    }
}

fn has_plain_host(text: &str) -> bool {
    let read = parse_seed(text, &Canonicalizer::default());
    match read.as_ref().ok().and_then(|seed| seed.url.url().host()) {
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.split_once('.').is_some_and(|(first, _)| !first.is_empty())
        }
        // A bare number would be an IP address, too.
        Some(Host::Ipv4(_)) => text
            .split(['/', '?', '#'])
            .next()
            .is_some_and(|host| host.contains('.')),
        Some(Host::Ipv6(_)) => true,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_hosts_with_a_dot_addresses_and_localhost_are_seeds() {
        let seeds = "http://intranet/,https://example.com/a?b#c,HTTPS://EXAMPLE.COM,https:example.com,ftp://example.com/,\
            example.com,example.com.,example.com:8443/x,example.com/a:b@c,bücher.example,localhost,LOCALHOST:8080/x,\
            www.demo.localhost,127.0.0.1:8080,[::1]:8080/x,  example.com  ";
        for text in seeds.split(',') {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_single_word_is_not_a_seed() {
        let others = ",demo,dmeo,bash,intranet:8080/x,localhost.a:b:c,1234,1234/a.b,.,..,./page,.hidden,not a url,a page.html,\
            mailto:someone@example.com,javascript:alert(1.5),me@example.com,http:/example.com,HTTPS:/127.0.0.1:8080/";
        for text in others.split(',') {
            assert!(check(text).is_err(), "{text}");
        }
    }
}
