//! The outputs of a crawl with a state directory: files that a later run continues, each line once.

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

/// The names under which the outputs are saved. One in another format is another output.
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
        return Err(OutputError::CannotContinue { option: name });
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
        Some(saved) => Err(OutputError::NotGiven {
            state: state.display().to_string(),
            option: saved.name.clone(),
            path: saved.file.path.clone(),
        }),
        None => Ok(()),
    }
}

/// Attaches all outputs but the page lines. Files of earlier runs are cut back to their last commit, and others are emptied when all are
/// open.
pub(super) fn attach(mut crawl: Crawl, outputs: &Outputs, state: &Path) -> Result<Crawl, OutputError> {
    check(&crawl, outputs, state)?;
    let records = records(outputs);
    let names = state.join(SAVED_NAMES);
    let names = outputs.save.as_ref().map(|folder| (folder, &names));
    let [output, links, refused] = records.map(|records| open(&crawl, records));
    // Two names of one new file can be compared only after the file exists. The second one was found to be in use.
    refuse_shared(outputs)?;
    let mut files = [
        output?,
        links?,
        refused?,
        open(&crawl, names.map(|(_, file)| (file, SAVE)))?,
    ];
    if let Some(path) = &outputs.warc {
        if crawl.saved_output(WARC).is_none() {
            warn_if_late(&crawl, path.display());
        }
        let archive = archive_options(&crawl, path, outputs);
        let archive = Archive::continuing(WARC, archive, crawl.saved_output(WARC));
        crawl = crawl.observe(archive.map_err(OutputError::Open)?);
    }
    for (file, is_new) in files.iter_mut().flatten() {
        if *is_new {
            file.empty().map_err(OutputError::Open)?;
        }
    }
    let [output, links, refused, names] = files.map(|file| file.map(|(file, _)| file));
    // Before the lines, which have the names of the files.
    if let (Some(folder), Some(names)) = (&outputs.save, names) {
        crawl = crawl.observe(SavedFiles::continuing(SAVE, folder, names).map_err(OutputError::Open)?);
    }
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
fn open(crawl: &Crawl, file: Records<'_>) -> Result<Option<(OutputFile, bool)>, OutputError> {
    let Some((path, name)) = file else {
        return Ok(None);
    };
    if let Some(saved) = crawl.saved_output(name) {
        let file = OutputFile::reopen(path, &saved.file).map_err(OutputError::Open)?;
        return Ok(Some((file, false)));
    }
    let file = OutputFile::append(path).map_err(OutputError::Open)?;
    match file.is_regular() {
        true => {
            match name {
                SAVE => warn_if_late(crawl, "the folder of --save"),
                _ => warn_if_late(crawl, path.display()),
            }
            Ok(Some((file, true)))
        }
        false => Err(OutputError::CannotContinue { option: name }),
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
