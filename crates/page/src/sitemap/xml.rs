//! The XML formats urlset, sitemapindex, RSS and Atom, recognized by their root element.

use std::borrow::Cow;

use quick_xml::escape::{resolve_xml_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::{EntryCollector, Lists, NotASitemap, Sitemap};
use crate::xml::lenient_reader;

/// Longer URLs and dates are ignored.
const MAX_FIELD_BYTES: usize = 8 * 1024;
/// Elements at a greater depth are taken for empty ones, so that each end tag finds its element soon.
const MAX_DEPTH: usize = 32;

/// The local names of a date of change in all formats: namespaces are often wrong.
const LASTMOD: [&str; 4] = ["lastmod", "pubDate", "date", "updated"];
const ENTRIES: [&str; 4] = ["url", "sitemap", "item", "entry"];
/// Elements whose `loc` or `url` is no page.
const MEDIA: [&str; 3] = ["author", "image", "video"];

/// Where a format has the locations of its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Location {
    /// The text of each `loc` within the root element.
    Loc,
    /// The text of a child `link`, or else of a `guid` that is a permanent link, as it is by default (RSS 2.0).
    Link,
    /// The `href` of a child `link` that points to the item itself: with `rel=alternate` or without `rel` (RFC 4287,
    /// section 4.2.7.2).
    Href,
}

/// Of a root element or an entry; `None` if it is none of a sitemap.
fn format_of(name: &str) -> Option<(Lists, Location)> {
    Some(match name {
        "urlset" | "url" => (Lists::Pages, Location::Loc),
        "sitemapindex" | "sitemap" => (Lists::Sitemaps, Location::Loc),
        // RDF is the root of RSS 0.9 and 1.0.
        "rss" | "RDF" | "item" => (Lists::Pages, Location::Link),
        "feed" | "entry" => (Lists::Pages, Location::Href),
        _ => return None,
    })
}

pub(super) fn is_root(name: &str) -> bool {
    !ENTRIES.contains(&name) && format_of(name).is_some()
}

/// Reads up to the first markup error. What follows the root element counts as if it stood within it.
pub(super) fn read(text: &str, found: EntryCollector) -> Result<Sitemap, NotASitemap> {
    let mut reader = lenient_reader(text);
    let mut walk = DocumentReader {
        found,
        format: None,
        names: Vec::new(),
        item: None,
        media: None,
        field: None,
        text: String::new(),
        locations: Vec::new(),
        fallback: String::new(),
        lastmod: String::new(),
    };
    let broken = loop {
        match reader.read_event() {
            Ok(Event::Eof) => break "the file ends before its last end tag".to_owned(),
            Ok(event) => walk.step(&event)?,
            Err(error) => break error.to_string(),
        }
    };
    // Behind a sitemap may be anything.
    let is_open = walk.format.is_none() || walk.item.is_some() || walk.names.iter().any(|name| is_root(name));
    walk.finish(Some(broken).filter(|_| is_open))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Location,
    /// What is the location if there is none.
    Fallback,
    Lastmod,
}

/// The position of the reader in the document. An element is known by the depth of its children.
struct DocumentReader {
    found: EntryCollector,
    format: Option<(Lists, Location)>,
    /// The local names of the open elements.
    names: Vec<String>,
    /// The open entry, what its locations are and where.
    item: Option<(usize, Lists, Location)>,
    /// The open element of [`MEDIA`].
    media: Option<usize>,
    field: Option<(usize, Field)>,
    /// The text of the open field.
    text: String,
    locations: Vec<String>,
    fallback: String,
    lastmod: String,
}

impl DocumentReader {
    fn step(&mut self, event: &Event<'_>) -> Result<(), NotASitemap> {
        match event {
            Event::Start(tag) => {
                self.open(tag)?;
                if self.names.len() < MAX_DEPTH {
                    self.names.push(tag.local_name().into_inner().to_owned());
                }
            }
            Event::Empty(tag) => {
                self.open(tag)?;
                self.close();
            }
            Event::End(tag) => {
                let name = tag.local_name().into_inner();
                // It ends what was not closed in its element, too.
                if let Some(depth) = self.names.iter().rposition(|open| open.eq_ignore_ascii_case(name)) {
                    self.names.truncate(depth);
                    self.close();
                }
            }
            Event::Text(text) => self.add(text),
            Event::CData(text) => self.add(text),
            Event::GeneralRef(reference) => self.add(&resolved(reference)),
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), NotASitemap> {
        let name = tag.local_name().into_inner();
        let Some((_, root)) = self.format else {
            if !is_root(name) {
                return Err(NotASitemap::OtherRoot(name.chars().take(40).collect()));
            }
            self.format = format_of(name);
            if let Some(base) = attribute(tag, "xml:base") {
                self.found.rebase(&base);
            }
            return Ok(());
        };
        let entry = format_of(name).filter(|_| ENTRIES.contains(&name) && self.media.is_none());
        // An item may hold elements with the name of another format's entry.
        let is_entry = |(_, location): &(_, _)| *location == root || self.item.is_none();
        if let Some((lists, location)) = entry.filter(is_entry) {
            // An item that was never closed ends here.
            self.names.truncate(self.item.map_or(MAX_DEPTH, |(item, ..)| item - 1));
            self.end_item();
            let children = self.names.len() + 1;
            self.item = Some((children, lists, location));
            // Some have their location without a `loc`.
            self.field = (location == Location::Loc).then_some((children, Field::Fallback));
        } else if MEDIA.contains(&name) {
            self.media.get_or_insert(self.names.len() + 1);
        } else if self.media.is_none() {
            let location = self.item.map_or(root, |(.., location)| location);
            self.open_field(location, name, tag);
        }
        Ok(())
    }

    fn open_field(&mut self, location: Location, name: &str, tag: &BytesStart<'_>) {
        let is_in_item = self.item.is_some_and(|(item, ..)| item == self.names.len());
        let is_wanted = is_in_item && self.locations.is_empty();
        // The next part of a feed (RFC 5005, section 3).
        if name == "link"
            && self.item.is_none()
            && let Some(next) = href(tag, "next")
        {
            self.found.push(&next, "", Lists::Sitemaps);
        }
        let field = match (location, name) {
            (Location::Loc, "loc") => Field::Location,
            (Location::Loc, "link") => {
                let alternate = href(tag, "alternate");
                return alternate.iter().for_each(|url| self.found.push_alternate(url));
            }
            (Location::Link, "link") if is_wanted => Field::Location,
            (Location::Link, "guid") if is_wanted && is_permanent(tag) => Field::Fallback,
            (Location::Href, "link") if is_wanted => return self.locations.extend(href(tag, "alternate")),
            _ if is_in_item && LASTMOD.contains(&name) && self.lastmod.is_empty() => Field::Lastmod,
            _ => return,
        };
        self.text.clear();
        self.field = Some((self.names.len() + 1, field));
    }

    /// Leaves the elements that are no longer among the open ones.
    fn close(&mut self) {
        let depth = self.names.len();
        self.media = self.media.filter(|media| *media <= depth);
        if self.field.is_some_and(|(field, _)| depth < field) {
            self.end_field();
        }
        if self.item.is_some_and(|(item, ..)| depth < item) {
            self.end_item();
        }
    }

    fn end_field(&mut self) {
        let text = std::mem::take(&mut self.text);
        match self.field.take() {
            Some((_, Field::Location)) if self.item.is_none() => {
                let lists = self.format.map_or(Lists::Pages, |(lists, _)| lists);
                self.found.push(&text, "", lists);
            }
            Some((_, Field::Location)) if !text.trim().is_empty() => self.locations.push(text),
            Some((_, Field::Fallback)) => self.fallback = text,
            Some((_, Field::Lastmod)) => self.lastmod = text,
            Some((_, Field::Location)) | None => {}
        }
    }

    fn end_item(&mut self) {
        self.end_field();
        if let Some((_, lists, _)) = self.item.take() {
            if self.locations.is_empty() {
                self.locations.push(std::mem::take(&mut self.fallback));
            }
            for location in self.locations.drain(..) {
                self.found.push(&location, &self.lastmod, lists);
            }
        }
        self.fallback.clear();
        self.lastmod.clear();
    }

    fn add(&mut self, text: &str) {
        // Text of elements inside a field does not belong to the field.
        if self.field.is_none_or(|(field, _)| self.names.len() != field) {
            return;
        }
        if self.text.len() + text.len() <= MAX_FIELD_BYTES {
            self.text.push_str(text);
        } else {
            self.text.clear();
            self.field = None;
        }
    }

    fn finish(mut self, broken: Option<String>) -> Result<Sitemap, NotASitemap> {
        let Some((lists, _)) = self.format else {
            return Err(NotASitemap::NoRoot(broken.unwrap_or_default()));
        };
        // A truncated URL would be a different URL: it counts only if its element was closed.
        self.field = None;
        if !self.locations.is_empty() {
            self.end_item();
        }
        Ok(self.found.into_sitemap(lists, broken))
    }
}

fn is_permanent(guid: &BytesStart<'_>) -> bool {
    attribute(guid, "isPermaLink").is_none_or(|value| !value.trim().eq_ignore_ascii_case("false"))
}

/// Returns the text of a reference. An unknown one is kept as written: most likely it is an unescaped `&` in a URL.
fn resolved(reference: &BytesRef<'_>) -> Cow<'static, str> {
    if let Ok(Some(c)) = reference.resolve_char_ref() {
        return Cow::Owned(c.to_string());
    }
    match resolve_xml_entity(reference) {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(format!("&{};", &**reference)),
    }
}

/// The target of a link with this relation, a word of any case or behind the address of the list of relations. By default it is `alternate`.
fn href(link: &BytesStart<'_>, relation: &str) -> Option<String> {
    let names = attribute(link, "rel").unwrap_or_else(|| "alternate".to_owned());
    let mut names = names.split(|c: char| c.is_ascii_whitespace() || c == '/');
    let is_one = names.any(|name| name.eq_ignore_ascii_case(relation));
    is_one.then(|| attribute(link, "href")).flatten()
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    let mut read = attributes.with_checks(false).flatten();
    let raw = read.find(|one| one.key.as_ref() == name)?.value;
    let text = unescape(&raw).unwrap_or(Cow::Borrowed(&*raw));
    (text.len() <= MAX_FIELD_BYTES).then(|| text.into_owned())
}
