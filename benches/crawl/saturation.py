#!/usr/bin/env python3
"""Checks that a much too small capacity loses no pages by default, and that every policy logs warnings.

    benches/crawl/saturation.py [--pages 100000] [--crawler PATH]
    benches/crawl/saturation.py --short    for CI: 5 000 pages, and a capacity of 100

Each page of the site links to ten others, so most pages have several links to them. The site is crawled with a capacity of a
fiftieth of its pages, under each policy of --on-saturation. Promises:

  grow     the default: at least 99 % of the pages are fetched, and each level has one WARN line
  warn     the summary and the last WARN lines have a lower bound of the dropped URLs, at most the missing pages; exit code 3
  refuse   the summary and the last WARN lines count the refused links; exit code 3
"""

import hashlib
import json
import pathlib
import re

import site_server

MAX_SECONDS = 900
SHARE = 50
LINKS = 10
LEVELS = ["full", "1.5x", "2x", "3x", "5x", "10x", "20x", "30x", "50x"]
AT_LEAST = re.compile(r"at least ([0-9 ]+) URLs? dropped(?:; it is full[^(]*)?, and what only they link to is missing")
REFUSED = re.compile(r"([0-9 ]+) links refused \(raise --capacity\)")


def main():
    parser = site_server.parser(__doc__)
    parser.add_argument("--pages", type=int, help="number of pages of the site")
    arguments = site_server.parse(parser)
    pages = arguments.pages or (5_000 if arguments.short else 100_000)
    promises = []
    with site_server.work_folder() as folder:
        work = pathlib.Path(folder)
        with site_server.Server(work, "site", pages) as server:
            print(f"{'policy':8} {'fetched':>8} {'of':>8} {'warnings':>9} {'seconds':>8}")
            for policy, check in [("", check_growing), ("warn", check_dropping), ("refuse", check_refusing)]:
                done = crawl(arguments.crawler, work, server.url, policy, pages)
                print(f"{policy or 'default':8} {done.fetched:8} {pages:8} {len(done.levels):9} {done.seconds:8.1f}", flush=True)
                kept = [(done.ended, f"the crawl did not end within {MAX_SECONDS} s"), *check(done, pages)]
                for text in (text for is_kept, text in kept if not is_kept):
                    print(f"    {text}")
                promises += [bool(is_kept) for is_kept, _ in kept]
    site_server.finish(promises, "promises")


class Done:
    """The result of one crawl."""

    def __init__(self, run, output, ended):
        self.ended, self.seconds, self.code = ended, run.wall, run.process.returncode
        self.fetched = len(site_server.paths_in(output))
        records = [json.loads(line) for _, line in run.lines if line.startswith("{")]
        summaries = [record for record in records if record["target"] == "crawler::summary"]
        self.summary = summaries[0] if summaries else {"complete": None, "missing": []}
        warnings = [record for record in records if record["level"] == "WARN"]
        self.levels = [one["saturation_level"] for one in warnings if one["target"] == "sieve::saturation"]
        # One for each reason; of those with the same reason the last one counts.
        losses = {one["kind"]: one["message"] for one in warnings if one["target"] == "crawler::loss"}
        self.last = "; ".join(losses.values())

    def incomplete(self, pattern):
        """Returns the number in the summary and in the last warnings, if both have the same."""
        found = [pattern.search(text) for text in ("; ".join(self.summary["missing"]), self.last)]
        numbers = [int(one.group(1).replace(" ", "")) for one in found if one]
        return numbers[0] if len(numbers) == 2 and numbers[0] == numbers[1] else None


def crawl(crawler, work, url, policy, pages):
    output = work / f"{policy or 'default'}.jsonl"
    options = ["--on-saturation", policy] if policy else []
    options += ["--capacity", pages // SHARE, "--delay", 0, "--per-host", 8, "--log-format", "json", "--fail-on-incomplete"]
    with site_server.Crawl(crawler, work, *options, "--output", output, url) as run:
        ended = run.wait(MAX_SECONDS)
        run.wall = run.seconds
    return Done(run, output, ended)


def check_growing(done, pages):
    return [
        (done.fetched >= 0.99 * pages, f"{pages - done.fetched} pages are missing"),
        # The estimate at the end is about fifty times the capacity, so the last level may be missing.
        (done.levels in (LEVELS, LEVELS[:-1]), f"the levels of the warnings are {done.levels}"),
        (done.code in (0, 3), f"the exit code is {done.code}"),
        ((done.code == 0) == done.summary["complete"], "exit code and summary disagree"),
    ]


def check_dropping(done, pages):
    dropped = done.incomplete(AT_LEAST)
    return [
        (dropped is not None, f"summary and last warnings do not have the same lower bound of dropped URLs: {done.last}"),
        (dropped is None or 0 < dropped <= pages - done.fetched, f"at least {dropped} dropped, and {pages - done.fetched} pages missing"),
        (done.levels[:1] == ["full"] and len(set(done.levels)) == len(done.levels), f"the levels of the warnings are {done.levels}"),
        (done.code == 3, f"the exit code is {done.code}"),
    ]


def check_refusing(done, pages):
    refused = done.incomplete(REFUSED)
    return [
        (refused is not None and refused > 0, f"summary and last warnings do not have the same number of refused links: {done.last}"),
        (abs(done.fetched / (pages // SHARE) - 1) < 0.1, f"{done.fetched} pages fetched at a capacity of {pages // SHARE}"),
        (done.levels == ["full"], f"the levels of the warnings are {done.levels}"),
        (done.code == 3, f"the exit code is {done.code}"),
    ]


# The site.


def site(pages):
    pages = int(pages)

    def answer(path):
        number = path.strip("/") or "0"
        if not number.isdigit() or int(number) >= pages:
            return site_server.NOT_FOUND
        page = int(number)
        # Half of the links make a tree of all pages. The others link across the tree.
        below = [page * LINKS // 2 + at for at in range(1, LINKS // 2 + 1)]
        across = [(page * 7919 + at * 104_729) % pages for at in range(LINKS - LINKS // 2)]
        anchors = "".join(f'<a href="/{link or ""}">{link}</a>\n' for link in below + across if link < pages)
        return site_server.response(f"<!doctype html><title>Page {page}</title>\n<p>{words(page)}\n{anchors}")

    return answer


def words(page):
    """Returns words that are unique to the page, so that no two pages are near-duplicates."""
    letters = hashlib.shake_128(str(page).encode()).hexdigest(160).translate(str.maketrans("0123456789", "ghijklmnop"))
    return " ".join(letters[at : at + 8] for at in range(0, len(letters), 8))


if __name__ == "__main__":
    site_server.run(main, {"site": site})
