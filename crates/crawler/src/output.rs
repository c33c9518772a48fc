//! Where results go; one file per format.

pub mod jsonl;
