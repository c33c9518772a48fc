//! Opens the outputs and attaches them to a crawl. With a state directory they are files that a later run continues, each line once.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use crawler::output::links::LinkGraph;
use crawler::output::pages::Pages;
use crawler::output::refused::RefusedReport;
use crawler::output::save::SavedFiles;
use crawler::output::warc::{Archive, ArchiveOptions};
use crawler::output::{Format, OutputFile, SavedFile, SavedOutput, Sink, is_compressed, series_of};
use crawler::summary::size;
use crawler::{Crawl, Event, Observer};
use regex::Regex;

use super::{OutputError, StandardOutput, refuse_shared};
use crate::options::{FORMATS, Options, Outputs, is_same, is_stdout};

/// The file in the state directory with the names that --save has given.
const SAVED_NAMES: &str = "saved-names";

/// The options of the outputs, which are also the names under which they are saved. A further one is added here, to [`Output::all`], to `files` in
/// `options/outputs.rs` (to `all_files`, if it is none of records), and where the others are attached below.
const PAGES: &str = "output";
const LINKS: &str = "links";
const REFUSED: &str = "refused";
const WARC: &str = "warc";
const SAVE: &str = "save";
/// What follows on the name of a file of records that is not JSON lines, and of one that is compressed.
const SUFFIXES: [(&str, Format); 2] = [
    (" (as CSV)", Format::Csv),
    (" (as CSV with a byte order mark)", Format::CsvWithMark),
];
const GZIP: &str = " (gzip)";

/// An output that the command line names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output<'o> {
    pub(crate) option: &'static str,
    pub(crate) path: &'o Path,
    /// Of a file of records.
    format: Option<Format>,
}

impl<'o> Output<'o> {
    pub(crate) fn all(outputs: &'o Outputs) -> impl Iterator<Item = Self> + Clone {
        let given = [
            (PAGES, &outputs.output),
            (LINKS, &outputs.links),
            (REFUSED, &outputs.refused),
            (WARC, &outputs.warc),
            (SAVE, &outputs.save),
        ];
        given.into_iter().filter_map(|(option, path)| {
            let path = path.as_deref()?;
            let format = outputs.format_of(path).filter(|_| option != WARC && option != SAVE);
            Some(Self { option, path, format })
        })
    }

    /// The name under which it is saved. A file in another format is another output.
    fn name(&self) -> String {
        let Some(format) = self.format else {
            return self.option.to_owned();
        };
        let suffix = SUFFIXES.into_iter().find(|(_, other)| *other == format);
        let gzip = if is_compressed(self.path) { GZIP } else { "" };
        format!("{}{}{gzip}", self.option, suffix.map_or("", |(suffix, _)| suffix))
    }
}

/// Attaches all outputs but the page lines. All files are checked and opened before the first is emptied or cut, so a crawl that cannot start
/// changes none. Files of earlier runs are cut back to their last commit.
pub(super) fn attach(
    mut crawl: Crawl,
    options: &Options,
    state: Option<&Path>,
    accepts_loss: bool,
) -> Result<Crawl, OutputError> {
    let outputs = &options.outputs;
    if let Some(state) = state {
        check_given(&mut crawl, outputs, state, accepts_loss)?;
        check_new(options, crawl.saved_outputs(), state)?;
        check_saved(&mut crawl, options, state, accepts_loss)?;
    }
    let mut records = open_records(&crawl, options, state)?;
    let names = match (&outputs.save, state) {
        (Some(_), Some(state)) => Some(open(&crawl, &state.join(SAVED_NAMES), SAVE, Some(state))?),
        _ => None,
    };
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
        let saved = match names {
            Some(names) => SavedFiles::continuing(SAVE, folder, names, crawl.saved_output(SAVE)),
            None => SavedFiles::create(folder),
        };
        let saved = saved.map_err(OutputError::Open)?;
        if saved.was_emptied() {
            log::warn!(target: "crawler::state", "{}: the bodies of earlier runs are gone: the crawl continues without them, and is incomplete", folder.display());
            crawl.count_lost_output();
        }
        crawl = crawl.observe(matching(saved, options));
    }
    if let Some((to, format)) = records.remove(PAGES) {
        let pages = Pages::new(to, format, &crawl.config().options().reports.fields);
        crawl = crawl.observe(matching(pages.map_err(OutputError::Open)?, options));
    }
    if let Some((to, format)) = records.remove(LINKS) {
        crawl = crawl.observe(LinkGraph::new(to, format).map_err(OutputError::Open)?);
    }
    if let Some((to, format)) = records.remove(REFUSED) {
        crawl = crawl.observe(RefusedReport::new(to, format).map_err(OutputError::Open)?);
    }
    Ok(crawl)
}

/// Opens the files of records. Returns them by their options.
fn open_records(
    crawl: &Crawl,
    options: &Options,
    state: Option<&Path>,
) -> Result<HashMap<&'static str, (Sink, Format)>, OutputError> {
    let outputs = &options.outputs;
    let mut opened = Vec::new();
    for output in Output::all(outputs) {
        let Some(format) = output.format else { continue };
        let file = match is_stdout(output.path) {
            true => Ok(None),
            false => open(crawl, output.path, &output.name(), state).map(Some),
        };
        opened.push((output, format, file));
    }
    // Two names of one new file can be compared only after the file exists. The second one was found to be in use.
    refuse_shared(outputs)?;
    let mut records = HashMap::new();
    for (output, format, file) in opened {
        let to = match file? {
            None => Sink::new(StandardOutput),
            Some(file) => {
                let file = file.with_max_bytes(options.settings().output_max_bytes);
                match state {
                    Some(_) => Sink::continuing(output.name(), file),
                    None => Sink::file(file),
                }
            }
        };
        records.insert(output.option, (to, format));
    }
    Ok(records)
}

/// Lets only those pages through to an output that --output-include and --output-changes name.
pub(super) fn matching<O>(to: O, options: &Options) -> Matching<O> {
    let patterns = options.outputs.output_include.clone();
    let changes_alone = options.outputs.output_changes;
    Matching {
        to,
        patterns,
        changes_alone,
    }
}

pub(super) struct Matching<O> {
    to: O,
    patterns: Vec<Regex>,
    changes_alone: bool,
}

impl<O: Observer> Observer for Matching<O> {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        let page = match event {
            Event::Page(page) => page,
            Event::Body { page, .. } => page,
            _ => return self.to.on(event),
        };
        let is_meant = self.patterns.is_empty() || self.patterns.iter().any(|pattern| pattern.is_match(&page.url));
        if is_meant && !(self.changes_alone && page.unchanged == Some(true)) {
            self.to.on(event)?;
        }
        Ok(())
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        self.to.save(sync)
    }
}

/// Checks that all outputs are files, and that none is missing that the earlier runs have written, or gives that one up.
fn check_given(crawl: &mut Crawl, outputs: &Outputs, state: &Path, accepts_loss: bool) -> Result<(), OutputError> {
    let given = Output::all(outputs);
    if let Some(output) = given.clone().find(|one| one.format.is_some() && is_stdout(one.path)) {
        return Err(OutputError::CannotContinue(output.option));
    }
    let is_given = |saved: &SavedOutput| given.clone().any(|output| output.name() == saved.name);
    while let Some(saved) = crawl.saved_outputs().iter().find(|saved| !is_given(saved)).cloned() {
        let (state, arguments) = (state.to_owned(), arguments_of(&saved, outputs));
        if !accepts_loss {
            return Err(OutputError::NotGiven { state, arguments });
        }
        let state = state.display();
        log::warn!(target: "crawler::state", "the crawl in {state} continues without {arguments}, as --accept-loss says");
        crawl.give_up_output(&saved.name);
    }
    Ok(())
}

/// Checks that outputs which are not `saved` replace nothing: what a crawl with a state directory has not written, it does not touch.
pub(super) fn check_new(options: &Options, saved: &[SavedOutput], state: &Path) -> Result<(), OutputError> {
    let (outputs, max_bytes) = (&options.outputs, options.settings().output_max_bytes);
    let foreign = |path: &Path, size: String| OutputError::Foreign {
        path: path.to_owned(),
        size,
        state: state.to_owned(),
    };
    let is_new = |name: &str| saved.iter().all(|saved| saved.name != name);
    for Output { option, path, .. } in Output::all(outputs).filter(|output| is_new(&output.name())) {
        if path.ancestors().take(2).any(|place| is_same(place, state)) {
            return Err(OutputError::InState(path.to_owned()));
        }
        let is_folder = option == SAVE;
        match path.metadata() {
            Ok(found) if found.is_dir() && is_folder => {
                if path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
                    return Err(foreign(path, "files".to_owned()));
                }
            }
            Ok(found) if found.is_file() && (found.len() > 0 || is_folder) => {
                return Err(foreign(path, size(found.len()).to_string()));
            }
            _ if is_folder => {}
            // A FIFO would be waited for.
            Ok(found) if !found.is_file() => return Err(OutputError::CannotContinue(option)),
            _ => SavedFile::default().check(path, max_bytes).map_err(OutputError::Open)?,
        }
    }
    Ok(())
}

/// Checks that the files of earlier runs are as these left them. One that is not is begun anew, if that is accepted.
fn check_saved(crawl: &mut Crawl, options: &Options, state: &Path, accepts_loss: bool) -> Result<(), OutputError> {
    let (outputs, max_bytes) = (&options.outputs, options.settings().output_max_bytes);
    for saved in crawl.saved_outputs().to_vec() {
        let Some(output) = Output::all(outputs).find(|output| output.name() == saved.name) else {
            continue;
        };
        let (path, max_bytes) = match output.option {
            SAVE => (state.join(SAVED_NAMES), None),
            _ => (output.path.to_owned(), max_bytes),
        };
        match saved.file.check(&path, max_bytes) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData && !accepts_loss => {
                return Err(OutputError::Changed(error));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                log::warn!(target: "crawler::state", "{error}. The crawl continues without what it lacks, as --accept-loss says");
                crawl.begin_output_anew(&saved.name, &path);
            }
            checked => checked.map_err(OutputError::Open)?,
        }
    }
    Ok(())
}

fn arguments_of(saved: &SavedOutput, outputs: &Outputs) -> String {
    let path = &saved.file.path;
    // These are more than one file.
    if matches!(saved.name.as_str(), SAVE | WARC) {
        return format!("--{}", saved.name);
    }
    let name = saved.name.strip_suffix(GZIP).unwrap_or(&saved.name);
    let of_format = |(suffix, format)| Some((name.strip_suffix(suffix)?, format));
    let (option, format) = SUFFIXES
        .into_iter()
        .find_map(of_format)
        .unwrap_or((name, Format::JsonLines));
    let mut arguments = format!("--{option} {path}");
    if outputs.format_of(Path::new(path)) != Some(format) {
        let of_format = FORMATS.iter().filter(|(known, ..)| *known == format);
        of_format.for_each(|(_, name, _)| arguments += &format!(" --format {name}"));
    }
    arguments
}

/// Opens a file. If no earlier run has written it, what it has is replaced.
fn open(crawl: &Crawl, path: &Path, name: &str, state: Option<&Path>) -> Result<OutputFile, OutputError> {
    if let Some(saved) = crawl.saved_output(name) {
        return OutputFile::reopen(path, &saved.file).map_err(OutputError::Open);
    }
    let mut file = OutputFile::append(path).map_err(OutputError::Open)?;
    match state {
        Some(_) if name == SAVE => warn_if_late(crawl, "the folder of --save"),
        Some(_) => warn_if_late(crawl, path.display()),
        None if file.is_regular() && !file.is_empty() => {
            let (path, bytes) = (path.display(), file.len());
            let size = size(bytes);
            let later = match series_of(file.path()).count() {
                2.. => "; files of its series that come after it stay",
                _ => "",
            };
            log::warn!(
                target: "crawler::outputs", path:%, bytes;
                "{path} had {size}, which are replaced{later}: to continue a crawl instead, give --state DIR from its start on"
            );
        }
        None => {}
    }
    file.empty();
    Ok(file)
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

fn archive_options(crawl: &Crawl, path: &Path, given: &Options) -> ArchiveOptions {
    let (options, settings) = (crawl.config().options(), given.settings());
    ArchiveOptions {
        path: path.to_owned(),
        max_file_bytes: settings.output_max_bytes,
        operator: settings.warc_operator,
        user_agent: options.user_agent.clone(),
        obeys_robots: options.frontier.politeness.ask_robots,
    }
}
