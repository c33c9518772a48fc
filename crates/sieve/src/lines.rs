//! The saturation lines of the log. This is the only file that logs.

use std::time::Duration;

use crate::on_saturation::OnSaturation;
use crate::saturation::rounded::{enough, grouped};
use crate::saturation::{Level, Notice, Saturation, SelfCheck};

/// The `log` target of the saturation lines.
const TARGET: &str = "sieve::saturation";

pub(crate) fn report(saturation: &Saturation, notice: &Notice, policy: OnSaturation) {
    let (severity, next_level_in) = match notice {
        Notice::Level { next_level_in } if saturation.level < Level::FULL => (log::Level::Info, *next_level_in),
        Notice::Level { next_level_in } => (log::Level::Warn, *next_level_in),
        Notice::Suspicion => (log::Level::Warn, None),
        Notice::Grown => (log::Level::Info, None),
    };
    // Nothing fills a filter that refuses.
    let next_level_in = next_level_in.filter(|_| policy != OnSaturation::Refuse || saturation.level < Level::FULL);
    let headline = match notice {
        Notice::Grown => "grown".to_owned(),
        Notice::Level { .. } | Notice::Suspicion => saturation.level.to_string(),
    };
    log::log!(
        target: TARGET,
        severity,
        saturation_level:% = saturation.level,
        estimated = saturation.estimated,
        capacity = saturation.capacity,
        grown_capacity = saturation.grown_capacity,
        accepted = saturation.accepted,
        fill = saturation.fill,
        rate = saturation.rate,
        lost = saturation.lost,
        lost_at_least = saturation.lost_at_least(),
        bits = saturation.bits,
        ones = saturation.ones,
        hashes = saturation.hashes,
        layers = saturation.layers,
        memory_bytes = saturation.memory_bytes,
        consistent = !matches!(saturation.check, SelfCheck::Suspicious { .. }),
        next_level_seconds = next_level_in.map(|wait| wait.as_secs_f64());
        "seen-set {headline}: {saturation}{}{}",
        forecast(saturation.level.next(), next_level_in),
        remedy(saturation, notice, policy),
    );
}

/// Returns "; 1.5x in about 20 min at this pace", or nothing without a clock.
fn forecast(level: Level, wait: Option<Duration>) -> String {
    match wait.map(|wait| wait.as_secs().max(1)) {
        None => String::new(),
        Some(seconds @ 0..120) => format!("; {level} in about {seconds} s at this pace"),
        Some(seconds @ 120..7200) => format!("; {level} in about {} min at this pace", seconds / 60),
        Some(seconds) => format!("; {level} in about {} h at this pace", seconds / 3600),
    }
}

/// Says what was done, and what the operator can do.
fn remedy(saturation: &Saturation, notice: &Notice, policy: OnSaturation) -> String {
    if matches!(notice, Notice::Grown) {
        let bytes = grouped(saturation.memory_bytes);
        return format!(". The filter takes {bytes} bytes");
    }
    let enough = enough(match policy {
        OnSaturation::Warn => saturation.sufficient_capacity(),
        // They drop none, or next to none.
        OnSaturation::Grow | OnSaturation::Refuse => saturation.estimated * 2.0,
    });
    if saturation.level < Level::FULL {
        return format!(". If many more keys are to come, plan for a capacity of {enough} or more");
    }
    let holds = saturation.grown_capacity.or(saturation.capacity);
    let has_room = holds.is_some_and(|holds| saturation.estimated <= holds as f64);
    let done = match policy {
        OnSaturation::Warn if !has_room => {
            "What only dropped keys lead to is missing, too. To drop fewer, start again with a filter that grows, or"
        }
        // Another filter than a plain one grows under any policy.
        OnSaturation::Grow | OnSaturation::Warn if has_room => "Each layer costs memory and time: start next time",
        // No memory for a further layer, or a filter that has no layers.
        OnSaturation::Grow | OnSaturation::Warn => {
            "The filter cannot grow any further, and drops more and more. Start again"
        }
        OnSaturation::Refuse => "New keys are refused from now on. To take them in, start again",
    };
    format!(". {done} with a capacity of {enough} or more")
}
