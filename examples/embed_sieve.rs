//! The sieve in a crawler of one's own: a site from one URL on, each page once.
//!
//! `cargo run -p crawler-cli --example embed_sieve -- http://localhost:8080/`. It has no politeness: use it on a site of yours.

use scraper::{Html, Selector};
use sieve::Sieve;
use url::Url;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = Url::parse(&std::env::args().nth(1).ok_or("which URL?")?)?;
    let anchors = Selector::parse("a[href]")?;
    let mut to_visit = Sieve::new(1_000_000)?; // 1.2 MiB; at most 1 % of new URLs dropped by mistake
    to_visit.push(seed.to_string());
    while let Some(url) = to_visit.pop() {
        let answer = ureq::get(&url)
            .call()
            .and_then(|mut page| page.body_mut().read_to_string());
        let Ok(html) = answer.map(|html| Html::parse_document(&html)) else {
            continue;
        };
        let base = Url::parse(&url)?;
        let links = html.select(&anchors).filter_map(|a| {
            let mut link = base.join(a.attr("href")?).ok()?;
            link.set_fragment(None);
            (link.host() == seed.host()).then(|| link.to_string())
        });
        let new = to_visit.push_all(links);
        println!("{url}: {new} new links");
    }
    println!("{}", to_visit.saturation());
    Ok(())
}
