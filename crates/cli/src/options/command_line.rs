//! The command line as a whole: which options `-h` lists, how wide help is, and which options may be repeated.

use std::error::Error as _;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, CommandFactory as _, FromArgMatches as _, ValueHint};
use cluster::AddressError;
use terminal_size::{Width, terminal_size};

use super::Cli;
use super::closest::closest;
use super::given;
use super::seed_lines;
use super::seeds::Site;

/// The options that `-h` lists. The others are in `--help` only.
const COMMON: &str = "seed_urls seeds config set output links refused select save state max-pages max-depth \
    max-time delay concurrency user-agent scope include exclude sitemaps assets header verbose quiet log_format \
    capacity help";

/// The names of values that are numbers.
const NUMBERS: [&str; 5] = ["N", "SIZE", "DURATION", "AGE", "SHARE"];

/// The width of the help if there is no terminal, in columns.
const WIDTH_WITHOUT_TERMINAL: usize = 80;
/// The maximum width of the help, in columns. Longer lines are hard to read.
const MAX_WIDTH: usize = 120;

const UNITS_IN_SHORT: &str = "Counts: 64k, 10M. Sizes: 512KiB, 64MiB. Durations: 500ms, 30s, 5m, 1h, 2d.";
pub(super) const UNITS: [(&str, &str); 3] = [
    ("Counts", "64k is 64 000; also M and G"),
    ("Sizes", "64KiB is 65 536 bytes, 64kB is 64 000; a bare number is bytes"),
    ("Durations", "500ms, 30s, 5m, 1h, 2d; a bare number is seconds"),
];
pub(super) const EXIT_CODES: [(&str, &str); 5] = [
    ("0", "The crawl ended, or a signal stopped it."),
    ("1", "The crawl could not start or continue, or no page answered 2xx."),
    ("2", "The arguments, the configuration file or the seeds are wrong."),
    (
        "3",
        "Incomplete (--fail-on-incomplete, --accept-loss); ended without a page (--state); unknown URL (why); losses (repair).",
    ),
    (
        "4",
        "Too much is lost to continue the crawl of a state directory (repair).",
    ),
];

fn after_long_help() -> String {
    let rows = |heading: &str, rows: &[(&str, &str)]| {
        let width = rows.iter().map(|(term, _)| term.len()).max().unwrap_or_default();
        let rows = rows.iter().map(|(term, text)| format!("\n  {term:width$}  {text}"));
        format!("{heading}:{}", rows.collect::<String>())
    };
    format!("{}\n\n{}", rows("Units", &UNITS), rows("Exit codes", &EXIT_CODES))
}

pub(crate) fn command() -> Command {
    let version = last("version", 'V', ArgAction::Version, "Print the version");
    let whole = Cli::command().mut_subcommands(|command| match command.get_name() {
        "demo" => with_rules(command)
            .mut_arg("delay", |delay| delay.default_value("0s"))
            .mut_arg("scope", |scope| scope.default_value("site")),
        "hosts" => with_plain_help(command).mut_arg("json", |json| {
            json.help("Print one JSON object for each host, one per line")
        }),
        _ => with_plain_help(command),
    });
    with_rules(whole)
        .disable_version_flag(true)
        .arg(version)
        .term_width(help_width())
}

fn with_plain_help(command: Command) -> Command {
    with_help(command.mut_subcommands(with_plain_help), "Print help")
}

fn with_help(command: Command, text: &'static str) -> Command {
    command
        .disable_help_flag(true)
        .arg(last("help", 'h', ArgAction::Help, text))
}

/// An option that stands behind all others, under a heading of its own.
fn last(name: &'static str, short: char, action: ArgAction, help: &'static str) -> Arg {
    let argument = Arg::new(name).long(name).short(short).action(action).help(help);
    argument.help_heading("Help").display_order(usize::MAX)
}

/// Applies the rules for all options to a command that crawls.
fn with_rules(command: Command) -> Command {
    with_help(command, "Print the common options (-h) or all options (--help)")
        .after_help(UNITS_IN_SHORT)
        .after_long_help(after_long_help())
        .mut_arg("untrusted-seeds", |untrusted| {
            untrusted.conflicts_with_all(["allow-private-addresses", "header", "basic-auth"])
        })
        .mut_args(|argument| {
            let is_common = COMMON.split(' ').any(|common| argument.get_id() == common);
            let argument = argument.hide_short_help(!is_common);
            let is_single = matches!(argument.get_action(), ArgAction::Set | ArgAction::SetTrue);
            // A value below 0 is no option, so that the error names the option.
            let is_number = argument
                .get_value_names()
                .is_some_and(|names| names.iter().any(|name| NUMBERS.contains(&name.as_str())));
            let argument = argument.allow_hyphen_values(is_number);
            if is_single && !names_a_file(&argument) && !argument.is_positional() {
                let id = argument.get_id().clone();
                argument.overrides_with(id)
            } else {
                argument
            }
        })
}

/// Returns whether the value of an option is a file or a folder.
///
/// Such an option may be given once. If it could be repeated, the first file would be ignored without a message.
pub(crate) fn names_a_file(argument: &Arg) -> bool {
    matches!(
        argument.get_value_hint(),
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath
    )
}

fn help_width() -> usize {
    let of_terminal = terminal_size().map(|(Width(columns), _)| usize::from(columns));
    let of_environment = || std::env::var("COLUMNS").ok()?.parse().ok();
    let columns = of_terminal.or_else(of_environment).filter(|columns| *columns > 0);
    columns.unwrap_or(WIDTH_WITHOUT_TERMINAL).min(MAX_WIDTH)
}

/// Reads the arguments. Ends the process if they are not valid, or request the help or the version.
pub(crate) fn parse(arguments: Vec<OsString>) -> Cli {
    try_parse(arguments).unwrap_or_else(|error| error.exit())
}

/// Reads the options of a crawl, without the name of the program. They may lack what they need, such as seeds. Ends the process if they are
/// not valid.
pub(crate) fn parse_some(arguments: &[OsString]) -> (Command, ArgMatches) {
    let command = || {
        let options = Command::new("crawler").no_binary_name(true);
        with_rules(Site::augment_args(
            options.override_usage("crawler resume <DIR> [OPTIONS]..."),
        ))
    };
    let matches = match command().try_get_matches_from(arguments) {
        Err(error) if error.kind() != ErrorKind::MissingRequiredArgument => with_example(error, &mut command()).exit(),
        _ => command().ignore_errors(true).get_matches_from(arguments),
    };
    (command(), matches)
}

/// Reads the arguments.
///
/// # Errors
///
/// When the arguments are not valid. The text of the help or the version is an error, too.
pub(super) fn try_parse<T>(arguments: impl IntoIterator<Item = T>) -> Result<Cli, clap::Error>
where
    T: Into<OsString> + Clone,
{
    let mut command = command();
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let is_resumed = arguments.get(1).is_some_and(|first| first == "resume");
    let matches = command.try_get_matches_from_mut(arguments);
    let matches = matches.map_err(|error| match error.kind() {
        ErrorKind::UnknownArgument if is_resumed => command.error(
            error.kind(),
            "the directory goes before all options, as in: crawler resume DIR --max-pages 5000",
        ),
        _ => with_example(error, &mut command),
    })?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    if cli.command.is_none() {
        check_seeds(&cli.site.seed_urls, &mut command)?;
    }
    Ok(cli)
}

fn with_example(error: clap::Error, command: &mut Command) -> clap::Error {
    let given = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.concat(),
        Some(ContextValue::String(name)) => name.clone(),
        _ => return error,
    };
    let name = given.trim_start_matches('-');
    match error.kind() {
        // Without the value, which may have a password.
        ErrorKind::ValueValidation => match error.source().filter(|source| source.is::<AddressError>()) {
            Some(source) => command.error(error.kind(), format!("invalid value for '{given}': {source}")),
            None => error,
        },
        ErrorKind::MissingRequiredArgument if name.contains("SEED_URL") => {
            command.error(error.kind(), "give a page to start from, such as: crawler example.com")
        }
        ErrorKind::UnknownArgument if given::find(name).is_some() => command.error(
            error.kind(),
            format!("{name} is a setting: write --set {name}=VALUE, or {name} = VALUE in a --config file"),
        ),
        ErrorKind::UnknownArgument if name == "continue" || command.find_subcommand(name).is_some() => {
            let subcommand = if name == "continue" { "resume" } else { name };
            let usage = command
                .find_subcommand_mut(subcommand)
                .map(|found| found.render_usage().to_string());
            let usage = usage.unwrap_or_default().replace("Usage: ", "");
            command.error(
                error.kind(),
                format!(
                    "{given} is no option, but there is a subcommand: crawler {}",
                    usage.trim_start_matches("crawler ")
                ),
            )
        }
        _ => error,
    }
}

/// Checks all seeds, and names each that is none.
fn check_seeds(seeds: &[String], command: &mut Command) -> Result<(), clap::Error> {
    let mut bad = Vec::new();
    for seed in seeds {
        let Err(error) = seed_lines::check_whole(seed) else {
            continue;
        };
        let closest = closest_subcommand(seed, command);
        if closest.as_deref() == Some(seed) {
            let why = format!(
                "the subcommand {seed} goes before all options, as in `crawler {seed} -q`; a host of that name is http://{seed}/"
            );
            return Err(command.error(ErrorKind::ArgumentConflict, why));
        }
        let hint = closest.map_or_else(String::new, |name| {
            format!("\n\n  tip: a similar subcommand exists: `crawler {name}`")
        });
        bad.push(format!("{error}{hint}"));
    }
    match bad.is_empty() {
        true => Ok(()),
        false => Err(command.error(ErrorKind::InvalidValue, bad.join("\n"))),
    }
}

fn closest_subcommand(word: &str, command: &Command) -> Option<String> {
    closest(word, command.get_subcommands().map(Command::get_name)).map(str::to_owned)
}
