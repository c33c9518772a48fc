//! The name that a user may have meant.

pub(crate) fn closest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let similar = names.map(|name| (strsim::jaro_winkler(word, name), name));
    let best = similar.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (best.0 > 0.8).then_some(best.1)
}
