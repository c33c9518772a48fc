//! A log that loses, repeats, delays and goes back, and is away at times.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use cluster::{Batches, EntryId, LinkLog, LogError, StreamEntry};

use super::rng::Rng;

#[derive(Debug, Clone, Default)]
struct Contents {
    streams: BTreeMap<(u32, u32), Batches>,
    last: BTreeMap<(u32, u32), EntryId>,
    words: BTreeMap<u32, String>,
}

#[derive(Debug)]
struct State {
    now: Contents,
    /// What a failover goes back to.
    replica: Contents,
    is_down: bool,
    rng: Rng,
    longest: usize,
}

/// The server.
#[derive(Debug, Clone)]
pub(super) struct Server(Arc<Mutex<State>>);

impl Server {
    pub(super) fn new(rng: Rng) -> Self {
        Self(Arc::new(Mutex::new(State {
            now: Contents::default(),
            replica: Contents::default(),
            is_down: false,
            rng,
            longest: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(super) fn replicate(&self) {
        let mut state = self.state();
        state.replica = state.now.clone();
    }

    pub(super) fn fail_over(&self) {
        let mut state = self.state();
        state.now = state.replica.clone();
    }

    pub(super) fn flush(&self) {
        self.state().now = Contents::default();
    }

    /// Loses some entries of each stream.
    pub(super) fn lose_entries(&self) {
        let mut state = self.state();
        let state = &mut *state;
        for stream in state.now.streams.values_mut() {
            stream.retain(|_| state.rng.chance(0.7));
        }
    }

    /// Changes or cuts off some entries, and cuts off some words.
    pub(super) fn damage(&self) {
        let mut state = self.state();
        let State { now, rng, .. } = &mut *state;
        for (_, batch) in now.streams.values_mut().flatten() {
            let at = rng.below(batch.len().max(1));
            match (rng.below(9), batch.get_mut(at)) {
                (0 | 1, Some(byte)) => *byte ^= 1 << rng.below(8),
                (2, _) => batch.truncate(at),
                _ => {}
            }
        }
        for word in now.words.values_mut() {
            if rng.chance(0.3) {
                word.truncate(rng.below(word.len() + 1));
            }
        }
    }

    pub(super) fn set_down(&self, is_down: bool) {
        self.state().is_down = is_down;
    }

    /// The most entries that a stream has had.
    pub(super) fn longest(&self) -> usize {
        self.state().longest
    }

    pub(super) fn link(&self, index: u32) -> Link {
        Link {
            server: self.clone(),
            index,
            is_cut_off: Arc::default(),
        }
    }
}

/// The server as one partition reaches it. A clone is the same connection.
#[derive(Debug, Clone)]
pub(super) struct Link {
    server: Server,
    index: u32,
    is_cut_off: Arc<Mutex<bool>>,
}

impl Link {
    pub(super) fn cut_off(&self, is_cut_off: bool) {
        *self.is_cut_off.lock().unwrap() = is_cut_off;
    }

    fn reach(&self) -> Result<MutexGuard<'_, State>, LogError> {
        let state = self.server.state();
        if state.is_down || *self.is_cut_off.lock().unwrap() {
            return Err(LogError::NotReachable {
                server: "simulated".to_owned(),
                why: "it is away".to_owned(),
            });
        }
        Ok(state)
    }
}

impl LinkLog for Link {
    fn last(&mut self, to: u32) -> Result<Option<EntryId>, LogError> {
        Ok(self.reach()?.now.last.get(&(self.index, to)).copied())
    }

    fn append(&mut self, to: u32, entries: &[(EntryId, Vec<u8>)], window: usize) -> Result<(), LogError> {
        let mut state = self.reach()?;
        let pair = (self.index, to);
        for (id, batch) in entries {
            if *id <= state.now.last.get(&pair).copied().unwrap_or_default() {
                continue;
            }
            state.now.last.insert(pair, *id);
            let stream = state.now.streams.entry(pair).or_default();
            stream.push((*id, batch.clone()));
            let surplus = stream.len().saturating_sub(window);
            stream.drain(..surplus);
            let length = stream.len();
            state.longest = state.longest.max(length);
        }
        Ok(())
    }

    fn read(&mut self, after: &[(u32, EntryId)], up_to: usize) -> Result<Vec<StreamEntry>, LogError> {
        let mut state = self.reach()?;
        let state = &mut *state;
        let mut read = Vec::new();
        for (from, position) in after {
            // The rest is late. And at times all comes again.
            let up_to = up_to.min(1 + state.rng.below(3));
            let position = if state.rng.chance(0.1) {
                EntryId::default()
            } else {
                *position
            };
            let stream = state.now.streams.get(&(*from, self.index)).into_iter().flatten();
            let behind = stream.filter(|(id, _)| *id > position).take(up_to);
            read.extend(behind.map(|(id, batch)| StreamEntry {
                from: *from,
                id: *id,
                batch: batch.clone(),
            }));
        }
        Ok(read)
    }

    fn trim(&mut self, from: u32, up_to: EntryId) -> Result<(), LogError> {
        let mut state = self.reach()?;
        if let Some(stream) = state.now.streams.get_mut(&(from, self.index)) {
            stream.retain(|(id, _)| *id > up_to);
        }
        Ok(())
    }

    fn say(&mut self, word: &str) -> Result<(), LogError> {
        let index = self.index;
        self.reach()?.now.words.insert(index, word.to_owned());
        Ok(())
    }

    fn words(&mut self) -> Result<Vec<(String, String)>, LogError> {
        let state = self.reach()?;
        let words = state.now.words.iter();
        Ok(words.map(|(index, word)| (index.to_string(), word.clone())).collect())
    }

    fn time(&mut self) -> Result<u64, LogError> {
        self.reach().map(|_| 0)
    }
}
