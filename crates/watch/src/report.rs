//! The report: the live page with its data inside, in one file that needs nothing else.

use std::io;
use std::path::Path;

use serde_json::json;

use crate::replace::Replaceable;
use crate::status::Status;

/// The page, its style and its script.
pub(crate) const PAGE: &str = include_str!("page/index.html");
pub(crate) const STYLE: &str = include_str!("page/page.css");
pub(crate) const SCRIPT: &str = include_str!("page/page.js");

/// The first lines of the page, with its title.
const BEGINNING: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
     <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>crawler</title>\n";

/// What the page has in place of its style, its script, and its numbers as text.
const STYLE_LINK: &str = "<link rel=\"stylesheet\" href=\"page.css\">";
const NO_SCRIPT_END: &str = "</noscript>";
const SCRIPT_LINK: &str = "<script src=\"page.js\" defer></script>";

/// A file with a report: the live page with its data inside. It opens in a browser without a network, and runs no script but its own. Size:
/// below 750 kB.
#[derive(Debug)]
pub struct ReportFile(Replaceable);

impl ReportFile {
    /// Names the file, and checks that it can be written; a report that is there stays as it is.
    ///
    /// # Errors
    ///
    /// What is there and is no file, such as a device, or no report; a folder that cannot be written to.
    pub fn new(path: &Path) -> io::Result<Self> {
        Replaceable::new(path, BEGINNING).map(Self)
    }

    /// Writes the report, which replaces the file as a whole. `name` returns the name of an option by its field, for the texts of what is
    /// missing.
    ///
    /// # Errors
    ///
    /// A file that cannot be written; no random bytes.
    pub fn write(&self, status: &Status, name: impl Fn(&str) -> String) -> io::Result<()> {
        self.0.replace(report(status, name)?.as_bytes()).map(drop)
    }
}

/// Returns the report.
///
/// # Errors
///
/// No random bytes.
fn report(status: &Status, name: impl Fn(&str) -> String) -> io::Result<String> {
    let once = random_hex()?;
    let policy = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'nonce-{once}'; style-src 'nonce-{once}'; \
         img-src data:; base-uri 'none'; form-action 'none'\">"
    );
    let style = format!("{policy}\n<style nonce=\"{once}\">\n{STYLE}</style>");
    // A module runs after the page is read, as the script of the live page does.
    let script = format!(
        "<script type=\"application/json\" id=\"data\">{}</script>\n<script type=\"module\" nonce=\"{once}\">\n{SCRIPT}</script>",
        data(status, &name)
    );
    // Previews of e-mails run no scripts.
    let text = status
        .summary
        .as_ref()
        .map(|summary| summary.with_names(name).to_string());
    let text = text.unwrap_or_default().replace('&', "&amp;").replace('<', "&lt;");
    let page = PAGE.replace(NO_SCRIPT_END, &format!("\n<pre>\n{text}</pre>{NO_SCRIPT_END}"));
    Ok(page.replace(STYLE_LINK, &style).replace(SCRIPT_LINK, &script))
}

/// Returns the data of the page as JSON. As values, they take several times as much memory as this text.
fn data(status: &Status, name: &dyn Fn(&str) -> String) -> String {
    // Texts of sites stand in the data, where nothing ends the element: `<` is written as JSON can, too.
    let hosts = status.summary.iter().flat_map(|summary| {
        let table = &summary.host_table;
        table.hosts.iter().map(|host| host.to_json(table.as_of, &name))
    });
    json!({
        "status": status.to_json(name),
        "series": status.series_to_json(),
        "hosts": hosts.collect::<Vec<_>>(),
    })
    .to_string()
    .replace('<', "\\u003c")
}

pub(crate) fn random_hex() -> io::Result<String> {
    let mut secret = [0_u8; 16];
    getrandom::fill(&mut secret).map_err(io::Error::other)?;
    Ok(format!("{:032x}", u128::from_le_bytes(secret)))
}
