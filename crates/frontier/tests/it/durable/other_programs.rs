//! Other programs may read the database of a running crawl.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use super::TemporaryDir;
use super::damaged_files::FILE;
use crate::common::{START, config, pages};
use crate::shared::pair::Place as _;

/// Returns whether this process has the lock by which SQLite says that a database is in use. An older version of SQLite that does not meet it
/// takes itself for the last program, and deletes the log.
///
/// Asks each descriptor of the database for its own locks. The list of all locks of the system, `/proc/locks`, is read in pieces, and leaves
/// out locks that are held if others are dropped between two pieces.
fn is_locked(database: &Path) -> bool {
    // The links of the descriptors have the canonical path.
    let database = fs::canonicalize(database).unwrap();
    fs::read_dir("/proc/self/fd")
        .unwrap()
        .map(|descriptor| descriptor.unwrap())
        // Descriptors of other tests may be closed meanwhile.
        .filter(|descriptor| fs::read_link(descriptor.path()).is_ok_and(|file| file == database))
        .any(|descriptor| {
            let info = fs::read_to_string(Path::new("/proc/self/fdinfo").join(descriptor.file_name())).unwrap();
            // <https://man7.org/linux/man-pages/man5/proc_pid_fdinfo.5.html>: lock, number, POSIX, ADVISORY, READ, process, file, first byte,
            // last byte. The bytes are those of SHARED_FIRST, <https://sqlite.org/src/file/src/os.h>.
            info.lines().any(|line| {
                let fields: Vec<_> = line.split_whitespace().collect();
                matches!(&fields[..], ["lock:", _, "POSIX", _, _, _, _, "1073741826", ..])
            })
        })
}

#[test]
fn a_running_crawl_keeps_the_lock_that_tells_other_programs_to_leave_its_log() {
    let dir = TemporaryDir::new();
    let database = dir.0.join(FILE);
    let open = || dir.open(config(), START);
    // Once new, once as it was left.
    drop(open());
    let mut frontier = open().frontier;
    assert!(is_locked(&database));
    for number in 0..3 {
        frontier
            .offer(&pages(&format!("http://host{number}.example/page-"), 4), START)
            .unwrap();
        frontier.persist(b"", START).unwrap();
        assert!(is_locked(&database));
        // Beside it, this program reads, too.
        let read = dir.read().unwrap();
        assert!(is_locked(&database));
        drop(read);
        assert!(is_locked(&database));
    }
    drop(frontier);
    assert!(!is_locked(&database));
}
