//! `crawler resume`: the command of the last run, again, with options that override its own.
//!
//! A crawl with a state directory keeps its arguments there, and the folder that it was started in. Headers, logins and passwords are not kept,
//! because a file is easier to come by than the command line of a process. Such a command must be repeated by its user.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::ArgAction;
use clap::parser::ValueSource;
use crawler::output::replace_file;
use frontier::Directory;
use serde::{Deserialize, Serialize};

use crate::config_file::{self, ConfigFileError};
use crate::options::{self, Cli, Command, Site};
use crate::outputs::Output;

/// The file in the state directory.
const FILE: &str = "command.json";

/// Why a command cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgumentsError {
    #[error(transparent)]
    ConfigFile(#[from] ConfigFileError),
    #[error("{} holds no crawl that can be resumed: check the name of the directory, or repeat the whole command with --state", dir.display())]
    NoCrawl { dir: PathBuf },
    #[error("{} has a crawl that lacks its database: restore frontier.sqlite from a copy, or remove the directory to start again", dir.display())]
    NoDatabase { dir: PathBuf },
    #[error("{} cannot be read: {why}. Repeat the whole command with --state", file.display())]
    Unreadable { file: PathBuf, why: String },
    #[error("an argument is not UTF-8: repeat the whole command with --state")]
    NotText,
    #[error("--state is the directory that is resumed, {}: leave it out", dir.display())]
    OtherState { dir: PathBuf },
    #[error("the command of the crawl in {} is not kept, because of {why}: repeat the whole command", dir.display())]
    NotKept { dir: PathBuf, why: String },
    #[error(
        "{} was copied or moved: its crawl was started as {}, and its command names the outputs there. Repeat the whole command with \
         --state {} and the outputs that belong to it, resume the original, or move it away if it is another crawl",
        dir.display(), original.display(), dir.display()
    )]
    Copied { dir: PathBuf, original: PathBuf },
    #[error("{}, where the crawl was started, cannot be entered: {source}. Repeat the whole command with --state", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
}

impl ArgumentsError {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            // A folder may be mounted later.
            Self::Folder { .. } => 1,
            _ => 2,
        }
    }
}

/// What is kept of a command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KeptCommand {
    Arguments {
        folder: PathBuf,
        arguments: Vec<String>,
    },
    /// Why there are no arguments.
    NotKept(String),
}

/// Reads the arguments, or those of the crawl to resume. Ends the process if they are not valid.
pub(crate) fn parse(given: Vec<OsString>) -> Result<Cli, ArgumentsError> {
    let cli = parse_given(given)?;
    let Some(Command::Resume { dir, changed }) = &cli.command else {
        return match cli.site.state.as_deref().and_then(|dir| original_of(dir, &cli.site)) {
            Some((dir, original)) => Err(ArgumentsError::Copied { dir, original }),
            None => Ok(cli),
        };
    };
    let changed = read(changed).ok_or(ArgumentsError::NotText)?;
    let dir = dir
        .canonicalize()
        .map_err(|_| ArgumentsError::NoCrawl { dir: dir.clone() })?;
    if changed.iter().any(|given| name_of(&given.text) == "state") {
        return Err(ArgumentsError::OtherState { dir });
    }
    let mut arguments = kept_arguments(&dir)?;
    if Directory::new(&dir).is_missing() {
        return Err(ArgumentsError::NoDatabase { dir });
    }
    arguments.retain(|kept| !changed.iter().any(|given| given.replaces(kept)));
    arguments.insert(0, "crawler".to_owned());
    arguments.extend(changed.into_iter().map(|given| given.text));
    let mut cli = parse_given(arguments.into_iter().map(OsString::from).collect())?;
    match cli.site.state.replace(dir.clone()) {
        Some(place) if is_copied(&dir, &place) => {
            let original = env::current_dir().unwrap_or_default().join(place);
            Err(ArgumentsError::Copied { dir, original })
        }
        _ => Ok(cli),
    }
}

/// Returns whether a directory is a copy of the one at the place where its crawl was started, or was moved with the folder around it. If it
/// was only given another name, the outputs are where they were.
fn is_copied(dir: &Path, place: &Path) -> bool {
    let inside = place.strip_prefix(".").unwrap_or(place);
    match place.exists() {
        true => !options::is_same(place, dir),
        false => inside.is_relative() && dir.ends_with(inside),
    }
}

fn original_of(dir: &Path, site: &Site) -> Option<(PathBuf, PathBuf)> {
    let kept = serde_json::from_slice(&fs::read(dir.join(FILE)).ok()?).ok()?;
    let KeptCommand::Arguments { folder, arguments } = kept else {
        return None;
    };
    let place_of = |name: &str| {
        let of_name = arguments.iter().find(|argument| name_of(argument) == name)?;
        Some(folder.join(of_name.split_once('=')?.1))
    };
    let original =
        place_of("state").filter(|place| !Directory::new(place).is_missing() && !options::is_same(place, dir))?;
    let is_original = |given: Output<'_>| {
        let place = place_of(given.option).filter(|_| !options::is_stdout(given.path));
        place.is_some_and(|place| options::is_same(&place, given.path))
    };
    let mut outputs = Output::all(&site.options.outputs);
    outputs.any(is_original).then(|| (dir.to_owned(), original))
}

fn parse_given(given: Vec<OsString>) -> Result<Cli, ArgumentsError> {
    let mut cli = options::parse(config_file::arguments(given.clone())?);
    cli.site.given = given;
    Ok(cli)
}

/// An argument, in the form in which it is kept: `--name=value`, `--name` of a flag, or a seed.
struct Argument {
    text: String,
    is_repeatable: bool,
}

impl Argument {
    fn replaces(&self, kept: &str) -> bool {
        let is_verbosity = |name| matches!(name, "quiet" | "verbose");
        let (old, new) = (name_of(kept), name_of(&self.text));
        match self.is_repeatable {
            true => kept == self.text,
            false => old == new || is_verbosity(old) && is_verbosity(new),
        }
    }
}

/// The long name of an option; empty of a seed.
fn name_of(argument: &str) -> &str {
    let option = argument.strip_prefix("--").unwrap_or_default();
    option.split_once('=').map_or(option, |(name, _)| name)
}

/// Reads arguments that may lack what they need, such as seeds. Returns `None` if one is not UTF-8. Ends the process if they are not valid.
fn read(arguments: &[OsString]) -> Option<Vec<Argument>> {
    let (command, matches) = options::parse_some(arguments);
    let mut all = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let name = argument.get_long().map(|name| format!("--{name}")).unwrap_or_default();
        let texts = match argument.get_action() {
            ArgAction::SetTrue => vec![name],
            ArgAction::Count => vec![name; usize::from(matches.get_count(id))],
            _ => {
                let values = matches.get_raw(id)?.map(|value| value.to_str());
                let text = |value: &str| match name.as_str() {
                    "" => value.to_owned(),
                    name => format!("{name}={value}"),
                };
                values.map(|value| value.map(text)).collect::<Option<_>>()?
            }
        };
        let is_repeatable = argument.is_positional() || matches!(argument.get_action(), ArgAction::Append);
        all.extend(texts.into_iter().map(|text| Argument { text, is_repeatable }));
    }
    Some(all)
}

/// Enters the folder in which the last run was started, and returns its arguments.
fn kept_arguments(dir: &Path) -> Result<Vec<String>, ArgumentsError> {
    let file = dir.join(FILE);
    let unreadable = |why: String| ArgumentsError::Unreadable {
        file: file.clone(),
        why,
    };
    let text = match fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ArgumentsError::NoCrawl { dir: dir.to_owned() });
        }
        Err(error) => return Err(unreadable(error.to_string())),
    };
    match serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))? {
        KeptCommand::NotKept(why) => Err(ArgumentsError::NotKept {
            dir: dir.to_owned(),
            why,
        }),
        KeptCommand::Arguments { folder, arguments } => {
            env::set_current_dir(&folder).map_err(|source| ArgumentsError::Folder { folder, source })?;
            Ok(arguments)
        }
    }
}

pub(crate) fn is_kept(dir: &Path) -> bool {
    dir.join(FILE).exists()
}

/// Keeps the command of a crawl in its state directory, or why it cannot be kept.
///
/// # Errors
///
/// When the system cannot write the file.
pub(crate) fn keep(site: &Site, dir: &Path) -> io::Result<()> {
    let kept = match what_to_keep(site) {
        Ok(arguments) => KeptCommand::Arguments {
            folder: env::current_dir()?,
            arguments,
        },
        Err(why) => KeptCommand::NotKept(why.to_owned()),
    };
    // Who may not see the arguments of the process need not see them here: only its owner may read it.
    replace_file(&dir.join(FILE), &serde_json::to_vec(&kept)?)
}

fn what_to_keep(site: &Site) -> Result<Vec<String>, &'static str> {
    if site.seeds.as_deref().is_some_and(options::is_stdout) {
        return Err("--seeds -");
    }
    let given = read(site.given.get(1..).unwrap_or_default()).ok_or("an argument that is not UTF-8")?;
    let mut arguments: Vec<_> = given.into_iter().map(|given| given.text).collect();
    // It is for the loss of this start.
    arguments.retain(|argument| argument != "--accept-loss");
    // A password stands before an @, which an address has nowhere else.
    let has_password = |argument: &String| argument.starts_with("--cluster=") && argument.contains('@');
    if arguments.iter().any(has_password) {
        return Err("--cluster with a password");
    }
    for (secret, option) in site.secrets() {
        // One of a --config file is not among the arguments.
        if arguments.iter().any(|argument| argument.contains(secret)) {
            return Err(option);
        }
    }
    Ok(arguments)
}
