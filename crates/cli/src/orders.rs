//! Orders: given to the process that runs a crawl, or to its directory; and obeyed.

#[cfg(unix)]
mod socket;

use std::fmt::Write as _;
use std::io::ErrorKind::{ConnectionRefused, NotFound, UnexpectedEof};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use crawler::{Crawl, Obeyed, OrderError, Orders, Phase, SavedCrawl, StartError, StopHandle};
use frontier::{Directory, LockHolder, OpenError, StoreError};
use serde::{Deserialize, Serialize};

use crate::options::{OrderCommand, show_policy};

#[cfg(unix)]
pub(crate) use socket::Socket;

/// How often, and how soon again, a directory is tried that another process has just opened or is about to leave.
const MOST_TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// What became of an order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Why it is refused; nothing has changed then.
    error: Option<String>,
    #[serde(skip)]
    is_unanswered: bool,
    /// What holds now, for people.
    said: String,
    #[serde(flatten)]
    did: Obeyed,
}

impl Answer {
    fn refused(why: impl ToString) -> Self {
        let error = Some(why.to_string());
        Self {
            error,
            ..Self::default()
        }
    }

    /// Whether it is obeyed is not known.
    fn unanswered(error: &io::Error) -> Self {
        let why = format!("the process that runs the crawl does not answer ({error}): look what holds, and try again");
        Self {
            is_unanswered: true,
            ..Self::refused(why)
        }
    }

    fn said(text: &str) -> Self {
        let said = text.to_owned();
        Self {
            said,
            ..Self::default()
        }
    }

    fn of(obeyed: Result<Obeyed, OrderError>) -> Self {
        let did = match obeyed {
            Ok(did) => did,
            Err(error) => return Self::refused(error),
        };
        let mut said = did.entries();
        for (host, policy) in &did.hosts {
            let _ = write!(said, "\n{host}: {}", show_policy(policy));
        }
        if let Some(policy) = &did.crawl {
            let _ = write!(said, "\nthe crawl: {}", show_policy(policy));
        }
        for host in &did.unknown {
            let _ = write!(said, "\nthe crawl has not met {host}: check its name");
        }
        if did.are_others_told {
            said += "\nthe other partitions obey, too, seconds later or once they run";
        }
        let said = said.trim_start().to_owned();
        Self {
            said,
            did,
            ..Self::default()
        }
    }

    /// As JSON; an error if it is refused.
    pub(crate) fn into_json(self) -> Result<String, String> {
        let json = serde_json::to_string(&self).unwrap_or_default();
        if self.error.is_some() { Err(json) } else { Ok(json) }
    }

    fn print(&self, json: bool) -> io::Result<ExitCode> {
        let code = match self.error {
            Some(_) => 2 - u8::from(self.is_unanswered),
            None if !self.did.refused.is_empty() => 3,
            None => 0,
        };
        match &self.error {
            _ if json => writeln!(io::stdout(), "{}", serde_json::to_string(self)?)?,
            Some(error) => writeln!(io::stderr(), "crawler: {error}")?,
            None => {
                let lines = std::iter::once(&self.said).chain(&self.did.refused);
                lines
                    .into_iter()
                    .try_for_each(|line| writeln!(io::stdout(), "{line}"))?;
            }
        }
        Ok(ExitCode::from(code))
    }
}

/// Obeys orders to the crawl of this process.
#[derive(Debug, Clone)]
pub(crate) struct Obeying {
    orders: Orders,
    pub(crate) stop: StopHandle,
}

impl Obeying {
    pub(crate) fn of(crawl: &Crawl) -> Self {
        let (orders, stop) = (crawl.orders(), crawl.stop_handle());
        Self { orders, stop }
    }

    /// Obeys an order that is written as JSON.
    pub(crate) async fn answer(&self, text: &[u8]) -> Answer {
        let command = match serde_json::from_slice::<OrderCommand>(text) {
            Ok(command) => command,
            Err(error) => return Answer::refused(format!("this is no order: {error}")),
        };
        let answer = match &command {
            OrderCommand::Stop(_) if self.stop.phase() == Phase::Stopping => Answer::said("it stops already"),
            OrderCommand::Stop(_) => {
                self.stop.finish();
                Answer::said("stopping: requests in flight finish")
            }
            OrderCommand::Pause(_) if self.stop.pause() => {
                Answer::said("pausing until unpause, once requests have ended")
            }
            OrderCommand::Unpause(_) if self.stop.resume() => Answer::said("continuing"),
            OrderCommand::Pause(_) => Answer::said("it was paused before"),
            OrderCommand::Unpause(_) => Answer::said("it was not paused"),
            _ => match command.orders() {
                Ok(orders) => Answer::of(self.orders.give(orders).await),
                Err(why) => Answer::refused(why),
            },
        };
        if answer.error.is_none() {
            let said = answer.said.replace('\n', "; ");
            log::warn!(target: "crawler::orders", "an order: {said}");
        }
        answer
    }
}

/// Gives an order to the crawl in a directory, and prints what became of it.
pub(crate) fn run(command: OrderCommand) -> ExitCode {
    let mut json = command.of().json;
    let dir = command.of().dir.clone();
    let answer = match command.with_seeds() {
        Err(why) => Answer::refused(why),
        Ok(command) => {
            json = command.of().json;
            give(&dir, &command)
        }
    };
    // Nobody is left to tell.
    answer.print(json).unwrap_or(ExitCode::from(1))
}

/// Gives an order to the process that runs the crawl, or to the directory. A process that begins or ends takes none yet, or no more.
fn give(dir: &Path, command: &OrderCommand) -> Answer {
    let orders = match command.orders() {
        Ok(orders) => orders,
        Err(why) => return Answer::refused(why),
    };
    for _ in 0..MOST_TRIES {
        match Directory::new(dir).lock_holder() {
            Err(error) => return Answer::refused(error),
            Ok(LockHolder::Nobody) if orders.is_empty() => return Answer::refused("the crawl does not run"),
            Ok(LockHolder::Nobody) => match SavedCrawl::give(dir, &orders) {
                Err(OrderError::Start(StartError::Open(OpenError::Store(StoreError::Locked { .. })))) => {}
                obeyed => return Answer::of(obeyed),
            },
            Ok(_) => match given_to_process(dir, command) {
                Err(error) if matches!(error.kind(), NotFound | ConnectionRefused | UnexpectedEof) => {}
                Err(error) => return Answer::unanswered(&error),
                Ok(answer) => return answer,
            },
        }
        thread::sleep(PAUSE);
    }
    let why = "it begins, and may wait for Redis or for other processes";
    Answer::unanswered(&io::Error::new(NotFound, why))
}

#[cfg(unix)]
fn given_to_process(dir: &Path, command: &OrderCommand) -> io::Result<Answer> {
    socket::give(dir, command)
}

#[cfg(not(unix))]
fn given_to_process(_: &Path, _: &OrderCommand) -> io::Result<Answer> {
    Err(io::ErrorKind::Unsupported.into())
}
