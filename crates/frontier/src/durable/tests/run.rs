//! A run of some hundred calls, always the same, and a model that makes a part of them.

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

use super::calls::{Call, Setting, calls};
use super::common::{self, START};
use super::pair::{Step, common_picture, make, oracle, time_of, try_make};
use super::seen_sets::SeenSet;
use super::settlements;
use super::stores::{Recorder, open_store};
use crate::config::FrontierConfig;
use crate::lease::Lease;
use crate::{Frontier, FrontierError, Time};

/// Steps between two persists, and persists between two checkpoints.
const STEPS_PER_PERSIST: usize = 4;
const PERSISTS_PER_CHECKPOINT: usize = 23;

/// With an exact seen-set, whose filter is often wrong.
pub(super) fn config() -> FrontierConfig {
    config_of(SeenSet::Exact(10))
}

pub(super) fn config_of(seen_set: SeenSet) -> FrontierConfig {
    seen_set.config(settlements::config(&Setting {
        per_host: 2,
        delay: 700,
        ask_robots: true,
        per_address: false,
        max_pages: None,
        max_pages_per_host: Some(40),
        near_duplicates: Some(2),
        near_duplicates_in_all: Some(4),
        max_throttles: 6,
    }))
}

/// The steps of a run, each with its time, as a frontier in memory would answer them.
pub(super) struct Run {
    pub(super) steps: Vec<(Step, Time)>,
    pub(super) config: FrontierConfig,
}

/// What became of a run.
pub(super) struct Ended {
    /// The steps before the last call that was persisted.
    pub(super) persisted: usize,
    /// The steps that were made.
    pub(super) made: usize,
    pub(super) error: Option<FrontierError>,
}

impl Run {
    pub(super) fn new(calls_made: usize) -> Self {
        Self::with(calls_made, config())
    }

    pub(super) fn with(calls_made: usize, config: FrontierConfig) -> Self {
        let mut runner = TestRunner::deterministic();
        let strategy = calls();
        let mut frontier = common::frontier(oracle(&config));
        let (mut steps, mut out, mut now): (_, Vec<Lease>, _) = (Vec::new(), Vec::new(), START);
        while steps.len() < calls_made {
            let call: Call = strategy.new_tree(&mut runner).unwrap().current();
            // So long a pause would forget most of what is to be saved.
            if matches!(call, Call::Pass(millis) if millis > 10_000) {
                continue;
            }
            let Some(step) = Step::of(call, &mut out, &mut now) else {
                continue;
            };
            let (answer, leased) = make(&mut frontier, &step, now);
            out.extend(leased);
            steps.push((step, now));
            now = time_of(&answer).unwrap_or(now);
        }
        Self { steps, config }
    }

    /// Makes the steps in a new frontier with this store.
    pub(super) fn drive_new(&self, recorder: &Recorder) -> Ended {
        let opened = open_store(recorder.clone(), self.config.clone(), START);
        self.drive(&mut opened.unwrap().frontier)
    }

    /// Makes the steps in a durable frontier, with a persist after every few. The attachment is the number of steps made.
    pub(super) fn drive(&self, frontier: &mut Frontier) -> Ended {
        let mut ended = Ended {
            persisted: 0,
            made: 0,
            error: None,
        };
        for (step, now) in &self.steps {
            // What is not in memory is read in the middle of a call.
            if let Err(error) = try_make(frontier, step, *now) {
                ended.error = Some(error);
                return ended;
            }
            ended.made += 1;
            if !ended.made.is_multiple_of(STEPS_PER_PERSIST) {
                continue;
            }
            let attachment = ended.made.to_string();
            let done = if is_checkpoint(ended.made) {
                frontier.checkpoint(attachment.as_bytes(), *now).map(drop)
            } else {
                frontier.persist(attachment.as_bytes(), *now)
            };
            if let Err(error) = done {
                ended.error = Some(error);
                return ended;
            }
            ended.persisted = ended.made;
        }
        ended
    }

    /// A frontier in memory that has made the first steps.
    pub(super) fn model(&self, steps: usize) -> Frontier {
        let mut model = common::frontier(oracle(&self.config));
        for (step, now) in &self.steps[..steps] {
            make(&mut model, step, *now);
        }
        model
    }

    /// What a frontier and its model say of themselves.
    pub(super) fn picture(&self, frontier: &Frontier) -> String {
        common_picture(frontier, &self.config)
    }

    /// The time of the last of the first steps.
    pub(super) fn time(&self, steps: usize) -> Time {
        let last = steps.checked_sub(1).and_then(|at| self.steps.get(at));
        last.map_or(START, |(_, now)| *now)
    }
}

/// Returns whether a checkpoint is made after this number of steps.
pub(super) fn is_checkpoint(made: usize) -> bool {
    made.is_multiple_of(STEPS_PER_PERSIST * PERSISTS_PER_CHECKPOINT)
}

/// The steps that an attachment names.
pub(super) fn steps_of(attachment: Option<&[u8]>) -> usize {
    let text = std::str::from_utf8(attachment.unwrap_or_default()).unwrap();
    if text.is_empty() { 0 } else { text.parse().unwrap() }
}
