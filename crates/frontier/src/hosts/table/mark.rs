//! What copies of all hosts have of one.

/// What the last copy that was begun has of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Has {
    #[default]
    Nothing,
    /// The host before its last change.
    Older,
    Same,
}

/// What copies have of a host.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CopyMark {
    /// The last copy in which its turn has come, or that began before it was met.
    pub(super) number: u32,
    pub(super) has: Has,
}

impl CopyMark {
    /// The mark of a host that was read from a copy.
    pub(super) fn of(number: u32) -> Self {
        Self {
            number,
            has: Has::Nothing,
        }
    }

    pub(super) fn is_of(self, number: u32) -> bool {
        self.number == number
    }
}
