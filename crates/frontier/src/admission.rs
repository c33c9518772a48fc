//! From a link to an entry, or to the reason why not.

use crate::entry::{Entry, Metadata, Purpose};
use crate::link::Link;
use crate::scope::{Refusal, Scope};
use crate::time::Time;

/// Judges a link by the scope and makes the entry that will be queued for it.
///
/// A caller with rules of its own makes its entries itself and goes round this room.
///
/// # Errors
///
/// The first rule of the scope that refuses the link.
pub fn admit(link: &Link, scope: &Scope) -> Result<Entry, Refusal> {
    scope.judge(link)?;
    Ok(entry(link))
}

/// Makes the entry of a link that the scope has judged before.
pub(crate) fn entry(link: &Link) -> Entry {
    let url: Box<str> = link.url.url().as_str().into();
    let key = link.url.key();
    Entry {
        queue: link.url.host(),
        key: (*key != *url).then(|| key.into()),
        url,
        due: Time::EPOCH,
        depth: link.depth,
        hops: link.hops,
        attempts: 0,
        put_off: 0,
        purpose: link.sitemap_of.clone().map_or(Purpose::Page, Purpose::Sitemap),
        metadata: Metadata {
            referrer: link.referrer.clone(),
            redirected_from: link.redirected_from.clone(),
            seed: link.seed,
            embedded: link.embedded,
            lastmod: link.lastmod,
            earlier: link.earlier.clone(),
        },
    }
}
