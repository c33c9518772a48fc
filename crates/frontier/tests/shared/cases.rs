//! How many cases a random test tries.

/// Returns `all` if the variable `LONG_TESTS` is set, as in CI, otherwise a tenth of it.
pub(crate) fn cases(all: u32) -> u32 {
    if std::env::var_os("LONG_TESTS").is_some() {
        all
    } else {
        all.div_ceil(10)
    }
}
