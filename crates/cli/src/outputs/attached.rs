//! Opens the outputs and attaches them to a crawl. With a state directory they are files that a later run continues, each line once.

use std::io;
use std::path::{Path, PathBuf};

use crawler::output::links::LinkGraph;
use crawler::output::pages::Pages;
use crawler::output::refused::RefusedReport;
use crawler::output::save::SavedFiles;
use crawler::output::warc::{Archive, ArchiveOptions};
use crawler::output::{self, OutputFile, SavedOutput, Sink};
use crawler::summary::size;
use crawler::{Crawl, Event, Observer};
use regex::Regex;

use super::{OutputError, StandardOutput, refuse_shared};
use crate::options::{Format, Options, Outputs, is_compressed, is_stdout};

/// The file in the state directory with the names that --save has given.
const SAVED_NAMES: &str = "saved-names";

/// The names under which these outputs are saved.
const WARC: &str = "warc";
const SAVE: &str = "save";
/// What follows on the name of a file of records that is not JSON lines, and of one that is compressed.
const FORMATS: [(&str, Format); 2] = [
    (" (as CSV)", Format::Csv),
    (" (as CSV with a byte order mark)", Format::CsvBom),
];
const GZIP: &str = " (gzip)";

/// What a file of records has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Pages,
    Links,
    Refused,
}

/// A file of records.
#[derive(Debug, Clone, Copy)]
struct Records<'o> {
    content: Content,
    path: &'o PathBuf,
    format: Format,
}

impl Content {
    fn option(self) -> &'static str {
        match self {
            Self::Pages => "output",
            Self::Links => "links",
            Self::Refused => "refused",
        }
    }
}

impl<'o> Records<'o> {
    fn all(outputs: &'o Outputs) -> [Option<Self>; 3] {
        [
            (Content::Pages, &outputs.output),
            (Content::Links, &outputs.links),
            (Content::Refused, &outputs.refused),
        ]
        .map(|(content, path)| {
            let path = path.as_ref()?;
            let format = outputs.format_of(path);
            Some(Self { content, path, format })
        })
    }

    /// The name under which it is saved. A file in another format is another output.
    fn name(&self) -> String {
        let format = FORMATS.into_iter().find(|(_, format)| *format == self.format);
        let gzip = if is_compressed(self.path) { GZIP } else { "" };
        format!(
            "{}{}{gzip}",
            self.content.option(),
            format.map_or("", |(suffix, _)| suffix)
        )
    }
}

/// Attaches all outputs but the page lines. All files are open before the first is emptied, so a crawl that cannot start keeps the
/// previous results. Files of earlier runs are cut back to their last commit.
pub(super) fn attach(mut crawl: Crawl, options: &Options, state: Option<&Path>) -> Result<Crawl, OutputError> {
    let outputs = &options.outputs;
    if let Some(state) = state {
        check(&crawl, outputs, state)?;
    }
    let records = Records::all(outputs);
    let mut opened = Vec::new();
    for records in records.into_iter().flatten() {
        let file = match is_stdout(records.path) {
            true => Ok(None),
            false => open(&crawl, records.path, &records.name(), records.content.option(), state).map(Some),
        };
        opened.push((records, file));
    }
    // Two names of one new file can be compared only after the file exists. The second one was found to be in use.
    refuse_shared(outputs)?;
    let opened = opened.into_iter().map(|(records, file)| Ok((records, file?)));
    let mut opened = opened.collect::<Result<Vec<_>, OutputError>>()?;
    if let Some(path) = &outputs.warc {
        let archive = archive_options(&crawl, path, options);
        let archive = match state {
            Some(_) => {
                if crawl.saved_output(WARC).is_none() {
                    warn_if_late(&crawl, path.display());
                }
                Archive::continuing(WARC, archive, crawl.saved_output(WARC))
            }
            None => Archive::create(archive),
        };
        crawl = crawl.observe(archive.map_err(OutputError::Open)?);
    }
    // Before the lines, which have the names of the files.
    if let Some(folder) = &outputs.save {
        let files = match state {
            Some(state) => {
                let (mut names, is_new) = open(&crawl, &state.join(SAVED_NAMES), SAVE, SAVE, Some(state))?;
                if is_new {
                    names.empty().map_err(OutputError::Open)?;
                }
                SavedFiles::continuing(SAVE, folder, names, crawl.saved_output(SAVE))
            }
            None => SavedFiles::create(folder),
        };
        crawl = crawl.observe(matching(files.map_err(OutputError::Open)?, options));
    }
    for (_, file) in &mut opened {
        if let Some((file, true)) = file {
            warn_if_replaced(file, state);
            file.empty().map_err(OutputError::Open)?;
        }
    }
    for (records, file) in opened {
        let to = match file {
            None => Sink::new(StandardOutput),
            Some((file, _)) if state.is_some() => Sink::continuing(records.name(), file),
            Some((file, _)) => Sink::new(file),
        };
        let to = to.compressed(is_compressed(records.path));
        crawl = attach_records(crawl, &records, to, options).map_err(OutputError::Open)?;
    }
    Ok(crawl)
}

fn attach_records(crawl: Crawl, records: &Records<'_>, to: Sink, options: &Options) -> io::Result<Crawl> {
    let format = match records.format {
        Format::Jsonl => output::Format::JsonLines,
        Format::Csv => output::Format::Csv,
        Format::CsvBom => output::Format::CsvWithMark,
    };
    Ok(match records.content {
        Content::Pages => {
            let pages = Pages::new(to, format, &crawl.config().options().fields)?;
            crawl.observe(matching(pages, options))
        }
        Content::Links => crawl.observe(LinkGraph::new(to, format)?),
        Content::Refused => crawl.observe(RefusedReport::new(to, format)?),
    })
}

/// Lets only those pages through to an output that --output-include names.
pub(super) fn matching<O>(to: O, options: &Options) -> Matching<O> {
    let patterns = options.outputs.output_include.clone();
    Matching { to, patterns }
}

pub(super) struct Matching<O> {
    to: O,
    patterns: Vec<Regex>,
}

impl<O: Observer> Observer for Matching<O> {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        let url = match event {
            Event::Page(page) => &page.url,
            Event::Body(body) => &body.page.url,
            _ => return self.to.on(event),
        };
        match self.patterns.is_empty() || self.patterns.iter().any(|pattern| pattern.is_match(url)) {
            true => self.to.on(event),
            false => Ok(()),
        }
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        self.to.save(sync)
    }
}

/// Checks that all outputs are files, and that none is missing that the earlier runs have written. It changes no file.
fn check(crawl: &Crawl, outputs: &Outputs, state: &Path) -> Result<(), OutputError> {
    let records = Records::all(outputs).into_iter().flatten();
    if let Some(records) = records.clone().find(|records| is_stdout(records.path)) {
        return Err(OutputError::CannotContinue(records.content.option()));
    }
    let is_given = |saved: &&SavedOutput| match saved.name.as_str() {
        WARC => outputs.warc.is_some(),
        SAVE => outputs.save.is_some(),
        name => records.clone().any(|records| records.name() == name),
    };
    match crawl.saved_outputs().iter().find(|saved| !is_given(saved)) {
        Some(saved) => Err(OutputError::NotGiven {
            state: state.display().to_string(),
            arguments: arguments_of(saved, outputs),
        }),
        None => Ok(()),
    }
}

/// Returns the options for an output of earlier runs.
fn arguments_of(saved: &SavedOutput, outputs: &Outputs) -> String {
    let path = &saved.file.path;
    // These are more than one file.
    if matches!(saved.name.as_str(), SAVE | WARC) {
        return format!("--{}", saved.name);
    }
    let name = saved.name.strip_suffix(GZIP).unwrap_or(&saved.name);
    let of_format = |(suffix, format)| Some((name.strip_suffix(suffix)?, format));
    let (option, format) = FORMATS.into_iter().find_map(of_format).unwrap_or((name, Format::Jsonl));
    let format = match format {
        _ if outputs.format_of(Path::new(path)) == format => "",
        Format::Csv => " --format csv",
        Format::CsvBom => " --format csv-bom",
        Format::Jsonl => " --format jsonl",
    };
    format!("--{option} {path}{format}")
}

/// Opens a file, and returns whether no earlier run has written it.
fn open(
    crawl: &Crawl,
    path: &Path,
    name: &str,
    option: &'static str,
    state: Option<&Path>,
) -> Result<(OutputFile, bool), OutputError> {
    if let Some(saved) = crawl.saved_output(name) {
        let file = OutputFile::reopen(path, &saved.file).map_err(OutputError::Open)?;
        return Ok((file, false));
    }
    let file = OutputFile::append(path).map_err(OutputError::Open)?;
    if state.is_some() {
        if !file.is_regular() {
            return Err(OutputError::CannotContinue(option));
        }
        match name {
            SAVE => warn_if_late(crawl, "the folder of --save"),
            _ => warn_if_late(crawl, path.display()),
        }
    }
    Ok((file, true))
}

/// Warns that a file has content, which the crawl does not continue.
fn warn_if_replaced(file: &OutputFile, state: Option<&Path>) {
    let bytes = file.path().metadata().map_or(0, |found| found.len());
    if bytes == 0 || !file.is_regular() {
        return;
    }
    let (path, size) = (file.path().display(), size(bytes));
    let how = match state {
        None => "to continue a crawl instead, give --state DIR from its start on",
        Some(_) => "no earlier run over this state directory has written it",
    };
    log::warn!(target: "crawler::outputs", path:%, bytes; "{path} had {size}, which are replaced: {how}");
}

/// Warns that an output begins in the middle of a crawl.
fn warn_if_late(crawl: &Crawl, what: impl std::fmt::Display) {
    if crawl.is_continued() {
        log::warn!(
            target: "crawler::state",
            "{what} is new in this run: what belongs there of the earlier runs is missing"
        );
    }
}

/// Returns the options of an archive.
fn archive_options(crawl: &Crawl, path: &Path, given: &Options) -> ArchiveOptions {
    let (options, settings) = (crawl.config().options(), given.settings());
    ArchiveOptions {
        path: path.to_owned(),
        max_file_bytes: settings.warc_max_bytes,
        operator: settings.warc_operator,
        user_agent: options.user_agent.clone(),
        obeys_robots: options.frontier.ask_robots,
    }
}
