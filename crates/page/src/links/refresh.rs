//! Parses the content of `<meta http-equiv=refresh content=…>`.

/// The target of a refresh; `None` if the page reloads itself.
pub(super) type Target<'a> = Option<&'a str>;

/// Parses the content of a refresh; `None` if it is invalid.
///
/// HTML standard, "shared declarative refresh steps" (4.2.5.3): `5`, `5;url=x`, `0, URL = 'x' rest`, `.5 x` and similar
/// forms. The delay does not matter to a crawler.
pub(super) fn parse(content: &str) -> Option<Target<'_>> {
    let content = skip_space(content);
    let digits = content.trim_start_matches(|c: char| c.is_ascii_digit());
    if digits.len() == content.len() && !content.starts_with('.') {
        return None;
    }
    let after_delay = digits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if after_delay.is_empty() {
        return Some(None);
    }
    if !after_delay.starts_with(|c: char| matches!(c, ';' | ',') || c.is_ascii_whitespace()) {
        return None;
    }
    let separated = skip_space(after_delay);
    let target = skip_space(separated.strip_prefix([';', ',']).unwrap_or(separated));
    Some((!target.is_empty()).then(|| unquoted(without_label(target))))
}

/// Removes `url=` from a target. An incomplete label (`urlx`, `ur`) belongs to the target.
fn without_label(target: &str) -> &str {
    let label = "url";
    match target.split_at_checked(label.len()) {
        Some((start, rest)) if start.eq_ignore_ascii_case(label) => {
            skip_space(rest).strip_prefix('=').map_or(target, skip_space)
        }
        _ => target,
    }
}

/// Removes the quotes of a target. The closing one may be missing.
fn unquoted(target: &str) -> &str {
    match target.chars().next() {
        Some(quote @ ('"' | '\'')) => target.split(quote).nth(1).unwrap_or_default(),
        _ => target,
    }
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_whitespace())
}
