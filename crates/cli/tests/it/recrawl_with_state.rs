//! `--recrawl` with `--state`: the directory belongs to one file, and the command says so.

use std::fs;

use crate::program::{fails, folder, number, succeeds};
use crate::servers::site_of;

#[test]
fn another_file_is_refused_with_what_to_do_and_the_same_one_continues() {
    let seed = site_of(|path| {
        Some(if path == "/" {
            "<a href=/a>x</a>".to_owned()
        } else {
            String::new()
        })
    });
    let folder = folder("recrawl-with-state");
    let [first, state, output, plain] = ["first", "state", "output", "plain"].map(|name| folder.path(name));
    succeeds(&format!("--delay 0 -o {first} {seed}"));
    let lines = fs::read_to_string(&first).unwrap();
    let second = folder.file("second", &lines.replace("/a\"", "/b\""));

    let command = |file| format!("--delay 0 --state {state} -o {output} --recrawl {file} {seed}");
    let pages = |arguments: &str| number(&succeeds(arguments).stdout, "pages ");
    assert_eq!(pages(&command(&first)), 2);
    let written = fs::read_to_string(&output).unwrap();
    let refusal = [&second, "is not the file", "another directory", "--refresh"];
    fails(&command(&second), 2, &refusal);
    assert_eq!(fs::read_to_string(&output).unwrap(), written);
    // The refused command is not kept.
    assert_eq!(pages(&format!("resume {state}")), 2);
    let again = succeeds(&command(&first));
    assert_eq!(number(&again.stdout, "pages "), 2);
    assert!(!again.stderr.contains("WARN"), "{}", again.stderr);

    succeeds(&format!("--delay 0 --state {plain} {seed}"));
    let late = format!("--delay 0 --state {plain} --recrawl {first} {seed}");
    fails(
        &late,
        2,
        &["begun without a file", &first, "another directory", "--refresh"],
    );
}
