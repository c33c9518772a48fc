//! Log lines on standard error, as text or as JSON, without tearing the progress bar.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use env_logger::fmt::Formatter;
use indicatif::ProgressBar;
use log::kv::{self, Key, Value, VisitSource, VisitValue};
use log::{LevelFilter, Record};
use serde_json::{Map, json};

use crate::options::{LogFormat, Options};

pub(crate) fn start(options: &Options, bar: &ProgressBar) {
    let level = match (options.verbose, options.quiet) {
        (0, 0) => LevelFilter::Info,
        (1, _) => LevelFilter::Debug,
        (2.., _) => LevelFilter::Trace,
        (0, 1) => LevelFilter::Warn,
        (0, 2..) => LevelFilter::Error,
    };
    let mut builder = env_logger::Builder::new();
    builder.filter_level(level.min(LevelFilter::Warn));
    for ours in ["crawler", "frontier", "sieve"] {
        builder.filter_module(ours, level);
    }
    match options.log_format {
        LogFormat::Text => builder.format(text_line),
        LogFormat::Json => builder.format(json_line),
    };
    builder.target(env_logger::Target::Pipe(Box::new(BesideBar { bar: bar.clone() })));
    builder.init();
}

fn text_line(to: &mut Formatter, record: &Record<'_>) -> io::Result<()> {
    let time = httpdate::fmt_http_date(SystemTime::now());
    writeln!(
        to,
        "{time} {:<5} {}: {}",
        record.level(),
        record.target(),
        record.args()
    )
}

fn json_line(to: &mut Formatter, record: &Record<'_>) -> io::Result<()> {
    let mut object = Map::new();
    object.insert("time_ms".to_owned(), json!(milliseconds()));
    object.insert("severity".to_owned(), json!(record.level().as_str()));
    object.insert("target".to_owned(), json!(record.target()));
    object.insert("message".to_owned(), json!(record.args().to_string()));
    // Collecting into a map cannot fail.
    let _ = record.key_values().visit(&mut Collect(&mut object));
    writeln!(to, "{}", serde_json::Value::Object(object))
}

/// Milliseconds since the Unix epoch.
fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

struct Collect<'a>(&'a mut Map<String, serde_json::Value>);

impl<'kvs> VisitSource<'kvs> for Collect<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        let mut json = AsJson(serde_json::Value::Null);
        value.visit(&mut json)?;
        self.0.insert(key.to_string(), json.0);
        Ok(())
    }
}

/// One value of a record, as JSON has it.
struct AsJson(serde_json::Value);

impl<'v> VisitValue<'v> for AsJson {
    fn visit_any(&mut self, value: Value<'_>) -> Result<(), kv::Error> {
        self.0 = json!(value.to_string());
        Ok(())
    }

    fn visit_null(&mut self) -> Result<(), kv::Error> {
        self.0 = serde_json::Value::Null;
        Ok(())
    }

    fn visit_u64(&mut self, value: u64) -> Result<(), kv::Error> {
        self.0 = json!(value);
        Ok(())
    }

    fn visit_i64(&mut self, value: i64) -> Result<(), kv::Error> {
        self.0 = json!(value);
        Ok(())
    }

    fn visit_f64(&mut self, value: f64) -> Result<(), kv::Error> {
        self.0 = json!(value);
        Ok(())
    }

    fn visit_bool(&mut self, value: bool) -> Result<(), kv::Error> {
        self.0 = json!(value);
        Ok(())
    }
}

/// Standard error, with the progress bar out of the way while a line is written.
struct BesideBar {
    bar: ProgressBar,
}

impl Write for BesideBar {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.bar.suspend(|| io::stderr().write(line))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
