//! What went wrong with an answer that did come.

use crate::fetch::{Answer, FailureKind};
use crate::judge::throttles;

/// Characters of a `Location` that a message repeats: it is a stranger's, and may be of any length.
const SHOWN_LOCATION: usize = 200;

/// What went wrong, in one word and in full.
pub(super) struct Failure {
    pub(super) kind: FailureKind,
    pub(super) why: String,
}

/// A redirect to what cannot be crawled.
pub(super) fn no_target(answer: &Answer) -> Failure {
    let location = answer.location.as_deref().unwrap_or_default();
    let location: String = location.chars().take(SHOWN_LOCATION).collect();
    Failure {
        kind: FailureKind::Redirect,
        why: format!(
            "status {} redirects to {location:?}, which cannot be crawled",
            answer.status
        ),
    }
}

/// An answer that asks for another try.
pub(super) fn unusable(answer: &Answer) -> Failure {
    match answer.cut {
        Some(cut) if cut.is_passing() && (200..300).contains(&answer.status) => Failure {
            kind: FailureKind::Incomplete,
            why: format!("the body is cut, because of {}", cut.name()),
        },
        _ if throttles(answer) => Failure {
            kind: FailureKind::Throttled,
            why: format!("status {}: the server asks for less traffic", answer.status),
        },
        _ => Failure {
            kind: FailureKind::Status,
            why: format!("status {}", answer.status),
        },
    }
}
