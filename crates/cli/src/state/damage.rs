//! Which errors mean that a state directory is damaged, and what to do then.

use std::path::Path;

use crawler::{CrawlError, StartError, StateError};
use frontier::{FrontierError, OpenError, StoreError};

/// Whether a crawl cannot start because its state directory is damaged.
pub(crate) fn is_damage_at_start(error: &StartError) -> bool {
    match error {
        StartError::Open(error) => is_damaged_store(error),
        StartError::State(StateError::Damaged(_)) => true,
        _ => false,
    }
}

/// Whether a crawl failed because its state directory is damaged.
pub(crate) fn is_damage_of_crawl(error: &CrawlError) -> bool {
    matches!(error, CrawlError::Frontier(error) if is_damaged_frontier(error))
}

pub(super) fn is_damaged_store(error: &OpenError) -> bool {
    match error {
        OpenError::Damaged(_) | OpenError::Store(StoreError::Damaged { .. } | StoreError::NotAStore { .. }) => true,
        OpenError::Frontier(error) => is_damaged_frontier(error),
        _ => false,
    }
}

pub(super) fn is_damaged_frontier(error: &FrontierError) -> bool {
    matches!(error, FrontierError::NotRead | FrontierError::Damaged(_))
}

/// Says how a directory may be repaired.
pub(crate) fn repair_hint(dir: &Path) -> String {
    format!(
        "crawler repair {} goes back to the last state that is whole, or exports what can be read",
        dir.display()
    )
}

/// Says how a directory may be repaired in which a crawl cannot start.
pub(crate) fn repair_hint_at_start(error: &StartError, dir: &Path) -> String {
    match error {
        // It may be the database of another program.
        StartError::Open(OpenError::Store(StoreError::NotAStore { .. })) => {
            format!("If a crawl has written it, {}", repair_hint(dir))
        }
        _ => repair_hint(dir),
    }
}
