//! The commands that look into a state directory: beside the crawl that runs there, or after it.

mod list;
pub(crate) mod resume;
mod status;
mod text;
mod why;

use std::io;
use std::process::ExitCode;
use std::time::SystemTime;

use crawler::StartError;
use frontier::{FrontierError, NotCrawlable, OpenError, Time};

use crate::options::{NotASeed, StateCommand};

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
    #[error("standard output cannot be written: {0}")]
    Output(#[from] io::Error),
}

impl StateFailure {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Url { .. } | Self::NotAUrl(_) => 2,
            _ => 1,
        }
    }
}

/// The exit code of [`why`] for a URL that the crawl has not met.
const NOT_MET: u8 = 3;

/// Runs a command, and prints its answer or why there is none.
pub(crate) fn run(command: &StateCommand) -> ExitCode {
    let done = match command {
        StateCommand::Status(args) => status::run(args).map(|()| 0),
        StateCommand::Why(args) => why::run(args).map(|is_met| if is_met { 0 } else { NOT_MET }),
        StateCommand::List(args) => list::run(args).map(|()| 0),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        // The reader of the pipe has enough, as `head` has.
        Err(StateFailure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // Standard error may be closed. There is no other place to report to.
            let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("crawler: {failure}\n"));
            ExitCode::from(failure.exit_code())
        }
    }
}

impl From<NotASeed> for StateFailure {
    fn from(error: NotASeed) -> Self {
        Self::NotAUrl(error.text().to_owned())
    }
}

/// Returns the time of the system.
fn now() -> Time {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Time::since_epoch(since_epoch.unwrap_or_default())
}
