//! The ordinary part of the demo: a catalogue, a handbook, a journal, a wiki and some files.

use super::page::{Address, Element, Host, Html, Link, Page, Spelling, home};

/// Directory and noun of each category of the catalogue.
const CATEGORIES: [(&str, &str); 8] = [
    ("lamps", "lamp"),
    ("chairs", "chair"),
    ("clocks", "clock"),
    ("kettles", "kettle"),
    ("radios", "radio"),
    ("bicycles", "bicycle"),
    ("telescopes", "telescope"),
    ("accordions", "accordion"),
];
const MAKES: [&str; 12] = [
    "aurora", "basalt", "cirrus", "delta", "ember", "fjord", "garnet", "harbour", "indigo", "juniper", "kestrel",
    "lagoon",
];
/// The number of makes on the first of a category's two pages.
const MAKES_ON_FIRST_PAGE: usize = 7;
/// One of this many makes has reviews.
const REVIEWED_EVERY: usize = 3;
/// The number of categories with a broken link.
const BROKEN_LINKS: usize = 5;

const CHAPTERS: [(&str, &str); 6] = [
    ("install", "Installing"),
    ("use", "Using"),
    ("clean", "Cleaning"),
    ("repair", "Repairing"),
    ("store", "Storing"),
    ("recycle", "Recycling"),
];
const SECTIONS: [&str; 8] = [
    "overview",
    "tools",
    "preparation",
    "first steps",
    "common mistakes",
    "safety",
    "seasons",
    "questions",
];
/// The base of the links in the handbook. It differs from the directory of the pages.
const HANDBOOK_BASE: &str = "/handbook/";

const MOODS: [&str; 6] = ["quiet", "bright", "patient", "stubborn", "borrowed", "northern"];
const SUBJECTS: [&str; 6] = ["rivers", "machines", "letters", "gardens", "bridges", "winters"];
const POSTS_PER_PAGE: usize = 9;

/// The names of wiki articles in paths. Some are percent-encoded already.
const ARTICLES: &str = "日本語 Čeština Ελληνικά العربية हिन्दी Русский 한국어 עברית Türkçe Ñandú Łódź ไทย Zürich 🦉 \
    C%2B%2B New%20York";

/// One grey pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\
    \0\0\0\nIDATx\xdach\0\0\0\x82\0\x81\xdaE\x08;\0\0\0\0IEND\xaeB`\x82";
const PDF: &[u8] = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
    2 0 obj<</Type/Pages/Count 0/Kids[]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n";
/// An archive without files, which has only the end-of-directory record.
const ZIP: &[u8] = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
const NOTES: &str = "Notes of the demo.\nhttp://www.demo.localhost/only-mentioned is text here, not a link.\n";

type Row = (Address, Page);

/// Returns all ordinary pages.
pub(super) fn pages() -> Vec<Row> {
    let mut rows = vec![front_page(), catalogue()];
    for (index, _) in CATEGORIES.iter().enumerate() {
        rows.extend(category(index));
    }
    rows.extend(handbook());
    rows.extend(journal());
    rows.extend(wiki());
    rows.extend(files());
    rows
}

fn front_page() -> Row {
    let nearby = ["/wiki/", "/files/", "/lab/", "/index-of-everything"].map(|path| Host::Www.at(path));
    let abroad = [Host::Blog, Host::Private, Host::Elsewhere].map(|host| host.at("/"));
    let handbook = Link::new(Element::ANCHOR, Host::Docs.at("/"), Spelling::SchemeRelative);
    let page = Page::html("The demo site")
        .link(Link::spelt(Host::Www.at("/catalog"), "catalog"))
        .link(handbook)
        .links(nearby)
        .links(abroad)
        .link(Link::spelt(home(), "#top"));
    (home(), page)
}

fn catalogue() -> Row {
    let categories = CATEGORIES.map(|(plural, _)| Link::spelt(shelf(plural, ""), format!("./{plural}/")));
    let broken = CATEGORIES
        .iter()
        .take(BROKEN_LINKS)
        .map(|(plural, _)| shelf(plural, "discontinued.html"));
    (
        Host::Www.at("/catalog/"),
        Page::html("Catalogue").links(categories).links(broken),
    )
}

fn shelf(plural: &str, file: &str) -> Address {
    Host::Www.at(&format!("/catalog/{plural}/{file}"))
}

fn reviews(plural: &str, make: &str) -> Address {
    shelf(plural, &format!("reviews?make={make}&stars=5"))
}

/// Returns the two pages of a category, its products and their reviews.
fn category(index: usize) -> Vec<Row> {
    let (plural, noun) = CATEGORIES[index];
    let (neighbour, _) = CATEGORIES[(index + 1) % CATEGORIES.len()];
    let (first, second) = MAKES.split_at(MAKES_ON_FIRST_PAGE);
    let products = |makes: &[&str]| -> Vec<Link> {
        makes
            .iter()
            .map(|make| file_beside(plural, &format!("{make}.html")))
            .collect()
    };
    let next = Link::spelt(shelf(plural, "?page=2"), "?page=2");
    let back = Link::spelt(shelf(plural, ""), "./");

    let mut rows = vec![
        (
            shelf(plural, ""),
            Page::html(format!("All our {plural}"))
                .links(products(first))
                .link(next),
        ),
        (
            shelf(plural, "?page=2"),
            Page::html(format!("More {plural}"))
                .links(products(second))
                .link(back.clone()),
        ),
    ];
    for (place, make) in MAKES.iter().enumerate() {
        let next_make = format!("{}.html", MAKES[(place + 1) % MAKES.len()]);
        let page = Page::html(format!("The {make} {noun}"))
            .link(back.clone())
            .link(Link::spelt(Host::Www.at("/catalog/"), "../"))
            .links([file_beside(plural, &next_make), file_beside(plural, &next_make)])
            .link(Link::spelt(shelf(plural, &next_make), format!("{next_make}#details")))
            .link(Link::spelt(
                shelf(neighbour, &next_make),
                format!("../{neighbour}/{next_make}"),
            ));
        let reviewed = place % REVIEWED_EVERY == 0;
        rows.push((
            shelf(plural, &format!("{make}.html")),
            page.links(reviewed.then(|| reviews(plural, make))),
        ));
        if reviewed {
            let review = Page::html(format!("Reviews of the {make} {noun}")).link(back.clone());
            rows.push((reviews(plural, make), review));
        }
    }
    rows
}

fn file_beside(plural: &str, file: &str) -> Link {
    Link::spelt(shelf(plural, file), file)
}

/// Returns the documentation host. Each of its pages has a `<base href>` that differs from its own address.
fn handbook() -> Vec<Row> {
    let html = Html {
        head: "<base href=\"/handbook/\">",
        ..Html::of(4)
    };
    let page = |title: String| Page::styled(title, html);
    let link = |path: String| Link::spelt(Host::Docs.at(&format!("{HANDBOOK_BASE}{path}")), path);

    let front = page("Handbook".to_owned()).links(CHAPTERS.map(|(chapter, _)| link(format!("{chapter}/"))));
    let mut rows = vec![(Host::Docs.at("/"), front)];
    for (chapter, doing) in CHAPTERS {
        let sections = (1..=SECTIONS.len()).map(|number| link(format!("{chapter}/{number}.html")));
        let contents = page(format!("{doing} things")).links(sections);
        rows.push((Host::Docs.at(&format!("{HANDBOOK_BASE}{chapter}/")), contents));
        for (place, section) in SECTIONS.iter().enumerate() {
            let next = (place + 1) % SECTIONS.len() + 1;
            let text = page(format!("{doing} things: {section}"))
                .link(link(format!("{chapter}/{next}.html")))
                .link(link(format!("{chapter}/")));
            rows.push((
                Host::Docs.at(&format!("{HANDBOOK_BASE}{chapter}/{}.html", place + 1)),
                text,
            ));
        }
    }
    rows
}

/// Returns the address, the title and the subject of every post, the oldest first.
fn posts() -> Vec<(Address, String, &'static str)> {
    let post = |month: usize, mood: &str, subject: &'static str| {
        let path = format!("/2025/{:02}/{mood}-{subject}/", month + 1);
        (Host::Blog.at(&path), format!("On {mood} {subject}"), subject)
    };
    let of_month = |(month, mood)| SUBJECTS.map(|subject| post(month, mood, subject));
    MOODS.into_iter().enumerate().flat_map(of_month).collect()
}

/// Returns the blog host: front pages with `<link rel="next">` between them, posts, tags, and drafts that robots.txt forbids.
fn journal() -> Vec<Row> {
    let posts = posts();
    let front = |number: usize| {
        Host::Blog.at(&if number == 1 {
            "/".to_owned()
        } else {
            format!("/?page={number}")
        })
    };
    let tag = |subject: &str| Host::Blog.at(&format!("/tags/{subject}/"));
    let fronts = posts.len().div_ceil(POSTS_PER_PAGE);

    let mut rows = Vec::new();
    for (number, shown) in (1..).zip(posts.chunks(POSTS_PER_PAGE)) {
        let next = (number < fronts).then(|| Link::new(Element::NEXT, front(number + 1), Spelling::Plain));
        let page = Page::html(format!("Journal, page {number}")).links(next);
        rows.push((
            front(number),
            page.links(shown.iter().map(|(post, ..)| post.clone())).link(draft()),
        ));
    }
    for subject in SUBJECTS {
        let tagged = posts.iter().filter(|(_, _, about)| *about == subject);
        rows.push((
            tag(subject),
            Page::html(format!("About {subject}")).links(tagged.map(|(post, ..)| post.clone())),
        ));
    }
    for (post, title, subject) in &posts {
        let page = Page::html(title)
            .link(tag(subject))
            .link(shelf("clocks", "aurora.html"));
        rows.push((post.clone(), page.link(Link::spelt(front(1), "../../../"))));
    }
    rows.push((draft(), Page::html("A draft that is not for crawlers").forbidden()));
    rows
}

fn draft() -> Address {
    Host::Blog.at("/drafts/unfinished")
}

/// Returns articles with names in many scripts. The link to every second one is not percent-encoded.
fn wiki() -> Vec<Row> {
    let contents = Host::Www.at("/wiki/");
    let article = |name: &str| Host::Www.at(&format!("/wiki/{name}"));
    let link = |(place, name)| match place % 2 {
        0 => Link::spelt(article(name), name),
        _ => article(name).into(),
    };
    let links = ARTICLES.split(' ').enumerate().map(link);
    let mut rows = vec![(contents.clone(), Page::html("Wiki").links(links))];
    for name in ARTICLES.split(' ') {
        let page = Page::html(format!("Article: {name}")).link(contents.clone());
        rows.push((article(name), page));
    }
    rows
}

fn files() -> Vec<Row> {
    let files = [
        ("pixel.png", "image/png", PNG),
        ("notes.txt", "text/plain; charset=utf-8", NOTES.as_bytes()),
        ("empty.pdf", "application/pdf", PDF),
        ("empty.zip", "application/zip", ZIP),
    ];
    let place = |name: &str| Host::Www.at(&format!("/files/{name}"));
    let contents = Page::html("Files").links(files.map(|(name, ..)| place(name)));
    let mut rows = vec![(place(""), contents)];
    rows.extend(files.map(|(name, kind, bytes)| (place(name), Page::file(name, kind, bytes))));
    rows
}
