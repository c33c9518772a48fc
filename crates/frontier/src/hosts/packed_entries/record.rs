//! The format of a record: see [`packed_entries`](super). [`Writer::entry`] writes it, [`Reader::entry`] reads it.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::OriginRef;
use crate::appended::append;
use crate::class::Class;
use crate::entry::{Entry, Metadata, Purpose};
use crate::link::PreviousFetch;
use crate::time::Time;

const HAS_KEY: u8 = 1;
const HAS_REFERRER: u8 = 1 << 1;
/// The referrer is earlier in the segment.
const REFERRER_BACK: u8 = 1 << 2;
const HAS_REDIRECT: u8 = 1 << 3;
const IS_SEED: u8 = 1 << 4;
const IS_POSTPONED: u8 = 1 << 5;
/// [`Rare`] fields are at the end.
const IS_RARE: u8 = 1 << 6;
/// Own data are behind the texts.
const HAS_DATA: u8 = 1 << 7;

/// The fields that most entries do not have.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Rare {
    hops: u8,
    embedded: u8,
    lastmod: Option<Time>,
    page: u64,
    previous: Option<Arc<PreviousFetch>>,
    /// If it is not that of the queue.
    class: Option<Class>,
}

impl Rare {
    fn of(entry: &Entry, class: Class) -> Self {
        Self {
            hops: entry.hops,
            embedded: entry.metadata.embedded,
            lastmod: entry.metadata.lastmod,
            page: entry.page,
            previous: entry.metadata.previous.clone(),
            class: Some(entry.class).filter(|of_entry| *of_entry != class),
        }
    }
}

fn flags_of(entry: &Entry, rare: &Rare) -> u8 {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let metadata = &entry.metadata;
    flag(entry.key.is_some(), HAS_KEY)
        | flag(metadata.referrer.is_some(), HAS_REFERRER)
        | flag(metadata.redirected_from.is_some(), HAS_REDIRECT)
        | flag(metadata.seed, IS_SEED)
        | flag(entry.postponed, IS_POSTPONED)
        | flag(*rare != Rare::default(), IS_RARE)
        | flag(metadata.data.is_some(), HAS_DATA)
}

pub(super) struct Writer<'a> {
    pub(super) to: &'a mut Vec<u8>,
    pub(super) origin: &'a str,
    /// That of the queue.
    pub(super) class: Class,
}

impl Writer<'_> {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.to.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.to.push(number as u8);
    }

    /// Writes twice the length, plus one if the origin is left out, then the bytes.
    fn text(&mut self, text: &str) {
        let (rest, is_relative) = self.relative(text);
        self.number(rest.len() as u64 * 2 + u64::from(is_relative));
        self.to.extend_from_slice(rest.as_bytes());
    }

    fn relative<'t>(&self, text: &'t str) -> (&'t str, bool) {
        text.strip_prefix(self.origin)
            .map_or((text, false), |rest| (rest, true))
    }

    fn has_text_at(&self, at: usize, text: &str) -> bool {
        let (rest, is_relative) = self.relative(text);
        let mut reader = Bytes { bytes: self.to, at };
        reader.value() == Some(rest.len() * 2 + usize::from(is_relative))
            && reader.bytes.get(reader.at..reader.at + rest.len()) == Some(rest.as_bytes())
    }

    /// Appends a record, and returns the offset of the last referrer: `referrer_at` is that of the records before, 0 for none.
    pub(super) fn entry(&mut self, entry: &Entry, mut referrer_at: u32) -> u32 {
        let rare = Rare::of(entry, self.class);
        let flags = flags_of(entry, &rare);
        let flags_at = self.to.len();
        self.to.push(flags);
        self.number(u64::from(entry.depth));
        self.path(self.relative(&entry.url).0.as_bytes(), flags_at == 0);
        if let Some(key) = &entry.key {
            self.text(key);
        }
        if let Some(referrer) = &entry.metadata.referrer {
            let last = referrer_at as usize;
            if last != 0 && self.has_text_at(last, referrer) {
                self.to[flags_at] |= REFERRER_BACK;
                self.number((self.to.len() - last) as u64);
            } else {
                referrer_at = u32::try_from(self.to.len()).unwrap_or(0);
                self.text(referrer);
            }
        }
        if let Some(from) = &entry.metadata.redirected_from {
            self.text(from);
        }
        if let Some(data) = &entry.metadata.data {
            self.number(data.as_bytes().len() as u64);
            self.to.extend_from_slice(data.as_bytes());
        }
        if flags & IS_RARE != 0 {
            // Writing to memory cannot fail, and each field can be written.
            append(&rare, self.to).unwrap_or_default();
        }
        referrer_at
    }

    fn path(&mut self, path: &[u8], is_first: bool) {
        let anchor = if is_first { None } else { anchor(self.to) };
        let shared = anchor.unwrap_or_default().iter().zip(path).take_while(|(a, b)| a == b);
        let shared = shared.count();
        self.number(shared as u64);
        self.number((path.len() - shared) as u64);
        self.to.extend_from_slice(&path[shared..]);
    }
}

/// The most bytes that its record takes, but for rare fields: each text with its length, then flags and numbers.
pub(super) fn most_bytes(entry: &Entry, origin: &str) -> usize {
    let metadata = &entry.metadata;
    let texts = [
        entry.key.as_deref(),
        metadata.referrer.as_deref(),
        metadata.redirected_from.as_deref(),
    ];
    let text = |text: &str| text.strip_prefix(origin).unwrap_or(text).len() + 2;
    let texts: usize = texts.into_iter().flatten().map(text).sum();
    let data = metadata.data.as_ref().map_or(0, |data| data.as_bytes().len() + 2);
    entry.url.len() - origin.len().min(entry.url.len()) + texts + data + 5
}

/// Reads numbers from bytes.
struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn value<T: Deserialize<'a>>(&mut self) -> Option<T> {
        let (value, rest) = postcard::take_from_bytes(self.bytes.get(self.at..)?).ok()?;
        self.at = self.bytes.len() - rest.len();
        Some(value)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }
}

/// Reads the path of the first record of a segment, with which the others share a prefix.
fn anchor(bytes: &[u8]) -> Option<&[u8]> {
    // Behind the flags, the depth, and what it shares with itself: nothing.
    let mut bytes = Bytes { bytes, at: 1 };
    let [_, _, length]: [usize; 3] = bytes.value()?;
    bytes.take(length)
}

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    origin_ref: OriginRef<'a>,
    /// The last referrer and its offset: links of one page share it.
    referrer: Option<(usize, Arc<str>)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize, origin_ref: OriginRef<'a>) -> Self {
        Self {
            bytes,
            at,
            origin_ref,
            referrer: None,
        }
    }

    fn text(&self, bytes: &mut Bytes<'a>) -> Option<Cow<'a, str>> {
        let number: usize = bytes.value()?;
        let rest = std::str::from_utf8(bytes.take(number / 2)?).ok()?;
        Some(if number % 2 == 1 {
            [self.origin_ref.origin, rest].concat().into()
        } else {
            rest.into()
        })
    }

    fn text_if(&self, is_there: bool, bytes: &mut Bytes<'a>) -> Option<Option<Cow<'a, str>>> {
        match is_there {
            true => self.text(bytes).map(Some),
            false => Some(None),
        }
    }

    pub(super) fn entry(&mut self) -> Option<Entry> {
        let mut bytes = Bytes {
            bytes: self.bytes,
            at: self.at,
        };
        let (flags, depth): (u8, u32) = bytes.value()?;
        let url = self.url(&mut bytes)?;
        let key = self.text_if(flags & HAS_KEY != 0, &mut bytes)?.map(Into::into);
        let referrer = match flags & HAS_REFERRER != 0 {
            true => Some(self.read_referrer(&mut bytes, flags & REFERRER_BACK != 0)?),
            false => None,
        };
        let redirected_from = self.text_if(flags & HAS_REDIRECT != 0, &mut bytes)?.map(Arc::from);
        let data = match flags & HAS_DATA != 0 {
            true => {
                let length = bytes.value()?;
                Some(Arc::<[u8]>::from(bytes.take(length)?).try_into().ok()?)
            }
            false => None,
        };
        let rare = match flags & IS_RARE != 0 {
            true => bytes.value()?,
            false => Rare::default(),
        };
        self.at = bytes.at;
        Some(Entry {
            key,
            depth,
            hops: rare.hops,
            postponed: flags & IS_POSTPONED != 0,
            page: rare.page,
            class: rare.class.unwrap_or(self.origin_ref.class),
            metadata: Metadata {
                referrer,
                redirected_from,
                seed: flags & IS_SEED != 0,
                embedded: rare.embedded,
                lastmod: rare.lastmod,
                previous: rare.previous,
                data,
            },
            ..Entry::new(self.origin_ref.host.clone(), url, Purpose::Page)
        })
    }

    fn url(&self, bytes: &mut Bytes<'a>) -> Option<Box<str>> {
        let [shared, length]: [usize; 2] = bytes.value()?;
        let start = match shared > 0 {
            true => anchor(self.bytes)?.get(..shared)?,
            false => &[],
        };
        let url = [self.origin_ref.origin.as_bytes(), start, bytes.take(length)?].concat();
        Some(String::from_utf8(url).ok()?.into_boxed_str())
    }

    fn read_referrer(&mut self, bytes: &mut Bytes<'a>, is_back: bool) -> Option<Arc<str>> {
        let here = bytes.at;
        let at = if is_back {
            here.checked_sub(bytes.value()?)?
        } else {
            here
        };
        if let Some((known, referrer)) = &self.referrer
            && *known == at
        {
            return Some(Arc::clone(referrer));
        }
        let mut there = Bytes { bytes: self.bytes, at };
        let referrer: Arc<str> = self.text(&mut there)?.into();
        if !is_back {
            bytes.at = there.at;
        }
        self.referrer = Some((at, Arc::clone(&referrer)));
        Some(referrer)
    }
}
