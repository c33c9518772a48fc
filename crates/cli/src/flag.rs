//! The options of the command by the names that the library gives them.

use crate::options::settings;

pub(crate) fn of(field: &str) -> String {
    let name = match field {
        "select_limits" => return "--set max-select-values or max-select-bytes".to_owned(),
        "scope.reach" => "scope".to_owned(),
        "hashing" => "hash".to_owned(),
        "max_segment_repeats" => "max-path-repeats".to_owned(),
        "max_hops" => "max-redirects".to_owned(),
        "max_body_bytes" => "max-body".to_owned(),
        field => field.replace('_', "-"),
    };
    match settings::find(&name) {
        Some(_) => format!("--set {name}"),
        None => format!("--{name}"),
    }
}

pub(crate) fn in_text(text: &str) -> String {
    text.replace("to accept any certificate", "--insecure")
        .replace("to allow more of them", "--set max-headers or max-header-bytes")
        .replace("keeping them may help", "--cookies may help")
}
