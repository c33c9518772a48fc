//! What an answer means for the frontier: the failure policy, as a table.
//!
//! | answer | outcome | the host |
//! |---|---|---|
//! | 2xx, 304 | done | |
//! | 2xx whose body broke off or did not end in time | retry; in the end, done with what came | |
//! | 3xx with a `Location` | moved: its target is a new link | |
//! | 408, 425, 5xx | retry | |
//! | 429, 503 with `Retry-After` | throttled: retry, without counting the attempt | rests until then, longer each time in a row, and is given up in the end |
//! | any other status | gone | |
//! | name not resolved, no connection, no secure one, timeout | retry | down: rests, longer each time, and is given up in the end |
//! | broken answer | retry | |
//! | no file handle left | hindered: retry, without counting the attempt | |
//! | address not public | not fetched | |

use frontier::{NotFetched, Outcome};

use crate::fetch::{Answer, Cut, FetchError};

/// What is to be told to the frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) outcome: Outcome,
}

impl Judgement {
    /// Says whether an answer is not the final one, if there may be another.
    pub(crate) fn asks_again(self) -> bool {
        matches!(self.outcome, Outcome::Retry { .. } | Outcome::Throttled { .. })
    }
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
        _ if throttles(answer) => outcome(Outcome::Throttled {
            after: answer.retry_after,
        }),
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
        FetchError::OutOfHandles => Outcome::Hindered,
        FetchError::HeadTooLarge(_) | FetchError::Broken(_) | FetchError::Panicked(_) => Outcome::Retry { after: None },
    }
}

fn outcome(outcome: Outcome) -> Judgement {
    Judgement { outcome }
}

/// Says whether a server asks for less traffic: 429 (RFC 6585, section 4), or 503 with `Retry-After` (RFC 9110, section
/// 15.6.4). A 503 that does not say when to come back may be a page that fails.
pub(crate) fn throttles(answer: &Answer) -> bool {
    answer.status == 429 || answer.status == 503 && answer.retry_after.is_some()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
            (429, Outcome::Throttled { after: None }),
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
            let expected = Outcome::Throttled { after: Some(wait) };
            assert_eq!(judge(&Ok(answer)).outcome, expected);
        }
    }
}
