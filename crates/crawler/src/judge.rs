//! What an answer means for the frontier: the failure policy, as a table.
//!
//! | answer | outcome | the host |
//! |---|---|---|
//! | 2xx, 304 | done | |
//! | 2xx whose body broke off or did not end in time | retry; in the end, done with what came | |
//! | 3xx with a `Location` | moved: its target is a new link | |
//! | 408, 425, 5xx | retry | |
//! | 429, 503 with `Retry-After` | retry, not before that time | rests until then |
//! | any other status | gone | |
//! | name not resolved, no connection, no secure one, timeout | retry | down: rests, longer each time, and is given up in the end |
//! | broken answer | retry | |
//! | address not public | not fetched | |

use std::time::Duration;

use frontier::{NotFetched, Outcome};

use crate::fetch::{Answer, Cut, FetchError};

/// How long a host rests that answers 429 and does not say how long.
const DEFAULT_THROTTLE: Duration = Duration::from_secs(5);

/// What is to be told to the frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) outcome: Outcome,
    /// How long the host is to rest.
    pub(crate) rest: Option<Duration>,
}

pub(crate) fn judge(result: &Result<Answer, FetchError>) -> Judgement {
    match result {
        Ok(answer) => judge_answer(answer),
        Err(error) => outcome(judge_error(error)),
    }
}

fn judge_answer(answer: &Answer) -> Judgement {
    match answer.status {
        200..=299 if answer.cut.is_some_and(Cut::is_passing) => outcome(Outcome::Retry { after: None }),
        200..=299 | 304 => outcome(Outcome::Done),
        300..=399 if answer.location.is_some() => outcome(Outcome::Moved),
        429 => throttled(answer.retry_after.unwrap_or(DEFAULT_THROTTLE)),
        503 if answer.retry_after.is_some() => throttled(answer.retry_after.unwrap_or_default()),
        408 | 425 | 500..=599 => outcome(Outcome::Retry { after: None }),
        _ => outcome(Outcome::Gone),
    }
}

fn judge_error(error: &FetchError) -> Outcome {
    match error {
        FetchError::AddressForbidden => Outcome::NotFetched(NotFetched::AddressForbidden),
        FetchError::Unresolved(_) | FetchError::Connect(_) | FetchError::Tls(_) | FetchError::Timeout => {
            Outcome::HostDown { until: None }
        }
        FetchError::HeadTooLarge(_) | FetchError::Broken(_) | FetchError::Panicked(_) => Outcome::Retry { after: None },
    }
}

fn outcome(outcome: Outcome) -> Judgement {
    Judgement { outcome, rest: None }
}

fn throttled(rest: Duration) -> Judgement {
    Judgement {
        outcome: Outcome::Retry { after: Some(rest) },
        rest: Some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> Outcome {
        judge(&Ok(Answer {
            status,
            ..Answer::default()
        }))
        .outcome
    }

    #[test]
    fn every_status_has_the_outcome_of_the_table() {
        let retry = Outcome::Retry { after: None };
        for (code, expected) in [
            (200, Outcome::Done),
            (204, Outcome::Done),
            (304, Outcome::Done),
            (301, Outcome::Gone),
            (401, Outcome::Gone),
            (404, Outcome::Gone),
            (410, Outcome::Gone),
            (408, retry),
            (425, retry),
            (
                429,
                Outcome::Retry {
                    after: Some(DEFAULT_THROTTLE),
                },
            ),
            (500, retry),
            (503, retry),
            (999, Outcome::Gone),
        ] {
            assert_eq!(status(code), expected, "{code}");
        }
        let moved = Answer {
            status: 308,
            location: Some("/".to_owned()),
            ..Answer::default()
        };
        assert_eq!(judge(&Ok(moved)).outcome, Outcome::Moved);
    }

    #[test]
    fn a_server_that_says_when_to_come_back_is_left_alone_until_then() {
        let wait = Duration::from_secs(77);
        for code in [429, 503] {
            let answer = Answer {
                status: code,
                retry_after: Some(wait),
                ..Answer::default()
            };
            let expected = Judgement {
                outcome: Outcome::Retry { after: Some(wait) },
                rest: Some(wait),
            };
            assert_eq!(judge(&Ok(answer)), expected);
        }
    }
}
