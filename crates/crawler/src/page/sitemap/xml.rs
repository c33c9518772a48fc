//! The XML formats urlset, sitemapindex, RSS and Atom, recognized by their root element. Only this file uses quick-xml.

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
    item: &'static str,
    location: Location,
    lastmod: &'static [&'static str],
}

#[derive(Debug, Clone, Copy)]
enum Location {
    /// The text of a child element.
    Text(&'static str),
    /// The `href` of a child `link` that points to the item itself: with `rel=alternate` or without `rel` (RFC 4287,
    /// section 4.2.7.2).
    Href,
}

const FORMATS: [Format; 5] = [
    Format {
        root: "urlset",
        lists: Lists::Pages,
        item: "url",
        location: Location::Text("loc"),
        lastmod: &["lastmod"],
    },
    Format {
        root: "sitemapindex",
        lists: Lists::Sitemaps,
        item: "sitemap",
        location: Location::Text("loc"),
        lastmod: &["lastmod"],
    },
    Format {
        root: "rss",
        lists: Lists::Pages,
        item: "item",
        location: Location::Text("link"),
        lastmod: &["pubDate", "date"],
    },
    // RSS 0.9 and 1.0.
    Format {
        root: "RDF",
        lists: Lists::Pages,
        item: "item",
        location: Location::Text("link"),
        lastmod: &["date"],
    },
    Format {
        root: "feed",
        lists: Lists::Pages,
        item: "entry",
        location: Location::Href,
        lastmod: &["updated"],
    },
];

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
    Lastmod,
}

/// The position of the reader in the document.
struct DocumentReader<'a> {
    found: EntryCollector<'a>,
    format: Option<&'static Format>,
    depth: usize,
    /// The depth of the children of the open item.
    item: Option<usize>,
    field: Option<Field>,
    location: String,
    lastmod: String,
}

impl<'a> DocumentReader<'a> {
    fn new(found: EntryCollector<'a>) -> Self {
        Self {
            found,
            format: None,
            depth: 0,
            item: None,
            field: None,
            location: String::new(),
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
        if name == format.item {
            // An item that was never closed ends here.
            self.end_item();
            self.item = Some(self.depth + 1);
        } else if self.item == Some(self.depth) {
            self.open_field(format, name, tag);
        }
        Ok(())
    }

    fn open_field(&mut self, format: &Format, name: &str, tag: &BytesStart<'_>) {
        match format.location {
            Location::Text(location) if name == location && self.location.trim().is_empty() => {
                self.location.clear();
                self.field = Some(Field::Location);
            }
            Location::Href if name == "link" && self.location.is_empty() => {
                self.location = href(tag).unwrap_or_default();
            }
            _ if format.lastmod.contains(&name) && self.lastmod.is_empty() => self.field = Some(Field::Lastmod),
            _ => {}
        }
    }

    /// Leaves the element whose children have depth `depth + 1`.
    fn close(&mut self) {
        match self.item {
            Some(item) if self.depth < item => self.end_item(),
            Some(item) if self.depth == item => self.field = None,
            _ => {}
        }
    }

    fn end_item(&mut self) {
        if self.item.take().is_some() {
            self.found.push(&self.location, &self.lastmod);
        }
        self.field = None;
        self.location.clear();
        self.lastmod.clear();
    }

    fn add(&mut self, text: &str) {
        // Text of elements inside a field does not belong to the field.
        if self.item.is_none_or(|item| self.depth != item + 1) {
            return;
        }
        let field = match self.field {
            Some(Field::Location) => &mut self.location,
            Some(Field::Lastmod) => &mut self.lastmod,
            None => return,
        };
        if field.len() + text.len() <= MAX_FIELD_BYTES {
            field.push_str(text);
        } else {
            field.clear();
            self.field = None;
        }
    }

    fn finish(mut self, broken: Option<String>) -> Result<Sitemap, NotASitemap> {
        let Some(format) = self.format else {
            return Err(NotASitemap::NoRoot(broken.unwrap_or_default()));
        };
        // A truncated URL would be a different URL: it counts only if its element was closed.
        if self.item.is_some() && self.field != Some(Field::Location) && !self.location.trim().is_empty() {
            self.end_item();
        }
        Ok(self.found.into_sitemap(format.lists, broken))
    }
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
