//! Where the saved bodies of a crawl are: their folder is named in messages, and known again, also if it was moved.

use std::fs;
use std::io;
use std::path::Path;

use crate::output::file::at;

/// The file in the folder by which its crawl knows it.
pub(super) const MARK: &str = ".crawler-id";

/// Returns the full path of a folder. It may be shown only approximately if it is not Unicode.
pub(super) fn shown(folder: &Path) -> io::Result<String> {
    let full = std::path::absolute(folder).map_err(at(folder))?;
    Ok(full.display().to_string())
}

/// `None` if it has no mark.
pub(super) fn is_marked(folder: &Path, token: &str) -> Option<bool> {
    let found = fs::read_to_string(folder.join(MARK)).ok()?;
    Some(found.trim_end() == token)
}

/// Checks that a folder still is the one in which this run saves pages.
pub(super) fn check_mark(folder: &Path, token: &str) -> io::Result<()> {
    if is_marked(folder, token) == Some(true) {
        return Ok(());
    }
    let message = format!(
        "{}: the folder was renamed, removed or emptied while the crawl saved pages in it. Put it back, or make an empty one at that place to continue \
         without them, and repeat the command",
        folder.display()
    );
    Err(io::Error::other(message))
}

/// Checks that a folder is the one in which earlier runs have saved pages. These showed it as `earlier`.
///
/// An empty folder at the same place is accepted: its user may have emptied it.
pub(super) fn check(folder: &Path, earlier: &str, token: &str) -> io::Result<()> {
    let refuse = |why: String| {
        let message = format!("{}: {why}", folder.display());
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    };
    // As paths: a slash at the end makes no difference.
    let is_same_place = Path::new(&shown(folder)?) == Path::new(earlier);
    // Another error is reported when the folder is made.
    if is_same_place && matches!(folder.try_exists(), Ok(false)) {
        return refuse(
            "the crawl has saved pages in this folder, and it is missing: put it back, or make an empty one to continue without them".to_owned(),
        );
    }
    let is_empty = fs::read_dir(folder).is_ok_and(|mut files| files.next().is_none());
    if is_marked(folder, token).unwrap_or(is_same_place && is_empty) {
        return Ok(());
    }
    refuse(format!(
        "the crawl has saved pages in {earlier}, and this is another folder: give that one, wherever it is now, or an empty \
         one at that place to continue without them"
    ))
}
