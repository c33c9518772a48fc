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
use quick_xml::escape::{minimal_escape, resolve_predefined_entity, unescape};
use quick_xml::events::{BytesEnd, BytesStart, Event};
use quick_xml::name::{Namespace, NamespaceResolver, QName, ResolveResult};

use crate::media_type::after_prolog;

/// Maximum bytes of all expanded entities of a document.
const EXPANDED_BYTES: usize = 1024 * 1024;
/// Maximum depth of entities in entities.
const DEPTH_LIMIT: usize = 16;

const XLINK: &str = "http://www.w3.org/1999/xlink";
/// The namespaces whose elements HTML has, too.
const KNOWN: [&str; 3] = [
    "http://www.w3.org/1999/xhtml",
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/1998/Math/MathML",
];

/// Elements that hold no elements in HTML. The text of the first two counts for nothing.
const HOLDS_TEXT: [&str; 5] = ["script", "iframe", "style", "textarea", "title"];
/// Elements that would hide in HTML what they hold, or what follows.
const LEFT_OUT: [&str; 4] = ["noembed", "noframes", "plaintext", "xmp"];

/// A document as HTML, and whether entities were left out because they are too long.
pub(crate) fn to_html(xml: &str) -> (String, bool) {
    let body = after_prolog(xml);
    let prolog = xml.strip_suffix(body).unwrap_or_default();
    let entities = entities_of(prolog);
    let (document, is_cut) = expanded(if body.is_empty() { xml } else { body }, &entities);
    let mut writer = Writer {
        html: String::with_capacity(document.len()),
        names: NamespaceResolver::default(),
        holder: None,
    };
    for sheet in prolog.split("<?xml-stylesheet").skip(1) {
        let attributes = sheet.split("?>").next().unwrap_or_default();
        writer.html.extend(["<link rel=stylesheet ", attributes, ">"]);
    }
    let mut reader = lenient_reader(&document);
    loop {
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(event) if writer.write(&event).is_some() => {}
            _ => {
                writer.html.push_str(document.get(at..).unwrap_or_default());
                break;
            }
        }
    }
    (writer.html, is_cut)
}

/// The reader goes on where tags do not match, or a `&` is no reference.
pub(crate) fn lenient_reader(xml: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(xml);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    reader
}

fn entities_of(prolog: &str) -> HashMap<&str, String> {
    let mut entities = HashMap::new();
    for entity in prolog.split("<!ENTITY").skip(1) {
        let (name, rest) = entity.trim_start().split_once(char::is_whitespace).unwrap_or_default();
        let quoted = rest.trim_start();
        let quote = quoted.chars().next().filter(|quote| matches!(quote, '"' | '\''));
        let value = quote.and_then(|quote| quoted.split(quote).nth(1));
        if let Some(value) = value.filter(|_| resolve_predefined_entity(name).is_none()) {
            // In an attribute, a quote would end its value.
            entities.entry(name).or_insert_with(|| match value.contains('<') {
                true => value.to_owned(),
                false => value.replace('"', "&#34;").replace('\'', "&#39;"),
            });
        }
    }
    entities
}

/// Returns a text with its entities replaced, and whether some were left out. HTML knows those that are not declared.
fn expanded<'t>(text: &'t str, entities: &'t HashMap<&str, String>) -> (Cow<'t, str>, bool) {
    if entities.is_empty() {
        return (Cow::Borrowed(text), false);
    }
    let (mut whole, mut expandable, mut is_cut) = (String::with_capacity(text.len()), EXPANDED_BYTES, false);
    // What is left of the text, and above it of the entities that are open.
    let mut open = vec![text];
    while let Some(rest) = open.pop() {
        let Some((before, reference)) = rest.split_once('&') else {
            whole.push_str(rest);
            continue;
        };
        whole.push_str(before);
        let end = reference.find(|c: char| matches!(c, ';' | '&' | '<') || c.is_whitespace());
        let (name, after) = reference.split_at(end.unwrap_or(0));
        let Some(value) = entities.get(name).filter(|_| after.starts_with(';')) else {
            whole.push('&');
            open.push(reference);
            continue;
        };
        open.push(after.get(1..).unwrap_or_default());
        let left = expandable
            .checked_sub(value.len())
            .filter(|_| open.len() <= DEPTH_LIMIT);
        is_cut |= left.is_none();
        if let Some(left) = left {
            expandable = left;
            open.push(value);
        }
    }
    (Cow::Owned(whole), is_cut)
}

struct Writer {
    html: String,
    names: NamespaceResolver,
    /// The open element that holds no elements.
    holder: Option<&'static str>,
}

impl Writer {
    /// Writes what was read; `None` if it is no XML.
    fn write(&mut self, event: &Event<'_>) -> Option<()> {
        let is_tag = matches!(event, Event::Start(_) | Event::Empty(_) | Event::End(_));
        match event {
            // It would hide the end of the element that is open.
            _ if is_tag && self.holder.is_some() && event.contains('<') => return None,
            Event::Start(tag) => self.start_tag(tag)?,
            Event::Empty(tag) => {
                self.start_tag(tag)?;
                self.end_tag(&tag.to_end());
            }
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => self.text(text),
            Event::CData(text) => self.text(&minimal_escape(&**text)),
            Event::GeneralRef(reference) => self.text(&format!("&{};", &**reference)),
            _ => {}
        }
        Some(())
    }

    fn start_tag(&mut self, tag: &BytesStart<'_>) -> Option<()> {
        self.names.push(tag).ok()?;
        let Some(name) = self.html_name(tag.name()).filter(|_| self.holder.is_none()) else {
            return Some(());
        };
        let mut link = String::new();
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.ok()?;
            if let (ResolveResult::Bound(Namespace(XLINK)), local) = self.names.resolve_attribute(attribute.key) {
                let value = attribute.value.replace('"', "&quot;");
                link = format!("{link} xlink:{}=\"{value}\"", local.into_inner());
            }
        }
        self.html.extend(["<", name, &*link, tag.attributes_raw(), ">"]);
        self.holder = HOLDS_TEXT.into_iter().find(|holder| *holder == name);
        Some(())
    }

    fn end_tag(&mut self, tag: &BytesEnd<'_>) {
        // An end tag of an element without content is ignored in HTML, but for this one.
        let name = self.html_name(tag.name()).filter(|name| *name != "br");
        if let Some(name) = name.filter(|name| self.holder.is_none_or(|holder| holder == *name)) {
            self.holder = None;
            self.html.extend(["</", name, ">"]);
        }
        self.names.pop();
    }

    /// Returns the name of an element in HTML; `None` if HTML has none like it. One without a namespace is taken for HTML.
    fn html_name<'n>(&self, name: QName<'n>) -> Option<&'n str> {
        let (namespace, local) = self.names.resolve_element(name);
        let is_other = matches!(namespace, ResolveResult::Bound(Namespace(uri)) if !KNOWN.contains(&uri));
        let name = local.into_inner();
        (!is_other && !LEFT_OUT.contains(&name)).then_some(name)
    }

    /// Writes text as it stands, with its references.
    fn text(&mut self, text: &str) {
        match self.holder {
            Some("script" | "iframe") => {}
            // Its text has no references in HTML.
            Some("style") => {
                let css = unescape(text).unwrap_or(Cow::Borrowed(text));
                self.html.push_str(&css.replace("</", "<\\/"));
            }
            _ => self.html.push_str(text),
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
        <![CDATA[|]]>|<style>|</style>|<script/>|<?pi|?>|<!--|-->| xmlns:h='u'| h:x=1|text & text|<|\u{feff}";

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
    fn what_is_not_well_formed_hides_no_link() {
        let read = |xhtml: &str| {
            let body = format!("<html xmlns='http://www.w3.org/1999/xhtml'>{xhtml}<a href='/x'/></html>");
            let content = crate::Content {
                body: body.as_bytes(),
                content_type: Some("application/xhtml+xml"),
                ..crate::Content::default()
            };
            crate::read(
                &content,
                &"http://a.example/".parse().unwrap(),
                &crate::ReadOptions::default(),
            )
            .links
        };
        for hiding in [
            "<script>for(i=0;i<n;i++){}</script>",
            "<script>t.replace(/</g, '')</script>",
            "<script>if(i<n && n>1){}</script>",
            "<style>p::before{content:'<b'}</style>",
            "<textarea>1 <2</textarea>",
        ] {
            assert_eq!(read(hiding).len(), 1, "{hiding}");
        }
    }

    #[test]
    fn quotes_of_an_entity_end_no_attribute() {
        let dtd = "<!DOCTYPE a [<!ENTITY t 'The \"best\" site'><!ENTITY u \"Ann's &t;\"><!ENTITY v '<b id=\"c\"/>'>]>";
        let (html, _) = to_html(&format!("{dtd}<a title=\"&u;\" href='/&u;'>&v;</a>"));
        let (quoted, apostrophe) = ("The &#34;best&#34; site", "Ann&#39;s");
        assert_eq!(
            html,
            format!("<a title=\"{apostrophe} {quoted}\" href='/{apostrophe} {quoted}'><b id=\"c\"></b></a>")
        );
    }

    #[test]
    fn what_is_no_xml_is_left_as_it_is() {
        let html = "<p class=a>1 & 2<br><script>if (a<b) x()</script>";
        assert_eq!(to_html(html).0, html);
        assert_eq!(to_html("<p/><br/><p x='\"'>a&lt;").0, "<p></p><br><p x='\"'>a&lt;");
    }
}
