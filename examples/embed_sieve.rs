//! The sieve in a crawler of one's own: a site from one URL on, each URL once.
//!
//! `cargo run -p crawl-cli --example embed_sieve -- http://localhost:8080/`. It has no politeness: use it on a site of yours.

use scraper::{Html, Selector};
use sieve::{Hashing, Sieve};
use ureq::ResponseExt;
use url::Url;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = Url::parse(&std::env::args().nth(1).ok_or("which URL?")?)?;
    let anchors = Selector::parse("a[href]")?;
    // 1.3 MB; drops at most 1 % of a million new URLs, which no site can foresee
    let sieve = Sieve::builder().capacity(1_000_000).hashing(Hashing::random());
    let mut to_visit = sieve.build()?;
    to_visit.push(seed.to_string());
    while let Some(url) = to_visit.pop() {
        let answer = ureq::get(&url).call().and_then(|mut page| {
            let base = page.get_uri().to_string(); // after redirects
            Ok((base, page.body_mut().read_to_string()?))
        });
        let (base, html) = match answer {
            Ok((base, html)) => (Url::parse(&base)?, Html::parse_document(&html)),
            Err(error) => {
                eprintln!("{url}: {error}");
                continue;
            }
        };
        let links = html.select(&anchors).filter_map(|a| {
            let mut link = base.join(a.attr("href")?).ok()?;
            link.set_fragment(None);
            (link.host() == seed.host()).then(|| link.to_string())
        });
        println!("{url}: {} new links", to_visit.push_all(links));
    }
    println!("{}", to_visit.saturation());
    Ok(())
}
