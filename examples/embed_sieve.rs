//! The sieve in a crawler of one's own: a site from one URL on, each URL once.
//!
//! `cargo run -p crawl-cli --example embed_sieve -- http://localhost:8080/`. It has no politeness: use it on a site of yours.

use scraper::{Html, Selector};
use sieve::{Hashing, Sieve};
use ureq::Agent;
use url::Url;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seed = std::env::args().nth(1).ok_or("which URL?")?;
    let client = Agent::new_with_config(Agent::config_builder().max_redirects(0).build());
    // 1.3 MB; drops at most 1 % of a million URLs; no site foresees which
    let sieve = Sieve::builder().capacity(1_000_000).hashing(Hashing::random());
    let mut to_visit = sieve.build()?;
    to_visit.push(Url::parse(&seed)?.to_string());
    while let Some(url) = to_visit.pop() {
        match links(&client, &url) {
            Ok(links) => println!("{url}: {} new links", to_visit.push_all(links)),
            Err(error) => eprintln!("{url}: {error}"),
        }
    }
    println!("{}", to_visit.saturation());
    Ok(())
}

/// Also a redirect's target.
fn links(client: &Agent, url: &str) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut page = client.get(url).call()?;
    let html = Html::parse_document(&page.body_mut().read_to_string()?);
    let (base, anchors) = (Url::parse(url)?, Selector::parse("a[href]")?);
    let target = page.headers().get("location").and_then(|to| to.to_str().ok());
    let hrefs = html.select(&anchors).flat_map(|a| a.attr("href")).chain(target);
    let on_site = hrefs.filter_map(|href| {
        let mut link = base.join(href).ok()?;
        link.set_fragment(None);
        (link.host() == base.host()).then(|| link.to_string())
    });
    Ok(on_site.collect())
}
