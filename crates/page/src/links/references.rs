//! Decodes text of a document: character references, newlines and NUL.

use std::borrow::Cow;

use html5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};
use memchr::memchr3;

/// The context of a text. The meaning of a reference without semicolon depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextContext {
    /// In an attribute's value, where `&copy=1` is not a reference.
    Attribute,
    /// In an element whose text has references, such as `<title>`.
    Text,
}

/// Decodes newlines (13.2.3.5) and character references (13.2.5.72 to 13.2.5.80), and replaces NUL.
pub(super) fn decoded(text: &str, context: TextContext) -> Cow<'_, str> {
    let mut rest = text;
    let mut decoded = String::new();
    while let Some(at) = memchr3(b'&', b'\r', 0, rest.as_bytes()) {
        let (before, found) = rest.split_at_checked(at).unwrap_or((rest, ""));
        decoded.push_str(before);
        rest = if let Some(after) = found.strip_prefix('&') {
            reference(after, context, &mut decoded)
        } else if let Some(after) = found.strip_prefix('\r') {
            decoded.push('\n');
            after.strip_prefix('\n').unwrap_or(after)
        } else {
            decoded.push(char::REPLACEMENT_CHARACTER);
            found.get(1..).unwrap_or_default()
        };
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// Decodes a possible reference, after its `&`. Returns the text after it.
fn reference<'a>(text: &'a str, context: TextContext, decoded: &mut String) -> &'a str {
    let resolved = match text.strip_prefix('#') {
        Some(number) => numeric(number).map(|(c, rest)| ((c, None), rest)),
        None => named(text, context),
    };
    let Some(((first, second), rest)) = resolved else {
        decoded.push('&');
        return text;
    };
    decoded.push(first);
    decoded.extend(second);
    rest
}

/// Parses `65`, `65;` or `x41;` after `&#` (13.2.5.75 to 13.2.5.80).
fn numeric(text: &str) -> Option<(char, &str)> {
    let (digits, base) = match text.strip_prefix(['x', 'X']) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let mut rest = digits;
    let mut number: u32 = 0;
    while let Some(digit) = rest.chars().next().and_then(|c| c.to_digit(base)) {
        number = number.saturating_mul(base).saturating_add(digit);
        rest = rest.get(1..).unwrap_or_default();
    }
    let character = match number {
        0 => char::REPLACEMENT_CHARACTER,
        0x80..=0x9F => windows_1252(number),
        _ => char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    (rest.len() < digits.len()).then(|| (character, rest.strip_prefix(';').unwrap_or(rest)))
}

/// Maps numbers such as `&#150;` to the windows-1252 characters that authors meant.
fn windows_1252(number: u32) -> char {
    let index = usize::try_from(number - 0x80).unwrap_or_default();
    let replacement = C1_REPLACEMENTS.get(index).copied().flatten();
    replacement
        .or_else(|| char::from_u32(number))
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

type Characters = (char, Option<char>);

/// Parses the longest known name (13.2.5.73).
fn named(text: &str, context: TextContext) -> Option<(Characters, &str)> {
    if let Some(rest) = text.strip_prefix("amp;") {
        return Some((('&', None), rest));
    }
    let mut longest = None;
    for end in 1..=text.len() {
        // The table also has all prefixes of names, with zeros as value.
        let Some((first, second)) = text.get(..end).and_then(|name| NAMED_ENTITIES.get(name)) else {
            break;
        };
        if let Some(first) = char::from_u32(*first).filter(|first| *first != '\0') {
            let second = char::from_u32(*second).filter(|second| *second != '\0');
            longest = Some(((first, second), end));
        }
    }
    let (characters, end) = longest?;
    let (name, rest) = text.split_at_checked(end)?;
    let continues = rest.starts_with(|next: char| next == '=' || next.is_ascii_alphanumeric());
    (name.ends_with(';') || context == TextContext::Text || !continues).then_some((characters, rest))
}
