//! The options that have a fixed list of values.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line of text per record
    Text,
    /// One JSON object per record, with its fields
    Json,
}

/// The format of a file of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object per line
    Jsonl,
    /// CSV (RFC 4180) with a header line
    Csv,
    /// CSV after a byte order mark, which Excel needs to read it as UTF-8
    CsvBom,
}
