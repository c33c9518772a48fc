//! `crawler resume`: the command of the last run, again, with options that override its own.
//!
//! A crawl with a state directory keeps its arguments there, and the folder that it was started in. Headers and logins are not kept,
//! because a file is easier to come by than the command line of a process. Such a command must be repeated by its user.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use frontier::Frontier;
use serde::{Deserialize, Serialize};

use crate::config_file::{self, ConfigFileError};
use crate::options::{self, Cli, Command, Site};

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
    #[error("--state is the directory that is resumed, {}: leave it out", dir.display())]
    OtherState { dir: PathBuf },
    #[error("the command of the crawl in {} is not kept, because of {why}: repeat the whole command", dir.display())]
    NotKept { dir: PathBuf, why: String },
    #[error("{}, where the crawl was started, cannot be entered: {source}. Repeat the whole command with --state", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
}

impl ArgumentsError {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::ConfigFile(_) | Self::NotKept { .. } | Self::OtherState { .. } => 2,
            _ => 1,
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
    let mut cli = parse_given(given)?;
    let Some(Command::Resume { dir, changed }) = &cli.command else {
        return Ok(cli);
    };
    let dir = dir
        .canonicalize()
        .map_err(|_| ArgumentsError::NoCrawl { dir: dir.clone() })?;
    if changed.iter().any(|argument| names_state(argument)) {
        return Err(ArgumentsError::OtherState { dir });
    }
    // The later of two equal options wins. Those that name a file may not be given twice.
    let mut given = without_clusters(kept_arguments(&dir)?);
    if Frontier::is_missing(&dir) {
        return Err(ArgumentsError::NoDatabase { dir });
    }
    let changed = &without_clusters(changed.clone());
    if changed.iter().any(|argument| is_verbosity(argument)) {
        // These alone would add up, and silence warnings.
        given.retain(|argument| !is_verbosity(argument));
    }
    // The same options once more need no place. A seed may be equal to the value of an option.
    let is_option = |first: &OsString| first.to_string_lossy().starts_with('-');
    if !(given.ends_with(changed) && changed.first().is_some_and(is_option)) {
        remove_replaced(&mut given, changed);
        // What follows -- are seeds.
        let end = given.iter().position(|argument| argument == "--");
        let end = end.unwrap_or(given.len());
        given.splice(end..end, changed.iter().cloned());
    }
    cli = parse_given(given)?;
    // It may have been moved since.
    cli.site.state = Some(dir);
    Ok(cli)
}

/// Writes options of one letter that share a dash, such as `-qo FILE`, one by one.
fn without_clusters(arguments: Vec<OsString>) -> Vec<OsString> {
    let command = options::command();
    let takes_no_value = |letter: char| {
        let mut all = command.get_arguments();
        all.any(|option| option.get_short() == Some(letter) && !option.get_action().takes_values())
    };
    let mut written = Vec::new();
    for argument in arguments {
        let mut argument = argument;
        while let Some((first, rest)) = argument.to_str().and_then(|text| {
            let mut letters = text.strip_prefix('-')?.chars();
            let first = letters.next().filter(|letter| takes_no_value(*letter))?;
            let rest = letters.as_str();
            (!rest.is_empty()).then(|| (first, format!("-{rest}")))
        }) {
            written.push(format!("-{first}").into());
            argument = rest.into();
        }
        written.push(argument);
    }
    written
}

/// Returns whether an argument names a state directory.
fn names_state(argument: &OsStr) -> bool {
    let text = argument.to_string_lossy();
    text == "--state" || text.starts_with("--state=")
}

/// Returns whether an argument is `-q`, `-v`, several of them, or their long form.
fn is_verbosity(argument: &OsStr) -> bool {
    let text = argument.to_string_lossy();
    let letters = text.strip_prefix('-').unwrap_or_default();
    let is_only = |letter: char| !letters.is_empty() && letters.chars().all(|other| other == letter);
    matches!(&*text, "--quiet" | "--verbose") || is_only('q') || is_only('v')
}

/// Removes the options that name a file, if they are among the changed ones.
fn remove_replaced(given: &mut Vec<OsString>, changed: &[OsString]) {
    let command = options::command();
    for option in command.get_arguments().filter(|option| options::names_a_file(option)) {
        let names = names(option);
        if changed.iter().any(|argument| part_of(argument, &names).is_some()) {
            let mut is_value = false;
            given.retain(|argument| {
                let part = part_of(argument, &names).filter(|_| !is_value);
                let is_kept = part.is_none() && !is_value;
                is_value = part == Some(Part::Name);
                is_kept
            });
        }
    }
}

/// The names of an option, as they are written.
fn names(option: &clap::Arg) -> Vec<String> {
    let long = option.get_long().into_iter().map(str::to_owned);
    let aliases = option
        .get_all_aliases()
        .unwrap_or_default()
        .into_iter()
        .map(str::to_owned);
    let short = option.get_short().map(|letter| format!("-{letter}"));
    long.chain(aliases)
        .map(|name| format!("--{name}"))
        .chain(short)
        .collect()
}

/// What an argument is of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Its name. The value follows.
    Name,
    /// Its name and value.
    Whole,
}

fn part_of(argument: &OsStr, names: &[String]) -> Option<Part> {
    let text = argument.to_string_lossy();
    names.iter().find_map(|name| {
        let rest = text.strip_prefix(name.as_str())?;
        match rest.chars().next() {
            None => Some(Part::Name),
            Some('=') => Some(Part::Whole),
            Some(_) if !name.starts_with("--") => Some(Part::Whole),
            Some(_) => None,
        }
    })
}

fn parse_given(given: Vec<OsString>) -> Result<Cli, ArgumentsError> {
    let mut cli = options::parse(config_file::arguments(given.clone())?);
    cli.site.given = given;
    Ok(cli)
}

/// Enters the folder in which the last run was started, and returns its arguments.
fn kept_arguments(dir: &Path) -> Result<Vec<OsString>, ArgumentsError> {
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
            Ok(std::iter::once("crawler".to_owned())
                .chain(arguments)
                .map(OsString::from)
                .collect())
        }
    }
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
    let (file, new) = (dir.join(FILE), dir.join("command.new"));
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(true);
    // Who may not see the arguments of the process need not see them here.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = fs::remove_file(&new);
    options.open(&new)?.write_all(&serde_json::to_vec(&kept)?)?;
    fs::rename(new, file)
}

/// Returns the arguments, or the reason why they are not kept.
fn what_to_keep(site: &Site) -> Result<Vec<String>, &'static str> {
    if site.seeds.as_deref().is_some_and(options::is_stdout) {
        return Err("--seeds -");
    }
    let arguments = site
        .given
        .iter()
        .skip(1)
        .map(|argument| argument.to_str().map(str::to_owned));
    let arguments: Vec<_> = arguments
        .collect::<Option<_>>()
        .ok_or("an argument that is not UTF-8")?;
    for (secret, option) in site.secrets() {
        // One of a --config file is not among the arguments.
        if arguments.iter().any(|argument| argument.contains(secret)) {
            return Err(option);
        }
    }
    Ok(arguments)
}
