//! The configuration file: TOML with the names of the options, converted to arguments before those of the command line.
//!
//! So there is one list of names and one check of values. The command line overrides the file, because the later of two equal options
//! wins. Options that name a file must not be repeated, so here those of the command line replace those of the configuration file.

use std::borrow::Cow;
use std::error::Error as _;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use frontier::HostPolicy;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::options::{closest, command, given, names_a_file};

/// Why the configuration file cannot be used. The messages do not quote values, which may be passwords.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigFileError {
    #[error("the configuration {path} cannot be read: {source}")]
    Unreadable { path: String, source: io::Error },
    #[error("line {line} of the configuration {path}: {what}")]
    Entry { path: String, line: usize, what: String },
}

/// Inserts the arguments of the file that `--config` names before the others.
///
/// Invalid arguments are returned unchanged: the parser reports them.
///
/// # Errors
///
/// When the file cannot be read, or is not valid.
pub(crate) fn arguments(mut given: Vec<OsString>) -> Result<Vec<OsString>, ConfigFileError> {
    // The usual command line is parsed once.
    if !given
        .iter()
        .any(|argument| argument.as_encoded_bytes().starts_with(b"--config"))
    {
        return Ok(given);
    }
    let command = command();
    // Errors are ignored, because the file may supply required arguments, such as the seeds.
    let Ok(matches) = command.clone().ignore_errors(true).try_get_matches_from(&given) else {
        return Ok(given);
    };
    let (command, matches, first) = match matches.subcommand() {
        Some((name, matches)) => match command.find_subcommand(name) {
            Some(subcommand) => (subcommand, matches, 2),
            None => return Ok(given),
        },
        None => (&command, &matches, 1),
    };
    let Ok(Some(path)) = matches.try_get_one::<PathBuf>("config") else {
        return Ok(given);
    };
    let shown = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|source| ConfigFileError::Unreadable {
        path: shown.clone(),
        source,
    })?;
    let from_file = File { path: shown, text }.arguments(command, matches)?;
    given.splice(first..first, from_file);
    Ok(given)
}

/// Arguments, or what is wrong with an entry.
type Arguments = Result<Vec<String>, String>;

struct File {
    path: String,
    text: String,
}

impl File {
    fn arguments(&self, command: &Command, given: &ArgMatches) -> Result<Vec<OsString>, ConfigFileError> {
        let table = DeTable::parse(&self.text).map_err(|error| {
            let what = format!("it is not TOML: {}", error.message());
            self.refused(error.span().unwrap_or_default(), what)
        })?;
        let mut entries = Vec::new();
        for (key, value) in table.get_ref() {
            match (&**key.get_ref(), value.get_ref()) {
                ("order", DeValue::Array(rules)) => {
                    let rules = rules.iter().map(|rule| (rule.span(), rule_of(rule.get_ref())));
                    entries.extend(rules.map(|(place, text)| (place, text.and_then(|text| setting("order", &text)))));
                }
                ("hosts", DeValue::Table(hosts)) => {
                    entries.extend(hosts.iter().flat_map(|(host, policy)| granted(host, policy)));
                }
                ("order", rule @ DeValue::Table(_)) => {
                    entries.push((key.span(), rule_of(rule).and_then(|text| setting("order", &text))));
                }
                (group, DeValue::Table(options)) => entries.extend(options.iter().map(|(name, value)| {
                    let texts = check_group(command, group, name.get_ref())
                        .and_then(|()| arguments_of(command, given, name.get_ref(), value.get_ref()));
                    (name.span(), texts)
                })),
                (name, value) => entries.push((key.span(), arguments_of(command, given, name, value))),
            }
        }
        entries.sort_by_key(|(place, _)| place.start);
        let mut arguments = Vec::new();
        for (place, texts) in entries {
            let texts = texts.map_err(|what| self.refused(place, what))?;
            arguments.extend(texts.into_iter().map(OsString::from));
        }
        Ok(arguments)
    }

    fn refused(&self, place: Range<usize>, what: String) -> ConfigFileError {
        let before = self.text.as_bytes().get(..place.start).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let path = self.path.clone();
        ConfigFileError::Entry { path, line, what }
    }
}

/// Checks that an option or setting belongs to this table of the file: its heading in the help.
fn check_group(command: &Command, group: &str, name: &str) -> Result<(), String> {
    let heading = match given::find(name) {
        Some(setting) => setting.group,
        None => argument_of(command, name)?.get_help_heading().unwrap_or("Input"),
    };
    let heading = heading.to_lowercase();
    match group == heading {
        true => Ok(()),
        false => Err(format!("{name} is not in [{group}], but in [{heading}]")),
    }
}

fn arguments_of(command: &Command, given: &ArgMatches, name: &str, value: &DeValue<'_>) -> Arguments {
    if given::find(name).is_some() {
        let value = scalar(value).ok_or_else(|| format!("{name} needs one text or number"))?;
        return setting(name, &value);
    }
    let argument = argument_of(command, name)?;
    let texts = command_line_texts(argument, value)?;
    check(command, name, &texts)?;
    let is_replaced = names_a_file(argument) && is_given(given, argument);
    Ok(if is_replaced { Vec::new() } else { texts })
}

fn setting(name: &str, value: &str) -> Arguments {
    let assignment = format!("{name}={value}");
    let read = assignment.parse::<given::Assignment>();
    read.map_err(|why| format!("the value of {name} is not valid: {why}"))?;
    Ok(vec![format!("--set={assignment}")])
}

/// The value of the setting `order`.
fn rule_of(rule: &DeValue<'_>) -> Result<String, String> {
    match (rule.as_table().map(DeTable::len), rule.get("class"), rule.get("match")) {
        (Some(2), Some(class), Some(pattern))
            if let (DeValue::Integer(class), DeValue::String(pattern)) = (class.get_ref(), pattern.get_ref()) =>
        {
            Ok(format!("{} {pattern}", class.as_str()))
        }
        _ => Err("[[order]] needs match = \"REGEX\" and class = 0 to 7, and nothing else".to_owned()),
    }
}

/// What a host is granted, each as a value of the setting `host`.
fn granted(host: &Spanned<Cow<'_, str>>, policy: &Spanned<DeValue<'_>>) -> Vec<(Range<usize>, Arguments)> {
    let wrong = |why: &str| vec![(host.span(), Err(why.to_owned()))];
    let DeValue::Table(policy) = policy.get_ref() else {
        return wrong("a host is a table, such as [hosts.\"example.com\"]");
    };
    if policy.values().any(|value| value.get_ref().is_table()) {
        return wrong("write the host in quotes, as in [hosts.\"example.com\"]");
    }
    if let Err(error) = HostPolicy::pattern(host.get_ref()) {
        return wrong(&error.to_string());
    }
    let granted = policy.iter().map(|(name, value)| {
        let value = scalar(value.get_ref()).ok_or_else(|| format!("{} needs one value", name.get_ref()));
        let texts = value.and_then(|value| setting("host", &format!("{} {}={value}", host.get_ref(), name.get_ref())));
        (name.span(), texts)
    });
    granted.collect()
}

/// Checks the value of an entry as that of an option. The message does not quote it.
fn check(command: &Command, name: &str, texts: &[String]) -> Result<(), String> {
    let arguments = std::iter::once(command.get_name()).chain(texts.iter().map(String::as_str));
    let Err(error) = command.clone().try_get_matches_from(arguments) else {
        return Ok(());
    };
    match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::ValueValidation, _) => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            Err(format!("the value of {name} is not valid: {why}"))
        }
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(values))) => {
            Err(format!("{name} must be one of {}", values.join(", ")))
        }
        (ErrorKind::InvalidValue, _) => Err(format!("the value of {name} is not valid")),
        // Other entries and the command line may have what this one needs.
        _ => Ok(()),
    }
}

fn is_given(matches: &ArgMatches, argument: &Arg) -> bool {
    matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
}

fn argument_of<'c>(command: &'c Command, name: &str) -> Result<&'c Arg, String> {
    let is_named = |argument: &&Arg| match argument.get_long() {
        Some("config" | "help" | "version") => false,
        Some(long) => long == name || argument.get_all_aliases().unwrap_or_default().contains(&name),
        None => argument.get_id().as_str().replace('_', "-") == name,
    };
    command.get_arguments().find(is_named).ok_or_else(|| {
        let lower = name.replace('_', "-").to_ascii_lowercase();
        if ["seed", "url", "start-url"].contains(&lower.trim_end_matches('s')) {
            return format!("there is no option {name:?}: pages to start from are seed-urls = [\"example.com\"]");
        }
        let options = command.get_arguments().filter_map(Arg::get_long);
        let known = options.chain(given::names().map(|name| name as &str));
        match closest(&lower, known) {
            Some(similar) => format!("there is no option {name:?}: a similar one is {similar:?}"),
            None => format!("there is no option {name:?}: crawler man lists all options and settings"),
        }
    })
}

fn command_line_texts(argument: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let name = argument.get_long().unwrap_or_default();
    let is_list = matches!(argument.get_action(), ArgAction::Append) || argument.is_positional();
    match (argument.get_action(), value) {
        (ArgAction::SetTrue, DeValue::Boolean(set)) => Ok(if *set { vec![format!("--{name}")] } else { Vec::new() }),
        (ArgAction::SetTrue, _) => Err(format!("{name} must be true or false")),
        (ArgAction::Count, DeValue::Boolean(set)) => Ok(vec![format!("--{name}"); usize::from(*set)]),
        (ArgAction::Count, value) => match scalar(value).and_then(|text| text.parse::<u8>().ok()) {
            Some(times) => Ok(vec![format!("--{name}"); usize::from(times)]),
            None => Err(format!("{name} needs a small number, such as 1")),
        },
        (_, DeValue::Array(values)) if is_list => {
            let texts = values.iter().map(|value| text_of(value.get_ref()));
            let texts = texts.collect::<Option<Vec<_>>>();
            let texts = texts.ok_or_else(|| format!("{name} must be a list of texts and numbers"))?;
            texts.iter().map(|text| with_name(argument, text)).collect()
        }
        (_, value) => match text_of(value) {
            Some(text) => Ok(vec![with_name(argument, &text)?]),
            None if is_list => Err(format!("{name} needs a text or a list of texts")),
            None if name == "seeds" => {
                Err("seeds is the name of a file: for URLs, write seed-urls = [\"example.com\"]".to_owned())
            }
            None => Err(format!("{name} needs one text or number")),
        },
    }
}

fn with_name(argument: &Arg, text: &str) -> Result<String, String> {
    match argument.get_long() {
        Some(long) => Ok(format!("--{long}={text}")),
        None if text.starts_with('-') => Err(format!("{text:?} is not a URL")),
        None => Ok(text.to_owned()),
    }
}

/// `None` for other values.
fn text_of(value: &DeValue<'_>) -> Option<String> {
    scalar(value).filter(|_| !matches!(value, DeValue::Boolean(_)))
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Boolean(set) => Some(set.to_string()),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|n| n.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Datetime(time) => Some(time.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let file = File {
            path: "crawl.toml".to_owned(),
            text: text.to_owned(),
        };
        let command = command();
        let matches = command.clone().get_matches_from(["crawler", "example.com"]);
        let arguments = file.arguments(&command, &matches).map_err(|error| error.to_string())?;
        Ok(arguments.into_iter().map(|text| text.into_string().unwrap()).collect())
    }

    #[test]
    fn entries_become_the_options_of_the_same_names() {
        let text = r#"
            seed-urls = ["a.example", "b.example"]
            max-pages = 1_000
            delay = 0.5        # seconds
            sitemaps = true
            cookies = false
            exclude = ["/a", '\.pdf$']
            include = "x"
            depth = 3
            max-body = "64MiB"
            verbose = 2
            quiet = true
            max-hosts = "5k"
            ignore-www = true
            [politeness]
            per-host = 2
            max-crawl-delay = "7s"
            [seen-set]
            exact = true
            [[order]]
            match = "/news/"
            class = 0
            [[order]]
            match = '/old/'
            class = 7
            [hosts."*.shop.example"]
            delay = "10s"
            closed-until = 2026-12-24T08:00:00Z
            [hosts]
            "B.example".closed = true
            "b.example".delay = "1h 30m"
        "#;
        let expected = [
            "a.example",
            "b.example",
            "--max-pages=1000",
            "--delay=0.5",
            "--sitemaps",
            "--exclude=/a",
            "--exclude=\\.pdf$",
            "--include=x",
            "--max-depth=3",
            "--max-body=64MiB",
            "--verbose",
            "--verbose",
            "--quiet",
            "--set=max-hosts=5k",
            "--set=ignore-www=true",
            "--per-host=2",
            "--set=max-crawl-delay=7s",
            "--exact",
            "--set=order=0 /news/",
            "--set=order=7 /old/",
            "--set=host=*.shop.example delay=10s",
            "--set=host=*.shop.example closed-until=2026-12-24T08:00:00Z",
            "--set=host=B.example closed=true",
            "--set=host=b.example delay=1h 30m",
        ];
        assert_eq!(read(text).unwrap(), expected);
    }

    #[test]
    fn errors_name_the_line_and_never_the_value() {
        // The line of the error, the file, and what is wrong.
        for case in r#"
            2 | delay = 1; max-page = 2 | there is no option "max-page": a similar one is "max-pages"
            1 | config = 'secret' | there is no option "config"
            1 | max_pages = 2 | there is no option "max_pages": a similar one is "max-pages"
            1 | max-host = 2 | there is no option "max-host": a similar one is "max-hosts"
            2 | ; hash-seed = 'secret' | the value of hash-seed is not valid
            1 | max-hosts = 0 | the value of max-hosts is not valid: it must be 1 or more
            3 | ; ; sitemaps = 'secret' | must be true or false
            1 | delay = 'secret' | the value of delay is not valid
            1 | scope = 'secret' | scope must be one of host, site
            1 | basic-auth = [{a = 'secret'}] | texts and numbers
            1 | max-pages = [1, 2] | one text or number
            1 | proxy = true | one text or number
            1 | verbose = 'secret' | small number
            2 | [politeness]; max-hosts = 2 | max-hosts is not in [politeness], but in [limits]
            2 | [limits]; delay = 'secret' | delay is not in [limits], but in [politeness]
            3 | [limits]; max-pages = 2; max-page = 2 | a similar one is "max-pages"
            1 | seed = 'secret' | pages to start from are seed-urls = [
            1 | start-urls = ['secret'] | pages to start from are seed-urls = [
            1 | url = 'secret' | pages to start from are seed-urls = [
            1 | seeds = ['secret'] | for URLs, write seed-urls = [
            2 | delay = 1; [[order]]; match = '/secret/' | [[order]] needs match = "REGEX" and class = 0 to 7
            1 | [[order]]; match = '/secret/'; class = 8 | there is no class 8: give 0
            1 | [[order]]; match = '/secret/'; class = 1; host = 'b' | and nothing else
            1 | [order]; match = '/secret/' | [[order]] needs match
            1 | [[order]]; match = '/secret/'; class = '0 x' | [[order]] needs match
            1 | [[order]]; match = '/secret/'; class = 300 | there is no class
            1 | order = '/secret/' | write CLASS REGEX
            2 | [hosts."a.example"]; delays = 'secret' | a host has no "delays", but delay, max-crawl-delay
            3 | ; [hosts."a.example"]; class = 'secret' | the value of host is not valid: write a whole number
            1 | [hosts."*a.example"] | "*a.example" names no host: write one
            2 | [hosts]; "a.example" = 'secret' | a host is a table
            1 | [hosts.a.example]; closed = true | write the host in quotes
            1 | [hosts.""]; closed = true | "" names no host
            1 | [hosts."a.example closed=true"]; delay = 1 | names no host
            2 | [hosts."a.example"]; delay = '1s closed=true' | the value of host is not valid
            2 | [hosts."a.example"]; closed-until = 'secret' | such as 2026-12-24T08:00:00Z
            2 | delay = 1; delay = 2 | is not TOML
            1 | delay 1 | is not TOML"#
            .trim_start()
            .lines()
        {
            let [line, text, says] = case.trim_start().split(" | ").collect::<Vec<_>>().try_into().unwrap();
            let error = read(&text.replace("; ", "\n")).unwrap_err();
            let place = format!("line {line} of the configuration crawl.toml");
            assert!(error.starts_with(&place) && error.contains(says), "{text}: {error}");
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }
}
