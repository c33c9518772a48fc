//! The visible text of a page, in runs between tags, read in the pass that finds the links.

/// Receives the visible text of a page, in order and as written. The default has read nothing.
///
/// Visible is what a browser without scripts and style sheets shows, and the title: no scripts, style sheets and comments, no content
/// of `iframe`, `noembed` and `noframes`. The content of templates counts.
pub(crate) trait ReadText: Default {
    /// Receives text without a tag or comment inside, in UTF-8.
    fn read(&mut self, text: &[u8]);
}

/// Reads nothing.
impl ReadText for () {
    #[inline]
    fn read(&mut self, _: &[u8]) {}
}

#[cfg(test)]
mod tests {
    use encoding_rs::UTF_8;
    use url::Url;

    use super::super::{LinkOptions, extract_with};
    use super::*;

    /// Keeps the runs of text that are not blank.
    #[derive(Default)]
    struct Kept(Vec<String>);

    impl ReadText for Kept {
        fn read(&mut self, text: &[u8]) {
            let text = std::str::from_utf8(text).unwrap();
            if !text.trim().is_empty() {
                self.0.push(text.trim().to_owned());
            }
        }
    }

    #[test]
    fn visible_is_what_a_browser_shows_and_the_title() {
        let url = Url::parse("http://a.example/").unwrap();
        for (html, expected) in [
            (
                "<title>a &amp; b</title><p>c<b>d</b> 1 < 2",
                &["a &amp; b", "c", "d", "1 < 2"][..],
            ),
            ("a<!-- b > c -->d<?e?>f<!g>h", &["a", "d", "f", "h"]),
            (
                "a<script>if (b</c>) '<p>d'</script>e<style>f > g</style>h",
                &["a", "e", "h"],
            ),
            (
                "a<svg><style>b</style><text>c</text><script>d</script>e</svg>f",
                &["a", "c", "e", "f"],
            ),
            (
                "a<iframe><p>b</iframe>c<noembed>d</noembed>e<noscript>f</noscript>",
                &["a", "c", "e", "f"],
            ),
            (
                "<textarea><p>a</textarea><xmp><b></xmp><plaintext>c</plaintext>",
                &["<p>a", "<b>", "c</plaintext>"],
            ),
            ("<p title='a > b'>c</p title='d > e'>f", &["c", "f"]),
            ("<svg><![CDATA[a > <b>]]></svg><![CDATA[c > d", &["a > <b>", "d"]),
            ("a<script>never closed", &["a"]),
            ("<a href=x>a</a>b<base href=/late/>c", &["a", "b", "c"]),
        ] {
            let mut kept = Kept::default();
            extract_with(html, UTF_8, &url, &LinkOptions::default(), &mut kept);
            assert_eq!(kept.0, expected, "{html}");
        }
    }
}
