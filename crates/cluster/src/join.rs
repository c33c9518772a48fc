//! How a process joins the others: which crawl it is, whether it fits, and whether another process has its partition.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::founded::{Founded, Joining};
use crate::link_log::{LinkLog as _, LogError};
use crate::member::{Kept, Limits, Member, MemberError};
use crate::post::Post;
use crate::redis_log::RedisLog;
use crate::word::{Word, words_of};

/// How long a process that lives may say nothing: `cluster.rs` says its word each second.
const LONGEST_SILENCE: Duration = Duration::from_millis(2500);
/// How often the words are read meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often it is logged that another process is waited for.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Why a process cannot join.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// Redis does not answer as it should.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The other processes have something else that has to be the same everywhere. The text says what, and what to do.
    #[error("{0}")]
    Differs(String),
    /// The state directory is of another crawl than the processes that run.
    #[error(transparent)]
    OtherCrawl(#[from] MemberError),
    /// Another process has the partition.
    #[error(
        "partition {partition} has a process already, {owner}: stop that one first. If it was just killed, start this one again"
    )]
    Taken {
        /// The partition.
        partition: u32,
        /// The machine and the process.
        owner: String,
    },
    /// What is kept in the state directory cannot be read.
    #[error(
        "what the state directory has of the other processes cannot be read: continue with the program that began the crawl, or with a new directory and \
         --accept-loss"
    )]
    Kept,
    /// No random number can be drawn.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

impl JoinError {
    /// Returns whether the same start would fail again, until somebody changes something.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Log(LogError::Unreadable { .. }) | Self::Differs(_) | Self::OtherCrawl(_) | Self::Kept
        )
    }
}

impl Joining {
    /// Checks that this process fits to those that run. Called before a new directory is made, it spares one with options that cannot change.
    ///
    /// It blocks for up to three seconds, and while Redis that was reached is away.
    ///
    /// # Errors
    ///
    /// See [`JoinError`].
    pub fn check(&mut self) -> Result<(), JoinError> {
        let agree = |log: &mut RedisLog| match Founded::read(log)? {
            Some(found) if is_alive(log, &found)? => self.agreed(found).map(drop),
            _ => Ok(()),
        };
        self.in_redis(agree)?;
        self.has_answered = true;
        Ok(())
    }

    /// Joins the crawl, and begins to carry links.
    ///
    /// It blocks: while Redis is away, if the crawl has begun or Redis was reached; for up to three seconds after a process of this partition
    /// was killed; and, in a new directory, until the process of partition 0 has begun the crawl.
    ///
    /// # Errors
    ///
    /// See [`JoinError`]. What has been reached of Redis meanwhile does not matter.
    pub fn join(self) -> Result<Cluster, JoinError> {
        let mut kept = match self.kept.as_slice() {
            [] => Kept::default(),
            kept => postcard::from_bytes(kept).map_err(|_| JoinError::Kept)?,
        };
        // While no other process is alive, nobody else holds the crawl to its seeds; `SavedRules` of the crawler hold it to its rules.
        if kept.seeds.is_some_and(|seeds| seeds != self.seeds) {
            return Err(JoinError::Differs(self.other_seeds()));
        }
        let partition = self.partition;
        let (mut log, (founded, last)) = self.in_redis(|log| {
            let founded = self.find_crawl(log, &kept)?;
            let index = partition.index();
            log.enter(&founded.id, index, partition.count());
            if let Some(owner) = beating(log, |of| of == index)? {
                return Err(JoinError::Taken {
                    partition: index,
                    owner,
                });
            }
            let last: Result<Vec<_>, _> = partition.peers().map(|peer| log.last(peer)).collect();
            Ok((founded, last?))
        })?;
        let policy = log.eviction_policy().ok().flatten();
        if let Some(policy) = policy.filter(|policy| policy != "noeviction") {
            log::warn!(
                target: "crawler::cluster",
                "Redis removes keys when its memory is full ({policy}): links are sent again then, which takes time. Set maxmemory-policy noeviction"
            );
        }
        kept.crawl.clone_from(&founded.id);
        kept.seeds = Some(self.seeds);
        let limits = Limits::default();
        let mut post = Post::new(log, partition, limits.window);
        let mut member = Member::new(partition, limits, kept, self.accepts_loss, random()?);
        member.start(last.into_iter().flatten());
        let (name, id) = (self.address.name(), &founded.id);
        log::info!(
            target: "crawler::cluster", name:%, partition:%, id:%;
            "joined the crawl {name} as partition {partition}"
        );
        // Without an answer, what does not fit is found later.
        let said = post.words().unwrap_or_default().0;
        Ok(Cluster::start(member, post, founded, self, said))
    }

    /// Calls this with a connection, and again while Redis is away, as a crawl that runs waits for it. Only if the crawl has not begun, and
    /// nobody has answered yet, the address may be wrong.
    fn in_redis<T>(
        &self,
        mut call: impl FnMut(&mut RedisLog) -> Result<T, JoinError>,
    ) -> Result<(RedisLog, T), JoinError> {
        let (mut has_answered, mut has_said) = (self.has_answered || !self.kept.is_empty(), false);
        loop {
            let connected = RedisLog::connect(self.address.clone()).map_err(JoinError::Log);
            let called = connected.and_then(|mut log| {
                has_answered = true;
                call(&mut log).map(|result| (log, result))
            });
            match called {
                Err(JoinError::Log(error))
                    if matches!(error, LogError::NotReady { .. } | LogError::OutOfMemory { .. })
                        || has_answered && matches!(error, LogError::NotReachable { .. }) =>
                {
                    if !std::mem::replace(&mut has_said, true) {
                        log::warn!(target: "crawler::cluster", "{error}. The crawl waits for it");
                    }
                    sleep(LOOK_EVERY);
                }
                called => return called,
            }
        }
    }

    /// Finds the crawl of this directory; in a new one, begins a crawl as partition 0, or joins one that runs.
    ///
    /// | directory | no record in Redis, or nobody alive | a process of the record is alive |
    /// |---|---|---|
    /// | kept | writes the record of its own crawl | joins if that is its crawl and all agree, else is refused |
    /// | new, partition 0 | begins a crawl; takes one that it began itself just before | is refused, unless it accepts loss |
    /// | new, another partition | waits | joins if all agree |
    fn find_crawl(&self, log: &mut RedisLog, kept: &Kept) -> Result<Founded, JoinError> {
        let is_first = self.partition.index() == 0;
        let name = self.address.name();
        let mut last_said: Option<Instant> = None;
        loop {
            let found = Founded::read(log)?;
            let is_unnamed = found.is_none();
            let founded = match found {
                // This process was killed after it had begun the crawl, before it kept that.
                Some(found) if is_first && kept.crawl.is_empty() && self.has_begun(log, &found)? => return Ok(found),
                Some(found) if is_alive(log, &found)? => {
                    // A new directory of partition 0 would begin another crawl, unless the one before was lost.
                    let is_new = kept.crawl.is_empty() && (!is_first || self.accepts_loss);
                    if found.id != kept.crawl && !is_new {
                        return Err(MemberError::OtherCrawl { name: name.to_owned() }.into());
                    }
                    return self.agreed(found);
                }
                // None, or one that nobody continues now.
                _ if !kept.crawl.is_empty() => self.ours(kept.crawl.clone()),
                _ if is_first => self.ours(format!("{:016x}", random()?)),
                _ => {
                    if last_said.is_none_or(|said| said.elapsed() > LOG_EVERY) {
                        last_said = Some(Instant::now());
                        log::info!(target: "crawler::cluster", "waiting for the process of partition 0, which begins the crawl {name}");
                    }
                    sleep(LOOK_EVERY);
                    continue;
                }
            };
            // Another process may begin one at the same moment.
            let text = founded.text();
            if log.set_crawl(&text, is_unnamed)? == text {
                return Ok(founded);
            }
            sleep(LOOK_EVERY);
        }
    }

    /// Whether this process may have begun this crawl: it would begin the same, and nobody has said a word for partition 0.
    fn has_begun(&self, log: &mut RedisLog, found: &Founded) -> Result<bool, LogError> {
        log.observe(&found.id);
        let has_said = words_of(log.words()?).0.contains_key(&0);
        Ok(!has_said && *found == self.ours(found.id.clone()))
    }

    /// What this process would begin.
    fn ours(&self, id: String) -> Founded {
        Founded {
            id,
            partitions: self.partition.count(),
            rules: self.rules,
            seeds: self.seeds,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Checks that the other processes agree, if one is alive: otherwise this one writes what they have to agree with. A field that is new in
    /// [`Founded`] makes the record of another version unreadable.
    fn agreed(&self, found: Founded) -> Result<Founded, JoinError> {
        let (name, ours) = (self.address.name(), self.ours(found.id.clone()));
        Err(JoinError::Differs(match () {
            () if found.partitions != ours.partitions => format!(
                "the crawl {name} has {} partitions, not {}: their number is fixed when a crawl begins. Give that number, or begin another crawl \
                 under another name and in new directories",
                found.partitions, ours.partitions
            ),
            () if found.version != ours.version => format!(
                "the other processes of the crawl {name} are of version {} of this program, and this one is {}: run the same everywhere",
                found.version, ours.version
            ),
            () if found.rules != ours.rules => format!(
                "the other processes of the crawl {name} have other rules of which URLs are the same, or of when it ends: give all of them the same --drop-query-param, --set ignore-www and the like, and all or none --keep-fresh"
            ),
            () if found.seeds != ours.seeds => self.other_seeds(),
            () => return Ok(found),
        }))
    }

    fn other_seeds(&self) -> String {
        format!(
            "the crawl {} was begun with other seeds: they are fixed, and the same for all processes, in the same order. Give those, or begin \
             another crawl under another name and in new directories",
            self.address.name()
        )
    }
}

/// Looks whether a process of this crawl is alive, for up to some seconds. From then on, the log reads this crawl.
fn is_alive(log: &mut RedisLog, crawl: &Founded) -> Result<bool, LogError> {
    log.observe(&crawl.id);
    Ok(beating(log, |_| true)?.is_some())
}

/// Waits for a word that is said again, of those that have not left. Returns who says it, or nothing after some time.
fn beating(log: &mut RedisLog, of: impl Fn(u32) -> bool) -> Result<Option<String>, LogError> {
    // Another version may say words that this one cannot read.
    let status = |text: &str| serde_json::from_str::<Word>(text).ok().map(|word| word.status);
    let mut before = log.words()?;
    before.retain(|(field, text)| field.parse().is_ok_and(&of) && !status(text).is_some_and(|status| status.has_left));
    let begun = Instant::now();
    while !before.is_empty() && begun.elapsed() < LONGEST_SILENCE {
        sleep(LOOK_EVERY);
        let now = log.words()?;
        let is_new = |(field, text): &&(String, String)| before.iter().any(|(of, old)| of == field && old != text);
        if let Some((_, text)) = now.iter().find(is_new) {
            let owner = status(text).map(|status| status.owner);
            return Ok(Some(owner.unwrap_or_else(|| "one of another version".to_owned())));
        }
    }
    Ok(None)
}

fn random() -> Result<u64, JoinError> {
    getrandom::u64().map_err(JoinError::Random)
}
