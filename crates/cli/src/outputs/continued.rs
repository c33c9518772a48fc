//! The outputs of a crawl with a state directory: files that a later run continues, each line once.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crawler::Crawl;
use crawler::output::csv::Csv;
use crawler::output::jsonl::JsonLines;
use crawler::output::links::LinkGraph;
use crawler::output::refused::RefusedReport;
use crawler::output::save::SavedFiles;
use crawler::output::warc::Archive;
use crawler::output::{OutputFile, SavedOutput};

use super::{OutputError, archive_options, refuse_shared};
use crate::options::{Format, Outputs, is_stdout};

/// The file in the state directory with the names that --save has given.
const SAVED_NAMES: &str = "saved-names";

/// The names under which the outputs are saved; of records, those of JSON lines and of CSV. One in another format is another output.
const WARC: &str = "warc";
const SAVE: &str = "save";
const RECORDS: [[&str; 2]; 3] = [
    ["output", "output (as CSV)"],
    ["links", "links (as CSV)"],
    ["refused", "refused (as CSV)"],
];

/// A file of records, and the name under which it is saved.
type Records<'o> = Option<(&'o PathBuf, &'static str)>;

/// Checks that all outputs are files, and that none is missing that the earlier runs have written. It changes no file.
pub(super) fn check(crawl: &Crawl, outputs: &Outputs, state: &Path) -> Result<(), OutputError> {
    let records = records(outputs);
    if let Some((_, name)) = records.into_iter().flatten().find(|(path, _)| is_stdout(path)) {
        return Err(OutputError::CannotContinue {
            option: option_of(name),
        });
    }
    let given: Vec<&str> = records
        .into_iter()
        .flatten()
        .map(|(_, name)| name)
        .chain(outputs.warc.as_ref().map(|_| WARC))
        .chain(outputs.save.as_ref().map(|_| SAVE))
        .collect();
    let is_given = |saved: &&SavedOutput| given.contains(&saved.name.as_str());
    match crawl.saved_outputs().iter().find(|saved| !is_given(saved)) {
        Some(saved) => Err(not_given(saved, outputs, state)),
        None => Ok(()),
    }
}

/// Says that an output is missing, and what its user can type.
fn not_given(saved: &SavedOutput, outputs: &Outputs, state: &Path) -> OutputError {
    let path: Cow<'_, str> = match saved.name.as_str() {
        SAVE => SavedFiles::folder_in(saved)
            .unwrap_or("DIR, with the folder of its earlier runs")
            .into(),
        WARC => Archive::path_in(saved).into(),
        _ => saved.file.path.as_str().into(),
    };
    let path = path.as_ref();
    let (mut arguments, mut without) = (format!("--{} {path}", option_of(&saved.name)), String::new());
    if let Some(format) = format_of(&saved.name) {
        if Format::by_name(Path::new(path)) != format {
            arguments = format!("{arguments} {}", format.option());
        } else if let Some(given) = outputs.format.filter(|given| *given != format) {
            without = format!(", without {}", given.option());
        }
    }
    OutputError::NotGiven {
        state: state.display().to_string(),
        arguments,
        without,
    }
}

/// Returns the option of the output with this name.
fn option_of(name: &str) -> &str {
    let of_records = RECORDS.iter().find(|names| names.contains(&name));
    of_records.map_or(name, |&[option, _]| option)
}

/// Returns the format of the records with this name; `None` for other outputs.
fn format_of(name: &str) -> Option<Format> {
    RECORDS.iter().find_map(|[json, csv]| match name {
        name if name == *json => Some(Format::Jsonl),
        name if name == *csv => Some(Format::Csv),
        _ => None,
    })
}

/// Attaches all outputs but the page lines. Files of earlier runs are cut back to their last commit, and others are emptied when all are
/// open.
pub(super) fn attach(mut crawl: Crawl, outputs: &Outputs, state: &Path) -> Result<Crawl, OutputError> {
    check(&crawl, outputs, state)?;
    let records = records(outputs);
    let [output, links, refused] =
        records.map(|records| records.map(|(path, name)| open(&crawl, path, name)).transpose());
    // Two names of one new file can be compared only after the file exists. The second one was found to be in use.
    refuse_shared(outputs)?;
    let mut files = [output?, links?, refused?];
    if let Some(path) = &outputs.warc {
        if crawl.saved_output(WARC).is_none() {
            warn_if_late(&crawl, path.display());
        }
        let archive = archive_options(&crawl, path, outputs);
        let archive = Archive::continuing(WARC, archive, crawl.saved_output(WARC));
        crawl = crawl.observe(archive.map_err(OutputError::Open)?);
    }
    // Before the lines, which have the names of the files.
    if let Some(folder) = &outputs.save {
        let files = saved_files(&crawl, folder, &state.join(SAVED_NAMES))?;
        crawl = crawl.observe(files);
    }
    for (file, is_new) in files.iter_mut().flatten() {
        if *is_new {
            file.empty().map_err(OutputError::Open)?;
        }
    }
    let [output, links, refused] = files.map(|file| file.map(|(file, _)| file));
    let [output_name, links_name, refused_name] = records.map(|records| records.map_or("", |(_, name)| name));
    if let Some(file) = output {
        crawl = match outputs.format_of(file.path()) {
            Format::Jsonl => crawl.observe(JsonLines::continuing(output_name, file)),
            Format::Csv => {
                let csv = Csv::continuing(output_name, file, &crawl.config().options().fields);
                crawl.observe(csv.map_err(OutputError::Open)?)
            }
        };
    }
    if let Some(file) = links {
        crawl = crawl.observe(match outputs.format_of(file.path()) {
            Format::Jsonl => LinkGraph::continuing(links_name, file),
            Format::Csv => LinkGraph::continuing_csv(links_name, file).map_err(OutputError::Open)?,
        });
    }
    if let Some(file) = refused {
        let report = match outputs.format_of(file.path()) {
            Format::Jsonl => RefusedReport::continuing(refused_name, file),
            Format::Csv => RefusedReport::continuing_csv(refused_name, file),
        };
        crawl = crawl.observe(report.map_err(OutputError::Open)?);
    }
    Ok(crawl)
}

/// Opens the folder of --save, with the file of its names.
fn saved_files(crawl: &Crawl, folder: &Path, names: &Path) -> Result<SavedFiles, OutputError> {
    let saved = crawl.saved_output(SAVE);
    let (mut file, is_new) = open(crawl, names, SAVE)?;
    if is_new {
        file.empty().map_err(OutputError::Open)?;
    }
    SavedFiles::continuing(SAVE, folder, file, saved).map_err(OutputError::Open)
}

/// Returns the files of --output, --links and --refused, and their names.
fn records(outputs: &Outputs) -> [Records<'_>; 3] {
    let [output, links, refused] = RECORDS;
    let name = |path: &PathBuf, [json, csv]: [&'static str; 2]| match outputs.format_of(path) {
        Format::Jsonl => json,
        Format::Csv => csv,
    };
    [
        (&outputs.output, output),
        (&outputs.links, links),
        (&outputs.refused, refused),
    ]
    .map(|(path, names)| path.as_ref().map(|path| (path, name(path, names))))
}

/// Opens a file, and returns whether no earlier run has written it.
fn open(crawl: &Crawl, path: &Path, name: &'static str) -> Result<(OutputFile, bool), OutputError> {
    if let Some(saved) = crawl.saved_output(name) {
        let file = OutputFile::reopen(path, &saved.file).map_err(OutputError::Open)?;
        return Ok((file, false));
    }
    let file = OutputFile::append(path).map_err(OutputError::Open)?;
    match file.is_regular() {
        true => {
            match name {
                SAVE => warn_if_late(crawl, "the folder of --save"),
                _ => warn_if_late(crawl, path.display()),
            }
            Ok((file, true))
        }
        false => Err(OutputError::CannotContinue {
            option: option_of(name),
        }),
    }
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
