//! Failures of requests that did get an answer.

use frontier::{Failure, FailureKind};

use crate::fetch::Response;

/// Maximum number of characters of a `Location` in a message. The server chooses the text, and it may be of any length.
const SHOWN_LOCATION: usize = 200;

/// Returns the failure of a redirect whose target cannot be crawled.
pub(super) fn bad_redirect(answer: &Response) -> Failure {
    let location = answer.location.as_deref().unwrap_or_default();
    let location: String = location.chars().take(SHOWN_LOCATION).collect();
    let why = format!(
        "status {} redirects to {location:?}, which cannot be crawled",
        answer.status
    );
    Failure::new(FailureKind::Redirect, why)
}
