#!/usr/bin/env python3
"""Compares a sieve with other packages, in one run: time and memory of a million URLs.

Needs abloom, rbloom and pybloom-live. Times are of the processor, in ns per URL: medians of rounds in turns. Each pass gets new strings, as a
page that is parsed makes them; only "again" gets those of the pass before, whose hash Python has stored then. `add` of rbloom and of abloom
does not say whether a key is new; for rbloom, `in` is asked before. Memory is what a process of its own has grown by.
"""

import argparse
import contextlib
import gc
import logging
import multiprocessing
import statistics
import sys
import tempfile
import time
from pathlib import Path

import abloom
import crawl_sieve
import pybloom_live
import rbloom


def urls(count, start=0):
    return [f"https://www.example-{n % 5000}.org/section/{n * 2654435761 % 2**32:010}/{n:08}.html" for n in range(start, start + count)]


def add_each(seen, keys):
    add = seen.add
    for key in keys:
        add(key)


def ask_and_add_each(seen, keys):
    add = seen.add
    for key in keys:
        if key not in seen:
            add(key)


def update(seen, keys):
    seen.update(keys)


def sieve(**options):
    return lambda count: crawl_sieve.Sieve(count, **options)


# How it is made; how it takes keys one by one, and all at once.
CONTENDERS = {
    "sieve": (sieve(), add_each, update),
    "sieve, warn": (sieve(on_saturation="warn"), add_each, update),
    "sieve, warn, xxh3": (sieve(on_saturation="warn", hash="xxh3"), add_each, update),
    "sieve, warn, siphash": (sieve(on_saturation="warn", hash="siphash"), add_each, update),
    "abloom, serializable": (lambda count: abloom.BloomFilter(count, 0.01, serializable=True), add_each, update),
    "rbloom": (lambda count: rbloom.Bloom(count, 0.01), ask_and_add_each, update),
    "pybloom_live": (lambda count: pybloom_live.BloomFilter(count, 0.01), add_each, None),
    "set": (lambda count: set(), add_each, update),
}


def nanoseconds(call, seen, keys):
    gc.disable()
    start = time.process_time_ns()
    call(seen, keys)
    took = time.process_time_ns() - start
    gc.enable()
    return took / len(keys)


def times(name, count):
    """`add`: new, seen; `update`: new, seen, again."""
    make, one_by_one, at_once = CONTENDERS[name]
    seen = make(count)
    found = [nanoseconds(one_by_one, seen, urls(count)) for _ in range(2)]
    if at_once is None:
        return found + [float("nan")] * 3
    seen = make(count)
    strings = [urls(count), urls(count)]
    return found + [nanoseconds(at_once, seen, strings[at]) for at in (0, 1, 1)]


def process_bytes():
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise OSError("the system does not tell the size of the process")


def bytes_per_url(name, count):
    make, one_by_one, _ = CONTENDERS[name]
    # What the code itself needs is there before, also to log.
    with contextlib.suppress(IndexError):  # pybloom_live refuses more than its capacity.
        one_by_one(make(1000), urls(2000))
    before = process_bytes()
    seen = make(count)
    for start in range(0, count, 1000):
        one_by_one(seen, urls(1000, start))
    return (process_bytes() - before) / count


def load_seconds(count):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seen"
        seen = crawl_sieve.Sieve(count)
        for start in range(0, count, 100_000):
            seen.update(urls(100_000, start))
        seen.save(path)
        start = time.perf_counter()
        crawl_sieve.Sieve.load(path)
        return time.perf_counter() - start


def apart(call, *arguments):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, arguments)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--urls", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--only", nargs="*", default=list(CONTENDERS), metavar="NAME")
    options = options.parse_args()
    rounds = {name: [] for name in options.only}
    for number in range(options.rounds):
        for name in options.only:
            # What is slow is measured once.
            if number == 0 or name != "pybloom_live":
                rounds[name].append(times(name, options.urls))
    medians = {name: [statistics.median(column) for column in zip(*found)] for name, found in rounds.items()}
    length = statistics.mean(map(len, urls(options.urls)))
    print(f"Python {sys.version.split()[0]}, {options.urls} URLs of {length:.0f} bytes, {options.rounds} rounds\n")
    print("| ns per URL | `add` new | seen | `update` new | seen | again | bytes per URL |\n|---|---|---|---|---|---|---|")
    for name, row in medians.items():
        print(f"| {name} | {' | '.join(f'{n:.0f}' for n in row)} | {apart(bytes_per_url, name, options.urls):.2f} |")
    print()
    for peer, columns in [("abloom, serializable", range(2)), ("rbloom", range(2, 5))]:
        for name, row in medians.items():
            if name.startswith("sieve") and peer in medians:
                print(f"{name} / {peer}:", *(f"{row[n] / medians[peer][n]:.2f}" for n in columns))
    print(f"\n10 million keys load in {apart(load_seconds, 10_000_000):.2f} s")


# Below: also in the processes of their own.
logging.disable()

if __name__ == "__main__":
    main()
