//! The XML formats urlset, sitemapindex, RSS and Atom, recognized by their root element.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::{resolve_xml_entity, unescape};
use quick_xml::events::{BytesRef, BytesStart, Event};

use super::{EntryCollector, Lists, NotASitemap, Sitemap};

/// Longer URLs and dates are ignored.
const MAX_FIELD_BYTES: usize = 8 * 1024;

/// The element names of one format. They are local names, because namespaces are often wrong.
#[derive(Debug)]
struct Format {
    root: &'static str,
    lists: Lists,
    /// The elements of entries, and what their locations are.
    items: &'static [(&'static str, Lists)],
    location: Location,
    lastmod: &'static [&'static str],
}

#[derive(Debug, Clone, Copy)]
enum Location {
    /// The text of each `loc` within the root element.
    Loc,
    /// The text of a child `link`, or else of a `guid` that is a permanent link, as it is by default (RSS 2.0).
    Link,
    /// The `href` of a child `link` that points to the item itself: with `rel=alternate` or without `rel` (RFC 4287,
    /// section 4.2.7.2), or else the `id`.
    Href,
}

const ENTRIES: &[(&str, Lists)] = &[("url", Lists::Pages), ("sitemap", Lists::Sitemaps)];
const ITEMS: &[(&str, Lists)] = &[("item", Lists::Pages)];

/// Elements whose `loc` is no page.
const MEDIA: [&str; 2] = ["image", "video"];

const FORMATS: [Format; 5] = [
    Format::new("urlset", Lists::Pages, ENTRIES, Location::Loc, &["lastmod"]),
    Format::new("sitemapindex", Lists::Sitemaps, ENTRIES, Location::Loc, &["lastmod"]),
    Format::new("rss", Lists::Pages, ITEMS, Location::Link, &["pubDate", "date"]),
    // RSS 0.9 and 1.0.
    Format::new("RDF", Lists::Pages, ITEMS, Location::Link, &["date"]),
    Format::new(
        "feed",
        Lists::Pages,
        &[("entry", Lists::Pages)],
        Location::Href,
        &["updated"],
    ),
];

impl Format {
    const fn new(
        root: &'static str,
        lists: Lists,
        items: &'static [(&'static str, Lists)],
        location: Location,
        lastmod: &'static [&'static str],
    ) -> Self {
        Self {
            root,
            lists,
            items,
            location,
            lastmod,
        }
    }
}

/// Reads up to the end of the root element, or to the first markup error.
pub(super) fn read(text: &str, found: EntryCollector<'_>) -> Result<Sitemap, NotASitemap> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut walk = DocumentReader::new(found);
    let broken = loop {
        match reader.read_event() {
            Ok(Event::Eof) => break Some("the file ends before its last end tag".to_owned()),
            Ok(event) => {
                if walk.step(&event)? == Step::Done {
                    break None;
                }
            }
            Err(error) => break Some(error.to_string()),
        }
    };
    walk.finish(broken)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    On,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Location,
    /// What is the location if there is none.
    Fallback,
    Lastmod,
}

/// The position of the reader in the document. An element is known by the depth of its children.
struct DocumentReader<'a> {
    found: EntryCollector<'a>,
    format: Option<&'static Format>,
    depth: usize,
    /// The open entry, and what its locations are.
    item: Option<(usize, Lists)>,
    /// The open image or video.
    media: Option<usize>,
    field: Option<(usize, Field)>,
    /// The text of the open field.
    text: String,
    locations: Vec<String>,
    fallback: String,
    lastmod: String,
}

impl<'a> DocumentReader<'a> {
    fn new(found: EntryCollector<'a>) -> Self {
        Self {
            found,
            format: None,
            depth: 0,
            item: None,
            media: None,
            field: None,
            text: String::new(),
            locations: Vec::new(),
            fallback: String::new(),
            lastmod: String::new(),
        }
    }

    fn step(&mut self, event: &Event<'_>) -> Result<Step, NotASitemap> {
        match event {
            Event::Start(tag) => {
                self.open(tag)?;
                self.depth += 1;
            }
            Event::Empty(tag) => {
                self.open(tag)?;
                self.close();
                return Ok(self.at_end());
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                self.close();
                return Ok(self.at_end());
            }
            Event::Text(text) => self.add(text),
            Event::CData(text) => self.add(text),
            Event::GeneralRef(reference) => self.add(&resolved(reference)),
            _ => {}
        }
        Ok(Step::On)
    }

    fn at_end(&self) -> Step {
        if self.depth == 0 { Step::Done } else { Step::On }
    }

    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), NotASitemap> {
        let name = tag.local_name().into_inner();
        let Some(format) = self.format else {
            let format = FORMATS.iter().find(|format| format.root == name);
            self.format = Some(format.ok_or_else(|| NotASitemap::OtherRoot(name.chars().take(40).collect()))?);
            return Ok(());
        };
        let children = self.depth + 1;
        if let Some((_, lists)) = format.items.iter().find(|(item, _)| *item == name) {
            // An item that was never closed ends here.
            self.end_item();
            self.item = Some((children, *lists));
        } else if MEDIA.contains(&name) {
            self.media.get_or_insert(children);
        } else if self.media.is_none() {
            self.open_field(format, name, tag);
        }
        Ok(())
    }

    fn open_field(&mut self, format: &Format, name: &str, tag: &BytesStart<'_>) {
        let is_in_item = self.item.is_some_and(|(item, _)| item == self.depth);
        let is_wanted = is_in_item && self.locations.is_empty();
        let field = match (format.location, name) {
            (Location::Loc, "loc") => Field::Location,
            (Location::Loc, "link") => {
                if let Some(alternate) = href(tag) {
                    self.found.push_alternate(&alternate);
                }
                return;
            }
            (Location::Link, "link") if is_wanted => Field::Location,
            (Location::Link, "guid") if is_wanted && is_permanent(tag) => Field::Fallback,
            (Location::Href, "id") if is_wanted => Field::Fallback,
            (Location::Href, "link") if is_wanted => {
                self.locations.extend(href(tag));
                return;
            }
            _ if is_in_item && format.lastmod.contains(&name) && self.lastmod.is_empty() => Field::Lastmod,
            _ => return,
        };
        self.text.clear();
        self.field = Some((self.depth + 1, field));
    }

    /// Leaves the element whose children have depth `depth + 1`.
    fn close(&mut self) {
        self.media = self.media.filter(|media| *media <= self.depth);
        if self.field.is_some_and(|(field, _)| self.depth < field) {
            self.end_field();
        }
        if self.item.is_some_and(|(item, _)| self.depth < item) {
            self.end_item();
        }
    }

    fn end_field(&mut self) {
        let text = std::mem::take(&mut self.text);
        match self.field.take() {
            Some((_, Field::Location)) if self.item.is_none() => {
                let lists = self.format.map_or(Lists::Pages, |format| format.lists);
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
        if let Some((_, lists)) = self.item.take() {
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
        if self.field.is_none_or(|(field, _)| self.depth != field) {
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
        let Some(format) = self.format else {
            return Err(NotASitemap::NoRoot(broken.unwrap_or_default()));
        };
        // A truncated URL would be a different URL: it counts only if its element was closed.
        self.field = None;
        if !self.locations.is_empty() {
            self.end_item();
        }
        Ok(self.found.into_sitemap(format.lists, broken))
    }
}

/// Returns whether a `guid` is a URL.
fn is_permanent(guid: &BytesStart<'_>) -> bool {
    let mut attributes = guid.attributes();
    let mut read = attributes.with_checks(false).flatten();
    !read.any(|one| one.key.as_ref() == "isPermaLink" && one.value.trim().eq_ignore_ascii_case("false"))
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

fn href(tag: &BytesStart<'_>) -> Option<String> {
    let mut found = None;
    for attribute in tag.attributes().with_checks(false).flatten() {
        match attribute.key.as_ref() {
            "rel" if attribute.value.trim() != "alternate" => return None,
            "href" => found = Some(attribute.value),
            _ => {}
        }
    }
    let raw = found?;
    let text = unescape(&raw).map(Cow::into_owned);
    Some(text.unwrap_or_else(|_| raw.to_string())).filter(|text| text.len() <= MAX_FIELD_BYTES)
}
