//! The table `status`: lines for people and ordinary tools, and those that say what was synced. They have no checksum.

use std::fs::File;
use std::io::Read as _;
use std::sync::OnceLock;

use rusqlite::{Connection, OptionalExtension, Result};

/// The lines of the table `status` with the number of the last synced commit, and with the start of the system in which it was made.
pub(super) const SYNCED_COMMIT: &str = "synced_commit";
pub(super) const SYSTEM_START: &str = "system_start";

/// Sets lines of the table `status`.
pub(super) fn set_status(connection: &Connection, lines: &[(&'static str, String)]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached("INSERT OR REPLACE INTO status(name, value) VALUES (?1, ?2)")?;
    for line in lines {
        statement.execute((line.0, &line.1))?;
    }
    Ok(())
}

/// The lines of the table `status` in a commit that is going to be synced. A new database has those of commit 0.
pub(super) fn synced_lines(commit: i64) -> Vec<(&'static str, String)> {
    let start = this_system_start().map(|start| (SYSTEM_START, start.clone()));
    start.into_iter().chain([(SYNCED_COMMIT, commit.to_string())]).collect()
}

/// Returns a line, if it is there.
pub(super) fn line(connection: &Connection, name: &str) -> Result<Option<String>> {
    let mut statement = connection.prepare_cached("SELECT value FROM status WHERE name = ?1")?;
    statement.query_row([name], |row| row.get(0)).optional()
}

/// Returns the identifier of this boot of the system; `None` where there is none. Linux has a random one for each boot
/// (Documentation/admin-guide/sysctl/kernel.rst, `random/boot_id`).
pub(super) fn this_system_start() -> Option<&'static String> {
    static START: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let mut text = String::new();
        let file = File::open("/proc/sys/kernel/random/boot_id").ok()?;
        file.take(64).read_to_string(&mut text).ok()?;
        Some(text.trim().to_owned()).filter(|start| !start.is_empty())
    };
    START.get_or_init(read).as_ref()
}
