//! A process among the others: the member in the loop of the crawl, and the thread that talks to Redis.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crawler::peers::{Exchanged, Peers, PeersError};
use crawler::summary::Summary;
use frontier::exchange::Received;
use frontier::{Frontier, Time};
use tokio::sync::Notify;

use crate::founded::{Founded, Joining};
use crate::link_log::{LogError, StreamEntry};
use crate::member::{Member, MemberError, ToSend};
use crate::post::Post;
use crate::redis_log::RedisLog;
use crate::signal::{Signal, Signalled};
use crate::word::{End, PartitionStatus, Words};

/// How long the thread waits for orders before it looks for entries again.
const IDLE: Duration = Duration::from_millis(20);
/// How often the words are read.
const HEAR_EVERY: Duration = Duration::from_secs(1);
/// How often the own word is said, if nothing has changed.
const SAY_EVERY: Duration = Duration::from_secs(1);
/// How often in a row the name is read as that of another crawl, before this one claims it again, or gives it up.
const MOST_STRANGERS: u32 = 3;
/// The shortest and the longest wait after an error.
const WAITS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];
/// How long all calls succeed before an error is over.
const OVER_AFTER: Duration = Duration::from_secs(3);
/// The entries that may wait for the loop.
const MAX_INBOX: usize = 128;
/// The words of all partitions count as so many entries.
const WORDS_WEIGH: usize = 32;
/// The entries that the loop takes at once, so that its own work goes on.
const ENTRIES_AT_ONCE: usize = 8;
/// For how long Redis keeps the words of a crawl that has ended, in seconds.
const KEPT_AFTER_END: u32 = 24 * 60 * 60;

/// The other processes of a crawl. [`Joining::join`](crate::Joining::join) makes it.
#[derive(Debug)]
pub struct Cluster {
    member: Member,
    /// The thread ends only after it was told to.
    to_thread: Sender<Message>,
    news: Receiver<News>,
    inbox: VecDeque<StreamEntry>,
    /// How many entries are on their way from the thread, or in the inbox.
    waiting: Arc<AtomicUsize>,
    woken: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
    process: Joining,
    has_news: bool,
    is_paused: bool,
    /// When all were told something last, by its field.
    signalled_at: [u64; 2],
    /// What the others said when this process joined.
    said: Words,
}

/// From the loop to the thread.
#[derive(Debug)]
enum Message {
    ToSend(ToSend),
    Leave { has_ended: bool },
}

/// From the thread to the loop.
#[derive(Debug, Default)]
struct News {
    entries: Vec<StreamEntry>,
    words: Option<Words>,
    signals: Vec<Signalled>,
    has_lost_name: bool,
}

impl Cluster {
    pub(crate) fn start(member: Member, post: Post<RedisLog>, founded: Founded, process: Joining, said: Words) -> Self {
        let (to_thread, messages) = channel();
        let (to_loop, news) = channel();
        let (woken, waiting) = (Arc::<Notify>::default(), Arc::<AtomicUsize>::default());
        let courier = Courier {
            post,
            founded,
            has_heard: member.kept().promises.iter().any(|term| *term > 0),
            strangers: 0,
            messages,
            to_loop,
            woken: Arc::clone(&woken),
            waiting: Arc::clone(&waiting),
            heard: None,
            said: None,
            unreadable: None,
            last_error: None,
        };
        Self {
            member,
            to_thread,
            news,
            inbox: VecDeque::new(),
            waiting,
            woken,
            thread: Some(thread::spawn(|| courier.run())),
            process,
            has_news: false,
            is_paused: false,
            signalled_at: [0; 2],
            said,
        }
    }
}

impl Peers for Cluster {
    fn check(&self, frontier: &Frontier) -> Result<(), PeersError> {
        Ok(self.member.check(&self.said, frontier)?)
    }

    fn exchange(&mut self, frontier: &mut Frontier, now: Time) -> Result<Exchanged, PeersError> {
        let mut exchanged = Exchanged::default();
        loop {
            let news = match self.news.try_recv() {
                Ok(news) => news,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    return Err("the thread that talks to Redis has ended: please report this defect".into());
                }
            };
            self.inbox.extend(news.entries);
            if let Some(words) = news.words {
                self.waiting.fetch_sub(WORDS_WEIGH, Ordering::Relaxed);
                self.member.hear(&words, frontier, now)?;
            }
            for told in news.signals {
                let last = &mut self.signalled_at[told.what.field()];
                if told.at <= *last || !told.instances.contains(&self.member.instance()) {
                    continue;
                }
                *last = told.at;
                match told.what {
                    Signal::Stop => {
                        log::warn!(target: "crawler::cluster", "crawler cluster stop: finishing requests in flight");
                        exchanged.stop = true;
                    }
                    Signal::Pause => exchanged.pause = Some(true),
                    Signal::Unpause => exchanged.pause = Some(false),
                }
            }
            if news.has_lost_name {
                let name = self.process.address.name().to_owned();
                return Err(MemberError::OtherCrawl { name }.into());
            }
            self.has_news = true;
        }
        for _ in 0..ENTRIES_AT_ONCE {
            // What comes behind a text may depend on what is done with it.
            let Some(entry) = self.inbox.pop_front_if(|_| exchanged.told.is_empty()) else {
                break;
            };
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            match self.member.receive(&entry, frontier, now)? {
                Received::Accepted { links, verdicts } => exchanged.offered.push((links, verdicts)),
                Received::Told(text) => exchanged.told.push(text),
                _ => {}
            }
        }
        if std::mem::take(&mut self.has_news) {
            let orders = self.member.orders(frontier, now)?;
            self.has_news = !orders.append.is_empty();
            if !orders.is_empty() {
                let _ = self.to_thread.send(Message::ToSend(orders));
            }
        }
        exchanged.has_more = self.has_news || !self.inbox.is_empty();
        Ok(exchanged)
    }

    fn unsaved(&mut self) -> Option<Vec<u8>> {
        if !self.member.is_unsaved() {
            return None;
        }
        self.member.saved();
        // Numbers and texts can always be written.
        Some(postcard::to_allocvec(self.member.kept()).unwrap_or_default())
    }

    fn synced(&mut self, frontier: &Frontier, is_drained: bool, summary: &Summary, now: Time) {
        let status = PartitionStatus {
            owner: self.process.owner.clone(),
            at: 0,
            pages: summary.pages,
            rate: summary.recent_pages_per_second(),
            waiting: summary.report.queued_pages,
            to_send: summary.report.exchange.waiting,
            repeated: summary.repeated_batches,
            is_paused: self.is_paused,
            has_left: false,
        };
        self.member.synced(frontier, is_drained, status, now);
        self.has_news = true;
    }

    fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    fn knows_end(&self) -> bool {
        self.member.ended().is_some()
    }

    fn has_ended(&self, now: Time) -> bool {
        self.member.finished(now).is_some()
    }

    fn has_lost(&self) -> bool {
        self.member.ended() == Some(End::Incomplete)
    }

    fn repeated(&self) -> u64 {
        self.member.repeated()
    }

    fn woken(&self) -> Arc<Notify> {
        Arc::clone(&self.woken)
    }

    fn leave(&mut self) {
        let ended = self.member.ended();
        if let Some(end) = ended {
            let (level, how) = match end {
                End::Complete => (log::Level::Info, ""),
                End::Incomplete => (log::Level::Warn, ", incomplete: links were lost with a state directory"),
            };
            let (name, partition) = (self.process.address.name(), self.process.partition);
            let id = &self.member.kept().crawl;
            log::log!(
                target: "crawler::cluster", level, name:%, partition:%, id:%;
                "the crawl {name} has ended in all partitions{how}"
            );
        }
        let has_ended = ended.is_some();
        let _ = self.to_thread.send(Message::Leave { has_ended });
        if let Some(thread) = self.thread.take() {
            // It has said why, if it has panicked.
            let _ = thread.join();
        }
    }
}

/// The thread that talks to Redis.
struct Courier {
    post: Post<RedisLog>,
    founded: Founded,
    /// Whether another partition was heard in an earlier run: otherwise the directory may be a wrong one.
    has_heard: bool,
    strangers: u32,
    messages: Receiver<Message>,
    to_loop: Sender<News>,
    woken: Arc<Notify>,
    waiting: Arc<AtomicUsize>,
    heard: Option<Instant>,
    said: Option<Instant>,
    /// What cannot be read there, but is not needed to go on.
    unreadable: Option<LogError>,
    /// The error that was logged last, and when it happened last.
    last_error: Option<(String, Instant)>,
}

impl Courier {
    fn run(mut self) {
        let [shortest, longest] = WAITS;
        let mut wait = shortest;
        loop {
            let sent = match self.messages.recv_timeout(IDLE) {
                Ok(Message::ToSend(orders)) => self.post.send(orders),
                Ok(Message::Leave { has_ended }) => return self.leave(has_ended),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                // The crawl has ended by an error: what was said stays.
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let turned = self.turn();
            if turned.is_err() {
                thread::sleep(wait);
                wait = (wait * 2).min(longest);
            } else {
                wait = shortest;
            }
            let failed = turned.err().or(sent.err());
            // What has come meanwhile would fail as slowly, one after the other, while more comes, and a stop would wait behind it. The last word
            // and trims suffice: what is lost here is sent again after a silence.
            while failed.is_some()
                && let Ok(message) = self.messages.try_recv()
            {
                match message {
                    Message::ToSend(orders) => drop(self.post.keep(orders)),
                    Message::Leave { has_ended } => return self.leave(has_ended),
                }
            }
            self.note(failed.or_else(|| self.unreadable.clone()));
        }
    }

    /// Reads what is new, and says what is due.
    fn turn(&mut self) -> Result<(), LogError> {
        let is_due = |last: Option<Instant>, every| last.is_none_or(|last| last.elapsed() >= every);
        let mut news = News::default();
        let has_room = self.waiting.load(Ordering::Relaxed) < MAX_INBOX;
        if has_room {
            news.entries = self.post.read()?;
        }
        let mut said = Ok(());
        if is_due(self.said, SAY_EVERY) {
            // Redis may be full: what it has is taken all the same, which frees it.
            said = self.post.say();
            self.said = said.is_ok().then(Instant::now);
        }
        if has_room && is_due(self.heard, HEAR_EVERY) {
            let (words, others) = self.post.words()?;
            let signals = others
                .iter()
                .filter(|(field, _)| Signal::FIELDS.contains(&field.as_str()));
            news.signals = signals
                .filter_map(|(_, text)| serde_json::from_str(text).ok())
                .collect();
            // Redis may have forgotten it.
            let (log, text) = (self.post.log_mut(), self.founded.text());
            news.has_lost_name = self.strangers >= MOST_STRANGERS && !self.has_heard;
            let claims = self.strangers >= MOST_STRANGERS && self.has_heard;
            if claims {
                let key = log.crawl_key();
                log::warn!(target: "crawler::cluster", "another crawl has written {key}, and this one does so again: look for a process with a wrong directory or name");
            }
            let set = log.set_crawl(&text, !claims).and_then(|_| Founded::read(log));
            let is_other = matches!(&set, Ok(Some(found)) if found.id != self.founded.id);
            self.strangers = if is_other { self.strangers + 1 } else { 0 };
            self.unreadable = set.err().or_else(|| log.unreadable_word(&others));
            news.words = Some(words);
            self.heard = Some(Instant::now());
        }
        if news.words.is_some() || !news.entries.is_empty() {
            let of_words = news.words.as_ref().map_or(0, |_| WORDS_WEIGH);
            self.waiting.fetch_add(news.entries.len() + of_words, Ordering::Relaxed);
            let _ = self.to_loop.send(news);
            self.woken.notify_one();
        }
        said
    }

    /// Logs an error when it begins, and when it is over. Other calls may succeed meanwhile.
    fn note(&mut self, error: Option<LogError>) {
        match (error.map(|error| error.to_string()), &self.last_error) {
            (Some(error), last) => {
                if last.as_ref().is_none_or(|(last, _)| *last != error) {
                    log::warn!(
                        target: "crawler::cluster",
                        "{error}. The crawl continues, and its links wait until then"
                    );
                }
                self.last_error = Some((error, Instant::now()));
            }
            (None, Some((_, at))) if at.elapsed() > OVER_AFTER => {
                self.last_error = None;
                log::warn!(target: "crawler::cluster", "Redis answers again");
            }
            (None, _) => {}
        }
    }

    fn leave(mut self, has_ended: bool) {
        // Orders that were given before come before.
        let mut left = self.post.leave();
        if has_ended && left.is_ok() {
            left = self.post.log_mut().expire(KEPT_AFTER_END);
        }
        self.note(left.err());
    }
}
