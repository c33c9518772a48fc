//! `crawler report`: a page on a crawl, in one file.

use crawler::SavedCrawl;
use crawler_watch::{ReportFile, Status};
use frontier::{Directory, LockHolder};

use super::StateFailure;
use crate::flag;
use crate::options::ReportArgs;

pub(super) fn run(args: &ReportArgs) -> Result<(), StateFailure> {
    let crawl = SavedCrawl::read(&args.dir)?;
    let is_running = Directory::new(&args.dir).lock_holder()? != LockHolder::Nobody;
    let status = Status::of_saved(&crawl, &args.dir, is_running);
    let written = ReportFile::new(&args.output).and_then(|file| file.write(&status, flag::of));
    written.map_err(|source| StateFailure::Written {
        path: args.output.clone(),
        source,
    })
}
