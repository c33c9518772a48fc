//! Prints the key of each URL: reads one URL per line, and prints its key and the URL that would be fetched.
//!
//! `printf 'HTTP://a.example/%%7eann?b&a\n' | cargo run -q -p crawl-frontier --example canonical_keys -- '{"sort_query": true}'`
//!
//! The argument has the rules to add, as JSON (see `frontier::canonical::Rules`). A line of the output has the key, a tab
//! and the URL; or `refused`, a tab and the reason.

use std::error::Error;
use std::io::{self, BufRead as _, BufWriter, Write as _};

use frontier::canonical::{Canonicalizer, Rules};

fn main() -> Result<(), Box<dyn Error>> {
    let rules = match std::env::args().nth(1) {
        Some(json) => serde_json::from_str(&json)?,
        None => Rules::default(),
    };
    let canonicalizer = Canonicalizer::new(rules);
    let mut out = BufWriter::new(io::stdout().lock());
    // Split at line feeds only: other characters may be part of a URL.
    for line in io::stdin().lock().split(b'\n') {
        match canonicalizer.parse(&String::from_utf8(line?)?) {
            Ok(found) => writeln!(out, "{}\t{}", found.key(), found.url())?,
            Err(why) => writeln!(out, "refused\t{why}")?,
        }
    }
    out.flush()?;
    Ok(())
}
