//! The command: runs it, checks its exit code and messages, and keeps its files in a folder for one test.

use std::fs;
use std::io::Read as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use flate2::read::MultiGzDecoder;
use serde_json::Value;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_crawler");

/// The arguments of a command: a line of words, or a list if one of them may have a space.
pub(crate) trait Arguments {
    fn list(&self) -> Vec<String>;
}

impl Arguments for str {
    fn list(&self) -> Vec<String> {
        self.split_whitespace().map(str::to_owned).collect()
    }
}

impl Arguments for String {
    fn list(&self) -> Vec<String> {
        self.as_str().list()
    }
}

impl Arguments for [&str] {
    fn list(&self) -> Vec<String> {
        self.iter().map(ToString::to_string).collect()
    }
}

impl<const N: usize> Arguments for [&str; N] {
    fn list(&self) -> Vec<String> {
        self.as_slice().list()
    }
}

/// Returns the command with these arguments, without input and with the default width of help. Its output goes to the caller.
pub(crate) fn command(arguments: &(impl Arguments + ?Sized)) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments.list())
        .env_remove("COLUMNS")
        .env_remove("RUST_LOG");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the command to its end.
pub(crate) fn crawler(arguments: &(impl Arguments + ?Sized)) -> Output {
    command(arguments).output().unwrap()
}

/// Runs the command in a process whose limit is set by `ulimit` with these options. Files are limited in units of 512 bytes.
#[cfg(unix)]
pub(crate) fn run_with_limit(ulimit: &str, arguments: &(impl Arguments + ?Sized)) -> Output {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("ulimit {ulimit} && exec \"$0\" \"$@\"")])
        .arg(PROGRAM);
    shell.args(arguments.list()).stdin(Stdio::null()).output().unwrap()
}

/// What a command printed.
pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Checks that the command succeeds. Returns what it printed.
#[track_caller]
pub(crate) fn succeeds(arguments: &(impl Arguments + ?Sized)) -> Printed {
    let output = crawler(arguments);
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    let code = output.status.code();
    assert_eq!(code, Some(0), "{:?}: {stdout}{stderr}", arguments.list());
    Printed { stdout, stderr }
}

/// Checks that the command fails with this code, and with all of the messages on standard error.
#[track_caller]
pub(crate) fn fails(arguments: &(impl Arguments + ?Sized), code: i32, messages: &[&str]) {
    has_failed(&crawler(arguments), code, messages);
}

/// Checks that a command has failed with this code, and with all of the messages on standard error.
#[track_caller]
pub(crate) fn has_failed(output: &Output, code: i32, messages: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    for message in messages {
        assert!(stderr.contains(message), "it should say {message:?}: {stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// Returns the number in a row of the summary, such as `pages 325 (50.8 per second)`.
#[track_caller]
pub(crate) fn number(summary: &str, label: &str) -> u64 {
    let line = summary.lines().find_map(|line| line.trim().strip_prefix(label));
    let line = line.unwrap_or_else(|| panic!("{label}: {summary}"));
    let word = line.split_whitespace().next().unwrap();
    word.trim_end_matches(',').parse().unwrap()
}

/// Returns the values of JSON lines, which must be whole.
#[track_caller]
pub(crate) fn lines(text: &str) -> Vec<Value> {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is torn: {text}");
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(parse).collect()
}

/// Checks some fields of an object.
#[track_caller]
pub(crate) fn has(found: &Value, fields: Value) {
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(&found[name], value, "{name}: {found}");
    }
}

/// Returns one text of each line of a file of JSON lines.
#[track_caller]
pub(crate) fn texts_of(file: impl AsRef<Path>, field: &str) -> Vec<String> {
    let text = |line: Value| line[field].as_str().unwrap().to_owned();
    lines_of(file).into_iter().map(text).collect()
}

/// Returns a text without line breaks, and with single spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the values of a file of JSON lines.
#[track_caller]
pub(crate) fn lines_of(file: impl AsRef<Path>) -> Vec<Value> {
    lines(&fs::read_to_string(file).unwrap())
}

/// Returns the text of a file, which is compressed if its name says so.
#[track_caller]
pub(crate) fn text_of(path: &str) -> String {
    let bytes = fs::read(path).unwrap();
    let is_compressed = path.to_lowercase().ends_with(".gz");
    assert_eq!(bytes.starts_with(&[0x1f, 0x8b]), is_compressed, "{path}");
    let mut text = String::new();
    match is_compressed {
        true => MultiGzDecoder::new(&*bytes).read_to_string(&mut text).unwrap(),
        false => bytes.as_slice().read_to_string(&mut text).unwrap(),
    };
    text
}

/// A folder for one test, which is removed at its end.
pub(crate) struct Folder(PathBuf);

/// Makes an empty folder. No part of its path has a space.
pub(crate) fn folder(name: &str) -> Folder {
    let folder = std::env::temp_dir().join(format!("crawler-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    Folder(folder)
}

impl Folder {
    /// Returns the path of a file in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file in it. Returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.join(name), text).unwrap();
        self.path(name)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
