//! Classes: which links come first, and whose turn it is among them.
//!
//! A turn takes the best class that waits. One turn in [`TURNS`] takes the class that was served longest ago, so that none starves: with `n`
//! classes in use, each is served within `TURNS * (n - 1)` turns.

use std::fmt;
use std::ops::BitOr;

use regex::RegexSet;
use serde::{Deserialize, Serialize};

use crate::scope::{ScopeError, compile};

/// Of this many turns, one is for the class that was served longest ago.
const TURNS: u8 = 8;
/// How many classes there are.
const CLASSES: u8 = 8;

/// The class of a link: 0 comes first, 7 last; 3 by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Class(u8);

/// There is no class of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no class {0}: give 0, which comes first, to 7, which comes last; 3 is the default")]
pub struct NoClass(u8);

impl Class {
    /// What comes first.
    pub const FIRST: Self = Self(0);
    /// What comes last.
    pub const LAST: Self = Self(CLASSES - 1);

    /// Returns its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl Default for Class {
    fn default() -> Self {
        Self(3)
    }
}

impl TryFrom<u8> for Class {
    type Error = NoClass;

    fn try_from(number: u8) -> Result<Self, NoClass> {
        (number < CLASSES).then_some(Self(number)).ok_or(NoClass(number))
    }
}

impl From<Class> for u8 {
    fn from(class: Class) -> Self {
        class.0
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A rule of the order: the class of links whose key matches a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderRule {
    /// A regular expression that is searched in the key of a link.
    #[serde(rename = "match")]
    pub pattern: String,
    /// The class of those that match.
    pub class: Class,
}

/// The rules of the order: the first that matches counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    patterns: Option<RegexSet>,
    rules: Vec<OrderRule>,
}

impl Order {
    pub(crate) fn new(rules: &[OrderRule]) -> Result<Self, ScopeError> {
        let patterns: Vec<_> = rules.iter().map(|rule| rule.pattern.clone()).collect();
        Ok(Self {
            patterns: compile("order", &patterns)?,
            rules: rules.to_vec(),
        })
    }

    pub(crate) fn rule_of(&self, key: &str) -> Option<&OrderRule> {
        let first = self.patterns.as_ref()?.matches(key).iter().next()?;
        self.rules.get(first)
    }
}

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Classes(u8);

impl Classes {
    pub(crate) fn of(class: Class) -> Self {
        Self(1 << class.0)
    }

    pub(crate) fn contains(self, class: Class) -> bool {
        self.0 & 1 << class.0 != 0
    }

    /// Returns whether it was not in the set.
    pub(crate) fn insert(&mut self, class: Class) -> bool {
        let was_there = self.contains(class);
        *self = *self | Self::of(class);
        !was_there
    }

    pub(crate) fn remove(&mut self, class: Class) {
        self.0 &= !(1 << class.0);
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn are_several(self) -> bool {
        self.0.count_ones() > 1
    }

    pub(crate) fn best(self) -> Option<Class> {
        (!self.is_empty()).then(|| Class(self.0.trailing_zeros() as u8))
    }
}

impl BitOr for Classes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Class> for Classes {
    fn from_iter<I: IntoIterator<Item = Class>>(classes: I) -> Self {
        classes.into_iter().map(Self::of).fold(Self::default(), BitOr::bitor)
    }
}

/// Whose turn it is among classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Turns {
    /// Turns since the last one that was not for the best.
    taken: u8,
    /// All classes, the one that was served longest ago first.
    waited: [Class; CLASSES as usize],
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            taken: 0,
            waited: std::array::from_fn(|number| Class(number as u8)),
        }
    }
}

impl Turns {
    /// The class that has the next turn, of those in use.
    pub(crate) fn next(&self, in_use: Classes) -> Option<Class> {
        match self.taken < TURNS - 1 {
            true => in_use.best(),
            false => self.waited.into_iter().find(|class| in_use.contains(*class)),
        }
    }

    /// Counts a turn of a class.
    pub(crate) fn count(&mut self, class: Class) {
        self.taken = self.taken.saturating_add(1) % TURNS;
        if let Some(at) = self.waited.iter().position(|waiting| *waiting == class) {
            self.waited[at..].rotate_left(1);
        }
    }
}

/// A queue for each class that needs one, the best class first.
// Small: many origins have two without any queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ByClass<Q>(Box<[(Class, Q)]>);

impl<Q> Default for ByClass<Q> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<Q: Default> ByClass<Q> {
    /// The queue of a class, which is created if there is none.
    pub(crate) fn of(&mut self, class: Class) -> &mut Q {
        let at = self.0.binary_search_by_key(&class, |(class, _)| *class);
        let at = at.unwrap_or_else(|at| {
            let mut queues = std::mem::take(&mut self.0).into_vec();
            queues.insert(at, (class, Q::default()));
            self.0 = queues.into_boxed_slice();
            at
        });
        &mut self.0[at].1
    }

    pub(crate) fn get_mut(&mut self, class: Class) -> Option<&mut Q> {
        let at = self.0.binary_search_by_key(&class, |(class, _)| *class).ok()?;
        Some(&mut self.0[at].1)
    }

    pub(crate) fn remove(&mut self, class: Class) {
        let queues = std::mem::take(&mut self.0).into_vec();
        self.0 = queues.into_iter().filter(|(of, _)| *of != class).collect();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Class, &Q)> {
        self.0.iter().map(|(class, queue)| (*class, queue))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Class, &mut Q)> {
        self.0.iter_mut().map(|(class, queue)| (*class, queue))
    }

    /// What the table of the queues takes, without what they have.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.len() * size_of::<(Class, Q)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_is_served_within_its_bound() {
        for number in 2..=CLASSES {
            let in_use: Classes = (CLASSES - number..CLASSES).map(Class).collect();
            let mut turns = Turns::default();
            let served: Vec<Class> = (0..1000)
                .map(|_| {
                    let class = turns.next(in_use).unwrap();
                    turns.count(class);
                    class
                })
                .collect();
            let most = usize::from(TURNS * (number - 1));
            for class in (CLASSES - number..CLASSES).map(Class) {
                assert!(
                    served.windows(most).all(|window| window.contains(&class)),
                    "{number} {class}"
                );
            }
            let best = served.iter().filter(|class| **class == Class(CLASSES - number)).count();
            assert_eq!(best, 1000 - 1000 / usize::from(TURNS));
        }
    }
}
