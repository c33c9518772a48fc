//! The ordinary part of the demo: a catalogue, a handbook, a journal, a wiki and some files.

use super::page::{Hosts, Page, at, without_scheme};

/// The directories of the catalogue.
#[rustfmt::skip]
const SHELVES: [&str; 8] = ["lamps", "chairs", "clocks", "kettles", "radios", "bicycles", "telescopes", "accordions"];
const MAKES: [&str; 12] = [
    "aurora", "basalt", "cirrus", "delta", "ember", "fjord", "garnet", "harbour", "indigo", "juniper", "kestrel",
    "lagoon",
];
/// The number of makes on the first of the two pages of a shelf.
const MAKES_ON_FIRST_PAGE: usize = 7;
/// One of this many makes has reviews.
const REVIEWED_EVERY: usize = 3;
/// The number of shelves with a broken link.
const BROKEN_LINKS: usize = 5;

const CHAPTERS: [&str; 6] = ["install", "use", "clean", "repair", "store", "recycle"];
const SECTIONS: usize = 8;

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

pub(super) fn pages(hosts: &Hosts) -> Vec<Page> {
    let front = Page::html(hosts.www.clone(), "The demo site")
        .links(["catalog", without_scheme(&hosts.docs)])
        .links(["/wiki/", "/files/", "/lab/", "/index-of-everything"])
        .links([hosts.blog.as_str(), hosts.private.as_str()])
        .links(["http://elsewhere.example/", "#top"]);
    let mut pages = vec![front];
    add_catalogue(&mut pages, hosts);
    add_handbook(&mut pages, hosts);
    add_journal(&mut pages, hosts);
    add_wiki(&mut pages, hosts);
    add_files(&mut pages, hosts);
    pages
}

fn add_catalogue(pages: &mut Vec<Page>, Hosts { www, .. }: &Hosts) {
    let broken = SHELVES.iter().take(BROKEN_LINKS);
    let catalogue = Page::html(at(www, "/catalog/"), "Catalogue")
        .links(SHELVES.map(|shelf| format!("./{shelf}/")))
        .links(broken.map(|shelf| format!("{shelf}/discontinued.html")));
    pages.push(catalogue);
    for (index, shelf) in SHELVES.iter().enumerate() {
        let page = |file: &str, title: String| Page::html(at(www, &format!("/catalog/{shelf}/{file}")), title);
        let file = |place: usize| format!("{}.html", MAKES[place % MAKES.len()]);
        let first = page("", format!("All our {shelf}")).links((0..MAKES_ON_FIRST_PAGE).map(file));
        let second = page("?page=2", format!("More {shelf}")).links((MAKES_ON_FIRST_PAGE..MAKES.len()).map(file));
        pages.extend([first.link("?page=2"), second.link("./")]);
        let neighbour = SHELVES[(index + 1) % SHELVES.len()];
        for (place, make) in MAKES.iter().enumerate() {
            let next = file(place + 1);
            let product = page(&file(place), format!("The {make} among our {shelf}"))
                .links(["./", "../", &next, &next])
                .links([format!("{next}#details"), format!("../{neighbour}/{next}")]);
            let reviews = format!("reviews?make={make}&stars=5");
            if place % REVIEWED_EVERY == 0 {
                pages.push(page(&reviews, format!("Reviews of the {make}")).link("./"));
                pages.push(product.link(&reviews));
            } else {
                pages.push(product);
            }
        }
    }
}

/// Adds the documentation host. Each of its pages has a `<base href>` that differs from its own address.
fn add_handbook(pages: &mut Vec<Page>, Hosts { docs, .. }: &Hosts) {
    let page = |path: &str, title: String| Page::html(at(docs, path), title).based("/handbook/");
    let front = page("/", "Handbook".to_owned());
    pages.push(front.links(CHAPTERS.map(|chapter| format!("{chapter}/"))));
    for chapter in CHAPTERS {
        let file = |section: usize| format!("{chapter}/{section}.html");
        let contents = page(&format!("/handbook/{chapter}/"), format!("How to {chapter} things"));
        pages.push(contents.links((1..=SECTIONS).map(file)));
        pages.extend((1..=SECTIONS).map(|section| {
            let text = page(
                &format!("/handbook/{}", file(section)),
                format!("How to {chapter} things: {section}"),
            );
            text.links([file(section % SECTIONS + 1), format!("{chapter}/")])
        }));
    }
}

/// Adds the blog host: front pages with `<link rel="next">` between them, posts, tags, and drafts that robots.txt forbids.
fn add_journal(pages: &mut Vec<Page>, Hosts { www, blog, .. }: &Hosts) {
    let path = |(month, mood): (usize, &str), subject: &str| format!("/2025/{:02}/{mood}-{subject}/", month + 1);
    let posts = MOODS
        .into_iter()
        .enumerate()
        .flat_map(|mood| SUBJECTS.map(|subject| path(mood, subject)));
    let posts: Vec<String> = posts.collect();
    let fronts = posts.len().div_ceil(POSTS_PER_PAGE);
    for (number, shown) in (1..).zip(posts.chunks(POSTS_PER_PAGE)) {
        let address = if number == 1 {
            blog.clone()
        } else {
            at(blog, &format!("/?page={number}"))
        };
        let mut page = Page::html(address, format!("Journal, page {number}"));
        if number < fronts {
            let next = format!("/?page={}", number + 1);
            page.head = format!("<link rel=\"next\" href=\"{next}\">");
            page = page.follow(&next);
        }
        pages.push(page.links(shown).link("/drafts/unfinished"));
    }
    for subject in SUBJECTS {
        let of_subject = posts.iter().filter(|post| post.ends_with(&format!("-{subject}/")));
        let tag = format!("/tags/{subject}/");
        pages.push(Page::html(at(blog, &tag), format!("About {subject}")).links(of_subject.clone()));
        let clock = at(www, "/catalog/clocks/aurora.html");
        pages
            .extend(of_subject.map(|post| Page::html(at(blog, post), post).links([&tag, clock.as_str(), "../../../"])));
    }
    let draft = Page::html(at(blog, "/drafts/unfinished"), "A draft that is not for crawlers");
    pages.push(draft.forbidden());
}

/// Adds articles with names in many scripts. The link to every second one is not percent-encoded.
fn add_wiki(pages: &mut Vec<Page>, Hosts { www, .. }: &Hosts) {
    let contents = at(www, "/wiki/");
    let links = ARTICLES.split(' ').enumerate().map(|(place, name)| match place % 2 {
        0 => name.to_owned(),
        _ => at(&contents, name).path().to_owned(),
    });
    pages.push(Page::html(contents.clone(), "Wiki").links(links));
    let articles = ARTICLES.split(' ');
    pages.extend(articles.map(|name| Page::html(at(&contents, name), format!("Article: {name}")).link("/wiki/")));
}

fn add_files(pages: &mut Vec<Page>, Hosts { www, .. }: &Hosts) {
    let files = [
        ("pixel.png", "image/png", PNG),
        ("notes.txt", "text/plain; charset=utf-8", NOTES.as_bytes()),
        ("empty.pdf", "application/pdf", PDF),
        ("empty.zip", "application/zip", ZIP),
    ];
    let contents = at(www, "/files/");
    pages.extend(files.map(|(name, kind, bytes)| Page::file(at(&contents, name), kind, bytes)));
    pages.push(Page::html(contents, "Files").links(files.map(|(name, ..)| name)));
}
