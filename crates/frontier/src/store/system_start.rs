//! Which start of the system this is.

use std::fs::File;
use std::io::Read as _;
use std::sync::OnceLock;

/// Returns the identifier of this boot of the system; `None` where there is none. Linux has a random one for each boot
/// (Documentation/admin-guide/sysctl/kernel.rst, `random/boot_id`).
pub(crate) fn system_start() -> Option<&'static str> {
    static START: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let mut text = String::new();
        let file = File::open("/proc/sys/kernel/random/boot_id").ok()?;
        file.take(64).read_to_string(&mut text).ok()?;
        Some(text.trim().to_owned()).filter(|start| !start.is_empty())
    };
    START.get_or_init(read).as_deref()
}
