//! The types of the demo's tables: hosts, addresses, pages and links.

use encoding_rs::{Encoding, UTF_8};
use hyper::StatusCode;

/// A host that the demo links to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Host {
    Www,
    Docs,
    Blog,
    /// Served, but its robots.txt forbids everything.
    Private,
    /// Another site, linked to but not served. The name is reserved and never resolves (RFC 2606 section 2).
    Elsewhere,
}

impl Host {
    const SERVED: [Host; 4] = [Host::Www, Host::Docs, Host::Blog, Host::Private];

    /// Returns the host as in URLs, without a port.
    pub(super) fn name(self) -> &'static str {
        match self {
            Host::Www => "www.demo.localhost",
            Host::Docs => "docs.demo.localhost",
            Host::Blog => "blog.demo.localhost",
            Host::Private => "private.demo.localhost",
            Host::Elsewhere => "elsewhere.example",
        }
    }

    /// Returns the served host of a `Host` header, with or without a port. `localhost` means the first host, for programs that do not
    /// resolve names below `localhost` to loopback (RFC 6761).
    pub(super) fn from_header(header: &str) -> Option<Host> {
        let name = header.split(':').next()?;
        if name.eq_ignore_ascii_case("localhost") {
            return Some(Host::Www);
        }
        Self::SERVED
            .into_iter()
            .find(|host| host.name().eq_ignore_ascii_case(name))
    }

    /// Returns an address on this host. The path may have a query and non-ASCII letters.
    pub(super) fn at(self, path: &str) -> Address {
        Address {
            host: self,
            path: percent_encoded(path),
        }
    }
}

/// Returns the address of the front page, the seed of a crawl.
pub(super) fn home() -> Address {
    Host::Www.at("/")
}

/// Percent-encodes a path (WHATWG URL, section 4.4). It supports only the characters in the tables.
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

/// The address of a page, which is its key in the tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Address {
    pub(super) host: Host,
    /// Path and query, as in a serialised URL.
    pub(super) path: String,
}

impl Address {
    /// Returns the number of occurrences of the most frequent segment of the path.
    pub(super) fn segment_repeats(&self) -> usize {
        let path = self.path.split('?').next().unwrap_or_default();
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let occurrences = |wanted: &&str| segments.iter().filter(|segment| *segment == wanted).count();
        segments.iter().map(occurrences).max().unwrap_or(0)
    }
}

/// A page in the tables: its content and its links.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) content: Content,
    pub(super) links: Vec<Link>,
    pub(super) behaviour: Behaviour,
    /// Whether the robots.txt of its host forbids it.
    pub(super) forbidden: bool,
}

/// The content of an answer.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Html(Html),
    /// Any other file.
    File {
        content_type: &'static str,
        bytes: Vec<u8>,
    },
    /// A redirect to the only link of the page.
    Redirect(StatusCode),
}

/// The properties of an HTML page, except its links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Html {
    /// What stands in the head besides the title. A `nofollow` there is for all links.
    pub(super) head: &'static str,
    pub(super) charset: &'static Encoding,
    pub(super) paragraphs: usize,
}

impl Html {
    /// Returns the usual properties, for a text of this length.
    pub(super) fn of(paragraphs: usize) -> Self {
        Self {
            head: "",
            charset: UTF_8,
            paragraphs,
        }
    }
}

/// How the server answers a request for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// At once.
    Prompt,
    /// After about a second.
    Slow,
    /// The first request gets 503 with `Retry-After: 0`, later ones get the page.
    UnavailableOnce,
}

/// One outgoing link.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) to: Address,
    pub(super) element: Element,
    pub(super) spelling: Spelling,
}

/// The element or header that has a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    pub(super) place: Place,
    /// Its text, with `{href}` and `{label}`.
    pub(super) markup: &'static str,
    /// Whether a polite crawler follows it.
    is_followed: bool,
}

/// The part of an answer that has a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The `Location` of a redirect.
    Header,
    Head,
    Body,
    /// Instead of a body.
    Frameset,
}

impl Element {
    pub(super) const ANCHOR: Self = Self::followed(Place::Body, "<li><a href=\"{href}\">{label}</a></li>");
    pub(super) const NEXT: Self = Self::followed(Place::Head, "<link rel=\"next\" href=\"{href}\">");
    const LOCATION: Self = Self::followed(Place::Header, "");

    pub(super) const fn followed(place: Place, markup: &'static str) -> Self {
        Self {
            place,
            markup,
            is_followed: true,
        }
    }

    pub(super) const fn ignored(markup: &'static str) -> Self {
        Self {
            place: Place::Body,
            markup,
            is_followed: false,
        }
    }
}

/// How the URL of a link is written.
#[derive(Clone, Debug)]
pub(super) enum Spelling {
    /// The path on the same host, the whole URL to another host.
    Plain,
    /// Like `Plain`, with this fragment.
    WithFragment(&'static str),
    /// `//host:port/path`.
    SchemeRelative,
    /// `HTTP://HOST:port/path`.
    UpperCase,
    /// This text. The table guarantees that it resolves to the target.
    Verbatim(String),
}

impl Link {
    pub(super) fn new(element: Element, to: Address, spelling: Spelling) -> Link {
        Link { to, element, spelling }
    }

    /// Returns an anchor with this text as its `href`.
    pub(super) fn spelt(to: Address, href: impl Into<String>) -> Link {
        Link::new(Element::ANCHOR, to, Spelling::Verbatim(href.into()))
    }
}

impl From<Address> for Link {
    fn from(to: Address) -> Link {
        Link::new(Element::ANCHOR, to, Spelling::Plain)
    }
}

impl Page {
    fn new(title: impl Into<String>, content: Content) -> Page {
        Page {
            title: title.into(),
            content,
            links: Vec::new(),
            behaviour: Behaviour::Prompt,
            forbidden: false,
        }
    }

    /// Makes a page of text and links.
    pub(super) fn html(title: impl Into<String>) -> Page {
        Page::styled(title, Html::of(2))
    }

    /// Makes a page of text and links with other properties than the usual ones.
    pub(super) fn styled(title: impl Into<String>, html: Html) -> Page {
        Page::new(title, Content::Html(html))
    }

    /// Makes a document that is not HTML and has no links.
    pub(super) fn file(title: &str, content_type: &'static str, bytes: impl Into<Vec<u8>>) -> Page {
        Page::new(
            title,
            Content::File {
                content_type,
                bytes: bytes.into(),
            },
        )
    }

    /// Makes a redirect.
    pub(super) fn redirect(status: StatusCode, to: Address) -> Page {
        let title = format!("Moved to {}", to.path);
        let location = Link::new(Element::LOCATION, to, Spelling::Plain);
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

    pub(super) fn behaviour(mut self, behaviour: Behaviour) -> Page {
        self.behaviour = behaviour;
        self
    }

    /// Returns the links that a polite crawler follows.
    pub(super) fn followed(&self) -> impl Iterator<Item = &Link> {
        let nofollow = matches!(&self.content, Content::Html(html) if html.head.contains("nofollow"));
        self.links
            .iter()
            .filter(move |link| !nofollow && link.element.is_followed)
    }
}
