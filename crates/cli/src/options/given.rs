//! What was given of the table, and the rows by their names.

use std::fmt::Debug;
use std::str::FromStr;

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::closest::closest;
use super::settings::{Form, Setting, Settings};
use super::table::ALL;

/// Finds a row that is no option.
pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    ALL.iter()
        .find(|setting| setting.name() == name && !setting.is_option())
}

/// Finds a row by the name of its field.
pub(crate) fn of_field(name: &str) -> Option<&'static Setting> {
    ALL.iter()
        .find(|setting| setting.place.rsplit('.').next() == Some(name))
}

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|setting| !setting.is_option()).map(Setting::name)
}

/// A row and its valid value.
#[derive(Clone)]
pub(crate) struct Assignment {
    setting: &'static Setting,
    value: String,
}

impl Debug for Assignment {
    /// The value may be a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.setting.name())
    }
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as max-hosts=100k")?;
        let setting = find(name).ok_or_else(|| match closest(name, names()) {
            Some(similar) => format!("there is no setting {name:?}: a similar one is {similar:?}"),
            None => format!("there is no setting {name:?}: crawler man lists all of them"),
        })?;
        let value = setting.checked(value)?;
        Ok(Self { setting, value })
    }
}

/// The options of the table, as they were given or with their defaults.
#[derive(Debug)]
pub(crate) struct Given(Vec<Assignment>);

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command.args(ALL.iter().filter(|setting| setting.is_option()).map(Setting::argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let values = |setting: &'static Setting| match setting.form {
            Form::SetOnly => Vec::new(),
            Form::Flag => vec!["true".to_owned(); usize::from(matches.get_flag(setting.name()))],
            Form::Value(_) | Form::Choice(..) | Form::List(_) => {
                let values = matches.get_many(setting.name()).unwrap_or_default();
                values.cloned().collect()
            }
        };
        let given = ALL.iter().flat_map(|setting| {
            let values = values(setting).into_iter();
            values.map(move |value| Assignment { setting, value })
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Given {
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        let given = self.0.iter().filter(move |given| given.setting.name() == name);
        given.map(|given| given.value.as_str())
    }

    /// Applies the options, and then the settings; of several values for one, the last one counts. Of a list, those of the
    /// options come first: `--first` before rules of a file.
    pub(super) fn apply(&self, settings: &[Assignment]) -> Settings {
        let mut applied = Settings::default();
        for given in self.0.iter().chain(settings) {
            // It was checked when it was read.
            let _ = (given.setting.write)(&mut applied, &given.value);
        }
        applied
    }
}
