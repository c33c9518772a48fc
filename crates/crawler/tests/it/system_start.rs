//! Another start of the system, forged in a state directory.

use std::fs;
use std::path::Path;

/// Lets the last sync be one of another start of the system.
pub(crate) fn start_system_anew(state: &Path) {
    let database = rusqlite::Connection::open(state.join("frontier.sqlite")).unwrap();
    let row = "SELECT seal, value FROM meta WHERE key = 3";
    let (old, mut value): (i64, Vec<u8>) = database
        .query_row(row, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let at = value.len() - start.trim().len();
    assert!(value.ends_with(start.trim().as_bytes()));
    value[at..].fill(b'x');
    let place = [&[0], &3_u64.to_le_bytes()[..]].concat();
    let seal = xxhash_rust::xxh3::xxh3_64(&[place, value.clone()].concat()).cast_signed();
    let change = "UPDATE meta SET seal = ?1, value = ?2 WHERE key = 3";
    database.execute(change, (seal, value)).unwrap();
    let seals: i64 = database
        .query_row("SELECT seals FROM spaces WHERE space = 'meta'", [], |row| row.get(0))
        .unwrap();
    let seals = seals.wrapping_sub(old).wrapping_add(seal);
    let change = "UPDATE spaces SET seals = ?1 WHERE space = 'meta'";
    assert_eq!(database.execute(change, [seals]).unwrap(), 1);
}
