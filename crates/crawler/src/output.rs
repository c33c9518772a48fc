//! Observers that write results to files, one module per format.
//!
//! A write beyond the size limit of files (RLIMIT_FSIZE) fails like one on a full disk if your program handles or ignores SIGXFSZ. On Unix,
//! that signal ends the program by default.

mod columns;
pub mod csv;
mod file;
pub mod jsonl;
mod lines;
pub mod links;
pub mod refused;
pub mod save;
mod tail;
pub mod warc;

pub use crate::saved_output::{SavedFile, SavedOutput};
pub use file::OutputFile;
pub(crate) use file::replace_file;
