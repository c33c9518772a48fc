//! The options of the command by the names that the library gives them.

use crate::options::given;

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

pub(crate) fn in_text(text: &str) -> String {
    text.replace("to accept any certificate", "--insecure")
        .replace("to allow more of them", "--set max-headers or max-header-bytes")
        .replace("keeping them may help", "--cookies may help")
}
