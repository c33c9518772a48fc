//! Signals: SIGINT, SIGTERM and SIGHUP stop the crawl, SIGTSTP (Ctrl-Z) pauses it, SIGUSR1 logs a status line.
//!
//! After SIGTSTP no request starts. Once those in flight have finished, the state is committed, and those who read the metrics know of the
//! pause, the process stops as any other does, until SIGCONT (`fg`, `bg`) lets it continue. A SIGCONT before that cancels it.
//!
//! After the first stop signal no request starts, and the requests in flight finish. The second one ends the crawl at once. The third
//! one ends the process, because a crawl cannot end while it waits for the reader of a full pipe.
//!
//! `nohup` starts a process with SIGHUP ignored, and then it stays ignored. Linux reports this in `/proc/self/status`. On other
//! systems SIGHUP keeps its action from the start, so that `nohup` works there too.
//!
//! SIGXFSZ, which the system sends when a file would exceed its size limit (`ulimit -f`), ends no process here: the write fails, as
//! on a full disk.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crawler::StopHandle;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::watching::Watching;

#[cfg(unix)]
use {
    crawler::Phase,
    signal_hook::consts::{SIGCONT, SIGTSTP},
    signal_hook::low_level::emulate_default_handler,
    std::future::pending,
    tokio::signal::unix::{Signal, SignalKind, signal},
    tokio::task::JoinHandle,
};

/// The exit code of a process that the third signal ends.
const EXIT_CODE: i32 = 1;

/// The maximum time that a signal waits until its log line is written.
const MAX_LOG_WAIT: Duration = Duration::from_millis(500);

/// Makes a write beyond the size limit of files (RLIMIT_FSIZE, setrlimit(2)) an error of that write. Without a handler for SIGXFSZ, it ends
/// the process without a message, and a line or record remains incomplete.
///
/// # Errors
///
/// When the system does not accept a handler.
pub(crate) fn let_long_writes_fail() -> io::Result<()> {
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
    Ok(())
}

/// Spawns a task that handles signals. Returns what is locked while the line of a signal is written, which is short even if the log is not read.
///
/// # Errors
///
/// When the system does not accept a handler.
#[cfg_attr(not(unix), expect(unused_variables, reason = "no other system has SIGTSTP"))]
pub(crate) fn handle(
    stop: StopHandle,
    sigusr1: Arc<AtomicBool>,
    watching: Arc<Mutex<Watching>>,
) -> io::Result<Arc<Mutex<()>>> {
    let mut signals = platform::Signals::listen()?;
    let writing = Arc::<Mutex<()>>::default();
    let own_writing = Arc::clone(&writing);
    tokio::spawn(async move {
        let mut count = 0_u32;
        #[cfg(unix)]
        let mut suspending = None::<JoinHandle<()>>;
        loop {
            let signal = match signals.next().await {
                Received::Status => {
                    sigusr1.store(true, Ordering::Relaxed);
                    continue;
                }
                #[cfg(unix)]
                Received::Suspend => {
                    if suspending.as_ref().is_none_or(JoinHandle::is_finished) {
                        let continued = signal(SignalKind::from_raw(SIGCONT));
                        suspending = Some(tokio::spawn(suspend(stop.clone(), Arc::clone(&watching), continued)));
                    }
                    continue;
                }
                Received::Stop(signal) => signal,
            };
            count = count.saturating_add(1);
            // Held until the line is written.
            let _writing = own_writing.lock().await;
            match count {
                1 => {
                    stop.finish();
                    let what =
                        "stopping: finishing requests in flight; press Ctrl-C or send the signal again to stop now";
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
    Ok(writing)
}

/// Pauses the crawl, then stops the process until it is continued. A crawl that was paused before stays so.
#[cfg(unix)]
async fn suspend(stop: StopHandle, watching: Arc<Mutex<Watching>>, continued: io::Result<Signal>) {
    let is_own = stop.pause();
    let what = "pausing: finishing requests in flight; then the process stops, until fg or SIGCONT lets it continue";
    warn("SIGTSTP", format!("SIGTSTP: {what}")).await;
    let is_told = async {
        stop.paused().await;
        let lasts = || matches!(stop.phase(), Phase::Paused);
        watching.lock().await.tell_pause(lasts).await;
    };
    let is_continued = async {
        match continued {
            Ok(mut continued) => _ = continued.recv().await,
            Err(_) => pending().await,
        }
    };
    let suspended = tokio::select! {
        biased;
        () = is_continued => Ok(()),
        () = is_told => match stop.phase() {
            // It returns once the process continues.
            Phase::Paused => emulate_default_handler(SIGTSTP),
            _ => return,
        },
    };
    if is_own {
        stop.resume();
    }
    let what = match suspended {
        Ok(()) if is_own => "SIGCONT: the crawl continues".to_owned(),
        Ok(()) => "SIGCONT: the process continues, and the crawl stays paused as before".to_owned(),
        Err(error) => format!("the process cannot stop, and continues: {error}"),
    };
    warn("SIGCONT", what).await;
}

/// Logs a signal. If the log is not read, it waits only for a short time, so that the next signal is handled.
async fn warn(signal: &'static str, message: String) {
    let log = move || log::warn!(target: "crawler::signals", signal; "{message}");
    let _ = timeout(MAX_LOG_WAIT, spawn_blocking(log)).await;
}

/// The meaning of a signal.
#[derive(Debug, Clone, Copy)]
enum Received {
    /// Stop the crawl. The text is the name of the signal.
    Stop(&'static str),
    /// Log a status line.
    #[cfg_attr(not(unix), expect(dead_code, reason = "no other system has SIGUSR1"))]
    Status,
    /// Pause the crawl, and stop the process.
    #[cfg(unix)]
    Suspend,
}

#[cfg(unix)]
mod platform {
    use std::future::poll_fn;
    use std::io;
    use std::task::Poll;

    use signal_hook::consts::SIGTSTP;
    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::Received;
    use crate::proc_self;

    /// The number of SIGHUP (POSIX, `kill -l`).
    const SIGHUP: u32 = 1;

    pub(super) struct Signals(Vec<(Signal, Received)>);

    impl Signals {
        pub(super) fn listen() -> io::Result<Self> {
            let mut kinds = vec![
                (SignalKind::interrupt(), Received::Stop("SIGINT")),
                (SignalKind::terminate(), Received::Stop("SIGTERM")),
                (SignalKind::user_defined1(), Received::Status),
            ];
            // This must be read before a handler for it is set. Where the system does not report it, it stays as it is.
            if proc_self::ignores_signal(SIGHUP) == Some(false) {
                kinds.push((SignalKind::hangup(), Received::Stop("SIGHUP")));
            }
            // It is ignored in a shell that says so.
            if proc_self::ignores_signal(SIGTSTP.unsigned_abs()) != Some(true) {
                kinds.push((SignalKind::from_raw(SIGTSTP), Received::Suspend));
            }
            let listening = kinds.into_iter().map(|(kind, meaning)| Ok((signal(kind)?, meaning)));
            listening.collect::<io::Result<_>>().map(Self)
        }

        pub(super) async fn next(&mut self) -> Received {
            poll_fn(|context| {
                let mut signals = self.0.iter_mut();
                let received =
                    signals.find_map(|(signal, meaning)| signal.poll_recv(context).is_ready().then_some(*meaning));
                received.map_or(Poll::Pending, Poll::Ready)
            })
            .await
        }
    }
}

#[cfg(not(unix))]
mod platform {
    use std::future::pending;
    use std::io;

    use super::Received;

    /// Ctrl-C, the only signal of this system.
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
