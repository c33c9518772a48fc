//! The commands about a state directory: they look into it, beside the crawl that runs there or after it, or repair it.

mod damage;
mod hosts;
mod list;
mod repair;
mod report;
pub(crate) mod resume;
mod status;
mod why;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use crawler::StartError;
use crawler::summary::rfc3339;
use frontier::{FrontierError, NotCrawlable, OpenError, Time};

use crate::failure::needs_a_person;
use crate::options::{NotASeed, StateCommand};
pub(crate) use damage::{is_damage_at_start, is_damage_of_crawl, repair_hint, repair_hint_at_start};
use damage::{is_damaged_frontier, is_damaged_store};
use repair::Recovered;

/// Why a command cannot answer.
#[derive(Debug, thiserror::Error)]
enum StateFailure {
    #[error(transparent)]
    Read(#[from] StartError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Frontier(#[from] FrontierError),
    #[error("{url:?} is not a URL that can be crawled: {why}")]
    Url { url: String, why: NotCrawlable },
    #[error("{0:?} is not a URL: write one such as https://example.com/a, or a host with a dot such as example.com")]
    NotAUrl(String),
    #[error("{} is a file, and cannot be read as the directory of a crawl: give that of --state", .0.display())]
    NotADirectory(PathBuf),
    #[error("{} cannot be written: {source}", path.display())]
    Written { path: PathBuf, source: io::Error },
    #[error("standard output cannot be written: {0}")]
    Output(#[from] io::Error),
}

impl StateFailure {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Url { .. } | Self::NotAUrl(_) => 2,
            Self::Written { source, .. } => 1 + u8::from(needs_a_person(source)),
            Self::Read(error) if error.is_of_other_version() => 2,
            _ => 1,
        }
    }

    fn repair_hint(&self, dir: &Path) -> String {
        match self {
            Self::Read(error) => repair_hint_at_start(error, dir),
            _ => repair_hint(dir),
        }
    }

    /// Whether the directory is damaged, so that a repair may help.
    fn is_damage(&self) -> bool {
        match self {
            Self::Read(error) => is_damage_at_start(error),
            Self::Open(error) => is_damaged_store(error),
            Self::Frontier(error) => is_damaged_frontier(error),
            _ => false,
        }
    }
}

/// The exit code of [`why`] for a URL that the crawl has not met.
const NOT_MET: u8 = 3;

/// The exit codes of [`repair`] if something was lost, and if the crawl cannot be continued.
const SOME_LOST: u8 = 3;
const NOT_CONTINUED: u8 = 4;

/// Runs a command, and prints its answer or why there is none.
pub(crate) fn run(command: &StateCommand) -> ExitCode {
    let done = match command {
        _ if command.dir().is_file() => Err(StateFailure::NotADirectory(command.dir().to_owned())),
        StateCommand::Status(args) => status::run(args).map(|()| 0),
        StateCommand::Hosts(args) => hosts::run(args).map(|()| 0),
        StateCommand::Why(args) => why::run(args).map(|is_met| if is_met { 0 } else { NOT_MET }),
        StateCommand::List(args) => list::run(args).map(|()| 0),
        StateCommand::Report(args) => report::run(args).map(|()| 0),
        StateCommand::Repair(args) => repair::run(args).map(|recovered| match recovered {
            Recovered::Wholly => 0,
            Recovered::Partly => SOME_LOST,
            Recovered::NotContinued => NOT_CONTINUED,
        }),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        // The reader of the pipe has enough, as `head` has.
        Err(StateFailure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // Standard error may be closed. There is no other place to report to.
            let hint = if failure.is_damage() && !matches!(command, StateCommand::Repair(_)) {
                format!(". {}", failure.repair_hint(command.dir()))
            } else {
                String::new()
            };
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("crawler: {failure}{hint}\n"));
            ExitCode::from(failure.exit_code())
        }
    }
}

impl From<NotASeed> for StateFailure {
    fn from(error: NotASeed) -> Self {
        Self::NotAUrl(error.text().to_owned())
    }
}

fn now() -> Time {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Time::since_epoch(since_epoch.unwrap_or_default())
}
