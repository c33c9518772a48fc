//! The columns of CSV (RFC 4180), and the cells that a record has in them.

use std::io;

use csv::{ReaderBuilder, Terminator, WriterBuilder};
use page::select::Field;
use serde::Serialize;
use serde_json::Value;

/// The characters that start a formula in a spreadsheet. Some spreadsheets accept the full-width forms of East Asian keyboards too.
const FORMULA_STARTS: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// The field of a page whose values have one column each.
const SELECTED: &str = "selected";

/// The size of the buffer for one record, in bytes.
const RECORD_BYTES: usize = 1024;

/// The columns of a CSV file.
#[derive(Debug)]
pub(super) struct Columns {
    /// The fields of a record, in order.
    fields: Vec<String>,
    /// The names of the selected fields, in order.
    selected: Vec<String>,
}

impl Columns {
    pub(super) fn new(example: &impl Serialize, selected: &[Field]) -> io::Result<Self> {
        let mut writer = WriterBuilder::new().from_writer(Vec::new());
        writer.serialize(example)?;
        let text = writer
            .into_inner()
            .map_err(|error| io::Error::other(error.to_string()))?;
        let mut reader = ReaderBuilder::new().from_reader(text.as_slice());
        let fields = reader.headers()?.iter().map(str::to_owned).collect();
        Ok(Self {
            fields,
            selected: selected.iter().map(|field| field.name().to_owned()).collect(),
        })
    }

    pub(super) fn write_header(&self, to: &mut Vec<u8>) -> io::Result<()> {
        let mut cells = Vec::new();
        for field in &self.fields {
            match field.as_str() {
                SELECTED => cells.extend(self.selected.iter().map(|name| format!("{SELECTED}.{name}"))),
                _ => cells.push(field.clone()),
            }
        }
        write_record(to, &cells)
    }

    pub(super) fn write(&self, to: &mut Vec<u8>, object: &impl Serialize) -> io::Result<()> {
        let object = serde_json::to_value(object)?;
        let mut cells = Vec::new();
        for field in &self.fields {
            let value = &object[field];
            match field.as_str() {
                SELECTED => cells.extend(self.selected.iter().map(|name| cell(&value[name]))),
                _ => cells.push(cell(value)),
            }
        }
        write_record(to, &cells)
    }
}

fn write_record(to: &mut Vec<u8>, cells: &[String]) -> io::Result<()> {
    let mut writer = WriterBuilder::new()
        .terminator(Terminator::CRLF)
        .buffer_capacity(RECORD_BYTES)
        .from_writer(to);
    writer.write_record(cells)?;
    writer.flush()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with(FORMULA_STARTS) => format!("'{text}"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn without_apostrophe(cell: &str) -> &str {
    let text = cell.strip_prefix('\'').filter(|text| text.starts_with(FORMULA_STARTS));
    text.unwrap_or(cell)
}
