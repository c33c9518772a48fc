//! `NAME=SELECTOR`: what a user writes, checked once.

use std::str::FromStr;

use scraper::error::SelectorErrorKind;
use scraper::{ElementRef, Selector};

/// One field: a name, what to look for, and what of it is its value.
#[derive(Debug, Clone)]
pub struct Field {
    name: String,
    selector: Selector,
    what: What,
    looks_at_siblings: bool,
    steps: u64,
}

/// What of an element is the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// All of its text.
    All,
    /// Each piece of text that stands directly in it.
    Pieces,
    /// Each piece of text in it and in its descendants.
    AllPieces,
    /// An attribute.
    Attribute(String),
}

/// Why a field cannot be read. It says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// There is no `=`.
    #[error("give the field a name: NAME=SELECTOR, such as title=h1")]
    NoName,
    /// The name cannot be a column's.
    #[error("the name {0:?} cannot be used: start it with a letter or _, and go on with letters, digits, _ and -")]
    Name(String),
    /// There is nothing after the `=`.
    #[error("say what {0:?} selects: NAME=SELECTOR, such as title=h1, price=.price::text or image=img::attr(src)")]
    NoSelector(String),
    /// The selector is none.
    #[error("the selector {selector:?} cannot be read from character {position} on ({rest:?}): {why}")]
    Selector {
        /// The selector, without its ending.
        selector: String,
        /// The character, counted from 1, up to which it is one.
        position: usize,
        /// What stands there.
        rest: String,
        /// What is wrong.
        why: String,
    },
    /// Parts of a list end differently.
    #[error("the parts of {0:?} that commas separate have different endings: give all the same, or make two fields")]
    Endings(String),
    /// `::attr()` without a name.
    #[error("name an attribute in ::attr(…), such as img::attr(src)")]
    Attribute,
}

impl FromStr for Field {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        let (name, selector) = text.split_once('=').ok_or(FieldError::NoName)?;
        let (name, selector) = (name.trim(), selector.trim());
        if !is_name(name) {
            return Err(FieldError::Name(name.to_owned()));
        }
        if selector.is_empty() {
            return Err(FieldError::NoSelector(name.to_owned()));
        }
        let (list, what) = read_endings(selector)?;
        let parsed = Selector::parse(&list).map_err(|error| explain(&list, &error))?;
        Ok(Self {
            name: name.to_owned(),
            selector: parsed,
            what,
            looks_at_siblings: list.replace("~=", "").contains('~'),
            steps: 1 + list.matches([' ', '>', '+', '~', ',', '(']).count() as u64,
        })
    }
}

impl Field {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn what(&self) -> &What {
        &self.what
    }

    /// The elements below the root that match, in the order of the document; the root itself first if it matches.
    pub(super) fn matches<'a>(&self, root: ElementRef<'a>) -> impl Iterator<Item = ElementRef<'a>> {
        let itself = self.selector.matches(&root).then_some(root);
        itself.into_iter().chain(root.select(&self.selector))
    }

    /// Whether the selector follows `~`, which looks at all that stands before an element.
    pub(super) fn looks_at_siblings(&self) -> bool {
        self.looks_at_siblings
    }

    /// No fewer steps than the selector has.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'))
}

/// Takes the endings off the parts of a list, which must have the same.
fn read_endings(selector: &str) -> Result<(String, What), FieldError> {
    let mut list: Vec<String> = Vec::new();
    let mut endings = Vec::new();
    for part in parts(selector) {
        let (part, what) = read_ending(part)?;
        list.push(part);
        endings.push(what);
    }
    let what = endings.pop().unwrap_or(What::All);
    if endings.iter().any(|other| *other != what) {
        return Err(FieldError::Endings(selector.to_owned()));
    }
    Ok((list.join(", "), what))
}

fn read_ending(part: &str) -> Result<(String, What), FieldError> {
    let part = part.trim();
    if let Some(before) = part.strip_suffix("::text") {
        return Ok(match before.trim_end() {
            "" => ("*".to_owned(), What::AllPieces),
            selector if selector.len() < before.len() => (selector.to_owned(), What::AllPieces),
            selector => (selector.to_owned(), What::Pieces),
        });
    }
    let attribute = part.strip_suffix(')').and_then(|open| open.rsplit_once("::attr("));
    let Some((before, name)) = attribute else {
        return Ok((part.to_owned(), What::All));
    };
    let name = name.trim();
    if name.is_empty() || name.contains(|letter: char| letter.is_whitespace() || "\"'()<>=,".contains(letter)) {
        return Err(FieldError::Attribute);
    }
    let selector = match before.trim_end() {
        "" => "*".to_owned(),
        selector if selector.len() < before.len() => format!("{selector}, {selector} *"),
        selector => selector.to_owned(),
    };
    // The names of HTML attributes are in lower case once parsed.
    Ok((selector, What::Attribute(name.to_ascii_lowercase())))
}

/// The parts of a list of selectors: between commas that stand in no brackets and no quotes.
fn parts(selector: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    selector.split(move |letter: char| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match (letter, quote) {
            ('\\', _) => is_escaped = true,
            (_, Some(open)) => quote = quote.filter(|_| letter != open),
            ('"' | '\'', None) => quote = Some(letter),
            ('(' | '[', None) => depth += 1,
            (')' | ']', None) => depth = depth.saturating_sub(1),
            (',', None) => return depth == 0,
            _ => {}
        }
        false
    })
}

/// Finds how far a selector is one, for the library does not say.
fn explain(selector: &str, error: &SelectorErrorKind) -> FieldError {
    let ends = selector.char_indices().map(|(at, _)| at).rev();
    let good = ends
        .filter_map(|end| selector.split_at_checked(end))
        .find(|(good, _)| Selector::parse(good).is_ok());
    let rest = good.map_or(selector, |(good, _)| {
        selector.strip_prefix(good.trim_end()).unwrap_or(selector)
    });
    let rest = rest.trim_start();
    let why = match error {
        SelectorErrorKind::EndOfLine => "it ends too early".to_owned(),
        SelectorErrorKind::UnexpectedSelectorParseError(kind) => {
            let kind = format!("{kind:?}");
            let kind = kind.split(['(', ' ']).next().unwrap_or_default();
            format!("this is no selector that is known here ({kind})")
        }
        other => other.to_string().to_lowercase(),
    };
    FieldError::Selector {
        selector: selector.to_owned(),
        position: selector.chars().count() - rest.chars().count() + 1,
        rest: rest.chars().take(20).collect(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, What) {
        let field: Field = text.parse().unwrap();
        (field.name, field.what)
    }

    #[test]
    fn a_list_is_parted_at_commas_outside_of_brackets_and_quotes() {
        let list: Vec<_> = parts(r#"a[b="x,\"y"], :is(c, d), e\,f"#).collect();
        assert_eq!(list, [r#"a[b="x,\"y"]"#, " :is(c, d)", r" e\,f"]);
    }

    #[test]
    fn the_three_endings_are_told_apart() {
        assert_eq!(read("title=h1"), ("title".to_owned(), What::All));
        assert_eq!(read("p = .price::text"), ("p".to_owned(), What::Pieces));
        let src = What::Attribute("src".to_owned());
        assert_eq!(read("img=img::attr(SRC), source::attr( src )"), ("img".to_owned(), src));
        // The first = belongs to the name, the others to the selector.
        assert_eq!(read("x=a[href='::text']").1, What::All);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_a_remedy() {
        for (text, message) in [
            ("h1", "give the field a name: NAME=SELECTOR, such as title=h1"),
            ("=h1", "the name \"\" cannot be used"),
            ("a b=h1", "the name \"a b\" cannot be used"),
            ("title=", "say what \"title\" selects"),
            (
                "x=div > > p",
                "\"div > > p\" cannot be read from character 5 on (\"> > p\")",
            ),
            ("x=h1[", "cannot be read from character 3 on (\"[\"): it ends too early"),
            ("x=p:hover", "cannot be read from character 2 on (\":hover\")"),
            ("x=p::before", "cannot be read from character 2 on (\"::before\")"),
            ("x=h1, ", "cannot be read from character 3 on"),
            ("x=h1::text, h2", "have different endings"),
            ("x=img::attr()", "name an attribute"),
        ] {
            let error = text.parse::<Field>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
