//! Jitter of waits, different for each URL and attempt, so that requests that failed together are not repeated together.
//!
//! Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015. Two differences: the jitter is a hash instead of a
//! random number, so that equal crawls have equal waits. And it is only added, so that no wait is shorter than configured.

use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use siphasher::sip::SipHasher13;

pub(crate) fn with_jitter(wait: Duration, percent: u8, thousandths: u32) -> Duration {
    let most = wait.saturating_mul(u32::from(percent)) / 100;
    wait.saturating_add(most.saturating_mul(thousandths) / 1_000)
}

pub(crate) fn jitter_thousandths(url: &str, attempt: u32) -> u32 {
    let mut hasher = SipHasher13::new();
    (url, attempt).hash(&mut hasher);
    u32::try_from(hasher.finish() % 1_000).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_spread_evenly_over_a_quarter_and_never_shortened() {
        let wait = Duration::from_secs(8);
        let of = |n: u32| with_jitter(wait, 25, jitter_thousandths(&format!("http://h{n}.example/"), n % 3));
        let mut in_tenths = [0; 10];
        for added in (0..10_000).map(|n| of(n) - wait) {
            assert!(added < Duration::from_secs(2));
            in_tenths[usize::try_from(added.as_millis() / 200).unwrap()] += 1;
        }
        // 1000 expected in each, with a standard deviation of 30: six of them.
        assert!(
            in_tenths.iter().all(|count| (820..1180).contains(count)),
            "{in_tenths:?}"
        );
        assert_eq!(of(7), of(7));
        assert_ne!(
            jitter_thousandths("http://a.example/", 1),
            jitter_thousandths("http://a.example/", 2)
        );
    }

    #[test]
    fn a_jitter_of_zero_adds_nothing_and_the_longest_wait_does_not_overflow() {
        let (minute, none) = (Duration::from_secs(60), Duration::ZERO);
        assert_eq!(with_jitter(minute, 0, 999), minute);
        assert_eq!(with_jitter(none, 25, 999), none);
        assert_eq!(with_jitter(Duration::MAX, 255, 999), Duration::MAX);
    }
}
