//! The closed segments of a queue, in memory or in a store: packed entries of an origin, or batches of an outbox (`state/outbox.rs`), which
//! are read out of turn, too.
//!
//! The oldest segment is read into memory when its first entry is taken, and stays in the store until its last one is. So a copy of the
//! queue has its number, not its bytes.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;

/// Keeps closed segments apart from the queue that they belong to, and groups of hosts that were not used for long, such as on disk.
///
/// Nothing that reads from it fails at once: what cannot be read is `None`, here and in all functions that pass it on. The store remembers the
/// error, with which the call fails at its end (`Durable::apply`); the frontier is poisoned then.
pub(crate) trait SegmentStore: fmt::Debug + Send + Sync {
    /// Puts a segment in the store and returns its number.
    fn put(&self, segment: Box<[u8]>) -> u64;

    /// A segment, which stays in the store.
    fn read(&self, number: u64) -> Option<Box<[u8]>>;

    /// Removes a segment from the store.
    fn discard(&self, number: u64);

    /// Records that the bytes of a segment cannot be what was put there.
    fn set_damaged(&self, number: u64);

    /// Whether a segment could not be read.
    fn is_broken(&self) -> bool;
}

/// A closed segment.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) enum Segment {
    Here(#[serde(with = "serde_bytes")] Box<[u8]>),
    /// In the store, under this number.
    Stored(u64),
}

/// The closed segments of a queue, the oldest first.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Closed {
    segments: VecDeque<Segment>,
    /// The bytes of the oldest segment, if it lies in the store and entries of it were taken.
    #[serde(skip)]
    oldest: Option<Box<[u8]>>,
}

impl Closed {
    pub(crate) fn push(&mut self, bytes: Box<[u8]>, segments: Option<&dyn SegmentStore>) {
        self.segments.push_back(match segments {
            Some(segments) => Segment::Stored(segments.put(bytes)),
            None => Segment::Here(bytes),
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// `None` if there is none, or as in [`SegmentStore`].
    pub(crate) fn oldest(&mut self, segments: Option<&dyn SegmentStore>) -> Option<&[u8]> {
        match self.segments.front()? {
            Segment::Here(bytes) => Some(bytes),
            Segment::Stored(number) => {
                if self.oldest.is_none() {
                    self.oldest = Some(segments?.read(*number)?);
                }
                self.oldest.as_deref()
            }
        }
    }

    /// `None` if there is none, or as in [`SegmentStore`]. Cost: a copy of one in the store.
    pub(crate) fn get<'a>(&'a self, at: usize, segments: Option<&dyn SegmentStore>) -> Option<Cow<'a, [u8]>> {
        match self.segments.get(at)? {
            Segment::Here(bytes) => Some(Cow::Borrowed(bytes)),
            Segment::Stored(number) => Some(Cow::Owned(segments?.read(*number)?.into_vec())),
        }
    }

    /// Removes the oldest segment, from the store, too.
    pub(crate) fn drop_oldest(&mut self, segments: Option<&dyn SegmentStore>) {
        self.oldest = None;
        if let (Some(Segment::Stored(number)), Some(segments)) = (self.segments.pop_front(), segments) {
            segments.discard(number);
        }
        if self.segments.len() < self.segments.capacity() / 4 {
            self.segments.shrink_to(self.segments.capacity() / 2);
        }
    }

    /// `None` for each as in [`SegmentStore`]. Cost: a copy of each in the store.
    pub(crate) fn iter<'a>(
        &'a self,
        segments: Option<&'a dyn SegmentStore>,
    ) -> impl Iterator<Item = Option<Cow<'a, [u8]>>> + 'a {
        let mut oldest = self.oldest.as_deref();
        self.segments.iter().map(move |segment| match segment {
            Segment::Here(bytes) => Some(Cow::Borrowed(bytes.as_ref())),
            Segment::Stored(number) => match oldest.take() {
                Some(bytes) => Some(Cow::Borrowed(bytes)),
                None => Some(Cow::Owned(segments?.read(*number)?.into_vec())),
            },
        })
    }

    /// Without the bytes of `Here`: a frontier without a store, which alone has them, counts no memory.
    pub(crate) fn heap_bytes(&self) -> usize {
        let oldest = self.oldest.as_ref().map_or(0, |bytes| bytes.len());
        size_of::<Self>() + self.segments.capacity() * size_of::<Segment>() + oldest
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use url::Url;

    use super::super::{OriginRef, PackedEntries};
    use super::*;
    use crate::entry::{Entry, Purpose};
    use crate::url::HostKey;

    const ORIGIN: &str = "https://site.example:8443";

    fn host() -> HostKey {
        HostKey::of(&Url::parse(ORIGIN).unwrap()).unwrap()
    }

    /// Segments of which some may be missing.
    #[derive(Debug, Default)]
    struct Segments(Mutex<BTreeMap<u64, Box<[u8]>>>);

    impl SegmentStore for Segments {
        fn put(&self, segment: Box<[u8]>) -> u64 {
            let mut segments = self.0.lock().unwrap();
            let number = segments.len() as u64;
            segments.insert(number, segment);
            number
        }

        fn read(&self, number: u64) -> Option<Box<[u8]>> {
            self.0.lock().unwrap().get(&number).cloned()
        }

        fn discard(&self, _number: u64) {}

        fn set_damaged(&self, _number: u64) {}

        fn is_broken(&self) -> bool {
            false
        }
    }

    #[test]
    fn without_a_segment_of_which_entries_were_taken_all_others_are_met() {
        let (host, segments) = (host(), Segments::default());
        let origin_ref = OriginRef::new(&host, ORIGIN, Some(&segments));
        let mut packed = PackedEntries::default();
        let mut of_first = 0;
        for n in 0..300 {
            let entry = Entry {
                url: format!("{ORIGIN}/{n}/{:060}", n * 7).into(),
                ..Entry::new(host.clone(), "".into(), Purpose::Page)
            };
            packed.push(&entry, origin_ref);
            of_first += usize::from(packed.closed.is_none());
        }
        (0..3).for_each(|_| assert!(packed.pop(origin_ref).is_some()));
        // It is read from a store, and the oldest segment is missing there.
        let copy = postcard::to_allocvec(&packed).unwrap();
        let packed: PackedEntries = postcard::from_bytes(&copy).unwrap();
        segments.0.lock().unwrap().remove(&0);
        let met: Vec<_> = packed.iter(origin_ref).map(|entry| entry.url).collect();
        let expected = |n: usize| format!("{ORIGIN}/{n}/{:060}", n * 7);
        assert_eq!(met.len(), 300 - of_first);
        assert!(met.iter().zip(of_first..).all(|(url, n)| **url == expected(n)));
    }

    #[test]
    fn a_list_of_no_segments_is_none() {
        let host = host();
        let origin_ref = OriginRef::new(&host, ORIGIN, None);
        let mut packed = PackedEntries {
            closed: Some(Box::default()),
            len: 3,
            ..PackedEntries::default()
        };
        assert_eq!(packed.pop(origin_ref), None);
        assert!(packed.is_empty());
    }
}
