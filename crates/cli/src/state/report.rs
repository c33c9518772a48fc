//! `crawler report`: a page on a crawl, in one file.

use std::path::Path;

use crawler::SavedCrawl;
use crawler_watch::{ReportFile, Status};

use super::StateFailure;
use crate::flag;

pub(super) fn run(dir: &Path, output: &Path) -> Result<(), StateFailure> {
    let crawl = SavedCrawl::read(dir)?;
    let status = Status::of_saved(&crawl, dir);
    let written = ReportFile::new(output).and_then(|file| file.write(&status, flag::of));
    written.map_err(|source| StateFailure::Written {
        path: output.to_owned(),
        source,
    })
}
