//! Which errors mean that a state directory is damaged, and what to do then.

use std::path::Path;

use crawler::{StartError, StateError};
use frontier::{FrontierError, OpenError, StoreError};

/// Says how a directory may be repaired in which a crawl cannot start, if it is damaged.
pub(crate) fn hint_at_start(error: &StartError, dir: &Path) -> Option<String> {
    let hint = repair_hint(dir);
    match error {
        // It may be the database of another program.
        StartError::Open(OpenError::Store(StoreError::NotAStore { .. })) => {
            Some(format!("If a crawl has written it, {hint}"))
        }
        StartError::Open(error) => is_damaged_store(error).then_some(hint),
        StartError::State(StateError::Damaged(_)) => Some(hint),
        _ => None,
    }
}

fn is_damaged_store(error: &OpenError) -> bool {
    match error {
        OpenError::Damaged(_) | OpenError::Store(StoreError::Damaged { .. } | StoreError::NotAStore { .. }) => true,
        OpenError::Frontier(error) => is_damaged_frontier(error),
        _ => false,
    }
}

pub(crate) fn is_damaged_frontier(error: &FrontierError) -> bool {
    matches!(error, FrontierError::NotRead | FrontierError::Damaged(_))
}

/// Says how a directory may be repaired.
pub(crate) fn repair_hint(dir: &Path) -> String {
    format!(
        "crawler repair {} goes back to the last state that is whole, or exports what can be read",
        dir.display()
    )
}
