//! Parsing of a field: `NAME=SELECTOR`.

use std::str::FromStr;

use scraper::error::SelectorErrorKind;
use scraper::{ElementRef, Selector};

/// One field: a name, a selector, and the kind of its values. It is parsed from `NAME=SELECTOR`; the selector may end in `::text` or
/// `::attr(NAME)`.
///
/// ```
/// use page::select::Field;
///
/// let price: Field = "price=.price::text".parse()?;
/// assert_eq!(price.name(), "price");
/// let message = "price".parse::<Field>().map(|_| ()).unwrap_err().to_string();
/// assert_eq!(message, "give the field a name: NAME=SELECTOR, such as title=h1");
/// # Ok::<(), page::select::FieldError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Field {
    name: String,
    selector: Selector,
    pub(super) kind: ValueKind,
    /// Whether a match looks at the siblings before an element.
    pub(super) visits_siblings: bool,
    /// A bound of how often a match goes up or down the tree.
    pub(super) steps: u64,
}

/// Which part of a selected element is the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// All of its text.
    All,
    /// Each text node directly in it.
    Pieces,
    /// Each text node in it and in its descendants.
    AllPieces,
    /// An attribute.
    Attribute(String),
}

/// Why a field cannot be parsed. The message says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// There is no `=`.
    #[error("give the field a name: NAME=SELECTOR, such as title=h1")]
    NoName,
    /// The name cannot name a column.
    #[error("the name {0:?} cannot be used: start it with a letter or _, and continue with letters, digits, _ and -")]
    Name(String),
    /// There is nothing after the `=`.
    #[error(
        "give the field {0:?} a selector: NAME=SELECTOR, such as title=h1, price=.price::text or image=img::attr(src)"
    )]
    NoSelector(String),
    /// The selector is not valid.
    #[error("the selector {selector:?} is invalid: {why}")]
    Selector {
        /// The selector, without its ending.
        selector: String,
        /// What is wrong.
        why: String,
    },
    /// The parts of a list have different endings.
    #[error(
        "the parts of {0:?} that commas separate have different endings: use the same ending for all, or two fields"
    )]
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
        let (list, kind) = read_endings(selector)?;
        let parsed = Selector::parse(&list).map_err(|error| explain(&list, &error))?;
        Ok(Self {
            name: name.to_owned(),
            selector: parsed,
            kind,
            visits_siblings: list.replace("~=", "").contains('~'),
            steps: 1 + list.matches([' ', '>', '+', '~', ',', '(']).count() as u64,
        })
    }
}

impl Field {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn matches<'a>(&self, root: ElementRef<'a>) -> impl Iterator<Item = ElementRef<'a>> {
        let itself = self.selector.matches(&root).then_some(root);
        itself.into_iter().chain(root.select(&self.selector))
    }
}

fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'))
}

/// Removes the endings from the parts of a list. All parts must have the same one.
fn read_endings(selector: &str) -> Result<(String, ValueKind), FieldError> {
    let mut list: Vec<String> = Vec::new();
    let mut endings = Vec::new();
    for part in parts(selector) {
        let (part, what) = read_ending(part)?;
        list.push(part);
        endings.push(what);
    }
    let what = endings.pop().unwrap_or(ValueKind::All);
    if endings.iter().any(|other| *other != what) {
        return Err(FieldError::Endings(selector.to_owned()));
    }
    Ok((list.join(", "), what))
}

fn read_ending(part: &str) -> Result<(String, ValueKind), FieldError> {
    let part = part.trim();
    // Of `p::text` and `p ::text`, the second one selects the descendants, too.
    let ends_in_space = |selector: &str| selector.ends_with(char::is_whitespace);
    if let Some(before) = part.strip_suffix("::text") {
        return Ok(match before.trim_end() {
            "" => ("*".to_owned(), ValueKind::AllPieces),
            selector if ends_in_space(before) => (selector.to_owned(), ValueKind::AllPieces),
            selector => (selector.to_owned(), ValueKind::Pieces),
        });
    }
    let attribute = part.strip_suffix(')').and_then(|open| open.rsplit_once("::attr("));
    let Some((before, name)) = attribute else {
        return Ok((part.to_owned(), ValueKind::All));
    };
    let name = name.trim();
    if name.is_empty() || name.contains(|letter: char| letter.is_whitespace() || "\"'()<>=,".contains(letter)) {
        return Err(FieldError::Attribute);
    }
    let selector = match before.trim_end() {
        "" => "*".to_owned(),
        selector if ends_in_space(before) => format!("{selector}, {selector} *"),
        selector => selector.to_owned(),
    };
    // The parser has put the names of HTML attributes in lower case.
    Ok((selector, ValueKind::Attribute(name.to_ascii_lowercase())))
}

/// Splits a list of selectors at the commas outside brackets and quotes.
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

fn explain(selector: &str, error: &SelectorErrorKind) -> FieldError {
    let why = match error {
        SelectorErrorKind::EndOfLine => "the selector ends too early".to_owned(),
        SelectorErrorKind::UnexpectedSelectorParseError(kind) => {
            let kind = format!("{kind:?}");
            let kind = kind.split(['(', ' ']).next().unwrap_or_default();
            format!("unknown or unsupported selector ({kind})")
        }
        other => other.to_string().to_lowercase(),
    };
    FieldError::Selector {
        selector: selector.to_owned(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, ValueKind) {
        let field: Field = text.parse().unwrap();
        (field.name, field.kind)
    }

    #[test]
    fn a_list_is_split_at_commas_outside_brackets_and_quotes() {
        let list: Vec<_> = parts(r#"a[b="x,\"y"], :is(c, d), e\,f"#).collect();
        assert_eq!(list, [r#"a[b="x,\"y"]"#, " :is(c, d)", r" e\,f"]);
    }

    #[test]
    fn the_three_endings_select_different_values() {
        assert_eq!(read("title=h1"), ("title".to_owned(), ValueKind::All));
        assert_eq!(read("p = .price::text"), ("p".to_owned(), ValueKind::Pieces));
        let src = ValueKind::Attribute("src".to_owned());
        assert_eq!(read("img=img::attr(SRC), source::attr( src )"), ("img".to_owned(), src));
        // The first `=` ends the name; later ones belong to the selector.
        assert_eq!(read("x=a[href='::text']").1, ValueKind::All);
    }

    #[test]
    fn an_error_says_what_is_wrong_and_names_a_remedy() {
        for (text, message) in [
            ("h1", "give the field a name: NAME=SELECTOR, such as title=h1"),
            ("=h1", "the name \"\" cannot be used"),
            ("a b=h1", "the name \"a b\" cannot be used"),
            ("title=", "give the field \"title\" a selector"),
            ("x=div > > p", "the selector \"div > > p\" is invalid"),
            ("x=h1[", "\"h1[\" is invalid: the selector ends too early"),
            ("x=p:hover", "\"p:hover\" is invalid"),
            ("x=p::before", "\"p::before\" is invalid"),
            ("x=h1, ", "is invalid"),
            ("x=h1::text, h2", "have different endings"),
            ("x=img::attr()", "name an attribute"),
        ] {
            let error = text.parse::<Field>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
