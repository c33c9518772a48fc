//! The journal: each call becomes part of its next row, and a row that is read makes its calls again.

use super::checkpoint::LOGIC;
use super::restore::Restored;
use super::{Durable, read_error};
use crate::appended::append;
use crate::error::{FrontierError, OpenError};
use crate::lease::Leasing;
use crate::link::Link;
use crate::rules::ParseRules;
use crate::settlement::Verdict;
use crate::state::{Answer, Call, State};
use crate::stored_page::{PageEnd, StoredPage};
use crate::time::Time;

/// Calls that have changed nothing are saved once they take this many bytes.
const MAX_IDLE_BYTES: usize = 64 << 10;

/// A call as it is stored: its time, and the number by which its answer is compared when it is made again.
type Stored<'a> = (Time, u32, Call<'a>);

pub(crate) fn row(attachment: &[u8], calls: &[u8]) -> Result<Vec<u8>, postcard::Error> {
    let mut row = Vec::with_capacity(attachment.len() + calls.len() + 8);
    append(serde_bytes::Bytes::new(attachment), &mut row)?;
    row.extend_from_slice(calls);
    Ok(row)
}

pub(super) fn split(row: &[u8]) -> Result<(&[u8], &[u8]), postcard::Error> {
    let (attachment, calls): (&serde_bytes::Bytes, _) = postcard::take_from_bytes(row)?;
    Ok((attachment, calls))
}

/// The new URLs that the calls of a row offered, as far as they can be read.
pub(crate) fn links_of(row: &[u8]) -> Vec<Link> {
    let (_, mut rest) = split(row).unwrap_or_default();
    let calls = std::iter::from_fn(|| {
        let ((_, _, call), after) = postcard::take_from_bytes::<Stored<'_>>(rest).ok()?;
        rest = after;
        Some(call)
    });
    calls.flat_map(Call::into_links).collect()
}

impl Durable {
    pub(crate) fn apply(&mut self, state: &mut State, call: Call<'_>, now: Time) -> Result<Answer, FrontierError> {
        let answer = state.apply(&call, now);
        self.add_ends(&call, &answer, state.latest())?;
        self.add(call, &answer, now)?;
        self.check_read()?;
        Ok(answer)
    }

    /// The time never goes back, and so pages that are saved later have ended later.
    fn add_ends(&mut self, call: &Call<'_>, answer: &Answer, now: Time) -> Result<(), FrontierError> {
        if let Leasing::Dropped(dropped) = &answer.leasing {
            // Sitemaps have no row: they are no pages, and are not in the seen-set.
            for one in dropped.iter().filter(|one| one.entry.page > 0) {
                self.page_has_ended(one.entry.page, StoredPage::dropped(one, now), false)?;
            }
        }
        if let Call::Settle(settlements) = call {
            for (settlement, (settled, entry)) in settlements.all.iter().zip(&answer.settled) {
                if let Some(entry) = entry.as_ref().filter(|_| settled.page > 0) {
                    let end = StoredPage::settled(entry, settlement, now);
                    let leads_on = end.end == PageEnd::Done && settled.verdicts.contains(&Verdict::Queued);
                    self.page_has_ended(settled.page, end, leads_on)?;
                }
                self.note_dates(&settlement.links, &settled.verdicts, now)?;
            }
        }
        Ok(())
    }

    fn add<'a>(&mut self, mut call: Call<'a>, answer: &'a Answer, now: Time) -> Result<(), FrontierError> {
        // Calls that change nothing but the time take memory, too.
        self.has_unsaved |= answer.is_change(&call) || self.calls.len() > MAX_IDLE_BYTES;
        call.trim(answer);
        let stored: Stored<'_> = (now, answer.check(), call);
        append(&stored, &mut self.calls).map_err(FrontierError::not_saved)
    }
}

impl Restored {
    pub(crate) fn make_calls(&mut self, key: u64, row: &[u8], parse: &ParseRules) -> Result<(), OpenError> {
        let damaged = |what: &dyn std::fmt::Display| OpenError::Damaged(format!("row {key} of the journal: {what}"));
        if self.manifest.logic != LOGIC {
            return Err(OpenError::OtherLogic {
                found: self.manifest.logic,
                supported: LOGIC,
            });
        }
        if key != self.next_row {
            return Err(damaged(&"the row before it is missing"));
        }
        let (attachment, mut rest) = split(row).map_err(|error| damaged(&error))?;
        self.attachment.clear();
        self.attachment.extend_from_slice(attachment);
        while !rest.is_empty() {
            let ((now, check, mut call), after): (Stored<'_>, _) =
                postcard::take_from_bytes(rest).map_err(|error| damaged(&error))?;
            rest = after;
            call.parse_rules(parse);
            let answer = self.state.apply(&call, now);
            if let Some(error) = read_error(&self.segments, self.keys.as_ref()) {
                return Err(error.into());
            }
            if answer.check() != check {
                return Err(damaged(&"a call has another result than before"));
            }
        }
        self.next_row += 1;
        if let Some(keys) = &self.keys {
            keys.lock().row_was_replayed(key);
        }
        self.journal_bytes += row.len() as u64;
        Ok(())
    }
}
