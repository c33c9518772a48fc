//! The commands that look into a state directory.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::outputs::parse_file;

/// A command about the crawl in a state directory. A running crawl continues meanwhile.
#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// Show how far the crawl in a state directory is.
    ///
    /// The crawl may be running. The numbers are those of its last commit.
    Status(DirArgs),
    /// List the hosts of the crawl in a state directory, with what each does: those first that hold the crawl up.
    ///
    /// The crawl may be running. A host is asked, resting (it asked for less traffic), hanging, away, closed or given up, or its robots.txt
    /// fails.
    Hosts(DirArgs),
    /// Show what the crawl in a state directory did with a URL, and why.
    ///
    /// The exit code is 0 if the crawl has met the URL, and 3 if it has not: it was never offered, or would be refused.
    Why {
        #[command(flatten)]
        of: DirArgs,
        /// The URL. A host without a scheme gets one, as a seed does.
        #[arg(value_name = "URL")]
        url: String,
    },
    /// List pages of the crawl in a state directory, as JSON lines.
    ///
    /// Refused URLs are not in the state: for these, crawl with --refused FILE.
    List {
        /// The directory of --state.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        #[command(flatten)]
        which: Which,
    },
    /// Write a report on the crawl in a state directory, as one HTML file.
    ///
    /// The crawl may be running. The numbers are those of its last commit. The file is replaced as a whole, and needs no network.
    Report {
        /// The directory of --state.
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// The HTML file to write. An earlier report is replaced, another file is not.
        #[arg(long, short, value_name = "FILE", value_parser = parse_file)]
        output: PathBuf,
    },
    /// Repair a damaged state directory: go back to its last whole state, or export what can be read.
    ///
    /// The damaged database is kept under another name. A directory that is whole stays as it is. Give it as much free room on the disk as the
    /// database takes. The exit code is 0 if nothing was wrong, 3 if the directory went back, and 4 if the crawl cannot be continued. Then
    /// export-1.jsonl in the directory has the URLs that could be read: give it to --seeds of a new crawl.
    Repair(DirArgs),
}

/// A state directory, and the form of the answer.
#[derive(Debug, Default, Args)]
pub(crate) struct DirArgs {
    /// The directory of --state.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The pages that are listed.
#[derive(Debug, Clone, Copy, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// What still waits, in no particular order.
    #[arg(long)]
    pub(crate) waiting: bool,
    /// Pages that were fetched, or answered with a redirect, in order; once for each fetch.
    #[arg(long)]
    pub(crate) done: bool,
    /// Pages that failed for good, answered 4xx, or waited for an origin that was given up, in order; once for each time, also if they were
    /// fetched later.
    #[arg(long)]
    pub(crate) failed: bool,
    /// Other pages that left the queue without a request, in order.
    #[arg(long)]
    pub(crate) not_fetched: bool,
}

impl StateCommand {
    pub(crate) fn dir(&self) -> &Path {
        match self {
            Self::Status(of) | Self::Hosts(of) | Self::Repair(of) | Self::Why { of, .. } => &of.dir,
            Self::List { dir, .. } | Self::Report { dir, .. } => dir,
        }
    }
}
