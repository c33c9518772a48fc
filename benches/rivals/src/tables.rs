//! The tables, in Markdown.

use crate::contenders::Entry;
use crate::parts::{HASHES, Parts};
use crate::run::{Measured, SHARES};
use crate::trace::Trace;

/// `parts` are those of all rounds, `beside` those that were measured beside each contender, with which it is compared.
pub(crate) fn print_size(entries: &[&Entry], measured: &[Measured], parts: &Parts, beside: &[Parts]) {
    print_times(entries, measured);
    print_ratios(entries, measured);
    print_parts(entries, measured, parts, beside);
    print_hashes(parts);
}

fn print_times(entries: &[&Entry], measured: &[Measured]) {
    println!("Push at 0 % / 50 % / 90 % duplicates and pop, ns per URL:\n");
    println!("| contender | 0 % | 50 % | 90 % | pop | measured rate | bits per key |");
    println!("|---|---|---|---|---|---|---|");
    for (entry, measured) in entries.iter().zip(measured) {
        let [none, half, most] = measured.push;
        println!(
            "| {} | {none:.1} | {half:.1} | {most:.1} | {:.1} | {:.2} % | {:.2} |",
            entry.name,
            measured.pop,
            measured.rate * 100.0,
            measured.bits_per_key
        );
    }
}

/// How many times as fast as each rival the sieve is, if there are rivals.
fn print_ratios(entries: &[&Entry], measured: &[Measured]) {
    if entries.iter().all(|entry| entry.is_ours) {
        return;
    }
    println!("\nTimes as fast as the best fastbloom · as sbbf-rs · as the fastest rival of any kind:\n");
    println!("| contender | 0 % | 50 % | 90 % |");
    println!("|---|---|---|---|");
    let best_of = |who: &str, share: usize| {
        let rivals = entries.iter().zip(measured);
        let rivals = rivals.filter(|(entry, _)| !entry.is_ours && entry.name.starts_with(who));
        rivals.map(|(_, rival)| rival.push[share]).fold(f64::NAN, f64::min)
    };
    for (entry, measured) in entries.iter().zip(measured).filter(|(entry, _)| entry.is_ours) {
        let cells = std::array::from_fn::<_, { SHARES.len() }, _>(|share| {
            let times = |who| match best_of(who, share) / measured.push[share] {
                unknown if unknown.is_nan() => "–".to_owned(),
                times => format!("{times:.2}"),
            };
            ["fastbloom", "sbbf", ""].map(times).join(" · ")
        });
        println!("| {} | {} |", entry.name, cells.join(" | "));
    }
}

/// What a push costs beyond the sum of its parts.
fn print_parts(entries: &[&Entry], measured: &[Measured], parts: &Parts, beside: &[Parts]) {
    println!(
        "\nParts, ns: murmur3 {:.1}, xxh3 {:.1}, prefetched line {:.1}, copy {:.1}. Push divided by hash + line + copy of the new:\n",
        parts.murmur3(),
        parts.xxh3(),
        parts.line,
        parts.copy
    );
    println!("| contender | 0 % | 50 % | 90 % |");
    println!("|---|---|---|---|");
    let ours = entries.iter().zip(measured).zip(beside);
    for ((entry, measured), parts) in ours.filter(|((entry, _), _)| entry.is_ours) {
        let hash = if entry.name.contains("xxh3") {
            parts.xxh3()
        } else {
            parts.murmur3()
        };
        let cells = std::array::from_fn::<_, { SHARES.len() }, _>(|share| {
            let sum = parts.sum(hash, 1.0 - SHARES[share] as f64 / 100.0);
            format!("{:.2} (of {sum:.1})", measured.push[share] / sum)
        });
        println!("| {} | {} |", entry.name, cells.join(" | "));
    }
}

fn print_hashes(parts: &Parts) {
    println!("\n| hash | ns per URL |\n|---|---|");
    for (name, ns) in HASHES.iter().zip(parts.hashes) {
        println!("| {name} | {ns:.1} |");
    }
    println!();
}

pub(crate) fn print_trace(trace: &Trace, entries: &[Entry], best: &[f64]) {
    let (links, distinct) = (trace.chunk.len(), trace.distinct);
    println!("## Links of real pages, in page order\n");
    println!(
        "{links} links of {} pages, {:.1} % duplicates, capacity {distinct}; ns per link:\n",
        trace.chunk.page_count(),
        (1.0 - distinct as f64 / links as f64) * 100.0
    );
    println!("| contender | push |\n|---|---|");
    for (entry, ns) in entries.iter().zip(best) {
        println!("| {} | {ns:.1} |", entry.name);
    }
}
