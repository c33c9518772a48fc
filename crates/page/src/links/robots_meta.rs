//! The robots directives of a page.

/// Directives with a value after a colon. Without this list they would look like agent names.
const VALUED: [&str; 4] = [
    "unavailable_after",
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
];

/// The `noindex` and `nofollow` of a page, from robots meta elements and `X-Robots-Tag` headers together.
///
/// No standard defines them; the rules are those that search engines publish. Directives only add up: none revokes an
/// earlier `nofollow`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RobotsMeta {
    /// Whether the links of the page must not be followed.
    pub nofollow: bool,
    /// Whether search engines must not index the page.
    pub noindex: bool,
}

impl RobotsMeta {
    /// Adds the directives of one `X-Robots-Tag` value: `noindex, nofollow`, `none`, `ourbot: nofollow`.
    ///
    /// A name with a colon addresses the directives after it, up to the next name, to one agent. Directives count if
    /// they have no name before them, or that of `agent` (our product token, in any case).
    pub fn merge_header(&mut self, value: &str, agent: &str) {
        let mut is_for_us = true;
        for item in value.split(',') {
            let directive = match addressed(item) {
                Some((name, directive)) => {
                    is_for_us = name.eq_ignore_ascii_case(agent);
                    directive
                }
                None => item,
            };
            if is_for_us {
                self.merge_directive(directive);
            }
        }
    }

    /// Directives separated by commas.
    pub(super) fn merge_content(&mut self, content: &str) {
        content.split(',').for_each(|directive| self.merge_directive(directive));
    }

    /// Adds a directive. Some authors separate several by white space or a semicolon.
    fn merge_directive(&mut self, directive: &str) {
        for word in directive.split(|c: char| c == ';' || c.is_ascii_whitespace()) {
            let is = |name| word.eq_ignore_ascii_case(name);
            self.nofollow |= is("nofollow") || is("none");
            self.noindex |= is("noindex") || is("none");
        }
    }
}

/// Splits `name: directive` into agent and directive.
fn addressed(item: &str) -> Option<(&str, &str)> {
    let (name, directive) = item.split_once(':')?;
    let name = name.trim();
    // A date may contain colons too, but a product token contains no spaces.
    let is_name = !name.contains(char::is_whitespace) && !VALUED.iter().any(|valued| name.eq_ignore_ascii_case(valued));
    is_name.then_some((name, directive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_for_all_agents_or_for_this_crawler_add_up() {
        for (headers, nofollow, noindex) in [
            (&["nofollow"][..], true, false),
            (&[" NoIndex ,nofollow"], true, true),
            (&["none"], true, true),
            (&["noindex nofollow"], true, true),
            (&["noarchive; nofollow"], true, false),
            (&["otherbot: noindex nofollow"], false, false),
            (&["all, index, follow, noarchive"], false, false),
            (&["OurBot: nofollow, noindex"], true, true),
            (&["googlebot: nofollow, noindex"], false, false),
            (&["googlebot: noindex, ourbot: nofollow"], true, false),
            (&["noindex, otherbot: nofollow"], false, true),
            // A directive with a value is not the name of an agent.
            (&["max-snippet: 20, nofollow"], true, false),
            (
                &["unavailable_after: Friday, 25 Jun 2010 15:00:00 PST, noindex"],
                false,
                true,
            ),
            (&["nofollow", "noindex", "all"], true, true),
        ] {
            let mut robots = RobotsMeta::default();
            headers.iter().for_each(|header| robots.merge_header(header, "ourbot"));
            assert_eq!(robots, RobotsMeta { nofollow, noindex }, "{headers:?}");
        }
    }
}
