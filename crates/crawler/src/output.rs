//! Where results go; one file per format.

mod file;
pub mod jsonl;
mod lines;
pub mod links;
pub mod refused;
pub mod warc;

pub use file::OutputFile;
