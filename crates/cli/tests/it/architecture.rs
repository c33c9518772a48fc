//! The source tree: imports go downward only, and only certain modules use certain libraries.

use std::collections::BTreeSet;
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

/// The hash and the log, two optional hashes, mapped memory, and the compression of the queue.
const SIEVE_MAY_USE: [&str; 9] = [
    "bytemuck",
    "fastmurmur3",
    "log",
    "lz4_flex",
    "memmap2",
    "serde",
    "siphasher",
    "xxhash-rust",
    "",
];

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
        of_sieve.iter().all(|name| SIEVE_MAY_USE.contains(&name.as_str())),
        "{of_sieve:?}"
    );
    let of_frontier: BTreeSet<String> = dependencies("frontier");
    assert!(!of_frontier.contains("crawler") && !of_frontier.contains("tokio") && !of_frontier.contains("hyper"));
}

#[test]
fn each_library_is_used_in_its_own_modules_only() {
    only("sieve", "fastmurmur3::", &["hash.rs"]);
    only("sieve", "xxhash_rust::", &["hash.rs"]);
    only("sieve", "siphasher::", &["hash.rs"]);
    only("sieve", "memmap2::", &["memory.rs"]);
    only("sieve", "lz4_flex::", &["packed/compression.rs"]);
    only(
        "sieve",
        "unsafe {",
        &["bloom/insert_one.rs", "prefetch.rs", "probes/eight.rs"],
    );
    only(
        "frontier",
        "rusqlite::",
        &[
            "sqlite.rs",
            "sqlite/backfill.rs",
            "sqlite/errors.rs",
            "sqlite/format.rs",
            "sqlite/repair.rs",
            "sqlite/summary.rs",
            "sqlite/writing.rs",
        ],
    );
    only("frontier", "lz4_flex::", &["sqlite/sealed.rs"]);
    only("frontier", "xxhash_rust::", &["sqlite/sealed.rs"]);
    only("sieve", "log::log!", &["lines.rs"]);
    only(
        "crawler",
        "reqwest::",
        &[
            "fetch/body.rs",
            "fetch/client.rs",
            "fetch/connections.rs",
            "fetch/cookies.rs",
            "fetch/error.rs",
            "fetch/exchange.rs",
            "fetch/guard.rs",
            "fetch/headers.rs",
            "fetch/own_headers.rs",
            "fetch/proxy.rs",
        ],
    );
    only("crawler", "hyper", &[]);
    only("crawler", "h2::", &["fetch/error.rs"]);
    only(
        "crawler",
        "flate2::",
        &["decoding.rs", "output/lines.rs", "output/warc/file.rs"],
    );
    only("crawler", "rustix::", &["output/save/sync.rs"]);
    only(
        "crawler",
        "cookie_store::",
        &["fetch/cookie_file.rs", "fetch/cookies.rs"],
    );
    only("cli", "toml::", &["config_file.rs"]);
    only("crawler", "bytesize::", &["summary/shown.rs"]);
    only("cli", "file_id::", &["options/outputs.rs"]);
    only("cli", "rlimit::", &["open_files.rs"]);
    only("cli", "jiff::", &["logging.rs", "options/values.rs"]);
    only("cli", "clap_mangen::", &["options/generated.rs"]);
    only("cli", "strsim::", &["options/closest.rs"]);
    only("cli", "terminal_size::", &["options/command_line.rs"]);
    only("crawler", "brotli_decompressor::", &["decoding.rs"]);
    only("crawler", "zstd_safe::", &["decoding.rs"]);
    only("crawler", "libdeflater::", &["decoding.rs"]);
    only(
        "crawler",
        "scraper::",
        &[
            "page/links/document.rs",
            "page/select.rs",
            "page/select/field.rs",
            "page/select/text.rs",
        ],
    );
    only("crawler", "cssparser::", &["page/links/style.rs"]);
    only("crawler", "rustls_platform_verifier::", &["fetch/tls.rs"]);
    only("crawler", "robotxt::", &["page/robots.rs"]);
    only("crawler", "quick_xml::", &["page/sitemap/xml.rs"]);
    only("crawler", "jiff::", &["page/sitemap/date.rs", "timestamp.rs"]);
    only("cli", "env_logger::", &["logging.rs"]);
    only(
        "crawler",
        "xxhash_rust::",
        &["page/fingerprint.rs", "page/links/repeats.rs"],
    );
}

#[test]
fn crates_below_the_crawler_use_no_clock_or_network_and_only_the_store_uses_files() {
    for of in ["sieve", "frontier"] {
        for word in [
            "SystemTime",
            "Instant",
            "std::net::{",
            "std::net::T",
            "std::net::U",
            "async ",
            ".await",
            "tokio",
        ] {
            only(of, word, &[]);
        }
    }
    only("sieve", "std::fs", &[]);
    only("sieve", "std::thread", &[]);
    only(
        "frontier",
        "std::fs",
        &[
            "store/lock.rs",
            "sqlite.rs",
            "sqlite/format.rs",
            "sqlite/repair.rs",
            "store/system_start.rs",
        ],
    );
    only("frontier", "std::thread", &["sqlite/backfill.rs", "store/lock.rs"]);
}

#[test]
fn only_the_engine_and_the_client_use_tasks_and_timers() {
    let files = files_naming("crawler", "tokio::");
    let allowed = [
        "engine.rs",
        "engine/clock.rs",
        "engine/commits.rs",
        "engine/fetch_task.rs",
        "engine/ledger.rs",
        "engine/plan.rs",
        "engine/stop.rs",
        "fetch/address_cache.rs",
        "fetch/body.rs",
        "fetch/client.rs",
        "fetch/guard.rs",
    ];
    let allowed: BTreeSet<String> = allowed.map(str::to_owned).into();
    assert_eq!(files, allowed, "found, and allowed");
}

#[test]
fn no_source_file_is_longer_than_the_limit() {
    for of in ["sieve", "frontier", "crawler", "cli"] {
        for (name, code) in sources(of) {
            let lines = code.lines().count();
            assert!(
                lines <= 400,
                "{of}/src/{name} has {lines} lines of code: it is two rooms"
            );
        }
    }
}
