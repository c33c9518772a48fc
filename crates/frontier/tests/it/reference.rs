//! References are resolved as browsers resolve them, where the `url` crate does not.

use frontier::reference::resolve;
use proptest::prelude::*;
use url::Url;

fn resolved(base: &str, text: &str) -> String {
    let base = Url::parse(base).unwrap();
    resolve(Some(&base), text, None).unwrap().to_string()
}

#[test]
fn slashes_before_a_host_may_be_any_number_from_two_and_of_either_kind() {
    for text in [
        "//b.example/x",
        "///b.example/x",
        "////b.example/x",
        "\\\\b.example/x",
        "/\\b.example/x",
        "\\/\\b.example\\x",
        " /\t/\n/b.example/x",
        "http:///b.example/x",
        "HTTP:\\\\\\b.example\\x",
    ] {
        assert_eq!(resolved("http://a.example/d/p", text), "http://b.example/x", "{text:?}");
    }
    assert_eq!(
        resolved("https://a.example/d/p", "http:b.example/x"),
        "http://b.example/x"
    );
    assert_eq!(
        resolved("http://a.example/d/p", "http:b.example/x"),
        "http://a.example/d/b.example/x"
    );
    assert_eq!(
        resolved("http://a.example/d/p", "http:/b.example/x"),
        "http://a.example/b.example/x"
    );
}

#[test]
fn double_dots_leave_what_looks_like_a_drive_letter() {
    let cases = [
        ("http://h.example/", "/C:/../x", "http://h.example/x"),
        ("http://h.example/C:/d", "../x", "http://h.example/x"),
        ("http://h.example/C:/d", "..", "http://h.example/"),
        ("http://h.example/C:/d", "http:../x", "http://h.example/x"),
        (
            "http://h.example/a/",
            "C|/../x?/../y#/../z",
            "http://h.example/a/x?/../y#/../z",
        ),
        ("http://h.example/.../C:/...", "../x", "http://h.example/.../x"),
        ("http://h.example/a/C:/d", "x", "http://h.example/a/C:/x"),
        ("http://h.example/a/C:/d", "?q=/../", "http://h.example/a/C:/d?q=/../"),
        ("http://h.example/a/C:/d", "#/../", "http://h.example/a/C:/d#/../"),
        ("http://h.example/", "//C:/../x", "http://c/x"),
        ("file:///D:/a", "/C:/../x", "file:///C:/x"),
    ];
    for (base, text, expected) in cases {
        assert_eq!(resolved(base, text), expected, "{text:?} on {base}");
    }
}

/// Pieces of which paths are made.
fn path() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec![
        "", ".", "..", "...", "....", ".%2E", "%2e%2e", "%2e", "a", "a b", "C:", "d|", "C:x", "é",
    ]);
    let slash = prop::sample::select(vec!["/", "/", "\\", "\t/"]);
    prop::collection::vec((segment, slash), 0..8).prop_map(|pieces| {
        pieces
            .into_iter()
            .map(|(segment, slash)| format!("{segment}{slash}"))
            .collect()
    })
}

proptest! {
    /// With another letter for the colon the parser sees no drive, and otherwise the same path.
    #[test]
    fn a_drive_letter_is_a_segment_like_any_other(directory in path(), reference in path(), is_rooted: bool) {
        let reference = format!("{}{reference}", if is_rooted { "/./" } else { "./" });
        let unlike = |text: &str| text.replace("C:", "Cq").replace("d|", "dq");
        let root = Url::parse("http://h.example/x/").unwrap();
        let base = resolve(Some(&root), &format!("./{directory}"), None).unwrap();
        let found = resolve(Some(&base), &reference, None).unwrap();
        let plain = root.join(&unlike(&format!("./{directory}"))).unwrap();
        prop_assert_eq!(unlike(base.as_str()), plain.to_string());
        prop_assert_eq!(unlike(found.as_str()), plain.join(&unlike(&reference)).unwrap().to_string());
    }
}
