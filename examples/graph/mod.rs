//! The pages of a manual with their links to each other, for an example to walk instead of the web.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::input;

pub(crate) type Graph = BTreeMap<String, Vec<String>>;

/// Reads the pages of a folder; links that lead out of it, or nowhere, are left out.
pub(crate) fn of_folder(folder: &Path) -> Result<Graph, Box<dyn std::error::Error>> {
    let mut graph = Graph::new();
    for path in input::pages(folder)? {
        let html = input::read(&path)?;
        let page = path.strip_prefix(folder)?.to_string_lossy().into_owned();
        let links = input::between(&html, "href=\"", "\"").filter_map(|link| resolve(&page, link));
        graph.insert(page.clone(), links.collect());
    }
    let pages: BTreeSet<String> = graph.keys().cloned().collect();
    for links in graph.values_mut() {
        links.retain(|link| pages.contains(link));
    }
    Ok(graph)
}

/// Follows a relative link; a crawler needs a real URL parser.
fn resolve(page: &str, link: &str) -> Option<String> {
    let path = link.split(['#', '?']).next().filter(|path| !path.is_empty())?;
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Stands for a manual where none is installed: page n links to 2n, 2n + 1 and n / 2.
pub(crate) fn generated(pages: u32) -> Graph {
    let links = |n: u32| {
        [2 * n, 2 * n + 1, n / 2]
            .into_iter()
            .filter(move |to| (1..=pages).contains(to))
    };
    let page = |n: u32| (n.to_string(), links(n).map(|to| to.to_string()).collect());
    (1..=pages).map(page).collect()
}
