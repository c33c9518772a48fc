//! The options of the command by the names that the library gives them.

use crate::options::given;

/// The option, or the setting, of a field of the library. One that no table has is an option of this name.
pub(crate) fn of(field: &str) -> String {
    if field == "select_limits" {
        return "--set max-select-values or max-select-bytes".to_owned();
    }
    match given::of_field(field.trim_start_matches("scope.")) {
        Some(setting) if setting.is_option() => format!("--{}", setting.name()),
        Some(setting) => format!("--set {}", setting.name()),
        None => format!("--{}", field.replace('_', "-")),
    }
}

/// Names options in messages of the library, which says what they do: of `fetch/classify.rs`, `fetch/error.rs` and `engine/reports.rs`.
pub(crate) fn in_text(text: &str) -> String {
    text.replace("to accept any certificate", "--insecure")
        .replace("to allow more of them", "--set max-headers or max-header-bytes")
        .replace("keeping them may help", "--cookies may help")
}
