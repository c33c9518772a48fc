//! Bodies as files: one per page that answered 2xx, under the host and the path of its URL.
//!
//! `https://example.com/docs/a?x=1` becomes `example.com/docs/a%3Fx=1.html`. Names keep the spelling of the URL. A port that is not the
//! default follows its host, as in `example.com_8080`. A path that ends in a slash becomes `index`, and HTML without such an extension gets
//! `.html`.
//!
//! **Safe names.** Three things are percent-escaped: bytes that some file system refuses, a dot at the start or the end of a name, and
//! the first letter of a Windows device. So no file is outside the folder, and none is hidden. Names of more than 110 bytes are
//! shortened, and paths of more than 1000 bytes are replaced. A hash of the omitted part keeps them distinct.
//!
//! **One file per URL.** If the name is in use, the file gets a hash behind its name. A name is in use by another URL of the crawl (case is
//! ignored), or by a folder. [`PageRecord::saved_as`](crate::PageRecord::saved_as) has the final name. A body of a URL that has a file
//! replaces it, and so do bodies of a new crawl with files of an earlier one. The extension follows from the type, so a page that becomes
//! HTML, or no longer is, may get a second file. Symbolic links in the folder are not followed. This does not protect against a program
//! that replaces folders by links while the crawl runs.
//!
//! **Whole files.** A body is written under a temporary name, `.crawler-…` in the folder itself, and then renamed. There is no `fsync`
//! unless the crawl has a state directory: the system decides when the bytes reach the disk.
//!
//! **Continued crawls.** [`SavedFiles::continuing`] keeps hashes of the names that were given, and of their URLs, in a file of its own. So a
//! crawl that is continued gives none of them to another URL, and each URL its own again. What was saved after the last commit of a killed
//! run is replaced, because these pages are fetched again. The folder is known again by the file `.crawler-id` in it.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use crawler::output::save::SavedFiles;
//! use crawler::{Crawl, CrawlOptions, ReportOptions};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let seeds = vec!["example.com".to_owned()];
//! let reports = ReportOptions { bodies: true, ..ReportOptions::default() };
//! let options = CrawlOptions { seeds, reports, ..CrawlOptions::default() };
//! let files = SavedFiles::create(Path::new("site"))?;
//! Crawl::new(options)?.observe(files).run().await?;
//! # Ok(())
//! # }
//! ```

mod names;
mod place;
mod written;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use self::names::{SafePath, variants};
use self::written::Written;

use page::media_type::is_html;

use super::OutputFile;
use super::file::{at, sync_folder_of};
use crate::event::{Event, Observer, PageRecord};
use crate::saved_output::SavedOutput;

/// Elsewhere, one call syncs all files, which costs far less.
const SYNCS_EACH_FILE: bool = cfg!(not(target_os = "linux"));

/// Numbers the temporary files of a process.
static TEMPORARY_FILES: AtomicU64 = AtomicU64::new(0);

/// Writes the body of each page to a file. It needs [`ReportOptions::bodies`](crate::ReportOptions::bodies).
///
/// It writes in the task of the crawl, which waits until the system has accepted the bytes. It keeps about 32 bytes in memory per file,
/// and at most 41.
#[derive(Debug)]
pub struct SavedFiles {
    folder: PathBuf,
    /// The folder as it is saved, if the crawl can be continued.
    shown: String,
    temporary: PathBuf,
    written: Written,
    /// Whether files were written since the last sync, maybe by an earlier run.
    has_unsynced: bool,
    /// What is to mark the folder, before its first file.
    mark: Option<String>,
}

impl SavedFiles {
    /// Makes the folder if it does not exist. The folder itself may be a symbolic link.
    ///
    /// # Errors
    ///
    /// When the system cannot make it.
    pub fn create(folder: &Path) -> io::Result<Self> {
        let number = TEMPORARY_FILES.fetch_add(1, Ordering::Relaxed);
        Self::new(folder, &format!("{}-{number}", std::process::id()), Written::new())
    }

    /// `writer` names who writes, for its temporary file.
    fn new(folder: &Path, writer: &str, written: Written) -> io::Result<Self> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        let temporary = folder.join(format!(".crawler-{writer}.part"));
        // A killed process of the same name has left it.
        let _ = fs::remove_file(&temporary);
        Ok(Self {
            folder: folder.to_owned(),
            shown: String::new(),
            temporary,
            written,
            has_unsynced: false,
            mark: None,
        })
    }

    /// Makes or continues a folder of bodies. `names` has the names that were given, or is empty; it may be anywhere. It is
    /// [saved](Observer::save) under `name`. `saved` is what an earlier run has saved under it.
    ///
    /// # Errors
    ///
    /// When the system cannot make the folder, or the names cannot be read. Besides, when an earlier run has saved pages, and the folder is
    /// missing, or another one. It may have been moved. Nothing is made or changed then.
    pub fn continuing(name: &str, folder: &Path, names: OutputFile, saved: Option<&SavedOutput>) -> io::Result<Self> {
        let has_unsynced = !names.is_empty();
        let written = Written::continuing(name, names)?;
        let token = written.token();
        if let Some(earlier) = saved.map(Self::folder_in).filter(|_| !written.is_empty()) {
            place::check(folder, earlier, &token)?;
        }
        let is_marked = place::is_marked(folder, &token) == Some(true);
        Ok(Self {
            shown: place::shown(folder)?,
            has_unsynced,
            mark: (!is_marked).then(|| format!("{token}\n")),
            ..Self::new(folder, &token, written)?
        })
    }

    /// Returns whether the bodies of earlier runs are gone: somebody has emptied the folder.
    pub fn was_emptied(&self) -> bool {
        self.mark.is_some() && !self.written.is_empty()
    }

    /// Returns the folder of an output that was [saved](Observer::save), with its full path.
    pub fn folder_in(saved: &SavedOutput) -> &str {
        &saved.extra
    }

    /// Writes a body, and returns its path below the folder, with `/` between the names.
    fn save_body(&mut self, page: &PageRecord, bytes: &[u8]) -> io::Result<String> {
        if let Some(mark) = self.mark.take() {
            self.write(&self.folder.join(place::MARK), mark.as_bytes())?;
        }
        let path = SafePath::of(&page.url, is_html(page.content_type.as_deref(), bytes));
        let mut folder = String::new();
        for name in &path.folders {
            folder = self.make_folder(&folder, name)?;
        }
        let file = self.name_of(&folder, &path, &page.url);
        self.write(&self.folder.join(&file), bytes)?;
        self.has_unsynced = true;
        Ok(file)
    }

    fn make_folder(&self, parent: &str, name: &str) -> io::Result<String> {
        let mut variants = variants(name, name);
        loop {
            let path = format!("{parent}{}", variants.next().unwrap_or_default());
            // On a file system that ignores case, a written file may have this name in other letters.
            if self.written.contains(&path) {
                continue;
            }
            let place = self.folder.join(&path);
            match fs::create_dir(&place) {
                Ok(()) => return Ok(path + "/"),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if place.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                        return Ok(path + "/");
                    }
                }
                Err(error) => return Err(at(&place)(error)),
            }
        }
    }

    fn name_of(&mut self, folder: &str, path: &SafePath, url: &str) -> String {
        let SafePath { stem, extension, .. } = path;
        let mut files = variants(stem, url).map(|stem| format!("{folder}{stem}{extension}"));
        let is_given = |file: &String| {
            let place = self.folder.join(file);
            let is_folder = place.symlink_metadata().is_ok_and(|found| found.is_dir());
            !is_folder && self.written.give(file, url)
        };
        files.find(is_given).unwrap_or_default()
    }

    /// Writes a whole file, or none. It replaces an existing file or link.
    fn write(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let is_synced = SYNCS_EACH_FILE && self.written.is_kept();
        let mut written = fs::File::create_new(&self.temporary).and_then(|mut new| {
            new.write_all(bytes)?;
            if is_synced { new.sync_all() } else { Ok(()) }
        });
        written = written.and_then(|()| fs::rename(&self.temporary, file));
        if is_synced {
            written = written.and_then(|()| sync_folder_of(file));
        }
        written.map_err(|error| {
            let _ = fs::remove_file(&self.temporary);
            at(file)(error)
        })
    }
}

impl Observer for SavedFiles {
    fn on(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let Event::Body { page, bytes, saved_as } = event {
            // Another observer may have saved it, too.
            let _ = saved_as.set(self.save_body(page, bytes)?);
        }
        Ok(())
    }

    fn save(&mut self, sync: bool) -> io::Result<Option<SavedOutput>> {
        if sync && std::mem::take(&mut self.has_unsynced) {
            if self.written.is_kept() && self.mark.is_none() {
                place::check_mark(&self.folder, &self.written.token())?;
            }
            sync_all(&self.folder)?;
        }
        self.written.save(self.shown.clone(), sync)
    }
}

/// After it, all files of the file system survive a loss of power.
#[cfg(target_os = "linux")]
fn sync_all(folder: &Path) -> io::Result<()> {
    let synced = fs::File::open(folder).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?));
    synced.map_err(at(folder))
}

#[cfg(not(target_os = "linux"))]
fn sync_all(_: &Path) -> io::Result<()> {
    Ok(())
}
