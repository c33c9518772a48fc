//! The [`Frontier`]: offer, lease, settle.

mod again;
mod exchanging;
#[cfg(fuzzing)]
#[path = "../tests/shared/fuzzing.rs"]
pub mod fuzzing;
mod inspecting;
mod opened;

pub use opened::Opened;

use std::borrow::Cow;

use sieve::SeenSet;

use crate::config::{FrontierConfig, FrontierConfigError};
use crate::durable::{Durable, SaveStatus};
use crate::error::FrontierError;
use crate::lease::{LeaseId, Leasing};
use crate::link::Link;
use crate::policy::{CrawlPolicy, HostPolicy};
use crate::settlement::{Settled, Settlement, Verdict};
use crate::state::{Answer, Call, State, bloom_filter};
use crate::time::Time;
use crate::url::HostKey;

/// A crawl frontier: it decides what to fetch next, and fetches nothing twice.
///
/// One task owns it, and it does nothing by itself. You [offer](Self::offer) links, [lease](Self::lease) entries, and
/// [settle](Self::settle) each lease together with the links of its page. Time is an argument of every call.
///
/// ```
/// use std::time::Duration;
/// use frontier::{Canonicalizer, Frontier, FrontierConfig, Leasing, Link, Outcome, Time};
///
/// let mut config = FrontierConfig::default();
/// (config.politeness.delay, config.politeness.ask_robots) = (Duration::from_secs(2), false);
/// let mut frontier = Frontier::in_memory(config)?;
/// let urls = Canonicalizer::default();
///
/// let start = Time::from_millis(1_000_000);
/// frontier.add_seed(&urls.parse("https://example.com/")?, start)?;
/// let Leasing::Ready(leases) = frontier.lease(start, 10)? else { panic!("the seed is ready") };
///
/// // ... fetch leases[0].entry.url, which takes half a second ...
/// let end = start + Duration::from_millis(500);
/// let about = urls.parse("https://example.com/about")?;
/// let about = Link::found(about, 1, "https://example.com/".into());
/// frontier.settle(&[leases[0].settle(Outcome::Done).with_links(vec![about])], end)?;
///
/// // The delay counts from the end of the request.
/// assert_eq!(frontier.lease(end, 10)?, Leasing::NotUntil(end + Duration::from_secs(2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Frontier {
    state: State,
    /// What keeps it in a directory; `None` in memory.
    durable: Option<Box<Durable>>,
    is_poisoned: bool,
}

impl Frontier {
    /// Creates a frontier in memory, with the seen-set that the configuration describes.
    ///
    /// # Errors
    ///
    /// A seen-set that cannot be built, or an invalid pattern of the scope.
    pub fn in_memory(config: FrontierConfig) -> Result<Self, FrontierConfigError> {
        let seen = if config.seen_set.exact {
            SeenSet::exact()
        } else {
            bloom_filter(&config)?
        };
        Ok(Self {
            state: State::new(&config, seen)?,
            durable: None,
            is_poisoned: false,
        })
    }

    /// Opens the frontier of a directory, or creates both. Entries that were in flight are queued again. Files of your own may lie
    /// in the directory. Needs the feature `durable`.
    ///
    /// `config` may differ from that of the run before, except in what the state depends on: rate, exactness and growth of the seen-set, its
    /// capacity unless it grows and the new one is larger, reach, politeness per address. The secret of the hash is that of the first run. `parse` makes rules of the texts of
    /// robots.txt files that [`RobotsRules::text`](crate::RobotsRules::text) returned, and makes the same ones as in the run before:
    /// [`Directory::config`](crate::Directory::config) has the name for it. To read them by another name, open the directory by the stored one first,
    /// and make a [`checkpoint`](Self::checkpoint).
    ///
    /// A changed option takes effect at once: hosts are due by the new delays, pages beyond a lower budget of their host are dropped, and a
    /// higher limit of near-duplicates opens what was closed. What is queued stays queued, also if it is more than a lower
    /// [`max_queued`](crate::LimitConfig::max_queued), or out of a smaller scope.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use frontier::{Canonicalizer, Frontier, FrontierConfig, Leasing, RobotsRules, Time};
    ///
    /// #[derive(Debug)]
    /// struct AllowAll;
    /// impl RobotsRules for AllowAll {
    ///     fn allows(&self, _path: &str) -> bool { true }
    ///     fn text(&self) -> Option<&[u8]> { Some(b"") }
    /// }
    ///
    /// let dir = std::env::temp_dir().join(format!("crawl-{}", std::process::id()));
    /// let parse = |_: &[u8]| Arc::new(AllowAll) as Arc<dyn RobotsRules>;
    /// let open = |now| Frontier::open(&dir, FrontierConfig::default(), now, Arc::new(parse));
    ///
    /// let opened = open(Time::from_millis(1_700_000_000_000))?;
    /// let (mut frontier, now) = (opened.frontier, opened.now); // never earlier than the last run
    /// frontier.add_seed(&Canonicalizer::default().parse("https://example.com/")?, now)?;
    /// frontier.persist(b"my own state", now)?;
    /// drop(frontier); // or the process is killed
    ///
    /// let opened = open(now)?;
    /// assert_eq!(opened.attachment.as_deref(), Some(&b"my own state"[..]));
    /// assert_eq!(opened.frontier.report().queued_pages, 1);
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// After a power cut, what belongs to the attachment may lack something: ask [`Directory::unsynced`](crate::Directory::unsynced) before.
    ///
    /// Opening reads the whole state, and [`persist`](Self::persist) waits for the disk when a sync is due, for seconds on a slow one. In an
    /// async program, do both in a thread that may block, such as by `tokio::task::block_in_place`, which panics in a runtime of one thread.
    /// [`sync_interval`](FrontierConfig::sync_interval) says how often a sync is due.
    ///
    /// Your program has to do nothing, unless the size of files is limited (RLIMIT_FSIZE, `ulimit -f`): on Unix, SIGXFSZ then ends it at the
    /// limit. Handle or ignore that signal, and it is an error.
    ///
    /// # Errors
    ///
    /// A directory that another process uses, that cannot be read or written, or that is damaged; a configuration that does not fit it.
    #[cfg(feature = "durable")]
    pub fn open(
        dir: &std::path::Path,
        config: FrontierConfig,
        now: Time,
        parse: crate::rules::ParseRules,
    ) -> Result<Opened, crate::durable::OpenError> {
        let store = crate::sqlite::SqliteStore::open(dir)?;
        let opening = crate::durable::open::open(Box::new(store), config, now, &parse, crate::durable::sizes::SIZES)?;
        Ok(opening.into())
    }

    /// Offers a seed: a URL, or the [link](Link::seed) to it. It joins the scope; depth and patterns do not apply to it. Offer the seeds again in a later run: those of an earlier one
    /// are [`Seen`](Verdict::Seen), and count as such links. A kill before the next [`persist`](Self::persist) loses a new one.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn add_seed(&mut self, seed: impl Into<Link>, now: Time) -> Result<Verdict, FrontierError> {
        let seed = [seed.into()];
        let answer = self.apply(Call::AddSeed(seed[..].into()), now)?;
        Ok(answer.verdicts.first().copied().unwrap_or(Verdict::Seen))
    }

    /// Offers links and returns a verdict on each. A link that is refused is not marked as seen. A [seed](Link::seed) joins the scope, as
    /// with [`add_seed`](Self::add_seed).
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn offer(&mut self, links: &[Link], now: Time) -> Result<Vec<Verdict>, FrontierError> {
        if !links.iter().any(Link::is_seed) {
            return Ok(self.apply(Call::Offer(links.into()), now)?.verdicts);
        }
        let mut verdicts = Vec::with_capacity(links.len());
        for alike in links.chunk_by(|one, next| one.is_seed() == next.is_seed()) {
            // The seeds of a crawl are known to all partitions. They are told those that are offered later.
            let call = match alike[0].is_seed() && self.partition().is_none() {
                true => Call::AddSeed(alike.into()),
                false => Call::Offer(alike.into()),
            };
            verdicts.extend(self.apply(call, now)?.verdicts);
        }
        Ok(verdicts)
    }

    /// Leases up to `up_to` entries whose hosts may be requested now, or says when to call again. If `up_to` is 0, an empty
    /// [`Ready`](Leasing::Ready) means that an entry is ready.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn lease(&mut self, now: Time, up_to: usize) -> Result<Leasing, FrontierError> {
        Ok(self.apply(Call::Lease(up_to as u64), now)?.leasing)
    }

    /// Settles leases, each with the links of its page, in one call. Returns what happened to each, in the order of `settlements`.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn settle(&mut self, settlements: &[Settlement], now: Time) -> Result<Vec<Settled>, FrontierError> {
        let has_no_text = |one: &Settlement| one.rules.as_ref().is_some_and(|rules| rules.text().is_none());
        if self.durable.is_some() && settlements.iter().any(has_no_text) {
            return Err(FrontierError::RulesWithoutText);
        }
        let settled = self.apply(Call::Settle(settlements.into()), now)?.settled;
        Ok(settled.into_iter().map(|(settled, _)| settled).collect())
    }

    /// Sets what one host is granted, before all that [`FrontierConfig::hosts`] says, in place of what was set before. The host is remembered from then on,
    /// until its policy is `HostPolicy::default()`, and counts among [`max_hosts`](crate::LimitConfig::max_hosts). What waits for a host that is closed now is [dropped](Leasing::Dropped);
    /// what of it was not returned yet is queued again if it is opened before.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn set_policy(&mut self, host: &HostKey, policy: &HostPolicy, now: Time) -> Result<(), FrontierError> {
        self.apply(Call::SetPolicy(Cow::Borrowed(host), Cow::Borrowed(policy)), now)
            .map(drop)
    }

    /// Orders what holds for the whole crawl from now on and in later runs, before its configuration, in place of what was ordered before.
    /// Cost: if it changes a delay or a budget of hosts, a look at each host.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Pattern`] for a pattern that cannot be used. [`FrontierError::Poisoned`] after a call that panicked.
    pub fn set_crawl_policy(&mut self, policy: &CrawlPolicy, now: Time) -> Result<(), FrontierError> {
        let checked = self.state.check(policy);
        checked.map_err(|error| FrontierError::Pattern(error.to_string().into()))?;
        self.apply(Call::SetCrawlPolicy(Cow::Borrowed(policy)), now).map(drop)
    }

    /// Returns what was ordered for the whole crawl.
    pub fn crawl_policy(&self) -> &CrawlPolicy {
        self.state.ordered()
    }

    /// Returns whether nothing of a host is fetched, by its [policy](HostPolicy::closed).
    pub fn is_closed(&self, host: &HostKey) -> bool {
        self.state.queues().is_closed(host)
    }

    /// Returns how many hosts have a policy that was [set](Self::set_policy).
    pub fn hosts_with_orders(&self) -> u64 {
        self.state.queues().own_policies
    }

    /// Lets the next [`persist`](Self::persist) sync the directory, whatever the [`sync_interval`](FrontierConfig::sync_interval) is: so that an
    /// order that is confirmed is not lost.
    pub fn sync_next(&mut self) {
        if let Some(durable) = &mut self.durable {
            durable.sync_next();
        }
    }

    /// Returns what was set for one host.
    pub fn policy(&self, host: &HostKey) -> HostPolicy {
        let host = self.state.queues().get(host);
        host.and_then(|host| host.own_policy().cloned()).unwrap_or_default()
    }

    /// Queues everything again that is in flight, and returns the number of entries. Their requests count as ended now, and not as
    /// attempts. If an origin was given up meanwhile, its entries are [dropped](Leasing::Dropped). Late settlements of their leases are
    /// [`Fate::Stale`](crate::Fate::Stale).
    ///
    /// It serves callers whose requests have ended without a result: after a crash, or when all requests were aborted.
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn release_leases(&mut self, now: Time) -> Result<u64, FrontierError> {
        Ok(self.apply(Call::ReleaseLeases, now)?.released)
    }

    /// Queues entries again whose requests were not made and will not be, such as those that wait when a crawl is stopped. They spend
    /// neither delay nor attempts, and come after what is queued for their origins. If an origin was given up meanwhile, its entries are
    /// [dropped](Leasing::Dropped). Returns the number of leases that ended, which are all but those that were settled before or are unknown.
    /// Late settlements of them are [`Fate::Stale`](crate::Fate::Stale).
    ///
    /// # Errors
    ///
    /// [`FrontierError::Poisoned`] after a call that panicked.
    pub fn give_back(&mut self, leases: &[LeaseId], now: Time) -> Result<u64, FrontierError> {
        Ok(self.apply(Call::GiveBack(Cow::Borrowed(leases)), now)?.released)
    }

    /// Makes all changes since the last call survive the end of this process, together with a text of the caller's own, in one step:
    /// after a crash there are all of them, or none. [`Opened::attachment`] returns the text of the last step.
    ///
    /// Call it after results were written, and before requests of new leases are sent, but for those to hosts without a
    /// [delay](crate::Lease::delay). Then a crash costs at most the requests that were in flight or have ended since the last call. If the
    /// [`sync_interval`](FrontierConfig::sync_interval) has passed, a checkpoint waits for it, or it is the first call of a run, the changes survive a
    /// power cut, too: ask [`save_status`](Self::save_status) before. In memory it only closes batches for other partitions.
    ///
    /// Cost: a row of the database with the calls since the last one. At times a slice of a checkpoint, and before the first slice a copy
    /// of the whole state in memory.
    ///
    /// # Errors
    ///
    /// [`FrontierError::NotSaved`] if the store cannot be written. The frontier is then poisoned: what is in memory may be ahead of the
    /// disk. Open it again when the cause is gone. [`FrontierError::Poisoned`] after such an error, or after a call that panicked.
    pub fn persist(&mut self, attachment: &[u8], now: Time) -> Result<(), FrontierError> {
        self.close_batches(self.save_status().is_none_or(|status| status.is_sync_due(now)), now)?;
        self.with_durable(|state, durable| durable.persist(state, attachment, now), || ())
    }

    /// Writes a checkpoint and syncs it, at the end of a run: sync before what belongs to the attachment. The next `open` then makes no call again, and a later version of this crate can read it if
    /// the format of the state is the same. In memory it does nothing.
    ///
    /// # Errors
    ///
    /// Those of [`persist`](Self::persist).
    pub fn checkpoint(&mut self, attachment: &[u8], now: Time) -> Result<(), FrontierError> {
        self.close_batches(true, now)?;
        self.with_durable(|state, durable| durable.checkpoint(state, attachment, now), || ())
    }

    /// Checks that the directory is still where it was opened. If it was renamed or removed, another process may begin at its place. A
    /// [`persist`](Self::persist) that syncs checks it, too: call this meanwhile if there is nothing to save for long.
    ///
    /// # Errors
    ///
    /// [`FrontierError::NotSaved`] if it is not, and those of [`persist`](Self::persist).
    pub fn check_place(&mut self) -> Result<(), FrontierError> {
        self.with_durable(|_, durable| durable.check_place(), || ())
    }

    /// Returns what the next [`persist`](Self::persist) has to do; `None` in memory.
    pub fn save_status(&self) -> Option<SaveStatus> {
        self.durable.as_ref().map(|durable| durable.save_status())
    }

    /// Makes one call. Nothing else changes the state, and a durable frontier has each call in its journal. If it panics or cannot be
    /// recorded, the frontier stays poisoned.
    fn apply(&mut self, call: Call<'_>, now: Time) -> Result<Answer, FrontierError> {
        self.guarded(|frontier| match &mut frontier.durable {
            Some(durable) => durable.apply(&mut frontier.state, call, now),
            None => Ok(frontier.state.apply(&call, now)),
        })
    }

    /// Does something with the directory, or nothing in memory.
    fn with_durable<T>(
        &mut self,
        work: impl FnOnce(&mut State, &mut Durable) -> Result<T, FrontierError>,
        in_memory: impl FnOnce() -> T,
    ) -> Result<T, FrontierError> {
        self.guarded(|frontier| match &mut frontier.durable {
            Some(durable) => work(&mut frontier.state, durable),
            None => Ok(in_memory()),
        })
    }

    /// Does something after which the frontier is poisoned unless it returns, and without an error.
    fn guarded<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, FrontierError>) -> Result<T, FrontierError> {
        if std::mem::replace(&mut self.is_poisoned, true) {
            return Err(FrontierError::Poisoned);
        }
        let done = work(self)?;
        self.is_poisoned = false;
        Ok(done)
    }
}
