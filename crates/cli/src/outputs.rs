//! The outputs of a crawl: opens the files, attaches them to the crawl, and prints the summary.
//!
//! Standard output has one kind of content. Results go there if an option names it with `-`. Otherwise a line per page goes there. In
//! both cases the summary goes to standard error. With `-q`, `--output` or JSON logs, or on a terminal that shows the progress view,
//! there are no page lines. Then the summary goes to standard output. With JSON logs it is a record of the log.

mod attached;

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crawler::{Crawl, Event, Observer, Summary};
use indicatif::ProgressBar;

use crate::flag;
use crate::log_records;
use crate::options::{LogFormat, Options, Outputs, is_same};
pub(crate) use attached::Output;

/// Why the outputs cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OutputError {
    #[error("the output cannot be written: {0}")]
    Open(io::Error),
    #[error(
        "{} has {size}, and the crawl in {} has not written it: give another name, move the file away or remove it, or give --state the \
         directory that it belongs to", path.display(), state.display()
    )]
    Foreign {
        path: PathBuf,
        size: String,
        state: PathBuf,
    },
    #[error(
        "{0}. To continue without what it lacks, add --accept-loss: the file stays as it is, the output continues in a new one beside it, and the crawl \
         counts as incomplete"
    )]
    Changed(io::Error),
    #[error("{} is in the state directory, among the files of the crawl: give the output another folder", .0.display())]
    InState(PathBuf),
    #[error("two outputs go to {}: give each its own file", .0.display())]
    Shared(PathBuf),
    #[error("{} is the input of --{option}, and would be replaced: give the output another name", path.display())]
    ReplacedInput { path: PathBuf, option: &'static str },
    #[error("{} cannot be written: the folder {} does not exist: create it", path.display(), folder.display())]
    NoFolder { path: PathBuf, folder: PathBuf },
    #[error(
        "the format of {} is not known by its name: end it in .jsonl, .ndjson, .json or .csv (each also with .gz), or give --format jsonl or csv",
        .0.display()
    )]
    UnknownFormat(PathBuf),
    #[error("--format needs a file: give --output, --links or --refused; - is standard output")]
    FormatWithoutFile,
    #[error("--{0} is not a file, so it cannot be continued after a crash: with --state, give a file")]
    CannotContinue(&'static str),
    #[error("the crawl in {} also writes {arguments}: give it again, or add --accept-loss to continue without it", state.display())]
    NotGiven { state: PathBuf, arguments: String },
}

/// The content of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stdout {
    Results,
    PageLines,
    Summary,
}

impl Stdout {
    fn of(options: &Options, view: &ProgressBar) -> Self {
        let outputs = &options.outputs;
        let is_on_view = !view.is_hidden() && io::stdout().is_terminal();
        if outputs.takes_stdout() {
            Self::Results
        } else if options.quiet > 0 || options.log_format == LogFormat::Json || outputs.output.is_some() || is_on_view {
            Self::Summary
        } else {
            Self::PageLines
        }
    }
}

/// Returns whether data goes into a pipe. Its reader may write to the terminal, which would break the progress view.
pub(crate) fn data_goes_to_pipe(options: &Options) -> bool {
    let has_data = options.outputs.takes_stdout() || options.outputs.output.is_none();
    has_data && is_pipe()
}

#[cfg(unix)]
fn is_pipe() -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    crate::options::metadata_of_stdout().is_ok_and(|found| found.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe() -> bool {
    false
}

/// Checks that no two outputs share a file, and that none replaces an input. `inputs` has the option and the file of each input. `new_state` is a
/// state directory that no crawl has.
pub(crate) fn check(
    options: &Options,
    inputs: &[(&'static str, Option<&Path>)],
    new_state: Option<&Path>,
) -> Result<(), OutputError> {
    let outputs = &options.outputs;
    refuse_shared(outputs)?;
    for (option, path) in inputs {
        if let Some(path) = path.filter(|path| outputs.replaces(path)) {
            let path = path.to_owned();
            return Err(OutputError::ReplacedInput { path, option });
        }
    }
    if let Some(path) = outputs.files().find(|path| outputs.format_of(path).is_none()) {
        return Err(OutputError::UnknownFormat(path.clone()));
    }
    if outputs.format.is_some() && outputs.files().next().is_none() {
        return Err(OutputError::FormatWithoutFile);
    }
    outputs.all_files().try_for_each(|path| check_folder(path))?;
    new_state.map_or(Ok(()), |state| attached::check_new(options, &[], state))
}

/// Checks that the folder of a file exists.
fn check_folder(path: &Path) -> Result<(), OutputError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.exists() => Err(OutputError::NoFolder {
            path: path.to_owned(),
            folder: folder.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn refuse_shared(outputs: &Outputs) -> Result<(), OutputError> {
    let mut earlier = Vec::<&PathBuf>::new();
    for path in outputs.all_files() {
        if earlier.iter().any(|other| is_same(other, path)) {
            return Err(OutputError::Shared(path.clone()));
        }
        earlier.push(path);
    }
    Ok(())
}

/// Attaches all outputs, and the page lines if they go to standard output.
///
/// With a state directory, the files can be continued. The page lines of an interrupted run may be repeated.
pub(crate) fn attach(
    crawl: Crawl,
    options: &Options,
    state: Option<&Path>,
    accepts_loss: bool,
    view: &ProgressBar,
) -> Result<Crawl, OutputError> {
    let crawl = attached::attach(crawl, options, state, accepts_loss)?;
    Ok(match Stdout::of(options, view) {
        Stdout::PageLines => crawl.observe(attached::matching(StandardOutput, options)),
        Stdout::Results | Stdout::Summary => crawl,
    })
}

/// Prints the summary to the standard stream that has no data.
///
/// # Errors
///
/// When standard output cannot be written. A closed pipe is not an error.
pub(crate) fn print_summary(summary: &Summary, options: &Options, view: &ProgressBar) -> Result<(), OutputError> {
    match Stdout::of(options, view) {
        _ if options.log_format == LogFormat::Json => log_records::summary(summary),
        Stdout::Summary => match write!(StandardOutput, "{}", summary.with_names(flag::of)) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(OutputError::Open(error)),
            _ => {}
        },
        Stdout::Results | Stdout::PageLines => drop(write!(io::stderr(), "{}", summary.with_names(flag::of))),
    }
    Ok(())
}

/// Standard output, whose errors say that they are its own.
#[derive(Debug, Clone, Copy)]
struct StandardOutput;

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush().map_err(named)
    }
}

fn named(error: io::Error) -> io::Error {
    match error.kind() {
        // `write_all` tries again after it.
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, format!("standard output: {error}")),
    }
}

impl Observer for StandardOutput {
    /// Writes the status and the URL of each page as soon as it is fetched, such as `200 https://example.com/a`.
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Page(page) => {
                // In one write, so that a reader of the pipe never sees a part of a line.
                let line = format!("{} {}\n", page.status, page.url);
                self.write_all(line.as_bytes())?;
                self.flush()
            }
            _ => Ok(()),
        }
    }
}
