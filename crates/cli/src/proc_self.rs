//! What `/proc/self/status` (Linux, proc(5)) says of this process.

/// Returns whether this process ignores a signal; `None` where the system does not publish it.
#[cfg(unix)]
pub(crate) fn ignores_signal(number: u32) -> Option<bool> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
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
