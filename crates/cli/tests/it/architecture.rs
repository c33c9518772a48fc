//! The source tree: imports go downward only, and only certain modules use certain libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::source_tree::{crates, sources};

fn files_naming(of: &str, word: &str) -> BTreeSet<String> {
    let names_it = |code: &str| {
        code.match_indices(word).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '"')
        })
    };
    sources(of)
        .into_iter()
        .filter(|(_, code)| names_it(code))
        .map(|(name, _)| name)
        .collect()
}

#[track_caller]
fn only(of: &str, word: &str, allowed: &[&str]) {
    let allowed: BTreeSet<_> = allowed.iter().map(ToString::to_string).collect();
    assert_eq!(files_naming(of, word), allowed, "in {of}, {word:?} is named by");
}

/// The hash and the log, two optional hashes, mapped memory, and error types.
const SIEVE_MAY_USE: &str = "bytemuck fastmurmur3 log memmap2 serde siphasher thiserror xxhash-rust";

#[test]
fn imports_go_downward_only() {
    let manifest = |of: &str| fs::read_to_string(crates().join(of).join("Cargo.toml")).unwrap();
    let dependencies = |of: &str| {
        let text = manifest(of);
        let from = text.find("[dependencies]").unwrap();
        let until = text[from + 1..].find("\n[").map_or(text.len(), |at| from + at);
        text[from..until]
            .lines()
            .skip(1)
            .filter_map(|line| line.split(['.', ' ', '=']).next())
            .map(str::to_owned)
            .collect()
    };
    let of_sieve: BTreeSet<String> = dependencies("sieve");
    assert!(
        of_sieve
            .iter()
            .all(|name| name.is_empty() || SIEVE_MAY_USE.split(' ').any(|used| used == name)),
        "{of_sieve:?}"
    );
    for (of, above) in [("frontier", "crawl-page"), ("page", "crawl-engine")] {
        let used: BTreeSet<String> = dependencies(of);
        let forbidden = [above, "crawl-engine", "tokio", "reqwest", "hyper"];
        assert!(forbidden.iter().all(|name| !used.contains(*name)), "{of}: {used:?}");
    }
}

/// Each crate, what only some of its files may name, and these files.
const USES: &str = "\
    sieve | fastmurmur3:: | hash.rs
    sieve | log::log! | lines.rs
    sieve | memmap2:: | memory.rs
    sieve | siphasher:: | hash.rs
    sieve | std::fs |
    sieve | std::thread |
    sieve | unsafe { | bloom/insert_one.rs prefetch.rs probes/eight.rs
    sieve | xxhash_rust:: | hash.rs
    frontier | jiff:: | time.rs
    frontier | lz4_flex:: | sqlite/sealed.rs
    frontier | rusqlite:: | sqlite.rs sqlite/backfill.rs sqlite/errors.rs sqlite/format.rs sqlite/pages.rs sqlite/repair.rs \
        sqlite/summary.rs sqlite/writing.rs
    frontier | std::fs | store/lock.rs sqlite.rs sqlite/format.rs sqlite/repair.rs store/system_start.rs
    frontier | std::thread | sqlite/backfill.rs store/lock.rs
    frontier | xxhash_rust:: | durable/pages.rs sqlite/sealed.rs
    page | cssparser:: | links/style.rs
    page | flate2:: | sitemap/unpack.rs
    page | jiff:: | sitemap/date.rs
    page | quick_xml:: | sitemap/xml.rs xml.rs
    page | robotxt:: | robots.rs
    page | scraper:: | links/document.rs select.rs select/field.rs select/text.rs
    page | std::fs |
    page | std::thread |
    page | xxhash_rust:: | fingerprint.rs links/repeats.rs
    crawler | brotli_decompressor:: | fetch/decoding.rs
    crawler | bytesize:: | summary/rows.rs
    crawler | cookie_store:: | fetch/cookie_file.rs fetch/cookies.rs
    crawler | flate2:: | fetch/decoding.rs output/lines.rs
    crawler | h2:: | fetch/classify.rs
    crawler | hyper |
    crawler | jiff:: | fetch/cookie_date.rs
    crawler | libdeflater:: | fetch/decoding.rs
    crawler | reqwest:: | fetch/body.rs fetch/classify.rs fetch/client.rs fetch/connections.rs fetch/cookies.rs \
        fetch/exchange.rs fetch/guard.rs fetch/headers.rs fetch/own_headers.rs fetch/proxy.rs
    crawler | rustix:: | engine/clock.rs output/save.rs
    crawler | rustls_platform_verifier:: | fetch/tls.rs
    crawler | tokio:: | engine.rs engine/clock.rs engine/commits.rs engine/conclusions.rs engine/fetch_task.rs \
        engine/ledger.rs engine/plan.rs engine/sharing.rs engine/stop.rs fetch/address_cache.rs fetch/body.rs fetch/client.rs \
        fetch/guard.rs orders.rs peers.rs
    crawler | zstd_safe:: | fetch/decoding.rs
    cluster | redis:: | redis_log.rs redis_log/errors.rs redis_log/nodes.rs
    watch | hyper:: | server.rs server/answer.rs server/events.rs
    watch | prometheus_client:: | metrics.rs metrics/page.rs status.rs
    cli | clap_mangen:: | options/generated.rs
    cli | env_logger:: | logging.rs
    cli | file_id:: | options/outputs.rs
    cli | jiff:: | logging.rs options/values.rs
    cli | rlimit:: | open_files.rs
    cli | strsim:: | options/closest.rs
    cli | terminal_size:: | options/command_line.rs
    cli | toml:: | config_file.rs";

#[test]
fn each_library_and_what_the_system_offers_is_used_in_its_own_modules_only() {
    for row in USES.lines() {
        let [of, word, files] = row.split('|').map(str::trim).collect::<Vec<_>>().try_into().unwrap();
        only(of, word, &files.split_whitespace().collect::<Vec<_>>());
    }
}

#[test]
fn crates_below_the_crawler_use_no_clock_or_network() {
    for of in ["sieve", "frontier", "page"] {
        for word in "SystemTime,Instant,std::net::{,std::net::T,std::net::U,async ,.await,tokio".split(',') {
            only(of, word, &[]);
        }
    }
}

#[test]
fn no_source_file_is_longer_than_the_limit() {
    for of in ["sieve", "frontier", "page", "crawler", "watch", "cluster", "cli"] {
        for (name, code) in sources(of) {
            let lines = code.lines().count();
            assert!(
                lines <= 400,
                "{of}/src/{name} has {lines} lines of code: it is two rooms"
            );
        }
    }
}

/// Public types of the crates that are libraries, each with the crates that define it. `unreachable_pub` sees to it that what is `pub` is public.
fn public_types() -> BTreeMap<String, Vec<&'static str>> {
    let mut defined = BTreeMap::<_, Vec<_>>::new();
    for of in ["sieve", "frontier", "page", "crawler", "watch", "cluster"] {
        for code in sources(of).values() {
            for line in code.lines() {
                let mut words = line.trim().split(|c: char| !c.is_alphanumeric() && c != '_');
                let is_type = words.next() == Some("pub")
                    && words
                        .next()
                        .is_some_and(|kind| ["struct", "enum", "trait", "type", "union"].contains(&kind));
                if let Some(name) = words.next().filter(|_| is_type) {
                    defined.entry(name.to_owned()).or_default().push(of);
                }
            }
        }
    }
    defined
}

#[test]
fn no_public_type_has_the_name_of_another() {
    let mut defined = public_types();
    assert!(
        defined.contains_key("Frontier") && defined.contains_key("Sieve"),
        "{defined:?}"
    );
    defined.retain(|_, of| of.len() > 1);
    assert!(defined.is_empty(), "one name, several types: {defined:?}");
}
