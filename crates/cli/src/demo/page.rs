//! The words in which the demo's tables are written: hosts, addresses, pages and links.

use hyper::StatusCode;

/// A host that the demo links to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Host {
    Www,
    Docs,
    Blog,
    /// Served, but its robots.txt turns everyone away.
    Private,
    /// Another site: linked to and never served. The name is reserved (RFC 2606 section 2) and resolves nowhere.
    Elsewhere,
}

impl Host {
    const SERVED: [Host; 4] = [Host::Www, Host::Docs, Host::Blog, Host::Private];

    /// The host as URLs name it, without a port.
    pub(super) fn name(self) -> &'static str {
        match self {
            Host::Www => "www.demo.localhost",
            Host::Docs => "docs.demo.localhost",
            Host::Blog => "blog.demo.localhost",
            Host::Private => "private.demo.localhost",
            Host::Elsewhere => "elsewhere.example",
        }
    }

    /// The served host that a `Host` header (with or without a port) means. `localhost` is the first of them: other programs
    /// need not know that RFC 6761 sends names below it to loopback.
    pub(super) fn from_header(header: &str) -> Option<Host> {
        let name = header.split(':').next()?;
        if name.eq_ignore_ascii_case("localhost") {
            return Some(Host::Www);
        }
        Self::SERVED
            .into_iter()
            .find(|host| host.name().eq_ignore_ascii_case(name))
    }

    /// An address on this host. The path may hold a query, and letters of any language.
    pub(super) fn at(self, path: &str) -> Address {
        Address {
            host: self,
            path: percent_encoded(path),
        }
    }
}

/// Where the visit begins.
pub(super) fn home() -> Address {
    Host::Www.at("/")
}

/// The path as WHATWG URL section 4.4 writes it, for the few characters that the tables use.
fn percent_encoded(path: &str) -> String {
    path.bytes()
        .map(|byte| {
            if byte.is_ascii() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// Where a page lives; the tables know pages by it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) host: Host,
    /// Path and query, as they stand in a serialised URL.
    pub(super) path: String,
}

impl Address {
    /// How often the most frequent segment of the path occurs in it.
    pub(super) fn segment_repeats(&self) -> usize {
        let path = self.path.split('?').next().unwrap_or_default();
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let occurrences = |wanted: &&str| segments.iter().filter(|segment| *segment == wanted).count();
        segments.iter().map(occurrences).max().unwrap_or(0)
    }
}

/// One row of the tables: what is answered at an address, and what it links to.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) content: Content,
    pub(super) links: Vec<Link>,
    pub(super) manner: Manner,
    /// Whether the robots.txt of its host keeps crawlers away from it.
    pub(super) forbidden: bool,
}

/// What stands in an answer.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Html(Html),
    /// Anything else, answered as it is.
    File {
        content_type: &'static str,
        bytes: Vec<u8>,
    },
    /// Nothing but the way to the page's only link.
    Redirect(StatusCode),
}

/// What sets one HTML page apart from another, links aside.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Html {
    /// The value of `<base href>`.
    pub(super) base: Option<&'static str>,
    pub(super) charset: Charset,
    /// Says `<meta name="robots" content="nofollow">`.
    pub(super) nofollow: bool,
    pub(super) paragraphs: usize,
}

/// How a page is turned into bytes, and where it says so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Charset {
    /// UTF-8, named in the header.
    #[default]
    Utf8,
    /// Shift_JIS, named in the header; it can write ASCII and half-width kana.
    ShiftJis,
    /// windows-1252, named in a `<meta charset>` alone; it can write Latin-1.
    Windows1252,
}

/// How willingly a page is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Prompt,
    /// After about a second.
    Slow,
    /// The first request of all gets 503, with `Retry-After: 0`.
    UnavailableOnce,
}

/// One outgoing link.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) to: Address,
    pub(super) element: Element,
    pub(super) written: Written,
}

/// What in the page carries a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    Anchor,
    /// `<A HREF=...>` without quotes.
    Unquoted,
    Area,
    Iframe,
    Frame,
    /// `<link rel="next">` in the head.
    Next,
    /// `<meta http-equiv="refresh">`.
    Refresh,
    /// The `Location` header of a redirect.
    Location,
    /// An anchor with `nofollow` among its `rel` tokens.
    Nofollow,
    Comment,
    Script,
    Template,
    Textarea,
}

impl Element {
    /// Whether a polite visitor follows it.
    pub(super) fn is_followed(self) -> bool {
        use Element::{Comment, Nofollow, Script, Template, Textarea};
        !matches!(self, Nofollow | Comment | Script | Template | Textarea)
    }
}

/// How the URL of a link is spelt.
#[derive(Clone, Debug)]
pub(super) enum Written {
    /// From the root of the same host, with scheme and host to another.
    Plainly,
    /// Like `Plainly`, and then `#` and this fragment.
    WithFragment(&'static str),
    /// `//host:port/path`.
    SchemeRelative,
    /// `HTTP://HOST:port/path`.
    Shouting,
    /// These very characters of the attribute; the table vouches that they lead to the target.
    As(String),
}

impl Link {
    pub(super) fn new(element: Element, to: Address, written: Written) -> Link {
        Link { to, element, written }
    }

    /// An anchor whose `href` is these very characters.
    pub(super) fn spelt(to: Address, href: impl Into<String>) -> Link {
        Link::new(Element::Anchor, to, Written::As(href.into()))
    }
}

impl From<Address> for Link {
    fn from(to: Address) -> Link {
        Link::new(Element::Anchor, to, Written::Plainly)
    }
}

impl Page {
    fn new(title: impl Into<String>, content: Content) -> Page {
        Page {
            title: title.into(),
            content,
            links: Vec::new(),
            manner: Manner::Prompt,
            forbidden: false,
        }
    }

    /// A page of text and links.
    pub(super) fn html(title: impl Into<String>) -> Page {
        Page::styled(
            title,
            Html {
                paragraphs: 2,
                ..Html::default()
            },
        )
    }

    /// A page of text and links that differs from the ordinary one.
    pub(super) fn styled(title: impl Into<String>, html: Html) -> Page {
        Page::new(title, Content::Html(html))
    }

    /// A document that is no HTML and has no links.
    pub(super) fn file(title: &str, content_type: &'static str, bytes: impl Into<Vec<u8>>) -> Page {
        Page::new(
            title,
            Content::File {
                content_type,
                bytes: bytes.into(),
            },
        )
    }

    /// A redirect.
    pub(super) fn redirect(status: StatusCode, to: Address) -> Page {
        let title = format!("Moved to {}", to.path);
        let location = Link::new(Element::Location, to, Written::Plainly);
        Page::new(title, Content::Redirect(status)).link(location)
    }

    pub(super) fn link(mut self, link: impl Into<Link>) -> Page {
        self.links.push(link.into());
        self
    }

    pub(super) fn links<L: Into<Link>>(mut self, links: impl IntoIterator<Item = L>) -> Page {
        self.links.extend(links.into_iter().map(Into::into));
        self
    }

    pub(super) fn forbidden(mut self) -> Page {
        self.forbidden = true;
        self
    }

    pub(super) fn manner(mut self, manner: Manner) -> Page {
        self.manner = manner;
        self
    }

    /// The links that a polite visitor of this page follows.
    pub(super) fn followed(&self) -> impl Iterator<Item = &Link> {
        let nofollow = matches!(&self.content, Content::Html(html) if html.nofollow);
        self.links
            .iter()
            .filter(move |link| !nofollow && link.element.is_followed())
    }
}
