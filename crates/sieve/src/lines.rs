//! The saturation lines of the log. This is the only file that logs.

use std::fmt;
use std::time::Duration;

use crate::on_saturation::OnSaturation;
use crate::saturation::rounded::Grouped;
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
    let Saturation {
        level,
        estimated,
        capacity,
        grown_capacity,
        accepted,
        fill,
        rate,
        lost,
        bits,
        ones,
        hashes,
        layers,
        memory_bytes,
        ..
    } = *saturation;
    log::log!(
        target: TARGET,
        severity,
        saturation_level:% = level,
        estimated,
        capacity,
        grown_capacity,
        accepted,
        fill,
        rate,
        lost,
        lost_at_least = saturation.lost_at_least(),
        bits,
        ones,
        hashes,
        layers,
        memory_bytes,
        consistent = !matches!(saturation.check, SelfCheck::Suspicious { .. }),
        next_level_seconds = next_level_in.map(|wait| wait.as_secs_f64());
        "seen-set {}: {saturation}{}{}",
        Headline(saturation, notice),
        Forecast(level.next(), next_level_in),
        Remedy(saturation, notice, policy),
    );
}

/// What has happened, in a word.
struct Headline<'a>(&'a Saturation, &'a Notice);

impl fmt::Display for Headline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Notice::Grown => f.write_str("grown"),
            Notice::Level { .. } | Notice::Suspicion => write!(f, "{}", self.0.level),
        }
    }
}

/// "; 1.5x in about 20 min at this pace", or nothing without a clock.
struct Forecast(Level, Option<Duration>);

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(level, Some(wait)) = self else {
            return Ok(());
        };
        let seconds = wait.as_secs().max(1);
        match seconds {
            0..120 => write!(f, "; {level} in about {seconds} s at this pace"),
            120..7200 => write!(f, "; {level} in about {} min at this pace", seconds / 60),
            _ => write!(f, "; {level} in about {} h at this pace", seconds / 3600),
        }
    }
}

/// What was done, and what the operator can do.
struct Remedy<'a>(&'a Saturation, &'a Notice, OnSaturation);

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(saturation, notice, policy) = self;
        if matches!(notice, Notice::Grown) {
            return write!(
                f,
                ". The filter takes {} bytes",
                Grouped::exactly(saturation.memory_bytes)
            );
        }
        let enough = Grouped::enough(saturation.estimated * 2.0);
        if saturation.level < Level::FULL {
            return write!(
                f,
                ". If many more keys are to come, plan for a capacity of {enough} or more"
            );
        }
        let holds = saturation.grown_capacity.or(saturation.capacity);
        let has_room = holds.is_some_and(|holds| saturation.estimated <= holds as f64);
        match policy {
            OnSaturation::Warn if !has_room => f.write_str(
                ". What only dropped keys lead to is missing, too. To drop fewer, let the filter grow, or start again with",
            ),
            // Another filter than a plain one grows under any policy.
            OnSaturation::Grow | OnSaturation::Warn if has_room => f.write_str(
                ". Each layer costs memory and time: start next time with",
            ),
            // No memory for a further layer, or a filter that has no layers.
            OnSaturation::Grow | OnSaturation::Warn => {
                f.write_str(". The filter cannot grow any further, and drops more and more. Start again with")
            }
            OnSaturation::Refuse => f.write_str(". New keys are refused from now on. To take them in, start again with"),
        }?;
        write!(f, " a capacity of {enough} or more")
    }
}
