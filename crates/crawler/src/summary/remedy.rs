//! What an operator can do about an origin that was given up.

use frontier::FailureKind;

/// Returns what to do about an origin that was given up after a failure of this kind, as a phrase. `name` returns the name of an option,
/// given that of its field.
///
/// ```
/// use crawler::FailureKind;
/// use crawler::summary::remedy;
///
/// assert_eq!(remedy(FailureKind::Unresolved, str::to_owned), "check the name of the host");
/// assert_eq!(remedy(FailureKind::Throttled, str::to_owned), "raise delay or max_throttles, or let a later run ask again");
/// ```
pub fn remedy(kind: FailureKind, name: impl Fn(&str) -> String) -> String {
    match kind {
        FailureKind::Unresolved => "check the name of the host".to_owned(),
        FailureKind::Connect => format!(
            "is it running? {} and {} wait longer",
            name("max_first_downtime"),
            name("max_host_downtime")
        ),
        FailureKind::Broken => "check scheme and port: what came is no answer of a web server".to_owned(),
        FailureKind::Timeout => format!("raise {}", name("timeout")),
        FailureKind::Incomplete => format!("if the time ran out, raise {}", name("timeout")),
        FailureKind::Throttled => format!(
            "raise {} or {}, or let a later run ask again",
            name("delay"),
            name("max_throttles")
        ),
        _ => format!("raise {} or {}", name("max_host_downtime"), name("max_first_downtime")),
    }
}
