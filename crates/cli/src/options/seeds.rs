//! The seeds of the command line and of files.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cluster::Address;
use crawler::config::parse_seed;
use frontier::{Canonicalizer, Partition};
use url::{Host, Url};

use super::Options;
use super::values::{parse_duration, parse_duration_above_zero, parse_size, show_duration};

#[derive(Debug, Args)]
pub(crate) struct Site {
    /// Pages to start from, such as example.com or https://example.com/docs/.
    ///
    /// A host without a scheme gets https://. IP addresses and localhost get http://.
    #[arg(value_name = "SEED_URL", required_unless_present = "seeds")]
    pub(super) seed_urls: Vec<String>,
    /// Read more seeds from a file, one per line.
    ///
    /// The name - is standard input. Empty lines and comments after # at the start or after a space are skipped.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) seeds: Option<PathBuf>,
    /// Fetch the pages of a JSON lines file of --output again if they changed.
    ///
    /// A CSV file does not do. The crawler sends the ETag or Last-Modified header of each page. A server then sends only the pages that changed. The
    /// seeds set the scope. Of a page with several lines, the last one counts. A --state directory belongs to one such file: give the same one to
    /// continue, and use another directory, or --refresh, to repeat the crawl once more.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub(crate) recrawl: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: Options,
    /// Keep the crawl in this directory, so that the same command continues it.
    ///
    /// The crawl may be stopped or killed at any moment. No page is lost, at most --concurrency pages are fetched again, and each line of
    /// the outputs is there once. The same outputs must be given, as files; page lines on standard output may be repeated. Other options may
    /// change, except those on which the state depends, such as --capacity. The maximum of pages is for all runs, that of the time
    /// for one. Only the user of the crawl may read the directory's files: cookies and the secret of the hash are in them.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) state: Option<PathBuf>,
    /// Sync --state and the outputs to the disk this often, if they changed.
    ///
    /// A power cut costs what was fetched since: it is fetched again. 0 syncs after every few pages. A kill costs none of it, however long this is.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = show_duration(frontier::config::DEFAULT_SYNC_INTERVAL),
        value_parser = parse_duration,
        requires = "state",
        help_heading = "Output"
    )]
    pub(crate) sync_interval: Duration,
    /// Fetch the pages of --state again whose last fetch is older than this.
    ///
    /// The crawler sends the ETag or Last-Modified header of each page. A server then sends only the pages that changed. Each fetch gets a line of --output. The crawl ends when no
    /// page is older and nothing is queued; a page that comes of age meanwhile is fetched again, too. The limits on pages do not count these
    /// fetches; but once --max-pages is spent, the crawl ends without them.
    #[arg(
        long,
        value_name = "AGE",
        value_parser = parse_duration_above_zero,
        requires = "state",
        help_heading = "Input"
    )]
    pub(crate) refresh: Option<Duration>,
    /// Share out this much memory among the seen-set, the hosts, caches and requests.
    ///
    /// Needs --state.
    /// Hosts that were not used for long lie in the state directory. The seen-set may take a quarter: beyond that it wrongly drops more
    /// and more new pages, and warns. The size has room for pages in flight of usual length; --max-body bounds the others. Without it the
    /// seen-set and the names of hosts grow, and hosts in memory take 160 MiB.
    #[arg(long, value_name = "SIZE", value_parser = parse_size::<NonZeroU64>, requires = "state", help_heading = "Limits")]
    pub(crate) memory: Option<NonZeroU64>,
    /// Share the crawl with other processes through Redis, at redis://HOST/NAME.
    ///
    /// All processes get the same seeds and options, each its own --partition, --state and outputs. NAME is the name of the crawl. A password is
    /// written as in redis://user:password@host:6379/NAME; a configuration file, or the environment variable REDISCLI_AUTH, hides it from other users of this
    /// machine. rediss:// encrypts. See docs/many-machines.md.
    #[arg(long, value_name = "URL", requires_all = ["state", "partition"], conflicts_with = "refresh", help_heading = "Cluster")]
    pub(crate) cluster: Option<Address>,
    /// The share of this process: 0/4, 1/4, 2/4 or 3/4 of four.
    ///
    /// The hash of a site (the registrable domain) says to which partition it belongs. The number of partitions is fixed when the crawl begins.
    /// --max-pages and --max-hosts are for all partitions together; each takes its share.
    #[arg(long, value_name = "I/N", requires = "cluster", help_heading = "Cluster")]
    pub(crate) partition: Option<Partition>,
    /// Go on without what an output or the directory of a partition has lost.
    ///
    /// Without it, a start is refused if an output has changed or is not given, or if a partition has an old or a new directory. A file that has
    /// changed stays as it is: the output goes on in a new one beside it. What was lost is counted, and the crawl is incomplete; it ends with code
    /// 3 if links between partitions were lost.
    #[arg(long, requires = "state", help_heading = "Output")]
    pub(crate) accept_loss: bool,
    /// The arguments as they were given, without those of a configuration file.
    #[arg(skip)]
    pub(crate) given: Vec<OsString>,
}

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
}

/// A text that is not a seed. The message names valid forms.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a seed: write a URL such as http://intranet/, a host with a dot such as example.com, an IP address, or localhost"
)]
pub(crate) struct NotASeed {
    pub(super) text: String,
}

impl NotASeed {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Site {
    pub(crate) fn secrets(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let has_login = |text: &str| {
            Url::parse(text.trim()).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
        };
        let seeds = self
            .seed_urls
            .iter()
            .map(String::as_str)
            .filter(move |seed| has_login(seed));
        seeds
            .map(|seed| (seed, "a seed with a login"))
            .chain(self.options.requests.secrets())
    }

    /// Returns the seeds of the command line and of the file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or a line is not a seed.
    pub(crate) fn all_seeds(&self) -> Result<Vec<String>, SeedsError> {
        let mut seeds = self.seed_urls.clone();
        let Some(path) = &self.seeds else {
            return Ok(seeds);
        };
        let mut bytes = Vec::new();
        let (shown, read) = if path.as_os_str() == "-" {
            let read = io::stdin().read_to_end(&mut bytes).map(|_| bytes);
            ("standard input".to_owned(), read)
        } else {
            (path.display().to_string(), fs::read(path))
        };
        let bytes = read.map_err(|source| SeedsError::Unreadable {
            path: shown.clone(),
            source,
        })?;
        let other = match bytes[..] {
            [0x1f, 0x8b, ..] => Some("compressed: unpack the file with gunzip"),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [b'P', b'K', 3, 4, ..] => Some("compressed: unpack the file"),
            // A byte order mark, or what UTF-16 makes of ASCII.
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => Some("in UTF-16: save the file as UTF-8"),
            _ => bytes
                .contains(&0)
                .then_some("no text: give a file in UTF-8 with a seed on each line"),
        };
        if let Some(what) = other {
            return Err(SeedsError::NotText(shown, what));
        }
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        let (mut bad, mut more) = (Vec::new(), 0);
        for (at, line) in text.trim_start_matches('\u{feff}').split(['\n', '\r']).enumerate() {
            match seed_of(line) {
                Ok(None) => {}
                Ok(Some(seed)) => seeds.push(seed),
                Err(_) if bad.len() >= LINES_NAMED => more += 1,
                Err(why) => bad.push(format!("line {} of {shown}: {why}", at + 1)),
            }
        }
        if bad.is_empty() {
            Ok(seeds)
        } else {
            Err(SeedsError::Lines(bad, more))
        }
    }
}

fn seed_of(line: &str) -> Result<Option<String>, String> {
    let is_comment = |(at, _): &(usize, _)| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    let end = line.match_indices('#').find(is_comment);
    let seed = line[..end.map_or(line.len(), |(at, _)| at)].trim();
    if seed.is_empty() {
        return Ok(None);
    }
    if seed.contains(char::REPLACEMENT_CHARACTER) {
        return Err(format!("{seed:?} is not UTF-8: save the file as UTF-8"));
    }
    let mut parts = seed
        .split(|end: char| end.is_whitespace() || matches!(end, ',' | ';'))
        .skip(1);
    if parts.any(|part| part.starts_with("http://") || part.starts_with("https://")) {
        return Err(format!("{seed:?} has two URLs: write one per line"));
    }
    check_whole(seed).map(|()| Some(seed.to_owned()))
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
    let trimmed = text.trim();
    // WHATWG reads http:/host as http://host only without a base: it is a typing error, and must not become a host named http.
    let has_one_slash = ["http:/", "https:/"].iter().any(|start| {
        let (head, rest) = trimmed.split_at_checked(start.len()).unwrap_or(("", ""));
        head.eq_ignore_ascii_case(start) && !rest.starts_with('/')
    });
    if has_one_slash {
        return Err(NotASeed { text: text.to_owned() });
    }
    let is_url =
        trimmed.contains("://") || Url::parse(trimmed).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if is_url || has_plain_host(trimmed) {
        Ok(())
    } else {
        Err(NotASeed { text: text.to_owned() })
    }
}

fn has_plain_host(text: &str) -> bool {
    let end = text.find(['/', '?', '#']).unwrap_or(text.len());
    let authority = text.get(..end).unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    match Host::parse(host) {
        Ok(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(&name);
            name == "localhost" || name.split_once('.').is_some_and(|(first, _)| !first.is_empty())
        }
        // A bare number would be an IP address, too.
        Ok(Host::Ipv4(_)) => host.contains('.'),
        Ok(Host::Ipv6(_)) => true,
        Err(_) => false,
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
        let others = ",demo,dmeo,bash,intranet:8080/x,localhost.a:b:c,1234,.,..,./page,.hidden,not a url,a page.html,\
            mailto:someone@example.com,javascript:alert(1.5),me@example.com,http:/example.com,HTTPS:/127.0.0.1:8080/";
        for text in others.split(',') {
            assert!(check(text).is_err(), "{text}");
        }
    }
}
