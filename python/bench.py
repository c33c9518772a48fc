#!/usr/bin/env python3
"""Compares the time and memory of a million URLs in a sieve with those of other packages, in one run.

Needs rbloom, abloom and pybloom-live. Times are of the processor, medians of rounds in turns, in ns per URL; memory is what the process
has grown by, measured in a process of its own.
"""

import argparse
import gc
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
    return [f"https://www.example-{n % 5000}.org/section/{n * 2654435761 % 2**32:010}/page-{n:08}.html" for n in range(start, start + count)]


def each(filter, keys):
    add = filter.add
    for key in keys:
        add(key)


def each_by_new(filter, keys):
    """Says whether a key is new by `in`, for filters whose `add` does not."""
    add = filter.add
    for key in keys:
        if key not in filter:
            add(key)


def at_once(filter, keys):
    filter.update(keys)


def sieve(**options):
    return lambda count: crawl_sieve.Sieve(count, **options)


# Name: how it is made, how it takes keys one by one, and all at once.
CONTENDERS = {
    "sieve": (sieve(), each, at_once),
    "sieve, warn": (sieve(on_saturation="warn"), each, at_once),
    "sieve, warn, xxh3": (sieve(on_saturation="warn", hash="xxh3"), each, at_once),
    "sieve, warn, siphash": (sieve(on_saturation="warn", hash="siphash"), each, at_once),
    "abloom, serializable": (lambda count: abloom.BloomFilter(count, 0.01, serializable=True), each, at_once),
    "rbloom": (lambda count: rbloom.Bloom(count, 0.01), each_by_new, at_once),
    "pybloom_live": (lambda count: pybloom_live.BloomFilter(count, 0.01), each, None),
    "set": (lambda count: set(), each, at_once),
}


def nanoseconds(call, filter, keys):
    gc.disable()
    start = time.process_time_ns()
    call(filter, keys)
    took = time.process_time_ns() - start
    gc.enable()
    return took / len(keys)


def times(name, count):
    make, one_by_one, all_at_once = CONTENDERS[name]
    found = []
    for call in (one_by_one, all_at_once):
        filter = make(count)
        for _ in range(2):
            # New strings, as a page that is parsed has: Python has not stored their hash.
            found.append(nanoseconds(call, filter, urls(count)) if call else float("nan"))
    return found


def process_bytes():
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise OSError("the size of the process is unknown")


def grown_by(name, count):
    make, one_by_one, _ = CONTENDERS[name]
    # What the package itself needs is there before.
    one_by_one(make(1000), urls(1000))
    keeps_keys = name == "set"
    before = process_bytes()
    filter = make(count)
    for start in range(0, count, 1000):
        one_by_one(filter, urls(1000, start))
    return (process_bytes() - before) / count


def load_seconds(count):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seen"
        sieve = crawl_sieve.Sieve(count)
        for start in range(0, count, 100_000):
            sieve.update(urls(100_000, start))
        sieve.save(path)
        start = time.perf_counter()
        crawl_sieve.Sieve.load(path)
        return time.perf_counter() - start


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
    print(f"Python {sys.version.split()[0]}, {options.urls} URLs of {statistics.mean(map(len, urls(options.urls))):.0f} bytes, {options.rounds} rounds")
    print("| | `add` new | seen | at once, new | seen | bytes per URL |\n|---|---|---|---|---|---|")
    spawn = multiprocessing.get_context("spawn")
    for name, found in rounds.items():
        medians = [f"{statistics.median(column):.0f}" for column in zip(*found)]
        with spawn.Pool(1) as pool:
            size = pool.apply(grown_by, (name, options.urls))
        print(f"| {name} | {' | '.join(medians)} | {size:.2f} |")
    with spawn.Pool(1) as pool:
        print(f"10 million keys load in {pool.apply(load_seconds, (10_000_000,)):.2f} s")


if __name__ == "__main__":
    main()
