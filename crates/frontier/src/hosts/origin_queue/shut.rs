//! Whether nothing of an origin is requested any more, and how it is asked again.

use super::OriginQueue;
use crate::hosts::outage::OriginHealth;
use crate::lease::NotFetched;
use crate::rules::Policy;

impl OriginQueue {
    /// Returns whether nothing of it is requested: it was given up, or its robots.txt could not be fetched.
    pub(crate) fn is_shut(&self) -> bool {
        self.is_given_up || self.is_closed()
    }

    /// Returns whether its robots.txt could not be fetched, which forbids everything.
    fn is_closed(&self) -> bool {
        let policy = self.known.as_ref().map(|known| &known.policy);
        matches!(policy, Some(Policy::Closed(NotFetched::RobotsUnreachable, _)))
    }

    /// Makes it askable again: its failures are forgotten, and so is that its robots.txt could not be fetched. Returns whether it was
    /// given up.
    pub(crate) fn reopen(&mut self) -> bool {
        if self.is_closed() {
            self.known = None;
            self.rules_are_fresh = false;
        }
        if let Some(rare) = &mut self.rare {
            rare.health = OriginHealth::default();
        }
        std::mem::take(&mut self.is_given_up)
    }
}
