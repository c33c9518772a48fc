//! Style sheets to what they load: CSS Syntax Module Level 3, by cssparser.

use cssparser::{CowRcStr, Parser, Token};

use super::LinkSource;

/// How many blocks within blocks are looked into; what lies deeper is passed over. Nobody nests rules like that, and every
/// level takes room on the stack.
const DEPTH_LIMIT: usize = 32;

/// What the tokens are part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    /// An `@import` up to its semicolon.
    Import,
    /// An `@namespace` up to its semicolon: it has a URL that nobody loads.
    Namespace,
    /// The parentheses of `url(`.
    Url,
    /// Those of `image-set(`, where a string is a URL.
    ImageSet,
}

/// Finds the URLs that a style sheet, or the declarations of a `style` attribute, load: as they are written, in their order.
///
/// Which rules apply is not asked: a medium, a condition or a selector that matches nothing is all the same. Never fails,
/// and takes time linear in the length.
pub(super) fn each_url(css: &str, mut take: impl FnMut(&str, LinkSource)) {
    walk(&mut Parser::new(css), Within::Nothing, DEPTH_LIMIT, &mut take);
}

fn walk(parser: &mut Parser<'_>, outer: Within, depth: usize, take: &mut dyn FnMut(&str, LinkSource)) {
    let mut within = outer;
    while let Ok(token) = parser.next() {
        let inner = match token {
            Token::UnquotedUrl(url) => {
                loaded(url, within, take);
                continue;
            }
            Token::QuotedString(url) => {
                if within != Within::Nothing {
                    loaded(url, within, take);
                }
                // What follows are layers, conditions and media.
                if within == Within::Import {
                    within = Within::Nothing;
                }
                continue;
            }
            Token::AtKeyword(name) => {
                within = at_rule(name);
                continue;
            }
            Token::Semicolon => {
                within = outer;
                continue;
            }
            Token::Function(name) => match function(name) {
                Within::Url if within == Within::Namespace => Within::Namespace,
                Within::Url if within == Within::Import => Within::Import,
                function => function,
            },
            Token::CurlyBracketBlock => {
                within = outer;
                Within::Nothing
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock => Within::Nothing,
            _ => continue,
        };
        if depth > 0 {
            // A block that is broken ends where its parser says.
            let _ = parser.parse_nested_block(|nested| {
                walk(nested, inner, depth - 1, take);
                Ok::<_, cssparser::ParseError<()>>(())
            });
        }
    }
}

fn at_rule(name: &CowRcStr<'_>) -> Within {
    if name.eq_ignore_ascii_case("import") {
        Within::Import
    } else if name.eq_ignore_ascii_case("namespace") {
        Within::Namespace
    } else {
        Within::Nothing
    }
}

fn function(name: &CowRcStr<'_>) -> Within {
    if name.eq_ignore_ascii_case("url") || name.eq_ignore_ascii_case("src") {
        Within::Url
    } else if name.eq_ignore_ascii_case("image-set") || name.eq_ignore_ascii_case("-webkit-image-set") {
        Within::ImageSet
    } else {
        Within::Nothing
    }
}

fn loaded(url: &str, within: Within, take: &mut dyn FnMut(&str, LinkSource)) {
    // One that is empty, or a part of this document, loads nothing.
    if url.trim_ascii().is_empty() || url.starts_with('#') {
        return;
    }
    match within {
        Within::Namespace => {}
        Within::Import => take(url, LinkSource::StyleSheet),
        Within::Nothing | Within::Url | Within::ImageSet => take(url, LinkSource::Style),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(css: &str) -> Vec<String> {
        let mut urls = Vec::new();
        each_url(css, |url, source| urls.push(format!("{} {url}", source.name())));
        urls
    }

    #[test]
    fn what_a_style_sheet_loads_is_found() {
        for (css, expected) in [
            ("@import 'a.css';", &["style_sheet a.css"][..]),
            (
                "@import url(a.css) screen;@IMPORT \"b\";",
                &["style_sheet a.css", "style_sheet b"],
            ),
            (
                "@import url('a.css') layer(\"x\") supports(display: grid);",
                &["style_sheet a.css"],
            ),
            (
                "@namespace svg url(http://www.w3.org/2000/svg);@namespace 'x';a{b:url(c)}",
                &["style c"],
            ),
            (
                "a{background:url( 'x.png' ) , URL(y.png)}",
                &["style x.png", "style y.png"],
            ),
            ("background-image:url(x\\29 .png)", &["style x).png"]),
            ("a{b:url(\"c d\")}", &["style c d"]),
            ("a{b:url(c d)}e{f:url(g)}", &["style g"]),
            (
                "@font-face{src:local('n'),url(n.woff2) format('woff2')}",
                &["style n.woff2"],
            ),
            ("@media print{@supports (a:b){i{j:url(k)}}}", &["style k"]),
            (
                "a{b:image-set('c' 1x, url(d) 2x type('image/png'))}",
                &["style c", "style d"],
            ),
            ("/* url(x) */ a{content:'url(y)'}", &[]),
            ("a{b:url(#c);d:url('');e:url()}", &[]),
            ("a{b:url(c", &["style c"]),
            ("@import 'a", &["style_sheet a"]),
            ("@import\n'a' screen and (min-width: 1px), 'b';", &["style_sheet a"]),
            ("}}]) a{b:url(c)}", &["style c"]),
            ("@charset 'x';<!-- a{b:url(c)} -->", &["style c"]),
        ] {
            assert_eq!(urls(css), expected, "{css}");
        }
    }

    #[test]
    fn deep_and_broken_sheets_come_to_an_end() {
        for piece in [
            "{",
            "(",
            "[",
            "url(",
            "a(",
            "@import ",
            "'",
            "/*",
            "\\",
            "}",
            "image-set(",
        ] {
            let css = piece.repeat(1_000_000 / piece.len());
            assert!(
                urls(&format!("a{{b:url(c)}}{css}")).starts_with(&["style c".to_owned()]),
                "{piece}"
            );
        }
    }
}
