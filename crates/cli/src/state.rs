//! The commands about a state directory: they look into it, beside the crawl that runs there or after it, or repair it.

mod hosts;
mod list;
mod repair;
mod report;
pub(crate) mod resume;
mod status;
mod why;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use crawler::StartError;
use frontier::{NotCrawlable, Time};

use crate::failure::{hint_at_start, needs_a_person};
use crate::options::{NotASeed, StateCommand};

/// What follows on the damage of a directory that cannot be repaired.
const NOTHING_READ: &str = "; nothing of it can be read: begin in another directory, with other names for the outputs";

/// Why a command cannot answer.
#[derive(Debug, thiserror::Error)]
enum StateFailure {
    #[error(transparent)]
    Read(#[from] StartError),
    #[error("{url:?} is not a URL that can be crawled: {why}")]
    Url { url: String, why: NotCrawlable },
    #[error("{:?} is not a URL: write one such as https://example.com/a, or a host with a dot such as example.com", .0.text)]
    NotAUrl(#[from] NotASeed),
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
}

/// Runs a command, and prints its answer or why there is none.
pub(crate) fn run(command: &StateCommand) -> ExitCode {
    let done = match command {
        _ if command.dir().is_file() => Err(StateFailure::NotADirectory(command.dir().to_owned())),
        StateCommand::Status(args) => status::run(args).map(|()| 0),
        StateCommand::Hosts(args) => hosts::run(args).map(|()| 0),
        StateCommand::Why { of, url } => why::run(of, url),
        StateCommand::List { dir, which } => list::run(dir, *which).map(|()| 0),
        StateCommand::Report { dir, output } => report::run(dir, output).map(|()| 0),
        StateCommand::Repair(args) => repair::run(args),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        // The reader of the pipe has enough, as `head` has.
        Err(StateFailure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // Standard error may be closed. There is no other place to report to.
            let hint = match &failure {
                StateFailure::Read(error) => hint_at_start(error, command.dir()),
                _ => None,
            };
            let (code, hint) = match (command, hint) {
                (StateCommand::Repair(_), Some(_)) => (repair::NOT_CONTINUED, NOTHING_READ.to_owned()),
                (_, hint) => (
                    failure.exit_code(),
                    hint.map_or_else(String::new, |hint| format!(". {hint}")),
                ),
            };
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("crawler: {failure}{hint}\n"));
            ExitCode::from(code)
        }
    }
}

fn now() -> Time {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Time::since_epoch(since_epoch.unwrap_or_default())
}
