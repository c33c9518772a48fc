//! A folder of one test, and what crawls have written there.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::memory_file::lines;
use crawler::Crawl;
use crawler::output::OutputFile;
use serde_json::Value;

/// A folder, which is removed after the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Makes an empty folder.
    pub(crate) fn new(name: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("crawler-{}-{number}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The state directory, which does not exist before the first crawl.
    pub(crate) fn state(&self) -> PathBuf {
        self.file("state")
    }

    /// Opens the output with this name, where the last run of the crawl has left it.
    pub(crate) fn output<S: crawler::Fetcher>(&self, crawl: &Crawl<S>, name: &str) -> OutputFile {
        let path = self.file(name);
        let file = match crawl.saved_output(name) {
            Some(saved) => OutputFile::reopen(&path, &saved.file),
            None => OutputFile::append(&path),
        };
        file.unwrap()
    }

    /// The lines of an output, all of them whole.
    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        lines(&fs::read_to_string(self.file(name)).unwrap())
    }

    /// How often each URL is in an output.
    pub(crate) fn urls(&self, name: &str) -> BTreeMap<String, usize> {
        let mut urls = BTreeMap::new();
        for line in self.lines(name) {
            *urls.entry(line["url"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        urls
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
