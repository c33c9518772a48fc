//! The way back to the last checkpoint, past a journal that another version of this program has written.

use std::path::Path;

use frontier::{Directory, FrontierConfig};

use crate::error::StartError;
use crate::state::{Commit, StateError};
use crate::summary::Counts;

/// Goes back to the last checkpoint if another version of this program was killed after it, and this one cannot make its calls again.
///
/// # Errors
///
/// [`StateError::OtherLogic`] if other processes may know what is lost then, and that is not accepted. Besides, as opening the directory: nothing is lost
/// then.
pub(crate) fn go_back_if_logic_is_other(
    state: &Path,
    config: &FrontierConfig,
    accepts_loss: bool,
) -> Result<(), StartError> {
    let directory = Directory::new(state);
    let Some(other) = directory.other_logic()? else {
        return Ok(());
    };
    if config.partition.is_some() && other.are_synced && !accepts_loss {
        return Err(StateError::OtherLogic.into());
    }
    let (end, checkpoint) = (Commit::read(&other.at_end)?, Commit::read(&other.at_checkpoint)?);
    let pages = |saved: &Option<(Counts, Commit)>| saved.as_ref().map_or(0, |(counts, _)| counts.pages);
    let pages = pages(&end).saturating_sub(pages(&checkpoint));
    directory.discard_other_logic(config)?;
    let outputs_of = |saved| Option::iter(saved).flat_map(|(_, commit): &(Counts, Commit)| &commit.outputs);
    for output in outputs_of(&end) {
        let earlier = outputs_of(&checkpoint).find(|earlier| earlier.name == output.name);
        let known = earlier.map_or(0, |earlier| earlier.file.number);
        output.file.remove_behind(known);
    }
    let (shown, commits) = (state.display(), other.commits);
    log::warn!(
        target: "crawler::state",
        state:% = shown, discarded_commits = commits, pages;
        "another version of this program was killed in {shown}, and this one cannot read what it did since the last checkpoint: the crawl goes back to \
         that, by {commits} commits, and fetches {pages} pages again"
    );
    Ok(())
}
