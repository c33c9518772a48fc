//! The disks on which the files of a crawl are. What a system does not say is left out.

use std::fs;
use std::path::{Path, PathBuf};

use crawler::output::series_of;

/// The files that a crawl writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disks {
    pub(crate) state: Option<PathBuf>,
    pub(crate) outputs: Vec<PathBuf>,
}

impl Disks {
    pub(crate) fn free_bytes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let state = self.state.as_deref().and_then(free_at);
        let outputs = self.outputs.iter().filter_map(|path| free_at(path)).min();
        let found = [("state", state), ("outputs", outputs)].into_iter();
        found.filter_map(|(files, free)| Some((files, free?)))
    }

    pub(crate) fn output_bytes(&self) -> u64 {
        let files = self.outputs.iter().flat_map(|first| series_of(first));
        let found = files.filter_map(|(_, path)| fs::metadata(path).ok());
        found.filter(fs::Metadata::is_file).map(|file| file.len()).sum()
    }
}

/// Returns how many bytes are free at a path, or in its folder if it is not there yet.
#[cfg(unix)]
fn free_at(path: &Path) -> Option<u64> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let found = rustix::fs::statvfs(path).or_else(|_| rustix::fs::statvfs(folder.unwrap_or(Path::new("."))));
    found.ok().map(|found| found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free_at(_path: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_has_the_size_of_all_files_of_its_series() {
        let folder = std::env::temp_dir().join(format!("watch-disks-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in [
            "a.warc.gz",
            "a-00001.warc.gz",
            "a-123456.warc.gz",
            "a-1.warc.gz",
            "a-0000x.warc.gz",
            "a-00001.gz",
            "b",
        ] {
            fs::write(folder.join(name), "123").unwrap();
        }
        let disks = Disks {
            state: None,
            outputs: ["a.warc.gz", "b", "none"].map(|name| folder.join(name)).into(),
        };
        assert_eq!(disks.output_bytes(), 4 * 3);
        fs::remove_dir_all(folder).unwrap();
    }
}
