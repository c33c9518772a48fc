//! The options of the command by the names that the library gives them.

/// Returns the flag of a field of the library's options: `--max-pages` of `max_pages`.
pub(crate) fn of(field: &str) -> String {
    match field {
        "scope.reach" => "--scope".to_owned(),
        "hashing" => "--hash".to_owned(),
        "max_segment_repeats" => "--max-path-repeats".to_owned(),
        "max_hops" => "--max-redirects".to_owned(),
        field => format!("--{}", field.replace('_', "-")),
    }
}
