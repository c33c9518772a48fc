//! The options that have a fixed list of values.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use frontier::Reach;
use sieve::OnSaturation;

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

fn one_of<T, const N: usize>(choices: [(&'static str, T, &'static str); N]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let named = choices.map(|(name, _, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(named).try_map(move |text| {
        let chosen = choices.iter().find(|(name, ..)| *name == text);
        chosen.map(|(_, value, _)| *value).ok_or("no such value")
    })
}

pub(super) fn reach() -> impl TypedValueParser<Value = Reach> {
    one_of([
        ("host", Reach::Host, "Links to the host of a seed, on every port"),
        (
            "site",
            Reach::Site,
            "Links to the registrable domain of a seed: from www.example.com also docs.example.com",
        ),
        (
            "prefix",
            Reach::Prefix,
            "Links to the host and the directory of a seed: from example.com/docs/ also example.com/docs/a",
        ),
        ("any", Reach::Any, "All links"),
    ])
}

pub(super) fn on_saturation() -> impl TypedValueParser<Value = OnSaturation> {
    one_of([
        (
            "warn",
            OnSaturation::Warn,
            "Drop a growing share of the new URLs; the log and the summary say at least how many",
        ),
        (
            "grow",
            OnSaturation::Grow,
            "Add a layer: the share that is dropped stays as promised, and the memory grows",
        ),
        (
            "refuse",
            OnSaturation::Refuse,
            "Refuse new URLs, fetch what is queued, and count the links that were refused",
        ),
    ])
}
