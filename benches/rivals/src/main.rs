//! What dedupe-and-enqueue costs per URL: the sieve beside rival filters, side by side in one run.
//!
//! `cargo run --release --manifest-path benches/rivals/Cargo.toml -- --sizes 1m,10m,100m`; with `--smoke`, once and small, to see
//! that it works. Prints tables in Markdown.
//!
//! Every contender is loaded with 80 % of its capacity in new URLs. Then pushes are timed at 0 %, 50 % and 90 % duplicates in turn,
//! until 99 % of the capacity are reached; a duplicate repeats any earlier URL. Then it is filled up, and the rate is measured
//! with URLs that were never pushed.
//!
//! URLs are prepared in chunks of 100 000, packed in one buffer and handed over as `&str`, and the queue is drained after each chunk,
//! as a crawler would: both outside the timed part. So memory stays bounded at any size, and every contender's queue
//! works on recycled memory; the cost of a queue that grows into fresh memory is not shown. Each makes its own `String`,
//! and for new URLs only. Who takes batches gets pages of 50 links.
//!
//! The contenders take turns, each in a process of its own, and the best of all rounds counts, in processor time of the thread. The
//! medians follow, which are fairer where the neighbours of a machine use its caches.
//! Absolute times drift on shared machines; ratios within one run are what counts. Even these follow the share of the last cache that the
//! neighbours leave: so how far away the memory is, is measured before each round, and printed above the tables.

mod chunk;
mod contenders;
mod latency;
mod parts;
mod run;
mod tables;
mod trace;
mod workload;

use std::process::{Command, Stdio};

use chunk::{CHUNK, Chunk};
use clap::Parser;
use contenders::Entry;
use latency::Chains;
use parts::{Lines, Parts};
use run::Measured;
use workload::{Stream, Workload};

const SMOKE_CAPACITY: u64 = 2_000;
const SMOKE_PAGES: usize = 3;
/// Up to this size, a round takes so little time that more of them are made.
const SMALL: u64 = 1_000_000;
const SMALL_ROUNDS: usize = 5;
/// How often a round goes over the links of real pages.
const TRACE_TIMES: usize = 10;

/// Has glibc keep what is freed, as it does in a crawler whose queue never runs dry; else it would hand the memory of each
/// drained queue of strings back to the system, and every chunk would pay for fresh pages.
const KEEP_MEMORY: (&str, &str) = ("MALLOC_TRIM_THRESHOLD_", "17179869184");

#[derive(Parser)]
#[command(about)]
struct Arguments {
    /// The capacities, in distinct URLs.
    #[arg(long, value_delimiter = ',', value_parser = size, default_value = "1m,10m,100m")]
    sizes: Vec<u64>,
    /// How often each contender is run; the best and the median count. Sizes up to a million are run five times as often.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Runs only contenders whose names contain one of these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Runs once, with 2 000 URLs.
    #[arg(long)]
    smoke: bool,
    /// Runs this contender only, in this process, and prints bare figures.
    #[arg(long, hide = true)]
    one: Option<String>,
    /// With --one: runs it over the links of real pages.
    #[arg(long, hide = true)]
    trace: bool,
}

impl Arguments {
    /// Returns how many pages of each site are read at most.
    fn pages(&self) -> usize {
        if self.smoke { SMOKE_PAGES } else { usize::MAX }
    }
}

fn size(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.strip_suffix('m') {
        Some(digits) => (digits, 1_000_000),
        None => (text, 1),
    };
    match digits.parse::<u64>().ok().and_then(|count| count.checked_mul(factor)) {
        Some(count @ 1_000..=10_000_000_000) => Ok(count),
        _ => Err("give a number of URLs from 1000 on, like 2000 or 10m".to_owned()),
    }
}

fn main() {
    let mut arguments = Arguments::parse();
    if arguments.smoke {
        arguments.sizes = vec![SMOKE_CAPACITY];
        arguments.rounds = 1;
    }
    let mut entries = contenders::all();
    if let Some(name) = &arguments.one {
        entries.retain(|entry| entry.name == name);
        entries.iter().for_each(|entry| one_contender(entry, &arguments));
        return;
    }
    if !arguments.only.is_empty() {
        entries.retain(|entry| arguments.only.iter().any(|part| entry.name.contains(part)));
    }
    let has_some = |&capacity: &u64| entries.iter().any(|entry| capacity <= entry.most);
    if !arguments.sizes.iter().any(has_some) {
        eprintln!("No contender of these sizes has one of these names: leave out --only to see all names.");
        std::process::exit(2);
    }
    let largest = arguments.sizes.iter().copied().max().unwrap_or(0);
    println!("{}\n", workload::describe(largest));
    for &capacity in arguments.sizes.iter().filter(|capacity| has_some(capacity)) {
        one_size(&entries, capacity, &arguments);
    }
    one_trace(&entries, &arguments);
}

/// Runs one contender in this process, and prints its figures for the process that started it.
fn one_contender(entry: &Entry, arguments: &Arguments) {
    if arguments.trace {
        let times = if arguments.smoke { 1 } else { TRACE_TIMES };
        if let Some(trace) = trace::read(arguments.pages()) {
            println!("{}", run::trace(entry, trace.distinct, &trace.chunk, times));
        }
        return;
    }
    for &capacity in &arguments.sizes {
        let mut chunk = Chunk::default();
        let measured = run::run(entry, capacity, &Workload::new(capacity), &mut chunk);
        println!("{}", measured.to_line());
    }
}

/// Runs one contender in a process of its own, so that none finds the heap as another left it, and returns what it prints.
fn in_own_process(entry: &Entry, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args(["--one", entry.name]).args(arguments);
    command.env(KEEP_MEMORY.0, KEEP_MEMORY.1);
    let output = command.stderr(Stdio::inherit()).output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn one_size(entries: &[Entry], capacity: u64, arguments: &Arguments) {
    let small = capacity <= SMALL && !arguments.smoke;
    let rounds = arguments.rounds * if small { SMALL_ROUNDS } else { 1 };
    let entries: Vec<&Entry> = entries.iter().filter(|entry| capacity <= entry.most).collect();
    let mut measured = vec![Vec::new(); entries.len()];
    let mut chunk = Chunk::default();
    Workload::new(capacity).fill(&mut chunk, &mut Stream::new(), capacity.min(CHUNK), 0);
    // The size of our filter, so that the line of the parts is as far away as ours.
    let mut lines = Lines::new(capacity * 10 / 8);
    let mut parts = vec![Vec::new(); entries.len()];
    let chains = Chains::new();
    let mut latencies = Vec::new();
    for _ in 0..rounds {
        latencies.push(chains.time());
        for ((entry, measured), parts) in entries.iter().zip(&mut measured).zip(&mut parts) {
            let line = in_own_process(entry, &["--sizes", &capacity.to_string()]);
            match line.as_deref().and_then(Measured::from_line) {
                Some(round) => measured.push(round),
                None => eprintln!("{} failed at {capacity} URLs", entry.name),
            }
            // A part takes milliseconds, in which the machine is quiet or not. So each contender has a turn of the parts beside it.
            parts.push(Parts::measure(&chunk, &mut lines));
        }
    }
    let summed_up = |pick| -> Vec<Measured> { measured.iter().map(|rounds| Measured::of(rounds, pick)).collect() };
    println!("## {capacity} URLs\n\n{}\n", latency::describe(&latencies));
    let all = parts.concat();
    let best = Parts::of(&all, run::best);
    tables::print_size(&entries, &summed_up(run::best), &best, &vec![best; entries.len()]);
    if rounds > 1 {
        println!("### Medians\n");
        let beside: Vec<_> = parts.iter().map(|parts| Parts::of(parts, run::median)).collect();
        tables::print_size(
            &entries,
            &summed_up(run::median),
            &Parts::of(&all, run::median),
            &beside,
        );
    }
}

fn one_trace(entries: &[Entry], arguments: &Arguments) {
    let Some(trace) = trace::read(arguments.pages()) else {
        println!("No trace of real links: python3.11-doc and postgresql-doc-15 are not installed.");
        return;
    };
    let mut best = vec![f64::INFINITY; entries.len()];
    for _ in 0..arguments.rounds {
        for (entry, best) in entries.iter().zip(&mut best) {
            let line = in_own_process(
                entry,
                if arguments.smoke {
                    &["--trace", "--smoke"]
                } else {
                    &["--trace"]
                },
            );
            let ns = line.and_then(|line| line.parse().ok());
            *best = best.min(ns.unwrap_or(f64::INFINITY));
        }
    }
    tables::print_trace(&trace, entries, &best);
}
