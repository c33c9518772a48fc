#!/usr/bin/env python3
"""Holds the simhashes of two builds against each other: counts the pairs of near-duplicates that only one of them finds.

    benches/crawl/clusters.py OLD.jsonl NEW.jsonl

The files are what --output wrote in two crawls of one site. A pair are two pages with different bytes whose simhashes differ in at most three bits.
"""

import collections
import itertools
import json
import pathlib
import sys

MAX_BITS = 3
# Of numbers that differ in at most three bits, at least one of four quarters is equal.
QUARTERS, QUARTER_BITS = 4, 16


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    (old_pages, old), (new_pages, new) = (pairs(pathlib.Path(name)) for name in sys.argv[1:])
    print(f"pages {old_pages} and {new_pages}, pairs {len(old)} and {len(new)}, missed {len(old - new)}, more {len(new - old)}")


def pairs(file):
    """Returns the number of pages with a simhash, and the pairs of near-duplicates."""
    lines = map(json.loads, file.read_text().splitlines())
    pages = {page["url"]: (int(page["simhash"], 16), page["content_hash"]) for page in lines if page["simhash"]}
    quarters = collections.defaultdict(list)
    for url, (simhash, _) in pages.items():
        for quarter in range(QUARTERS):
            quarters[quarter, simhash >> quarter * QUARTER_BITS & (1 << QUARTER_BITS) - 1].append(url)
    found = set()
    for urls in quarters.values():
        for one, other in itertools.combinations(sorted(urls), 2):
            (a, bytes_of_one), (b, bytes_of_other) = pages[one], pages[other]
            if bytes_of_one != bytes_of_other and (a ^ b).bit_count() <= MAX_BITS:
                found.add((one, other))
    return len(pages), found


if __name__ == "__main__":
    main()
