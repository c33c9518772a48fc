//! Log lines on standard error, as text or as JSON. The progress view is hidden while a line is written.

use std::env;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use env_logger::Builder;
use env_logger::fmt::Formatter;
use indicatif::ProgressBar;
use jiff::{Timestamp, Zoned};
use log::kv::{self, Key, Value, VisitSource, VisitValue};
use log::{Level, LevelFilter, Record};
use serde::Serialize;
use serde_json::json;

use crate::options::{LogFormat, Options};

/// The crates of this project: the prefixes of the targets that are logged by default.
const OWN_CRATES: [&str; 3] = ["crawler", "frontier", "sieve"];

/// The target of the status line of SIGUSR1, which no option hides.
pub(crate) const STATUS: &str = "crawler::status";

/// The target of the address of `--watch`, which no option hides: without its line, nobody knows it.
pub(crate) const WATCH: &str = "crawler::watch";

/// The environment variable with the log filter, in the syntax of env_logger.
const FILTER_VARIABLE: &str = "RUST_LOG";

/// The first fields of each JSON line. A record's field of such a name gets the prefix `field_`.
const RESERVED: [&str; 4] = ["time", "level", "target", "message"];

/// Starts the logger. `-v` and `-q` set the filter, or else `RUST_LOG`. The default is INFO and above of this project's crates.
pub(crate) fn start(options: &Options, bar: &ProgressBar) {
    let mut builder = Builder::new();
    for target in [STATUS, WATCH] {
        builder.filter_module(target, LevelFilter::Info);
    }
    let from_environment = filter_of_environment(options);
    match &from_environment {
        Some(Ok(filter)) => _ = builder.parse_filters(filter),
        Some(Err(_)) | None => filter_by_options(&mut builder, options),
    }
    match options.log_format {
        LogFormat::Text if io::stderr().is_terminal() => builder.format(terminal_line),
        LogFormat::Text => builder.format(text_line),
        LogFormat::Json => builder.format(json_line),
    };
    builder.target(env_logger::Target::Pipe(Box::new(StderrWithBar { bar: bar.clone() })));
    builder.init();
    if let Some(Err(why)) = from_environment {
        log::warn!(target: "crawler", "{FILTER_VARIABLE} is ignored: {why}");
    }
}

/// `None` if it is not set, or if an option sets the filter.
fn filter_of_environment(options: &Options) -> Option<Result<String, String>> {
    if options.verbose > 0 || options.quiet > 0 {
        return None;
    }
    let filter = env::var(FILTER_VARIABLE)
        .ok()
        .filter(|filter| !filter.trim().is_empty())?;
    match env_filter::Builder::new().try_parse(&filter) {
        Ok(_) => Some(Ok(filter)),
        // A log record is one line.
        Err(why) => Some(Err(why.to_string().replace('\n', "; "))),
    }
}

fn filter_by_options(builder: &mut Builder, options: &Options) {
    let level = match (options.verbose, options.quiet) {
        (0, 0) => LevelFilter::Info,
        (1, _) => LevelFilter::Debug,
        (2.., _) => LevelFilter::Trace,
        (0, 1) => LevelFilter::Warn,
        (0, 2..) => LevelFilter::Error,
    };
    // Below WARN, the HTML parser logs a line for each tag of a page, and the cookie store logs cookies: RUST_LOG shows these.
    let others = if options.verbose >= 2 {
        LevelFilter::Warn
    } else {
        LevelFilter::Off
    };
    builder.filter_level(others);
    for own in OWN_CRATES {
        builder.filter_module(own, level);
    }
}

/// Reports the error that ends the command. No filter hides it.
pub(crate) fn fatal(format: LogFormat, error: &dyn Display, exit_code: u8) {
    match format {
        // Standard error may be closed. There is no other place to report to.
        LogFormat::Text => drop(writeln!(io::stderr(), "crawler: {error}")),
        LogFormat::Json => write_json(Level::Error, "crawler", error, &json!({ "exit_code": exit_code })),
    }
}

/// Writes one JSON line to standard error. No filter hides it.
pub(crate) fn write_json(level: Level, target: &str, message: &dyn Display, fields: &impl Serialize) {
    let mut line = Vec::new();
    if write_object(&mut line, level, target, message, fields).is_ok() {
        // As in `fatal`, standard error may be closed.
        drop(io::stderr().write_all(&line));
    }
}

fn text_line(to: &mut Formatter, record: &Record<'_>) -> io::Result<()> {
    let (time, level, target) = (now(), record.level(), record.target());
    writeln!(to, "{time} {level:<5} {target}: {}", record.args())
}

/// Writes a line for a person who watches: the local time of day, and the sentence without the target.
fn terminal_line(to: &mut Formatter, record: &Record<'_>) -> io::Result<()> {
    let (time, level) = (Zoned::now().strftime("%H:%M:%S"), record.level());
    let message = record.args().to_string();
    writeln!(to, "{time} {level:<5} {}", in_short(record.target(), &message))
}

/// Returns what a line about the seen-set says of the loss and of what to do; its other numbers are fields of the JSON format. Other messages
/// stay as they are.
fn in_short(target: &str, message: &str) -> String {
    let headline = message.split(": ").next();
    let mut parts = message.split("; ").flat_map(|part| part.split(". "));
    let lost = parts.find(|part| part.contains(" so far"));
    match (headline, lost, message.rsplit(". ").next()) {
        (Some(headline), Some(lost), Some(advice)) if target == "sieve::saturation" => {
            format!("{headline}: {lost}. {advice}")
        }
        _ => message.to_owned(),
    }
}

fn json_line(to: &mut Formatter, record: &Record<'_>) -> io::Result<()> {
    let mut fields = Fields::default();
    // A source fails only if its visitor does, which never fails.
    let _ = record.key_values().visit(&mut fields);
    write_object(to, record.level(), record.target(), record.args(), &fields.all)
}

fn write_object(
    to: &mut impl Write,
    level: Level,
    target: &str,
    message: &dyn Display,
    fields: &impl Serialize,
) -> io::Result<()> {
    let line = Line {
        time: now(),
        level: level.as_str(),
        target,
        message: message.to_string(),
        fields,
    };
    serde_json::to_writer(&mut *to, &line)?;
    to.write_all(b"\n")
}

/// The present time as RFC 3339, in UTC, with milliseconds.
fn now() -> String {
    format!("{:.3}", Timestamp::now())
}

/// A line of the JSON format.
#[derive(Serialize)]
struct Line<'a, F: Serialize> {
    time: String,
    level: &'static str,
    target: &'a str,
    message: String,
    #[serde(flatten)]
    fields: &'a F,
}

/// The key-values of a record, and the value that was visited last.
#[derive(Default)]
struct Fields {
    all: serde_json::Map<String, serde_json::Value>,
    last: serde_json::Value,
}

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), kv::Error> {
        value.visit(&mut *self)?;
        let prefix = if RESERVED.contains(&key.as_str()) { "field_" } else { "" };
        self.all.insert(format!("{prefix}{key}"), self.last.take());
        Ok(())
    }
}

impl<'v> VisitValue<'v> for Fields {
    fn visit_any(&mut self, value: Value<'_>) -> Result<(), kv::Error> {
        let whole = value
            .to_u64()
            .map(serde_json::Value::from)
            .or_else(|| Some(value.to_i64()?.into()));
        let number = whole.or_else(|| Some(value.to_f64()?.into()));
        let known = number.or_else(|| Some(value.to_bool()?.into()));
        self.last = known.unwrap_or_else(|| value.to_string().into());
        Ok(())
    }

    fn visit_null(&mut self) -> Result<(), kv::Error> {
        self.last = serde_json::Value::Null;
        Ok(())
    }
}

/// Standard error, with the progress view hidden while a line is written.
struct StderrWithBar {
    bar: ProgressBar,
}

impl Write for StderrWithBar {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.bar.suspend(|| io::stderr().write(line))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
