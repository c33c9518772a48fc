//! A text file with one URL per line.

use frontier::reference;

use super::{EntryCollector, Lists, NotASitemap, Sitemap, is_blank};

/// A longer line is not a URL.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// Reads all lines. A line that is not an absolute URL counts as invalid; empty lines are ignored.
pub(super) fn read(mut text: &str, is_whole: bool, mut found: EntryCollector) -> Result<Sitemap, NotASitemap> {
    if !is_whole {
        // The last line would be a different URL.
        text = text.rsplit_once(['\n', '\r']).map_or("", |(whole, _)| whole);
    }
    for line in text.split(['\n', '\r']).filter(|line| !line.chars().all(is_blank)) {
        let is_short = line.len() <= MAX_LINE_BYTES;
        let url = is_short.then(|| reference::resolve(None, line.trim_matches(is_blank), None).ok());
        found.push_url(url.flatten(), "", Lists::Pages);
    }
    if found.entries.is_empty() {
        return Err(NotASitemap::NoUrls);
    }
    Ok(found.into_sitemap(Lists::Pages, None))
}
