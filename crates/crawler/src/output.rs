//! Observers that write results to files, one module per content. Encodings are in `lines`.
//!
//! A write beyond the size limit of files (RLIMIT_FSIZE) fails like one on a full disk if your program handles or ignores SIGXFSZ. On Unix,
//! that signal ends the program by default.

mod columns;
mod file;
mod lines;
pub mod links;
pub mod pages;
pub mod refused;
pub mod save;
mod saved_file;
mod series;
mod tail;
pub mod warc;

pub use crate::saved_output::{SavedFile, SavedOutput};
pub use file::{OutputFile, replace_file};
pub use lines::{Format, Sink};
pub use series::{is_compressed, series_of};
