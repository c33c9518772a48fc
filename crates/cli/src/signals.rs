//! Signals: SIGINT, SIGTERM and SIGHUP stop the crawl, SIGUSR1 asks for a status line.
//!
//! The first signal that stops starts nothing more and finishes what is in flight; the second ends the crawl at once. The crawl
//! cannot end while it waits for the reader of a full pipe, so the third ends the process.
//! `nohup` starts a process with SIGHUP ignored, and then it stays ignored. Linux says so in `/proc/self/status`; on a system
//! that does not, SIGHUP keeps the action that it had at start, so that `nohup` works there too.

use std::io;
use std::time::Duration;

use crawler::StopHandle;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::status::StatusRequest;

/// The exit code of a process that the third signal ends.
const EXIT_CODE: i32 = 1;

/// How long a signal waits for its line in the log.
const MAX_LOG_WAIT: Duration = Duration::from_millis(500);

/// Handles signals from now on, on a task of the runtime.
///
/// # Errors
///
/// When the system refuses a handler.
pub(crate) fn handle(stop: StopHandle, status: StatusRequest) -> io::Result<()> {
    let mut signals = platform::Signals::listen()?;
    tokio::spawn(async move {
        let mut count = 0_u32;
        loop {
            let signal = match signals.next().await {
                Received::Status => {
                    status.ask();
                    continue;
                }
                Received::Stop(signal) => signal,
            };
            count = count.saturating_add(1);
            match count {
                1 => {
                    stop.finish();
                    let what = "stopping: finishing what is in flight; press Ctrl-C again to stop now";
                    warn(signal, format!("{signal}: {what}")).await;
                }
                2 => {
                    stop.now();
                    warn(signal, format!("{signal} again: stopping now")).await;
                }
                _ => std::process::exit(EXIT_CODE),
            }
        }
    });
    Ok(())
}

/// Logs a signal, but does not wait long where nobody reads the log: the next signal may come meanwhile.
async fn warn(signal: &'static str, message: String) {
    let log = move || log::warn!(target: "crawler::signals", signal; "{message}");
    let _ = timeout(MAX_LOG_WAIT, spawn_blocking(log)).await;
}

/// What a signal asks for.
#[derive(Debug, Clone, Copy)]
enum Received {
    /// To stop, by the signal of this name.
    Stop(&'static str),
    /// To log a status line.
    #[cfg_attr(not(unix), expect(dead_code, reason = "no other system has SIGUSR1"))]
    Status,
}

#[cfg(unix)]
mod platform {
    use std::future::pending;
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::Received;
    use crate::proc_self;

    /// The number of SIGHUP (POSIX, `kill -l`).
    const SIGHUP: u32 = 1;

    pub(super) struct Signals {
        interrupt: Signal,
        terminate: Signal,
        /// `None` where it is ignored, or the system does not say.
        hang_up: Option<Signal>,
        user: Signal,
    }

    impl Signals {
        pub(super) fn listen() -> io::Result<Self> {
            // A handler for SIGHUP would change the answer.
            let may_hang_up = proc_self::ignores_signal(SIGHUP) == Some(false);
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up: may_hang_up.then(|| signal(SignalKind::hangup())).transpose()?,
                user: signal(SignalKind::user_defined1())?,
            })
        }

        pub(super) async fn next(&mut self) -> Received {
            let hang_up = async {
                match &mut self.hang_up {
                    Some(signal) => signal.recv().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                _ = self.interrupt.recv() => Received::Stop("SIGINT"),
                _ = self.terminate.recv() => Received::Stop("SIGTERM"),
                _ = hang_up => Received::Stop("SIGHUP"),
                _ = self.user.recv() => Received::Status,
            }
        }
    }
}

#[cfg(not(unix))]
mod platform {
    use std::future::pending;
    use std::io;

    use super::Received;

    /// Ctrl-C alone.
    pub(super) struct Signals;

    impl Signals {
        pub(super) fn listen() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) async fn next(&mut self) -> Received {
            match tokio::signal::ctrl_c().await {
                Ok(()) => Received::Stop("Ctrl-C"),
                Err(_) => pending().await,
            }
        }
    }
}
