//! The options of the outputs.

use std::ffi::OsString;
#[cfg(unix)]
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use crawler::output::Format;
use crawler::page::select::Field;
use crawler::{CrawlOptions, HttpOptions};
use file_id::{FileId, get_file_id};
use frontier::scope::ScopeError;
use regex::Regex;

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Outputs {
    /// Write a line per fetched page to this file: JSON, or CSV for a name in .csv.
    ///
    /// The name - is standard output. An existing file is replaced. A given format wins over the name. A name in .gz compresses the file.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write a line per link of each page to this file.
    ///
    /// Its fields are from, to, kind, nofollow and verdict. The format is chosen as for --output. The name - is standard output. An
    /// existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) links: Option<PathBuf>,
    /// Write a line per refused or failed URL to this file, with the reason.
    ///
    /// Each line has the page with the link. URLs that still wait when a crawl is stopped are not among them: crawler list DIR --waiting
    /// has those of a state directory. The format is chosen as for --output. The name - is standard output. An existing file is replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) refused: Option<PathBuf>,
    /// Add a field to the objects of --output; repeatable.
    ///
    /// The objects have it under "selected", as a list of strings. NAME=SELECTOR takes the text of each element that the CSS
    /// selector matches. NAME=SELECTOR::text takes the text directly inside the element, and NAME=SELECTOR::attr(ATTRIBUTE) an
    /// attribute. For example: 'price=.price::text', 'image=img::attr(src)'
    #[arg(long, value_name = "NAME=SELECTOR", requires = "output")]
    select: Vec<Field>,
    /// Write only pages that match this regular expression, but follow all; repeatable.
    ///
    /// For --output, --save and the lines on standard output. The other pages are fetched and followed all the same: to follow none of them,
    /// give --include.
    #[arg(long, value_name = "REGEX", value_parser = parse_pattern)]
    pub(crate) output_include: Vec<Regex>,
    /// Write only pages that are new, or have changed since their last fetch.
    ///
    /// For the same outputs, with --keep-fresh or --refresh. With --select, a page has changed if its selected values have; else if any byte has.
    #[arg(long)]
    pub(crate) output_changes: bool,
    /// Archive every response and its request in this file, as WARC 1.1.
    ///
    /// The file is compressed if its name ends in .gz. An existing file is not overwritten.
    #[arg(long, value_name = "FILE", value_parser = parse_file)]
    pub(crate) warc: Option<PathBuf>,
    /// Format of the files of --output, --links and --refused.
    ///
    /// In CSV each selected field has a column selected.NAME, and a text of a site that a spreadsheet would run as a formula (it
    /// starts with =, +, - or @) gets an apostrophe in front.
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    pub(crate) format: Option<Format>,
    /// Save the bodies of pages as files in this folder.
    ///
    /// Every page that answered 2xx is saved, unless its body is empty. https://example.com/docs/a becomes DIR/example.com/docs/a.html.
    /// The names are safe: nothing is written outside of the folder. The objects of --output have the name of the file under "saved_as".
    /// Bodies of every type are read whole, up to --max-body. Files of an earlier crawl are replaced.
    #[arg(long, value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// Write metrics for Prometheus to this file, every ten seconds and at the end.
    ///
    /// For the text file collector of the node exporter, which wants a name in .prom. The file is replaced as a whole each time.
    /// docs/metrics.md lists the metrics; docs/monitoring.md has rules for alerts and a board for Grafana.
    #[arg(long, value_name = "FILE", value_parser = parse_file)]
    pub(crate) metrics_file: Option<PathBuf>,
    /// Write a report to this HTML file at the end.
    ///
    /// It is the page of --watch with its data inside, and needs no network. An earlier report is replaced, another file is not. crawler
    /// report writes that of a state directory at any time, also after a crash.
    #[arg(long, value_name = "FILE", value_parser = parse_file)]
    pub(crate) report: Option<PathBuf>,
}

/// The formats of files of records, by the values of the option, with their help.
pub(crate) const FORMATS: [(Format, &str, &str); 3] = [
    (Format::JsonLines, "jsonl", "One JSON object per line"),
    (Format::Csv, "csv", "CSV (RFC 4180) with a header line"),
    (
        Format::CsvWithMark,
        "csv-bom",
        "CSV after a byte order mark, which Excel needs to read it as UTF-8",
    ),
];

fn format_parser() -> impl TypedValueParser<Value = Format> {
    let values = FORMATS.map(|(_, name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).map(|given| {
        let known = FORMATS.into_iter().find(|(_, name, _)| *name == given);
        known.map_or(Format::JsonLines, |(format, ..)| format)
    })
}

/// `None` for an ending that says another one.
fn format_by_name(file: &Path) -> Option<Format> {
    let name = file
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
    let ending = ending.map_or("", |(_, ending)| ending);
    // A date or a version says nothing of the format, nor does the name of a pipe or a device.
    let is_format = ending.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_other_kind = || file.metadata().is_ok_and(|found| !found.is_file());
    match ending {
        "jsonl" | "ndjson" | "jl" | "json" | "txt" | "log" | "tmp" | "part" => Some(Format::JsonLines),
        "csv" => Some(Format::Csv),
        _ => (!is_format || is_other_kind()).then_some(Format::JsonLines),
    }
}

impl Outputs {
    pub(super) fn write_to(&self, crawl: &mut CrawlOptions, http: &mut HttpOptions) {
        crawl.reports.fields.clone_from(&self.select);
        crawl.reports.fingerprints = self.output.is_some();
        crawl.reports.bodies = self.save.is_some();
        crawl.reports.links = self.links.is_some() || self.refused.is_some();
        http.keep_exchanges = self.warc.is_some();
    }

    pub(crate) fn all_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files()
            .chain(&self.warc)
            .chain(&self.metrics_file)
            .chain(&self.report)
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.output, &self.links, &self.refused].into_iter().flatten()
    }

    /// `None` if neither the option nor the name says it.
    pub(crate) fn format_of(&self, file: &Path) -> Option<Format> {
        self.format.or_else(|| format_by_name(file))
    }

    /// Returns whether an output replaces this file. A terminal or a device cannot be replaced.
    pub(crate) fn replaces(&self, input: &Path) -> bool {
        let is_regular = input.metadata().is_ok_and(|found| found.is_file());
        is_regular && self.all_files().any(|file| is_same(file, input))
    }

    pub(crate) fn takes_stdout(&self) -> bool {
        self.files().any(|file| is_stdout(file))
    }
}

pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    one == other
        || is_stdout(one) && is_stdout(other)
        || place_of(one).is_some_and(|place| place_of(other) == Some(place))
}

/// What a path names: a file, or a name in a folder if the file does not exist yet.
#[derive(PartialEq, Eq)]
enum Place {
    File(FileId),
    New { folder: FileId, name: OsString },
}

/// The reader of a named pipe would take the close as the end.
fn place_of(path: &Path) -> Option<Place> {
    if let Ok(file) = get_file_id(path) {
        return Some(Place::File(file));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some(Place::New {
        folder: get_file_id(folder.unwrap_or(Path::new("."))).ok()?,
        name: path.file_name()?.to_owned(),
    })
}

/// Reads a pattern of --output-include. Its error is that of --include.
fn parse_pattern(text: &str) -> Result<Regex, ScopeError> {
    Regex::new(text).map_err(|reason| ScopeError::Pattern {
        list: "output-include",
        pattern: text.to_owned(),
        reason,
    })
}

/// Reads the name of a file. Standard output is not such a file.
pub(super) fn parse_file(text: &str) -> Result<PathBuf, &'static str> {
    match text {
        "" => Err("this is no name: give a file"),
        "-" => Err("this cannot go to standard output: give a file"),
        _ => Ok(PathBuf::from(text)),
    }
}

/// Returns whether a path names standard output: as `-`, or as what it is, such as `/dev/stdout`. If that were opened once more, the two would
/// overwrite each other.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-" || leads_to_stdout(path)
}

#[cfg(unix)]
pub(crate) fn metadata_of_stdout() -> std::io::Result<Metadata> {
    use std::os::fd::AsFd as _;
    File::from(std::io::stdout().as_fd().try_clone_to_owned()?).metadata()
}

#[cfg(unix)]
fn leads_to_stdout(path: &Path) -> bool {
    use std::io::{IsTerminal as _, stdout};
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let (Ok(named), Ok(stdout_file)) = (path.metadata(), metadata_of_stdout()) else {
        return false;
    };
    // Of devices, such as /dev/null, only a terminal shows what is written.
    let is_shown = stdout().is_terminal() || !named.file_type().is_char_device();
    is_shown && (named.dev(), named.ino()) == (stdout_file.dev(), stdout_file.ino())
}

#[cfg(not(unix))]
fn leads_to_stdout(_path: &Path) -> bool {
    false
}
