//! Serves what is known of a crawl over HTTP/1.1, and takes requests to pause, resume and stop it.
//!
//! It runs on a thread of its own and reads what the crawl has published, so no client can delay the crawl: a slow one gets the next status that
//! is there when it is ready, and one that does not read for half a minute is disconnected. If all places are taken, the connection that has been
//! silent longest makes room.

mod answer;
mod events;
mod scraper;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crawler::StopHandle;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use self::answer::Site;
use self::events::Place;
use self::scraper::Scraper;
use crate::recorder::Watch;
use crate::report::random_hex;

/// The most connections for anything but events, and the most for events.
const CONNECTIONS: usize = 32;
/// How long a client may take to send the head of a request, and to read an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a client gets events. Browsers connect again by themselves, and one that hangs keeps its place no longer.
const LONGEST_EVENTS: Duration = Duration::from_secs(600);
/// The pause after an error of `accept`, such as a lack of file handles. It prevents a busy loop.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);
/// How long the server waits at the end of the crawl until those that listen to events have the last one.
const LAST_EVENT: Duration = Duration::from_secs(3);

/// A server with the status of a crawl. Dropping it ends it at once.
///
/// | request | answer |
/// |---|---|
/// | `GET /` | a page that shows it, for people |
/// | `GET /metrics` | the metrics, for Prometheus |
/// | `GET /status.json` | the numbers of the summary, what the crawl does, and whether it has ended |
/// | `GET /healthz` | 200, as long as the process answers |
/// | `GET /series.json` | some of its numbers over time: lists of at most a thousand values |
/// | `GET /events` | the same each second, as server-sent events (HTML standard, section 9.2) |
/// | `POST /pause`, `/resume`, `/stop` | 204: the crawl was asked to. They need `Authorization: Bearer` with the [token](Self::token) |
/// | `POST /order` | the answer to the order in its body, and 400 if that was refused. It needs the token, too |
///
/// A request whose `Host` is a name other than `localhost` is refused: a page on the Internet could have resolved its own name to this address
/// (DNS rebinding).
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    site: Arc<Site>,
    /// Ends the server when it is dropped.
    end: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// The most connections at a time, and so the most file handles but for a few.
    pub const MOST_CONNECTIONS: usize = 2 * CONNECTIONS;

    /// Opens the address and begins to serve. Port 0 stands for one that the system chooses. `names` returns the name of an option by its
    /// field, for the texts of what is missing. `obey` obeys an order, and returns the answer as JSON: an error if it was refused.
    ///
    /// # Errors
    ///
    /// An address that cannot be opened; a thread that cannot start; no random bytes for the token.
    pub fn new<F: Future<Output = Result<String, String>> + Send + 'static>(
        address: SocketAddr,
        watch: &Watch,
        handle: StopHandle,
        names: impl Fn(&str) -> String + Send + Sync + 'static,
        obey: impl Fn(Vec<u8>) -> F + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let site = Arc::new(Site {
            watch: watch.clone(),
            handle,
            token: random_hex()?,
            names: Box::new(names),
            obey: Box::new(move |order| Box::pin(obey(order))),
            listeners: watch::Sender::default(),
            scraper: Scraper::default(),
        });
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = watch::channel(());
        let served = Arc::clone(&site);
        let run = move || runtime.block_on(serve(listener, served, ended));
        let thread = thread::Builder::new().name("watch".to_owned()).spawn(run)?;
        Ok(Self {
            address,
            site,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Returns the address, with its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns what `POST` requests need to be accepted: 32 hexadecimal digits.
    pub fn token(&self) -> &str {
        &self.site.token
    }

    /// Waits until who asks for the metrics at least every 15 seconds has the present ones.
    pub async fn scraped(&self) {
        self.site.scraper.has(self.site.watch.status().as_of).await;
    }

    /// Ends the server after the crawl, once all who listen to events have the last one, or after three seconds; and once who asks for the
    /// metrics at least every 15 seconds has those of the end.
    pub async fn finish(self) {
        let _ = tokio::join!(timeout(LAST_EVENT, self.site.listeners.closed()), self.scraped());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to return, and a panic of it would have been printed.
            let _ = thread.join();
        }
    }
}

/// Serves until `ended` says so. Connections that are open then are closed.
async fn serve(listener: TcpListener, site: Arc<Site>, mut ended: watch::Receiver<()>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let free = Arc::new(Semaphore::new(Server::MOST_CONNECTIONS));
    // This task owns the connections, so they end with it.
    let mut connections = JoinSet::new();
    let mut silent = VecDeque::<(AbortHandle, Arc<AtomicBool>)>::new();
    loop {
        let accepted = tokio::select! {
            _ = ended.changed() => return,
            _ = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(PAUSE_AFTER_ERROR).await;
            continue;
        };
        silent.retain(|(connection, has_asked)| !connection.is_finished() && !has_asked.load(Ordering::Relaxed));
        if free.available_permits() == 0 {
            // If all are being answered, the new one is closed at once.
            let Some((connection, _)) = silent.pop_front() else {
                continue;
            };
            connection.abort();
        }
        // It ends before anything else is accepted.
        let Ok(taken) = Arc::clone(&free).acquire_owned().await else {
            return;
        };
        let (site, has_asked) = (Arc::clone(&site), Arc::<AtomicBool>::default());
        let asked = Arc::clone(&has_asked);
        let connection = connections.spawn(async move {
            let place = Place::default();
            let service = service_fn(|request: Request<Incoming>| {
                asked.store(true, Ordering::Relaxed);
                let answer = site.answer(&request, &place);
                let site = Arc::clone(&site);
                async move {
                    Ok::<_, Infallible>(match answer {
                        Some(answer) => answer,
                        None => site.obeyed(request.into_body()).await,
                    })
                }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                // One request per connection, so a connection ends with its answer.
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = pin!(connection);
            // A client that goes away, or reads too slowly, is no error.
            let is_late = timeout(2 * PATIENCE, connection.as_mut()).await.is_err();
            if is_late && place.listener.get().is_some() {
                let _ = timeout(LONGEST_EVENTS, connection).await;
            }
            if let Some(as_of) = place.metrics.get() {
                site.scraper.note(*as_of);
            }
            drop(taken);
        });
        silent.push_back((connection, has_asked));
    }
}
