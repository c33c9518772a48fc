//! XHTML and SVG, written anew as HTML, so that one reader finds links, title, text and fields in either.
//!
//! XML has its own rules for what `<script/>`, prefixes, CDATA and entities mean. Where a document is not well-formed, the rest of it is taken
//! for HTML: browsers show only what precedes the error.
//!
//! Entities of the DTD's internal subset are expanded up to [`EXPANDED_BYTES`] in all, so that no document grows beyond that. External ones are
//! not loaded. As in browsers, `xml:base` does not count.

use std::borrow::Cow;
use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::escape::{minimal_escape, resolve_predefined_entity};
use quick_xml::events::{BytesEnd, BytesRef, BytesStart, Event};
use quick_xml::name::{Namespace, NamespaceResolver, ResolveResult};

/// Maximum bytes of all expanded entities of a document.
const EXPANDED_BYTES: usize = 1024 * 1024;
/// Maximum depth of entities in entities.
const DEPTH_LIMIT: usize = 16;

const XLINK: &str = "http://www.w3.org/1999/xlink";
const SVG: &str = "http://www.w3.org/2000/svg";
/// The namespaces whose elements HTML has, too.
const KNOWN: [&str; 3] = [
    "http://www.w3.org/1999/xhtml",
    SVG,
    "http://www.w3.org/1998/Math/MathML",
];

/// Elements without an end tag in HTML.
const VOID: [&str; 17] = [
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta",
    "param", "source", "track", "wbr",
];
/// Elements that hold no elements in HTML, and whether their text counts.
const HOLDS_TEXT: [(&str, bool); 7] = [
    ("iframe", false),
    ("noembed", false),
    ("noframes", false),
    ("script", false),
    ("style", true),
    ("textarea", true),
    ("title", true),
];
/// Elements that would hide in HTML what follows.
const LEFT_OUT: [&str; 3] = ["plaintext", "listing", "xmp"];

/// Returns a document as HTML, and whether entities were left out because they are too long.
pub(crate) fn to_html(xml: &str) -> (String, bool) {
    let mut writer = Writer {
        html: String::with_capacity(xml.len()),
        names: NamespaceResolver::default(),
        entities: HashMap::new(),
        expandable: EXPANDED_BYTES,
        is_cut: false,
        holder: None,
    };
    if let Err(at) = writer.read(xml, 0) {
        writer.html.push_str(xml.get(at..).unwrap_or_default());
    }
    (writer.html, writer.is_cut)
}

/// Why a document cannot be read on as XML.
struct NotWellFormed;

struct Writer {
    html: String,
    names: NamespaceResolver,
    entities: HashMap<String, String>,
    /// How many bytes entities may still expand to.
    expandable: usize,
    is_cut: bool,
    /// The open element that holds no elements, and whether its text counts.
    holder: Option<(String, bool)>,
}

impl Writer {
    /// Reads the document, or the replacement of an entity at this depth; fails with the place from which on it is no XML.
    fn read(&mut self, xml: &str, depth: usize) -> Result<(), usize> {
        let mut reader = Reader::from_str(xml);
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.allow_dangling_amp = true;
        loop {
            let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
            let event = reader.read_event().map_err(|_| at)?;
            if matches!(event, Event::Eof) {
                return Ok(());
            }
            self.write(&event, depth).map_err(|NotWellFormed| at)?;
        }
    }

    fn write(&mut self, event: &Event<'_>, depth: usize) -> Result<(), NotWellFormed> {
        match event {
            Event::Start(tag) => self.start_tag(tag)?,
            Event::Empty(tag) => {
                self.start_tag(tag)?;
                self.end_tag(&tag.to_end());
            }
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => self.text(text),
            Event::CData(text) => self.text(&minimal_escape(&**text)),
            Event::GeneralRef(reference) => self.reference(reference, depth),
            Event::PI(instruction) if instruction.target() == "xml-stylesheet" => {
                let attributes = instruction.content();
                self.html.push_str(&format!("<link rel=stylesheet {attributes}>"));
            }
            Event::DocType(declaration) => self.declare(declaration),
            _ => {}
        }
        Ok(())
    }

    fn start_tag(&mut self, tag: &BytesStart<'_>) -> Result<(), NotWellFormed> {
        self.names.push(tag).map_err(|_| NotWellFormed)?;
        let Some(name) = self.html_name(tag.name()).filter(|_| self.holder.is_none()) else {
            return Ok(());
        };
        let start = self.html.len();
        self.html.push('<');
        self.html.push_str(name);
        for attribute in tag.attributes().with_checks(false) {
            let Ok(attribute) = attribute else {
                self.html.truncate(start);
                return Err(NotWellFormed);
            };
            let (namespace, local) = self.names.resolve_attribute(attribute.key);
            let name = match namespace {
                ResolveResult::Bound(Namespace(XLINK)) => Cow::Owned(format!("xlink:{}", local.into_inner())),
                ResolveResult::Bound(_) => continue,
                ResolveResult::Unbound | ResolveResult::Unknown(_) => Cow::Borrowed(attribute.key.as_ref()),
            };
            let value = self.expanded(&attribute.value, DEPTH_LIMIT).replace('"', "&quot;");
            self.html.push_str(&format!(" {name}=\"{value}\""));
        }
        self.html.push('>');
        self.holder = HOLDS_TEXT
            .iter()
            .find(|(holder, _)| *holder == name)
            .map(|(_, counts)| (name.to_owned(), *counts));
        Ok(())
    }

    fn end_tag(&mut self, tag: &BytesEnd<'_>) {
        let name = self.html_name(tag.name());
        let is_held = |name: &str| self.holder.as_ref().is_some_and(|(holder, _)| holder != name);
        if let Some(name) = name.filter(|name| !VOID.contains(name) && !is_held(name)) {
            self.holder = None;
            self.html.push_str(&format!("</{name}>"));
        }
        self.names.pop();
    }

    /// Returns the name of an element in HTML; `None` if HTML has none like it. One without a namespace is taken for HTML.
    fn html_name<'n>(&self, name: quick_xml::name::QName<'n>) -> Option<&'n str> {
        let (namespace, local) = self.names.resolve_element(name);
        let is_known = match namespace {
            ResolveResult::Bound(Namespace(uri)) => KNOWN.contains(&uri),
            ResolveResult::Unbound | ResolveResult::Unknown(_) => true,
        };
        let name = local.into_inner();
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic()) && !LEFT_OUT.contains(&name);
        (is_known && is_name).then_some(name)
    }

    /// Writes text as it stands, with its references.
    fn text(&mut self, text: &str) {
        match &self.holder {
            Some((_, false)) => {}
            // Its text has no references in HTML.
            Some((name, true)) if name == "style" => {
                let css = quick_xml::escape::unescape(text).unwrap_or(Cow::Borrowed(text));
                self.html.push_str(&css.replace("</", "<\\/"));
            }
            _ => self.html.push_str(text),
        }
    }

    /// Writes what a reference stands for. HTML knows those that the document does not declare.
    fn reference(&mut self, reference: &BytesRef<'_>, depth: usize) {
        let name = &**reference;
        match self.entities.get(name).cloned() {
            Some(text) if depth < DEPTH_LIMIT && self.may_expand(&text) => {
                // What is wrong in an entity ends with it.
                let _ = self.read(&text, depth + 1);
            }
            Some(_) => self.is_cut = true,
            None => self.text(&format!("&{name};")),
        }
    }

    fn may_expand(&mut self, text: &str) -> bool {
        let left = self.expandable.checked_sub(text.len());
        self.is_cut |= left.is_none();
        self.expandable = left.unwrap_or(0);
        left.is_some()
    }

    /// Returns the value of an attribute with the document's entities replaced.
    fn expanded<'v>(&mut self, value: &'v str, depth: usize) -> Cow<'v, str> {
        if self.entities.is_empty() || !value.contains('&') {
            return Cow::Borrowed(value);
        }
        let mut parts = value.split('&');
        let mut expanded = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once(';').unwrap_or((part, ""));
            match self.entities.get(name).cloned() {
                Some(text) if depth > 0 && self.may_expand(&text) => {
                    expanded.push_str(&self.expanded(&text, depth - 1));
                    expanded.push_str(rest);
                }
                Some(_) => self.is_cut = true,
                None => expanded.extend(["&", part]),
            }
        }
        Cow::Owned(expanded)
    }

    /// Keeps the entities of a DTD's internal subset, each with its first value.
    fn declare(&mut self, declaration: &str) {
        for entity in declaration.split("<!ENTITY").skip(1) {
            let (name, rest) = entity.trim_start().split_once(char::is_whitespace).unwrap_or_default();
            let rest = rest.trim_start();
            let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''));
            let value = quote.and_then(|quote| rest.split(quote).nth(1));
            let is_predefined = resolve_predefined_entity(name).is_some();
            if let Some(value) = value.filter(|_| !is_predefined) {
                self.entities.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Separated by bars.
    const PIECES: &str = "<!DOCTYPE html [|<!ENTITY a '&b;&b;'>|<!ENTITY b \"<p>&a;</p>\">|]>|&a;|&b;|&#60;|<a x='&b;'>|</a>|<h:a|/>|>|\"|'|é|\
        <![CDATA[|]]>|<style>|</style>|<script/>|<?xml-stylesheet|?>|<!--|-->| xmlns:h='u'| h:x=1|text & text|<|\u{feff}";

    proptest! {
        #[test]
        fn any_document_is_written_and_grows_by_a_bounded_part(
            pieces in proptest::collection::vec(select(PIECES.split('|').collect::<Vec<_>>()), 0..40),
        ) {
            let xml = pieces.concat();
            let (html, _) = to_html(&xml);
            prop_assert!(html.len() <= 8 * (xml.len() + EXPANDED_BYTES), "{} bytes", html.len());
        }
    }

    #[test]
    fn what_is_no_xml_is_left_as_it_is() {
        let html = "<p class=a>1 & 2<br><script>if (a<b) x()</script>";
        assert_eq!(to_html(html).0, html);
        assert_eq!(
            to_html("<p/><br/><p x='\"'>a&lt;").0,
            "<p></p><br><p x=\"&quot;\">a&lt;"
        );
    }
}
