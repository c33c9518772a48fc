//! The fields of `/proc/self/status` (Linux, proc(5)): the kernel's data about this process.

/// `None` on systems without that file.
fn status_field(name: &str) -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mut fields = status.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(field, _)| *field == name)?;
    Some(value.trim().to_owned())
}

/// Returns whether this process ignores a signal; `None` where the system does not publish it.
#[cfg(unix)]
pub(crate) fn ignores_signal(number: u32) -> Option<bool> {
    let mask = u64::from_str_radix(&status_field("SigIgn")?, 16).ok()?;
    Some(mask.checked_shr(number.checked_sub(1)?)? & 1 == 1)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_ignores_broken_pipes_but_not_user_signals() {
        // Rust ignores SIGPIPE (13) at start. Nothing ignores SIGUSR2 (12) here; a shell may have ignored SIGINT. Signal 0 does not exist.
        assert_eq!(ignores_signal(13), Some(true));
        assert_eq!(ignores_signal(12), Some(false));
        assert_eq!(ignores_signal(0), None);
    }
}
