//! What the last copy of a host has of its queue. Most queues have only grown since: then the next copy needs the rest alone.

use super::PackedEntries;

impl PackedEntries {
    /// Returns how many bytes of its open segment the last copy has.
    pub(crate) fn copied(&self) -> u32 {
        self.copied
    }

    /// Records that a copy has all of it.
    pub(crate) fn is_copied(&mut self) {
        self.copied = u32::try_from(self.open.len()).unwrap_or(0);
    }

    /// Leaves what the last copy lacks of the open segment, and returns the whole.
    pub(crate) fn leave_rest(&mut self) -> Vec<u8> {
        let rest = self.open.get(self.copied as usize..).unwrap_or_default().to_vec();
        std::mem::replace(&mut self.open, rest)
    }

    pub(crate) fn put_back(&mut self, open: Vec<u8>) {
        self.open = open;
    }

    /// Puts the first `length` bytes of an earlier open segment in front of its own. Returns false if there are not as many.
    pub(crate) fn continue_from(&mut self, earlier: &mut Self, length: u32) -> bool {
        let mut open = std::mem::take(&mut earlier.open);
        if open.len() < length as usize {
            return false;
        }
        open.truncate(length as usize);
        // Without spare room: all hosts of a checkpoint may be joined like this, and must not take more memory than when they were copied.
        open.reserve_exact(self.open.len());
        open.append(&mut self.open);
        self.open = open;
        true
    }
}
