//! Normalizes the lines of a robots.txt, so that the `robotxt` crate reads them as RFC 9309 and Google's parser do.

use std::borrow::Cow;

/// The minimum size that RFC 9309, section 2.5, requires a crawler to read. The crawler asks for one byte more (`MAX_ROBOTS_BYTES` of
/// `crawler/fetch.rs`): raise both.
const MAX_BYTES: usize = 500 * 1024;

const BYTE_ORDER_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Spellings that count as these names: those that the `robotxt` crate reads, to which lines go with the name that they have. Google's parser
/// accepts them too, but for those of delays, and `alow` and `allaw`.
const AGENT: [&str; 3] = ["user-agent", "useragent", "user agent"];
const DELAY: [&str; 3] = ["crawl-delay", "crawl delay", "crawldelay"];
#[rustfmt::skip]
const RULE: [&str; 9] = ["allow", "alow", "allaw", "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"];

/// A rule that matches no URL. Like any rule it ends the agents of its group.
const NO_RULE: &[u8] = b"Disallow:";

/// Rewrites a file line by line. A stored frontier keeps the new text until its rules expire, so a change here reaches it then. The tests are
/// `tests/it/robots.rs`, with other parsers beside it:
/// * a byte order mark is removed, even an incomplete one;
/// * the file is truncated after 500 KiB, at the last end of a line before;
/// * a line ends at CR or LF, and a NUL hides the rest of its line;
/// * a line without a colon counts only if it has exactly two words;
/// * only a rule ends the agents of a group, not a delay (section 2.2.4);
/// * an agent counts with its product token: the letters, `-` and `_` that it starts with (section 2.2.1); `* x` counts
///   as `*`;
/// * a rule that starts with neither `/` nor `*` matches nothing (section 2.2);
/// * bytes beyond ASCII are escaped, and so is a `$` that is not at the end (section 2.2.3).
pub(super) fn normalize(body: &[u8], product_token: &str) -> Vec<u8> {
    let mut normalized = Vec::with_capacity(body.len().min(MAX_BYTES));
    let mut agents = Agents::new(product_token);
    for line in truncated_to_limit(without_byte_order_mark(body)).split(|byte| matches!(byte, b'\r' | b'\n')) {
        if let Some((name, value)) = name_and_value(line) {
            write(&mut normalized, name, value, &mut agents);
            normalized.push(b'\n');
        }
    }
    normalized
}

/// The agents of the group that is being read: those of the lines since the last rule.
///
/// Only a rule ends the list of agents; other records must not interfere with it (RFC 9309, section 2.2.4). The
/// `robotxt` crate also ends it at a `Crawl-delay`, which then counts for the agents before it only. So when more
/// agents follow a delay, the relevant ones are written again.
#[derive(Default)]
struct Agents<'a> {
    product_token: &'a [u8],
    /// Whether the list has our product token or an asterisk.
    is_ours: bool,
    is_any: bool,
    /// Whether a rule has followed the list.
    has_ended: bool,
    /// Whether the `robotxt` crate has ended the list at a delay.
    is_split_by_delay: bool,
}

impl<'a> Agents<'a> {
    fn new(product_token: &'a str) -> Self {
        Self {
            product_token: product_token.trim().as_bytes(),
            has_ended: true,
            ..Self::default()
        }
    }

    /// Adds an agent. The first one after a rule starts a new list.
    fn add(&mut self, agent: &[u8], to: &mut Vec<u8>) {
        if self.has_ended {
            *self = Self {
                product_token: self.product_token,
                ..Self::default()
            };
        }
        if std::mem::take(&mut self.is_split_by_delay) {
            let again = [(self.is_ours, self.product_token), (self.is_any, b"*")];
            for (_, agent) in again.iter().filter(|(is_named, _)| *is_named) {
                write_agent(to, agent);
                to.push(b'\n');
            }
        }
        self.is_ours |= agent.eq_ignore_ascii_case(self.product_token);
        self.is_any |= agent == b"*";
        write_agent(to, agent);
    }
}

fn without_byte_order_mark(body: &[u8]) -> &[u8] {
    let marked = body
        .iter()
        .zip(BYTE_ORDER_MARK)
        .take_while(|(byte, mark)| *byte == mark);
    body.get(marked.count()..).unwrap_or_default()
}

fn truncated_to_limit(body: &[u8]) -> &[u8] {
    let Some(window) = body.get(..=MAX_BYTES) else {
        return body;
    };
    // A truncated line could mean something else.
    let end = window.iter().rposition(|byte| matches!(byte, b'\r' | b'\n'));
    window.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// Splits a line into name and value, without its comment; `None` if the line has no meaning.
fn name_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.split(|byte| matches!(byte, b'#' | 0)).next()?.trim_ascii();
    if let Some(colon) = line.iter().position(|&byte| byte == b':') {
        let (name, value) = line.split_at(colon);
        return Some((name.trim_ascii(), value.get(1..)?.trim_ascii()));
    }
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (name, value) = (words.next()?, words.next()?);
    words.next().is_none().then_some((name, value))
}

fn write(to: &mut Vec<u8>, name: &[u8], value: &[u8], agents: &mut Agents<'_>) {
    let is_one_of = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    if is_one_of(&AGENT) {
        agents.add(agent(value), to);
        return;
    }
    agents.is_split_by_delay |= is_one_of(&DELAY);
    let is_rule = is_one_of(&RULE);
    agents.has_ended |= is_rule;
    if is_rule && !matches!(value.first(), None | Some(b'/' | b'*')) {
        to.extend_from_slice(NO_RULE);
        return;
    }
    to.extend_from_slice(name);
    to.extend_from_slice(b": ");
    match is_rule {
        true => write_pattern(to, value),
        false => to.extend_from_slice(value),
    }
}

fn write_agent(to: &mut Vec<u8>, agent: &[u8]) {
    to.extend_from_slice(b"User-agent: ");
    to.extend_from_slice(agent);
}

fn agent(value: &[u8]) -> &[u8] {
    if let Some((b'*', rest)) = value.split_first()
        && rest.first().is_none_or(u8::is_ascii_whitespace)
    {
        return b"*";
    }
    let is_token = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_');
    let end = value.iter().position(|byte| !is_token(byte)).unwrap_or(value.len());
    // An agent that starts otherwise matches nobody, but its line still starts a group.
    value.get(..end).filter(|token| !token.is_empty()).unwrap_or(value)
}

fn write_pattern(to: &mut Vec<u8>, pattern: &[u8]) {
    let last = pattern.len().saturating_sub(1);
    for (at, &byte) in pattern.iter().enumerate() {
        if byte.is_ascii() && (byte != b'$' || at == last) {
            to.push(byte);
        } else {
            to.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
}

/// Escapes the characters of a path that have a meaning in patterns.
pub(super) fn escaped(path: &str) -> Cow<'_, str> {
    if path.contains(['*', '$']) {
        Cow::Owned(path.replace('*', "%2A").replace('$', "%24"))
    } else {
        Cow::Borrowed(path)
    }
}
