//! A measurement as a sentence.

use std::fmt;

use super::rounded::{about, at_least, grouped, percent};
use super::{Saturation, SelfCheck};

impl fmt::Display for Saturation {
    /// One sentence without a full stop: how many keys, for which capacity, how many are dropped now, and how many were: at
    /// least, and expected.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let estimated = about(self.estimated);
        match self.capacity {
            None if self.bits == 0 => {
                let accepted = grouped(self.accepted);
                return write!(f, "exact seen-set of {accepted} keys, none dropped");
            }
            None => {
                let accepted = grouped(self.accepted);
                write!(f, "about {estimated} distinct keys remembered of {accepted} accepted")?;
            }
            Some(capacity) => {
                let capacity = grouped(capacity);
                write!(f, "about {estimated} distinct keys for a capacity of {capacity}")?;
            }
        }
        if let Some(grown) = self.grown_capacity {
            let (grown, layers) = (about(grown as f64), self.layers);
            let unit = if layers == 1 { "layer" } else { "layers" };
            write!(f, ", grown to hold {grown} in {layers} {unit}")?;
        }
        write!(f, "; {} of new keys are wrongly dropped, ", percent(self.rate))?;
        match self.lost_at_least() {
            0 if !self.may_have_lost() => f.write_str("probably none so far")?,
            0 if self.lost < 1.0 => write!(f, "possibly one so far ({:.1} expected)", self.lost)?,
            0 => write!(f, "probably a few so far ({} expected)", about(self.lost))?,
            dropped => write!(
                f,
                "at least {} so far ({} expected)",
                at_least(dropped),
                about(self.lost)
            )?,
        }
        if self.is_full() {
            f.write_str("; the seen-set is full and drops every new key, so how many is no longer known")?;
        }
        if let SelfCheck::Suspicious { sigmas } = self.check {
            write!(
                f,
                "; the bits set and the accepted keys disagree by {sigmas:.0} standard deviations: crafted keys, a broken \
                 hash or a damaged filter"
            )?;
        }
        Ok(())
    }
}
