//! The options and settings that the libraries have, as one table: the command line, a configuration file and documents are made of it.

use std::num::{NonZeroU64, NonZeroUsize};

use clap::builder::{PossibleValue, PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction};
use crawler::{CrawlOptions, HttpOptions};
use frontier::canonical::Rules;

/// What the table changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(super) crawl: CrawlOptions,
    pub(super) http: HttpOptions,
    /// Which URLs are the same.
    pub(super) rules: Rules,
    pub(super) concurrency: Option<NonZeroUsize>,
    pub(super) hash_seed: Option<u64>,
    pub(crate) warc_operator: Option<String>,
    pub(crate) output_max_bytes: Option<NonZeroU64>,
}

/// One row of the table.
pub(crate) struct Setting {
    /// The heading in the help; in lower case, the table of a configuration file.
    pub(crate) group: &'static str,
    /// The name, and others that stand for it; of one letter for short options.
    pub(super) names: &'static [&'static str],
    pub(super) form: Form,
    /// The lines of the help.
    pub(super) about: &'static [&'static str],
    /// The field of [`Settings`].
    pub(super) place: &'static str,
    pub(super) show: fn(&Settings) -> String,
    pub(super) write: fn(&mut Settings, &str) -> Result<(), String>,
}

/// How a row is given on the command line.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// As `--name`.
    Flag,
    /// As `--name VALUE`, with the name of the value in the help.
    Value(&'static str),
    /// The same, with the only values, each with its help.
    Choice(&'static str, &'static [(&'static str, &'static str)]),
    /// As a value, repeatable.
    List(&'static str),
    /// As `--set name=VALUE`: limits, waits and rules that few crawls need.
    SetOnly,
}

impl Setting {
    pub(crate) fn name(&self) -> &'static str {
        self.names[0]
    }

    pub(crate) fn default_value(&self) -> String {
        (self.show)(&Settings::default())
    }

    pub(crate) fn is_option(&self) -> bool {
        !matches!(self.form, Form::SetOnly)
    }

    /// The first line of the help.
    pub(crate) fn summary(&self) -> &'static str {
        self.about[0].trim().trim_end_matches('.')
    }

    fn long_help(&self) -> Option<String> {
        let lines = self
            .about
            .iter()
            .map(|line| if line.is_empty() { "\n\n" } else { line });
        let text = lines.collect::<String>().replace("\n\n ", "\n\n");
        (self.about.len() > 1).then(|| text.trim().to_owned())
    }

    pub(super) fn checked(&self, value: &str) -> Result<String, String> {
        (self.write)(&mut Settings::default(), value).map(|()| value.to_owned())
    }

    pub(super) fn argument(&'static self) -> Arg {
        let mut argument = Arg::new(self.name()).long(self.name()).help_heading(self.group);
        argument = argument.help(self.summary());
        if let Some(text) = self.long_help() {
            argument = argument.long_help(text);
        }
        for other in &self.names[1..] {
            argument = match other.parse::<char>() {
                Ok(letter) => argument.short(letter),
                Err(_) => argument.visible_alias(*other),
            };
        }
        let parser = ValueParser::new(move |text: &str| self.checked(text));
        let default = Some(self.default_value()).filter(|default| !default.is_empty());
        match self.form {
            Form::Flag | Form::SetOnly => argument.action(ArgAction::SetTrue),
            Form::List(value) => argument
                .action(ArgAction::Append)
                .value_name(value)
                .value_parser(parser),
            Form::Value(value) => argument.value_name(value).value_parser(parser).default_values(default),
            Form::Choice(value, choices) => {
                let named = choices.iter().map(|(name, help)| PossibleValue::new(*name).help(*help));
                let parser = PossibleValuesParser::new(named);
                argument.value_name(value).value_parser(parser).default_values(default)
            }
        }
    }
}
