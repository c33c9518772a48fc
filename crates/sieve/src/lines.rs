//! The lines of the saturation in the log. This is the only file that logs.

use std::fmt;
use std::time::Duration;

use crate::on_saturation::OnSaturation;
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
        accepted,
        fill,
        rate,
        lost,
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

/// What has happened.
struct Headline<'a>(&'a Saturation, &'a Notice);

impl fmt::Display for Headline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Notice::Grown => write!(f, "grew to {} layers, {} bytes", self.0.layers, self.0.memory_bytes),
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
        let seconds = wait.as_secs();
        match seconds {
            0..120 => write!(f, "; {level} in about {seconds} s at this pace"),
            120..7200 => write!(f, "; {level} in about {} min at this pace", seconds / 60),
            _ => write!(f, "; {level} in about {} h at this pace", seconds / 3600),
        }
    }
}

/// What the operator can do about it.
struct Remedy<'a>(&'a Saturation, &'a Notice, OnSaturation);

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(saturation, notice, policy) = self;
        if matches!(notice, Notice::Grown) {
            return Ok(());
        }
        let enough = (saturation.estimated * 2.0).ceil();
        if saturation.level < Level::FULL {
            return write!(
                f,
                ". If many more keys are to come, plan for a capacity of {enough:.0} or more"
            );
        }
        let fate = match policy {
            OnSaturation::Warn => "To lose fewer,",
            // No memory for a further layer, or a filter that has no layers.
            OnSaturation::Grow => "The filter cannot grow any further;",
            OnSaturation::Refuse => "New keys are refused from now on;",
        };
        write!(f, ". {fate} start again with a capacity of {enough:.0} or more")
    }
}
