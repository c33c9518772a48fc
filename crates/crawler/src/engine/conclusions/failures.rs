//! What went wrong with an answer that did come.

use frontier::{Failure, FailureKind};

use crate::fetch::Response;

/// Characters of a `Location` that a message repeats: it is a stranger's, and may be of any length.
const SHOWN_LOCATION: usize = 200;

/// A redirect to what cannot be crawled.
pub(super) fn no_target(answer: &Response) -> Failure {
    let location = answer.location.as_deref().unwrap_or_default();
    let location: String = location.chars().take(SHOWN_LOCATION).collect();
    let why = format!(
        "status {} redirects to {location:?}, which cannot be crawled",
        answer.status
    );
    Failure::new(FailureKind::Redirect, why)
}
