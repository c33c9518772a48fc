//! From an answer to its outcome. The frontier decides about retries and back-off: see [`frontier::failure`].
//!
//! | answer | outcome |
//! |---|---|
//! | 2xx, 304 | done |
//! | 2xx with a body that is incomplete | failed: `incomplete`; after the last attempt, done with the partial body |
//! | 3xx with a `Location` | redirected: its target is a new link |
//! | 429, 503 with `Retry-After` | failed: `throttled` |
//! | 408, 425, 5xx | failed: `status` |
//! | any other status | rejected |
//! | no answer | failed: the kind of the [`FetchError`] |
//! | address not public | not fetched |

use frontier::{Failure, FailureKind, NotFetched, Outcome};

use crate::fetch::{FetchError, Response};

/// Returns the outcome of a request.
pub(crate) fn outcome_of(result: &Result<Response, FetchError>) -> Outcome {
    match result {
        Ok(answer) => outcome_of_answer(answer),
        Err(FetchError::AddressForbidden) => Outcome::NotFetched(NotFetched::AddressForbidden),
        Err(error) => Outcome::failed(error.failure()),
    }
}

fn outcome_of_answer(answer: &Response) -> Outcome {
    if let Some(failure) = failure_of(answer) {
        let retry_after = answer.retry_after.filter(|_| failure.kind == FailureKind::Throttled);
        return Outcome::failed_until(failure, retry_after);
    }
    match answer.status {
        200..=299 | 304 => Outcome::Done,
        300..=399 if answer.location.is_some() => Outcome::Redirected,
        _ => Outcome::Rejected,
    }
}

/// Returns the failure of an answer that should be retried; `None` if the answer is final.
pub(crate) fn failure_of(answer: &Response) -> Option<Failure> {
    let status = answer.status;
    match status {
        200..=299 => {
            let reason = answer.truncation.filter(|reason| reason.is_temporary())?;
            let why = format!("the body is truncated: {}", reason.name());
            Some(Failure::new(FailureKind::Incomplete, why))
        }
        _ => {
            let kind = FailureKind::of_status(status, answer.retry_after.is_some())?;
            let why = match kind {
                FailureKind::Throttled => format!("status {status}: the server asks for less traffic"),
                _ => format!("status {status}"),
            };
            Some(Failure::new(kind, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn outcome(status: u16, retry_after: Option<Duration>) -> Outcome {
        outcome_of(&Ok(Response {
            status,
            retry_after,
            ..Response::default()
        }))
    }

    fn kind(outcome: &Outcome) -> Option<FailureKind> {
        match outcome {
            Outcome::Failed { failure, .. } => Some(failure.kind),
            _ => None,
        }
    }

    #[test]
    fn every_status_has_the_outcome_of_the_table() {
        for code in [200, 204, 304] {
            assert_eq!(outcome(code, None), Outcome::Done, "{code}");
        }
        for code in [301, 401, 404, 410, 999] {
            assert_eq!(outcome(code, None), Outcome::Rejected, "{code}");
        }
        for code in [408, 425, 500, 503] {
            assert_eq!(kind(&outcome(code, None)), Some(FailureKind::Status), "{code}");
        }
        assert_eq!(kind(&outcome(429, None)), Some(FailureKind::Throttled));
        let redirect = Response {
            status: 308,
            location: Some("/".to_owned()),
            ..Response::default()
        };
        assert_eq!(outcome_of(&Ok(redirect)), Outcome::Redirected);
    }

    #[test]
    fn retry_after_is_passed_on_with_429_and_503() {
        let wait = Some(Duration::from_secs(77));
        for code in [429, 503] {
            match outcome(code, wait) {
                Outcome::Failed { failure, retry_after } => {
                    assert_eq!((failure.kind, retry_after), (FailureKind::Throttled, wait));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_table_of_the_frontier_for_other_fetchers_is_the_same() {
        for status in 0..700 {
            for (retry_after, location) in [(None, None), (Some(Duration::from_secs(9)), Some("/to".to_owned()))] {
                let ours = outcome_of_answer(&Response {
                    status,
                    retry_after,
                    location: location.clone(),
                    ..Response::default()
                });
                let theirs = frontier::Answer {
                    status,
                    retry_after,
                    location,
                };
                match (&ours, theirs.outcome()) {
                    (
                        Outcome::Failed { failure, retry_after },
                        Outcome::Failed {
                            failure: other,
                            retry_after: rest,
                        },
                    ) => assert_eq!((failure.kind, *retry_after), (other.kind, rest), "{status}"),
                    (ours, theirs) => assert_eq!(*ours, theirs, "{status}"),
                }
            }
        }
    }
}
