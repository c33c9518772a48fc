//! From a style sheet to what it loads: CSS Syntax Module Level 3, parsed by cssparser.

use cssparser::{CowRcStr, Parser, Token};

use super::LinkSource;

/// Maximum depth of nested blocks; deeper ones are skipped. Real sheets stay far below, and every level takes stack
/// space.
const DEPTH_LIMIT: usize = 32;

/// The construct that the tokens are part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Construct {
    Nothing,
    /// An `@import`, up to its semicolon.
    Import,
    /// An `@namespace`, up to its semicolon. Its URL is a name that nobody loads.
    Namespace,
    /// The parentheses of `url(` or `image-set(`, where a string is a URL.
    Url,
}

/// Calls `take` with each URL that a style sheet or a `style` attribute loads, as written and in order.
///
/// Media queries, conditions and selectors are ignored, so URLs of rules that do not apply are included. Never fails.
/// Time is linear in the length.
pub(super) fn each_url(css: &str, mut take: impl FnMut(&str, LinkSource)) {
    walk(&mut Parser::new(css), Construct::Nothing, DEPTH_LIMIT, &mut take);
}

fn walk(parser: &mut Parser<'_>, outer: Construct, depth: usize, take: &mut dyn FnMut(&str, LinkSource)) {
    let mut construct = outer;
    while let Ok(token) = parser.next() {
        let inner = match token {
            Token::UnquotedUrl(url) => {
                loaded(url, construct, take);
                continue;
            }
            Token::QuotedString(url) => {
                if construct != Construct::Nothing {
                    loaded(url, construct, take);
                }
                // Layers, conditions and media queries follow.
                if construct == Construct::Import {
                    construct = Construct::Nothing;
                }
                continue;
            }
            Token::AtKeyword(name) => {
                construct = at_rule(name);
                continue;
            }
            Token::Semicolon => {
                construct = outer;
                continue;
            }
            Token::Function(name) => match function(name) {
                Construct::Url if construct == Construct::Namespace => Construct::Namespace,
                Construct::Url if construct == Construct::Import => Construct::Import,
                function => function,
            },
            Token::CurlyBracketBlock => {
                construct = outer;
                Construct::Nothing
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock => Construct::Nothing,
            _ => continue,
        };
        if depth > 0 {
            // The parser ends a broken block itself.
            let _ = parser.parse_nested_block(|nested| {
                walk(nested, inner, depth - 1, take);
                Ok::<_, cssparser::ParseError<()>>(())
            });
        }
    }
}

fn at_rule(name: &CowRcStr<'_>) -> Construct {
    if name.eq_ignore_ascii_case("import") {
        Construct::Import
    } else if name.eq_ignore_ascii_case("namespace") {
        Construct::Namespace
    } else {
        Construct::Nothing
    }
}

fn function(name: &CowRcStr<'_>) -> Construct {
    let has_url = ["url", "src", "image-set", "-webkit-image-set"];
    match has_url.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        true => Construct::Url,
        false => Construct::Nothing,
    }
}

fn loaded(url: &str, construct: Construct, take: &mut dyn FnMut(&str, LinkSource)) {
    // An empty URL or a fragment loads nothing.
    if url.trim_ascii().is_empty() || url.starts_with('#') {
        return;
    }
    match construct {
        Construct::Namespace => {}
        Construct::Import => take(url, LinkSource::StyleSheet),
        Construct::Nothing | Construct::Url => take(url, LinkSource::Style),
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
    fn all_urls_that_a_style_sheet_loads_are_found() {
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
    fn deep_and_broken_sheets_are_parsed_to_their_end() {
        for piece in "{ ( [ url( a( @import ' /* \\ } image-set(".split(' ') {
            let css = piece.repeat(1_000_000 / piece.len());
            assert!(
                urls(&format!("a{{b:url(c)}}{css}")).starts_with(&["style c".to_owned()]),
                "{piece}"
            );
        }
    }
}
