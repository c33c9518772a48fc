//! The options that say what is written where.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use clap::Args;
use crawler::CrawlOptions;
use crawler::page::select::{Field, SelectLimits};

#[derive(Debug, Args)]
pub(crate) struct Outputs {
    /// Write one JSON object per fetched page to this file; - is standard output. A file that is there is replaced.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Add a field to the page's object under "selected", a list of strings: NAME=SELECTOR gives the text of each element,
    /// NAME=SELECTOR::text its direct pieces of text, NAME=SELECTOR::attr(ATTRIBUTE) an attribute; may be given more than once.
    /// For example: --select title=h1 --select 'price=.price::text' --select 'image=img::attr(src)'.
    #[arg(long, value_name = "NAME=SELECTOR", requires = "output", help_heading = "Output")]
    select: Vec<Field>,
    /// Values of a selected field that are kept per page; further ones are counted.
    #[arg(
        long,
        value_name = "N",
        default_value_t = crawler::config::DEFAULT_MAX_SELECT_VALUES,
        help_heading = "Limits"
    )]
    max_select_values: usize,
    /// Bytes that the values of a selected field may have together per page; what is over is cut, and counted.
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = crawler::config::DEFAULT_MAX_SELECT_BYTES,
        help_heading = "Limits"
    )]
    max_select_bytes: usize,
    /// Write one JSON object per link of each page to this file: from, to, kind, nofollow, verdict; - is standard output. A file
    /// that is there is replaced.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) links: Option<PathBuf>,
    /// Write one JSON object per URL that was refused, not fetched or failed to this file, with the reason and the page that
    /// links to it; - is standard output. A file that is there is replaced.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) refused: Option<PathBuf>,
    /// Archive every answer, with its request, to this file as WARC 1.1; compressed if the name ends in .gz. A file that is there
    /// is gone on with.
    #[arg(long, value_name = "FILE", value_parser = parse_file, help_heading = "Output")]
    pub(crate) warc: Option<PathBuf>,
    /// Begin another archive file when one has so many bytes: FILE-00001.warc.gz and so on; no limit unless given.
    #[arg(long, value_name = "BYTES", requires = "warc", help_heading = "Output")]
    pub(crate) warc_max_bytes: Option<NonZeroU64>,
    /// Who makes the archive, a name or an address, to be noted in it.
    #[arg(long, value_name = "TEXT", requires = "warc", value_parser = parse_line, help_heading = "Output")]
    pub(crate) warc_operator: Option<String>,
}

impl Outputs {
    /// Asks the crawl for what the outputs need.
    pub(crate) fn ask(&self, crawl: &mut CrawlOptions) {
        crawl.fields.clone_from(&self.select);
        crawl.select_limits = SelectLimits {
            values: self.max_select_values,
            bytes: self.max_select_bytes,
        };
        crawl.fingerprints = self.output.is_some();
        crawl.keep_exchanges = self.warc.is_some();
        crawl.report_links = self.links.is_some() || self.refused.is_some();
    }

    /// Returns a file that two outputs were to share.
    pub(crate) fn shared_file(&self) -> Option<&Path> {
        let files: Vec<&PathBuf> = [&self.output, &self.links, &self.refused, &self.warc]
            .into_iter()
            .flatten()
            .collect();
        let is_second = |&(at, file): &(usize, &&PathBuf)| files.iter().take(at).any(|earlier| is_same(earlier, file));
        files.iter().enumerate().find(is_second).map(|(_, file)| file.as_path())
    }

    /// Says whether an output goes to this file.
    pub(crate) fn write_to(&self, input: &Path) -> bool {
        let mut files = [&self.output, &self.links, &self.refused, &self.warc]
            .into_iter()
            .flatten();
        files.any(|file| is_same(file, input))
    }

    /// Says whether standard output carries results.
    pub(crate) fn takes_stdout(&self) -> bool {
        let files = [&self.output, &self.links, &self.refused];
        files.into_iter().flatten().any(|file| is_stdout(file))
    }
}

/// Whether two paths lead to one file, under whatever name.
fn is_same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(one), Ok(other)) = (one.metadata(), other.metadata()) {
        use std::os::unix::fs::MetadataExt as _;
        return (one.dev(), one.ino()) == (other.dev(), other.ino());
    }
    place_of(one) == place_of(other)
}

/// The file that a path leads to, whether it is there yet or not.
fn place_of(path: &Path) -> PathBuf {
    if let Ok(place) = path.canonicalize() {
        return place;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    match (folder, path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

/// A file to go on with, which standard output is not.
fn parse_file(text: &str) -> Result<PathBuf, String> {
    if text == "-" {
        return Err("an archive cannot go to standard output: name a file".to_owned());
    }
    Ok(PathBuf::from(text))
}

fn parse_line(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_control) {
        return Err("give one line of text".to_owned());
    }
    Ok(text.to_owned())
}

pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}
