//! The queued pages of one origin, packed: a FIFO queue of about as many bytes as their paths.
//!
//! An entry is appended as a record, in segments of about [`SEGMENT_BYTES`]:
//!
//! ```text
//! flags | depth | shared, rest of the path | key? | referrer? | redirected from? | data? | rare fields?
//! ```
//!
//! Numbers are LEB128, and rare fields as postcard writes them. A path shares a prefix with the first path of its segment. A text that begins
//! with the origin is stored without it. A referrer that is already in the segment is stored as its distance, because links of one page come
//! in a row. A segment can be read by itself.
//!
//! The queue is here, the format in `record.rs`. Segments are stored, too: with another format, `VERSION` of `sqlite/format.rs` goes up. Where a
//! record is invalid all the same, its segment ends.

pub(crate) mod closed;
mod record;

use std::borrow::Cow;

use closed::{Closed, SegmentStore};
use record::{Reader, Writer, most_bytes};

use crate::class::Class;
use crate::entry::Entry;
use crate::url::HostKey;

/// The size in bytes at which a segment is closed and its memory shrunk to fit.
const SEGMENT_BYTES: usize = 4096;

/// The origin of the entries. Records do not contain it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OriginRef<'a> {
    pub(crate) host: &'a HostKey,
    /// As in `https://example.com`.
    pub(crate) origin: &'a str,
    /// Where closed segments lie; `None` for memory.
    pub(crate) segments: Option<&'a dyn SegmentStore>,
    /// The class of entries whose records have none.
    pub(crate) class: Class,
}

impl<'a> OriginRef<'a> {
    pub(crate) fn new(host: &'a HostKey, origin: &'a str, segments: Option<&'a dyn SegmentStore>) -> Self {
        Self {
            host,
            origin,
            segments,
            class: Class::default(),
        }
    }

    pub(crate) fn of_class(self, class: Class) -> Self {
        Self { class, ..self }
    }
}

/// A queue of packed pages.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct PackedEntries {
    /// Closed segments, the oldest first. Only long queues have them.
    // Boxed: most of a million hosts have none.
    closed: Option<Box<Closed>>,
    /// The segment that records are appended to.
    #[serde(with = "serde_bytes")]
    open: Vec<u8>,
    /// The offset of the oldest record in the first segment.
    head: u32,
    /// The offset of the last referrer in the open segment; 0 for none.
    referrer_at: u32,
    len: u32,
    /// How many of them were fetched in this crawl before.
    refreshes: u32,
}

impl PackedEntries {
    pub(crate) fn refreshes(&self) -> u64 {
        u64::from(self.refreshes)
    }

    /// Removes the pages that were not fetched in this crawl before, and returns them. The others keep their order.
    ///
    /// Cost: O(1) if there are only such pages or none. Otherwise each page is read and written again, in memory until the next commit.
    pub(crate) fn take_new(&mut self, origin_ref: OriginRef<'_>) -> Self {
        if self.refreshes == 0 {
            return std::mem::take(self);
        }
        let (mut new, mut kept) = (Self::default(), Self::default());
        if self.refreshes == self.len {
            return new;
        }
        while let Some(entry) = self.pop(origin_ref) {
            let to = if entry.is_refresh() { &mut kept } else { &mut new };
            to.push(&entry, origin_ref);
        }
        *self = kept;
        new
    }

    pub(crate) fn len(&self) -> u64 {
        u64::from(self.len)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.open.capacity() + self.closed.as_ref().map_or(0, |closed| closed.heap_bytes())
    }

    /// Appends a page. Attempts and due times, which only retries have, are not stored.
    pub(crate) fn push(&mut self, entry: &Entry, origin_ref: OriginRef<'_>) {
        if self.open.len() >= SEGMENT_BYTES {
            self.close(origin_ref.segments);
        }
        let most = most_bytes(entry, origin_ref.origin);
        if self.open.capacity() - self.open.len() < most {
            // Most hosts have few URLs: the first allocation has the exact size.
            self.open.reserve_exact(most.max(self.open.len() / 4));
        }
        let mut writer = Writer {
            to: &mut self.open,
            origin: origin_ref.origin,
            class: origin_ref.class,
        };
        self.referrer_at = writer.entry(entry, self.referrer_at);
        self.len += 1;
        self.refreshes += u32::from(entry.is_refresh());
    }

    /// Removes the oldest page and returns it.
    pub(crate) fn pop(&mut self, origin_ref: OriginRef<'_>) -> Option<Entry> {
        loop {
            let (segment, is_open) = match self.closed.as_mut().filter(|closed| !closed.is_empty()) {
                Some(closed) => (closed.oldest(origin_ref.segments)?, false),
                None => (self.open.as_slice(), true),
            };
            let mut reader = Reader::new(segment, self.head as usize, origin_ref);
            let entry = reader.entry();
            let is_read = reader.at >= segment.len();
            self.head = u32::try_from(reader.at).unwrap_or(u32::MAX);
            if is_read || entry.is_none() {
                self.head = 0;
                if is_open {
                    self.open = Vec::new();
                    self.referrer_at = 0;
                } else {
                    self.drop_oldest(origin_ref.segments);
                }
            }
            if let Some(entry) = &entry {
                self.len = self.len.saturating_sub(1);
                self.refreshes -= u32::from(entry.is_refresh()).min(self.refreshes);
            }
            if entry.is_some() {
                return entry;
            }
            if is_open {
                (self.len, self.refreshes) = (0, 0);
                return None;
            }
        }
    }

    /// Iterates over all pages, the oldest first. Cost: a copy of each.
    pub(crate) fn iter<'a>(&'a self, origin_ref: OriginRef<'a>) -> impl Iterator<Item = Entry> + 'a {
        let closed = self
            .closed
            .iter()
            .flat_map(move |closed| closed.iter(origin_ref.segments));
        let segments = closed.chain(std::iter::once(Some(Cow::Borrowed(self.open.as_slice()))));
        let head = self.head as usize;
        segments.enumerate().flat_map(move |(at, segment)| {
            // The segment may be a copy that does not live on.
            segment.map_or_else(Vec::new, |segment| {
                let mut reader = Reader::new(&segment, if at == 0 { head } else { 0 }, origin_ref);
                std::iter::from_fn(|| reader.entry()).collect()
            })
        })
    }

    fn close(&mut self, segments: Option<&dyn SegmentStore>) {
        let open = std::mem::take(&mut self.open).into_boxed_slice();
        self.closed.get_or_insert_default().push(open, segments);
        self.referrer_at = 0;
    }

    fn drop_oldest(&mut self, segments: Option<&dyn SegmentStore>) {
        let Some(closed) = &mut self.closed else { return };
        closed.drop_oldest(segments);
        if closed.is_empty() {
            self.closed = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use super::closed::Segment;
    use super::*;
    use crate::entry::{Metadata, Purpose};
    use crate::link::{OwnData, PreviousFetch, Validators};
    use crate::time::Time;
    use proptest::prelude::*;
    use url::Url;

    const ORIGIN: &str = "https://site.example:8443";

    fn host() -> HostKey {
        HostKey::of(&Url::parse(ORIGIN).unwrap()).unwrap()
    }

    fn texts() -> impl Strategy<Value = Option<String>> {
        prop::option::of(prop_oneof![
            "/[a-z]{0,6}(/[a-z0-9]{0,9}){0,3}".prop_map(|path| ORIGIN.to_owned() + &path),
            "https?://[a-z]{1,8}\\.example/[a-zäß]{0,200}",
            Just(ORIGIN.to_owned()),
            Just(String::new()),
        ])
    }

    fn entries() -> impl Strategy<Value = Entry> {
        let path = prop_oneof![
            9 => "/docs/[a-z]{0,8}(/[a-z0-9?=]{0,9}){0,4}",
            1 => "/[a-z]{0,3000}",
            1 => Just("/".to_owned()),
        ];
        let numbers = (any::<u32>(), 0_u8..4, 0_u8..3, prop::option::of(any::<u64>()));
        let referrers = prop_oneof![3 => Just(None), 3 => (0_u8..3).prop_map(Some)];
        let refresh = prop::option::of(prop::option::of(any::<u128>()));
        let previous = prop::option::of((texts(), texts(), texts(), refresh));
        let data = prop_oneof![3 => Just(None), 1 => prop::collection::vec(any::<u8>(), 0..=OwnData::MAX_BYTES).prop_map(Some)];
        (
            path,
            numbers,
            referrers,
            texts(),
            texts(),
            previous,
            any::<(bool, bool)>(),
            data,
        )
            .prop_map(
                |(
                    path,
                    (depth, hops, embedded, lastmod),
                    referrer,
                    redirect,
                    key,
                    previous,
                    (seed, postponed),
                    data,
                )| {
                    Entry {
                        url: (ORIGIN.to_owned() + &path).into(),
                        key: key.map(Into::into),
                        depth,
                        hops,
                        postponed,
                        metadata: Metadata {
                            referrer: referrer.map(|n| format!("{ORIGIN}/page-{n}").into()),
                            redirected_from: redirect.map(Into::into),
                            seed,
                            embedded,
                            lastmod: lastmod.map(Time::from_millis),
                            previous: previous.map(|(etag, last_modified, redirected_from, refresh)| {
                                Arc::new(PreviousFetch {
                                    validators: Validators { etag, last_modified },
                                    redirected_from,
                                    content: refresh.flatten().map(Into::into),
                                    is_of_this_crawl: refresh.is_some(),
                                })
                            }),
                            data: data.map(|data| Arc::<[u8]>::from(data).try_into().unwrap()),
                        },
                        ..Entry::new(host(), "".into(), Purpose::Page)
                    }
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: crate::cases::cases(200), ..ProptestConfig::default() })]

        #[test]
        fn entries_are_popped_as_they_were_pushed(
            steps in prop::collection::vec(prop_oneof![3 => entries().prop_map(Some), 2 => Just(None)], 0..300),
        ) {
            let host = host();
            let origin_ref = OriginRef::new(&host, ORIGIN, None );
            let (mut packed, mut model) = (PackedEntries::default(), VecDeque::new());
            for step in steps {
                match step {
                    Some(entry) => {
                        packed.push(&entry, origin_ref);
                        model.push_back(entry);
                    }
                    None => prop_assert_eq!(packed.pop(origin_ref), model.pop_front()),
                }
                prop_assert_eq!(packed.len(), model.len() as u64);
            }
            prop_assert_eq!(packed.iter(origin_ref).collect::<Vec<_>>(), Vec::from(model.clone()));
            while let Some(entry) = model.pop_front() {
                prop_assert_eq!(packed.pop(origin_ref), Some(entry));
            }
            prop_assert_eq!(packed.pop(origin_ref), None);
        }
    }

    #[test]
    fn a_long_queue_of_short_differences_takes_a_fraction_of_its_urls() {
        let host = host();
        let origin_ref = OriginRef::new(&host, ORIGIN, None);
        let mut packed = PackedEntries::default();
        let mut bytes = 0;
        for n in 0..100_000 {
            let entry = Entry {
                url: format!(
                    "{ORIGIN}/documentation/reference/chapter-{}/page-number-{n}.html",
                    n / 100
                )
                .into(),
                metadata: Metadata {
                    referrer: Some(format!("{ORIGIN}/documentation/reference/chapter-{}/index.html", n / 5).into()),
                    ..Metadata::default()
                },
                ..Entry::new(host.clone(), "".into(), Purpose::Page)
            };
            bytes += entry.url.len();
            packed.push(&entry, origin_ref);
        }
        let closed = packed.closed.as_ref().unwrap();
        let held: usize = closed
            .iter(None)
            .flatten()
            .map(|bytes| bytes.len() + size_of::<Segment>())
            .sum();
        assert!(held < bytes * 3 / 5, "{held} bytes for {bytes} of URLs");
        (0..100_000).for_each(|_| assert!(packed.pop(origin_ref).is_some()));
        assert_eq!((packed.closed.is_none(), packed.open.capacity()), (true, 0));
    }
}
