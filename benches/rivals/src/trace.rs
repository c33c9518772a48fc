//! The links of real pages in page order: documentation that is installed on this machine.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use url::Url;

use crate::chunk::Chunk;

/// Where Debian's packages of these names put their pages.
const PLACES: [&str; 2] = [
    "/usr/share/doc/python3.11/html",
    "/usr/share/doc/postgresql-doc-15/html",
];

/// Links page by page, and how many of them are distinct.
pub(crate) struct Trace {
    pub(crate) chunk: Chunk,
    pub(crate) distinct: u64,
}

/// Reads all pages that are there; `None` when there are none.
pub(crate) fn read(pages_at_most: usize) -> Option<Trace> {
    let mut chunk = Chunk::default();
    for place in PLACES {
        let mut pages = Vec::new();
        collect(Path::new(place), &mut pages);
        pages.sort();
        for page in pages.iter().take(pages_at_most) {
            let base = page.strip_prefix("/usr/share/doc").ok().and_then(Path::to_str);
            let base = base.and_then(|path| Url::parse(&format!("https://docs.example/{path}")).ok());
            if let (Some(base), Ok(html)) = (base, fs::read(page)) {
                add_links(&mut chunk, &base, &String::from_utf8_lossy(&html));
            }
        }
    }
    let distinct = chunk.links().collect::<HashSet<_>>().len() as u64;
    (distinct > 0).then_some(Trace { chunk, distinct })
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.push(path);
        }
    }
}

/// Finds what stands in `href="…"`: enough for pages written by a generator.
fn add_links(chunk: &mut Chunk, base: &Url, html: &str) {
    for rest in html.split("href=\"").skip(1) {
        let Some((reference, _)) = rest.split_once('"') else {
            break;
        };
        let Ok(mut url) = base.join(&reference.replace("&amp;", "&")) else {
            continue;
        };
        url.set_fragment(None);
        if matches!(url.scheme(), "http" | "https") {
            chunk.add(|text| text.push_str(url.as_str()));
        }
    }
    chunk.end_page();
}
