//! What a page says to robots about itself.

/// Directives that take a value after a colon, which would otherwise look like the name of an agent.
const VALUED: [&str; 4] = [
    "unavailable_after",
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
];

/// The `noindex` and `nofollow` of a page's robots meta elements and `X-Robots-Tag` headers, taken together.
///
/// No standard defines them; these are the rules that search engines publish. Directives only ever add up: nothing
/// takes back a `nofollow`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RobotsMeta {
    /// The page's links are not to be followed.
    pub nofollow: bool,
    /// The page is not to be shown in an index.
    pub noindex: bool,
}

impl RobotsMeta {
    /// Adds the directives of one `X-Robots-Tag` header value: `noindex, nofollow`, `none`, `ourbot: nofollow`.
    ///
    /// A name with a colon addresses everything after it, up to the next such name, to one agent. Only what is
    /// addressed to nobody or to `agent` (our product token, compared without case) counts.
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

    /// Adds the content of a robots meta element, a list of directives with commas between them.
    pub(super) fn merge_content(&mut self, content: &str) {
        content.split(',').for_each(|directive| self.merge_directive(directive));
    }

    fn merge_directive(&mut self, directive: &str) {
        let is = |name| directive.trim().eq_ignore_ascii_case(name);
        self.nofollow |= is("nofollow") || is("none");
        self.noindex |= is("noindex") || is("none");
    }
}

/// The agent's name and the directive of `name: directive`.
fn addressed(item: &str) -> Option<(&str, &str)> {
    let (name, directive) = item.split_once(':')?;
    let name = name.trim();
    // A date may have colons too, but a product token has no spaces.
    let is_name = !name.contains(char::is_whitespace) && !VALUED.iter().any(|valued| name.eq_ignore_ascii_case(valued));
    is_name.then_some((name, directive))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(value: &str) -> (bool, bool) {
        let mut robots = RobotsMeta::default();
        robots.merge_header(value, "ourbot");
        (robots.nofollow, robots.noindex)
    }

    #[test]
    fn directives_addressed_to_nobody_or_to_us_count() {
        assert_eq!(header("nofollow"), (true, false));
        assert_eq!(header(" NoIndex ,nofollow"), (true, true));
        assert_eq!(header("none"), (true, true));
        assert_eq!(header("all, index, follow, noarchive"), (false, false));
        assert_eq!(header("OurBot: nofollow, noindex"), (true, true));
    }

    #[test]
    fn directives_addressed_to_others_do_not_count() {
        assert_eq!(header("googlebot: nofollow, noindex"), (false, false));
        assert_eq!(header("googlebot: noindex, ourbot: nofollow"), (true, false));
        assert_eq!(header("noindex, otherbot: nofollow"), (false, true));
    }

    #[test]
    fn a_directive_with_a_value_is_not_taken_for_an_agent() {
        assert_eq!(header("max-snippet: 20, nofollow"), (true, false));
        assert_eq!(
            header("unavailable_after: Friday, 25 Jun 2010 15:00:00 PST, noindex"),
            (false, true)
        );
    }

    #[test]
    fn directives_of_several_headers_add_up() {
        let mut robots = RobotsMeta::default();
        robots.merge_header("nofollow", "ourbot");
        robots.merge_header("noindex", "ourbot");
        robots.merge_header("all", "ourbot");
        assert_eq!(
            robots,
            RobotsMeta {
                nofollow: true,
                noindex: true
            }
        );
    }
}
