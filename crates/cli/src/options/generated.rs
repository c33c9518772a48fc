//! Texts that are generated from the options: shell completions and the manual page.

use std::io;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::command;
use super::command_line::{EXIT_CODES, UNITS};
use super::settings::Setting;
use super::table::ALL;

pub(crate) fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "crawler", &mut script);
    script
}

/// Returns the manual page, in the format that `man` reads.
///
/// # Errors
///
/// None in practice, because the page is written into memory.
pub(crate) fn manual_page() -> io::Result<Vec<u8>> {
    let command = command().override_usage("crawler [OPTIONS] <SEED_URL>...\ncrawler <SUBCOMMAND>");
    let subcommands: Vec<_> = command.get_subcommands().filter_map(described).collect();
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    // The library would refer to manual pages of the subcommands, which do not exist.
    section("SUBCOMMANDS", subcommands).to_writer(&mut page)?;
    let settings = ALL.iter().filter(|setting| !setting.is_option());
    section("SETTINGS (--set NAME=VALUE)", settings.map(described_setting)).to_writer(&mut page)?;
    section("UNITS", UNITS).to_writer(&mut page)?;
    section("EXIT STATUS", EXIT_CODES).to_writer(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}

fn described(subcommand: &Command) -> Option<(String, String)> {
    let about = subcommand.get_about()?.to_string();
    Some((format!("crawler {}", subcommand.get_name()), about))
}

fn described_setting(setting: &Setting) -> (String, String) {
    let default = match setting.default_value() {
        value if value.is_empty() => value,
        value => format!(" [default: {value}]"),
    };
    (setting.name().to_owned(), format!("{}{default}", setting.summary()))
}

fn section<T: Into<String>>(heading: &str, rows: impl IntoIterator<Item = (T, T)>) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    for (term, text) in rows {
        roff.control("TP", []);
        roff.text([bold(term)]);
        roff.text([roman(text)]);
    }
    roff
}
