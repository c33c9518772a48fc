//! The way back to the last sync, after a power cut has taken from the outputs what came later.

use std::path::Path;

use frontier::Directory;

use crate::error::StartError;
use crate::output::OutputFile;
use crate::saved_output::SavedFile;
use crate::state::{Commit, StateError};

/// Goes back to the last sync if the outputs lack what was written since. Otherwise makes sure that they do not lose it from now on.
pub(crate) fn go_back_if_outputs_are_lost(state: &Path) -> Result<(), StartError> {
    let Some(unsynced) = Directory::new(state).unsynced()? else {
        return Ok(());
    };
    let Some((_, saved)) = Commit::read(&unsynced.attachment)? else {
        return Ok(());
    };
    let last: Vec<&SavedFile> = saved.outputs.iter().map(|output| &output.file).collect();
    if last.is_empty() {
        return Ok(());
    }
    let are_lost = unsynced.is_system_restarted || !last.iter().all(|file| file.is_intact());
    if are_lost && saved.synced.iter().all(SavedFile::is_intact) {
        let commits = Directory::new(state).discard_unsynced()?;
        if commits > 0 {
            let shown = state.display();
            // Now: if the crawl does not start after all, the next one does not know.
            log::warn!(
                target: "crawler::state",
                state:% = shown, discarded_commits = commits;
                "the outputs may lack what was written since the last sync, as after a power cut: the crawl in {shown} goes back to it, by \
                 {commits} commits, and what was fetched since is fetched again"
            );
            return Ok(());
        }
    }
    if unsynced.is_system_restarted {
        let shown = state.display();
        log::warn!(
            target: "crawler::state",
            state:% = shown, unsynced_commits = unsynced.commits;
            "the system was started anew since the last sync, and the crawl in {shown} cannot go back to it: an output is missing at its place, \
             or has changed. The outputs may lack what was written since"
        );
    }
    // Opening may sync the state, with what a killed run has written to the outputs.
    let sync = |file: &&SavedFile| OutputFile::sync_existing(&file.full_path());
    let synced = last.iter().try_for_each(sync);
    Ok(synced.map_err(|error| StateError::NotWritten(error.to_string()))?)
}
