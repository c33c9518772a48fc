//! The table of pages: a row has the values of a [`StoredPage`] in plain columns, under the seal of its bytes. Its view is for people.

use std::sync::Arc;

use rusqlite::{Connection, Error, Result, Row, params};

use super::sealed::checksum;
use crate::class::Class;
use crate::fingerprint::Fingerprint;
use crate::freshness::Observed;
use crate::link::{OwnData, Validators};
use crate::store::Space;
use crate::stored_page::{OwnPlan, PageEnd, StoredAnswer, StoredPage, Visits, named};
use crate::time::Time;

/// The statements that make the table, its indexes and its view.
pub(super) const SCHEMA: &str = include_str!("pages.sql");

/// The words of the view for the numbers of `end`.
const ENDS: [&str; 5] = ["done", "redirected", "rejected", "gave_up", "not_fetched"];

/// What the view adds to a class.
const USUAL_CLASS: i64 = 3;

pub(super) fn insert(connection: &Connection, key: i64, seal: i64, value: &[u8]) -> Result<()> {
    let page: StoredPage = postcard::from_bytes(value).map_err(|error| Error::ToSqlConversionFailure(error.into()))?;
    let ((end, reason), answer, visits) = (page.end.names(), &page.answer, page.visits);
    // Mostly 0, which takes no byte.
    let since = |time: Option<Time>| Some(page.time.as_millis().wrapping_sub(time?.as_millis()).cast_signed());
    let sql = "INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    connection.prepare_cached(sql)?.execute(params![
        key,
        seal,
        page.saved_in.cast_signed(),
        page.url,
        page.key,
        (0_u8..)
            .zip(ENDS)
            .find(|(_, name)| *name == end)
            .map(|(number, _)| number),
        reason,
        page.cause.map(|cause| cause.name()),
        page.time.as_millis().cast_signed(),
        page.depth,
        i64::from(page.class.number()) - USUAL_CLASS,
        page.embedded,
        page.attempts,
        page.referrer.as_deref(),
        page.data.as_ref().map(OwnData::as_bytes),
        answer.status,
        answer.target,
        answer.validators.etag,
        answer.validators.last_modified,
        answer.fingerprint.content.map(|hash| hash.value().to_be_bytes()),
        answer.fingerprint.text.map(|hash| hash.bits().cast_signed()),
        visits.count,
        visits.changes,
        since(visits.first),
        since(visits.last),
        since(visits.last_change),
        page.next_visit.map(|time| time.as_millis().cast_signed()),
        page.own_plan.map(OwnPlan::to_number),
        page.observed.map(|seen| seen.changes),
        page.observed.map(|seen| seen.changed_over.cast_signed()),
        page.observed.map(|seen| seen.unchanged_over.cast_signed()),
        page.end.failed_unanswered(),
    ])?;
    Ok(())
}

/// Reads a row. Returns the bytes of the page, if they are what was sealed; `with_mark`, only if also that of the indexes is right.
pub(super) fn value(key: u64, row: &Row<'_>, with_mark: bool) -> std::result::Result<Vec<u8>, &'static str> {
    let page = read(row).map_err(|_| "no page")?;
    let mark = Ok(page.end.failed_unanswered().map(i64::from));
    let is_marked = !with_mark || row.get::<_, Option<i64>>("unanswered") == mark;
    let value = postcard::to_allocvec(&page).map_err(|_| "no page")?;
    let seal: i64 = row.get(1).map_err(|_| "no seal")?;
    let is_whole = checksum(Space::Page, key, &value) == seal.cast_unsigned() && is_marked;
    is_whole.then_some(value).ok_or("wrong checksum or mark")
}

/// Reads the columns in their order.
fn read(row: &Row<'_>) -> Result<StoredPage> {
    let ended_at = row.get::<_, i64>("ended_at")?.cast_unsigned();
    let mut column = 1;
    let mut next = || {
        column += 1;
        column
    };
    let word = |column| row.get::<_, Option<Box<str>>>(column);
    let number = |column| Ok::<_, Error>(row.get::<_, Option<i64>>(column)?.map(i64::cast_unsigned));
    let before = |column| {
        let since = number(column)?;
        Ok::<_, Error>(since.map(|since| Time::from_millis(ended_at.wrapping_sub(since))))
    };
    Ok(StoredPage {
        saved_in: number(next())?.unwrap_or_default(),
        url: row.get(next())?,
        key: row.get(next())?,
        end: {
            let (end, reason) = (row.get::<_, u8>(next())?, word(next())?);
            let end = ENDS
                .get(usize::from(end))
                .and_then(|end| PageEnd::of_names(end, reason.as_deref()));
            end.ok_or(Error::QueryReturnedNoRows)?
        },
        cause: word(next())?.as_deref().and_then(named),
        time: number(next())?.map(Time::from_millis).unwrap_or_default(),
        depth: row.get(next())?,
        class: class(row.get(next())?).ok_or(Error::QueryReturnedNoRows)?,
        embedded: row.get(next())?,
        attempts: row.get(next())?,
        referrer: word(next())?.map(Into::into),
        data: own_data(row.get(next())?)?,
        answer: StoredAnswer {
            status: row.get(next())?,
            target: row.get(next())?,
            validators: Validators {
                etag: row.get(next())?,
                last_modified: row.get(next())?,
            },
            fingerprint: Fingerprint {
                content: row
                    .get::<_, Option<[u8; 16]>>(next())?
                    .map(|hash| u128::from_be_bytes(hash).into()),
                text: number(next())?.map(Into::into),
            },
        },
        visits: Visits {
            count: row.get(next())?,
            changes: row.get(next())?,
            first: before(next())?,
            last: before(next())?,
            last_change: before(next())?,
        },
        next_visit: number(next())?.map(Time::from_millis),
        own_plan: row.get::<_, Option<i64>>(next())?.map(OwnPlan::of_number),
        observed: observed([number(next())?, number(next())?, number(next())?]),
    })
}

fn own_data(column: Option<Vec<u8>>) -> Result<Option<OwnData>> {
    let data = column.map(|data| OwnData::try_from(Arc::from(data))).transpose();
    data.map_err(|_| Error::QueryReturnedNoRows)
}

fn observed([changes, changed_over, unchanged_over]: [Option<u64>; 3]) -> Option<Observed> {
    Some(Observed {
        changes: u32::try_from(changes?).ok()?,
        changed_over: changed_over?,
        unchanged_over: unchanged_over?,
    })
}

fn class(column: i64) -> Option<Class> {
    let number = u8::try_from(column.checked_add(USUAL_CLASS)?).ok()?;
    Class::try_from(number).ok()
}
