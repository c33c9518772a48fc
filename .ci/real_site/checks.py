#!/usr/bin/env python3
"""Run the crawler against the two local sites and check what it did; started by `.ci/real-site`.

Every check prints PASS or FAIL with its figures. The exit status is 1 if any failed.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import bfs
from access_log import CLOCK_STEP_MS, AccessLog, gaps_ms

CRAWL_SECONDS = 600
ERROR_SECONDS = 120
EXAMPLE_SECONDS = 1800
SHOWN_DIFFERENCES = 20

DELAY_MS = 200
POLITE_PAGES = 60
SMALL_CAPACITY = 300
POLICY_CAPACITY = 100
LEVEL_NAMES = {"warn", "warning"}


@dataclass
class Site:
    """One served manual: its address, its access log, and (once crawled) what the oracle found there."""

    name: str
    url: str
    log: AccessLog
    visits: list


@dataclass
class Run:
    """One finished run of a program."""

    status: int | None
    stdout: str
    stderr: str
    seconds: float

    @property
    def ended(self):
        """Return how it ended, in words."""
        return "it did not end in time" if self.status is None else f"exit status {self.status}"


class Report:
    """Print the outcome of each check and remember whether one failed."""

    def __init__(self):
        self.failed = 0
        self.passed = 0

    def check(self, passed, what, details=()):
        """Record one outcome; `details` are printed only when it failed."""
        print(f"{'PASS' if passed else 'FAIL'}  {what}", flush=True)
        if passed:
            self.passed += 1
            return
        self.failed += 1
        details = list(details)
        for detail in details[:SHOWN_DIFFERENCES]:
            print(f"        {detail}")
        if len(details) > SHOWN_DIFFERENCES:
            print(f"        ... and {len(details) - SHOWN_DIFFERENCES} more")


class Crawler:
    """The program under test, run with a file for each of its outputs."""

    def __init__(self, binary, work):
        self.binary = binary
        self.work = work
        offered = subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=ERROR_SECONDS)
        self.quiet = ["--quiet"] if "--quiet" in offered.stdout else []

    def run(self, *arguments, seconds=CRAWL_SECONDS):
        """Run it with these arguments and wait for its end."""
        return run([self.binary, *arguments], seconds)

    def crawl(self, name, url, *arguments):
        """Crawl a site; return the run and the page records it wrote."""
        output = self.work / f"{name}.jsonl"
        done = self.run(*arguments, "--output", str(output), url)
        (self.work / f"{name}.stderr").write_text(done.stderr)
        return done, read_records(output)


def run(command, seconds):
    """Run a command without input; a run that takes too long is killed and has no status."""
    began = time.monotonic()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace",
    )
    try:
        stdout, stderr = process.communicate(timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
        status = None
    return Run(status, stdout, stderr, time.monotonic() - began)


def read_records(path):
    """Return the page records of a JSONL file; a file that was never made holds none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def last_lines(text, count=5):
    """Return the end of a program's messages, for the report of a failure."""
    return text.strip().splitlines()[-count:]


def differences(ours, theirs, ours_name, theirs_name):
    """Return one line per element that only one of the two sets has."""
    return [f"only {ours_name}: {one}" for one in sorted(ours - theirs)] + [
        f"only {theirs_name}: {one}" for one in sorted(theirs - ours)
    ]


def pages_asked_for(site, requests):
    """Return the number of requests for each address, and for robots.txt."""
    counts = Counter(bfs.normal_form(urljoin(site.url, request.uri)) for request in requests)
    return counts, counts.pop(bfs.normal_form(urljoin(site.url, "/robots.txt")), 0)


def crawl_with_oracle(site):
    """Let the oracle crawl the site and say what it found."""
    began = time.monotonic()
    site.visits = bfs.crawl(site.url)
    site.log.since_last()
    statuses = Counter(visit.status for visit in site.visits)
    pages = sum(visit.status == 200 and visit.content_type == "text/html" for visit in site.visits)
    counts = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items()))
    print(f"      {site.name}: the oracle finds {counts}; {pages} are HTML pages ({time.monotonic() - began:.1f} s)")
    for visit in site.visits:
        if visit.status != 200:
            print(f"        {visit.status} {visit.url} (linked from {visit.referrer})")


def check_whole_site(report, crawler, site):
    """Check that a fast crawl fetches exactly what the oracle finds, each address once."""
    done, records = crawler.crawl(
        f"{site.name}-whole", site.url,
        "--capacity", "1000000", "--delay", "0", "--per-host", "8", "--concurrency", "8", *crawler.quiet,
    )
    pace = len(records) / done.seconds
    report.check(
        done.status == 0,
        f"{site.name}: a whole crawl ends well ({done.ended}, {len(records)} records, {done.seconds:.1f} s, {pace:.0f}/s)",
        last_lines(done.stderr),
    )
    check_fetched_set(report, site, records)
    check_requests(report, site)


def check_fetched_set(report, site, records):
    """Check the records of status 200 against the oracle's."""
    fetched = Counter(bfs.normal_form(record["url"]) for record in records if record["status"] == 200)
    expected = {visit.url for visit in site.visits if visit.status == 200}
    missing, surplus = expected - set(fetched), set(fetched) - expected
    report.check(
        not missing and not surplus,
        f"{site.name}: {len(fetched)} pages fetched, {len(expected)} exist "
        f"({len(missing)} missed, {len(surplus)} too many)",
        differences(set(fetched), expected, "the crawler", "the oracle"),
    )
    repeated = [f"{count} x {url}" for url, count in fetched.items() if count > 1]
    report.check(not repeated, f"{site.name}: one record per page ({len(repeated)} pages have more)", repeated)


def check_requests(report, site):
    """Check nginx's own log of the crawl that has just ended."""
    requests = site.log.since_last()
    counts, robots = pages_asked_for(site, requests)
    repeated = [f"{count} x {url}" for url, count in counts.items() if count > 1]
    report.check(
        not repeated and bool(counts),
        f"{site.name}: by nginx's log {len(counts)} addresses, each requested once ({len(repeated)} more often)",
        repeated,
    )
    report.check(robots == 1, f"{site.name}: by nginx's log robots.txt was requested {robots} time(s)")

    asked = {(bfs.normal_form(urljoin(site.url, one.uri)), one.status) for one in requests}
    asked = {(url, status) for url, status in asked if urlsplit(url).path != "/robots.txt"}
    expected = {(visit.url, visit.status) for visit in site.visits}
    report.check(
        asked == expected,
        f"{site.name}: by nginx's log the requested addresses, including failed ones, are the oracle's "
        f"({len(asked)} and {len(expected)})",
        differences(asked, expected, "the crawler", "the oracle"),
    )
    other = sorted({request.method for request in requests} - {"GET"})
    report.check(not other, f"{site.name}: nothing but GET was sent", other)


def check_delay(report, crawler, site, name, *limits):
    """Check that a host is left alone between the end of one request and the start of the next."""
    done, records = crawler.crawl(
        f"{site.name}-{name}", site.url, "--delay", str(DELAY_MS / 1000), *limits, *crawler.quiet
    )
    requests = site.log.since_last()
    report.check(
        done.status == 0,
        f"{site.name}: a {name} crawl ends well ({done.ended}, {len(records)} records, {done.seconds:.1f} s)",
        last_lines(done.stderr),
    )
    gaps = gaps_ms(requests)
    too_close = [
        f"{gap} ms between {earlier.uri} and {later.uri}"
        for gap, earlier, later in gaps
        if gap < DELAY_MS - CLOCK_STEP_MS
    ]
    figures = "no two requests"
    if gaps:
        spans = sorted(gap for gap, _, _ in gaps)
        figures = f"{len(spans)} gaps, shortest {spans[0]} ms, middle {spans[len(spans) // 2]} ms, longest {spans[-1]} ms"
    report.check(
        bool(gaps) and not too_close,
        f"{site.name}: at least {DELAY_MS} ms between requests, less {CLOCK_STEP_MS} ms because nginx's clock counts "
        f"whole milliseconds ({figures}, {len(too_close)} too short)",
        too_close,
    )
    return records, requests


def check_politeness(report, crawler, site):
    """Check the delay, and the limit on pages, on the first pages of a site."""
    records, requests = check_delay(report, crawler, site, "polite", "--max-pages", str(POLITE_PAGES))
    counts, robots = pages_asked_for(site, requests)
    report.check(
        len(records) == sum(counts.values()) == POLITE_PAGES,
        f"{site.name}: --max-pages {POLITE_PAGES} gives {len(records)} records and {sum(counts.values())} requests "
        f"beside {robots} for robots.txt",
    )


def check_full_politeness(report, crawler, site):
    """Check the delay over a whole site; about two minutes, so only on request."""
    if os.environ.get("REAL_SITE_FULL") != "1":
        print(f"SKIP  {site.name}: the whole site at {DELAY_MS} ms per request (REAL_SITE_FULL=1 runs it)")
        return
    records, _ = check_delay(report, crawler, site, "whole-polite")
    check_fetched_set(report, site, records)


def saturation_warnings(stderr):
    """Return the key-values of each warning of the target `sieve::saturation` in a log of JSON lines.

    The record has a level of its own beside the key-value `level`, so the key-values are looked for in a nested object
    first and in the record itself last.
    """
    warnings = []
    for line in stderr.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if not isinstance(record, dict) or record.get("target") != "sieve::saturation":
            continue
        severity = record.get("severity", record.get("level"))
        if str(severity).lower() not in LEVEL_NAMES:
            continue
        nested = [value for value in record.values() if isinstance(value, dict) and "estimated" in value]
        warnings.append(nested[0] if nested else record)
    return warnings


def check_saturation(report, crawler, site):
    """Check what a crawl says whose filter is far too small for the site."""
    done, records = crawler.crawl(
        f"{site.name}-saturated", site.url,
        "--capacity", str(SMALL_CAPACITY), "--delay", "0", "--per-host", "8", "--log-format", "json",
    )
    site.log.since_last()
    report.check(
        done.status == 0,
        f"{site.name}: a crawl at capacity {SMALL_CAPACITY} ends well ({done.ended}, {len(records)} records of "
        f"{len(site.visits)})",
        last_lines(done.stderr),
    )
    warnings = saturation_warnings(done.stderr)
    seen = [line for line in done.stderr.splitlines() if "saturation" in line] or last_lines(done.stderr)
    first = warnings[0].get("estimated") if warnings else None
    report.check(
        is_number(first) and float(first) > SMALL_CAPACITY,
        f"{site.name}: the first warning of saturation comes above capacity (estimate {first}, {len(warnings)} warnings)",
        seen,
    )
    capacities = {str(warning.get("capacity")) for warning in warnings}
    report.check(
        bool(warnings) and capacities == {str(SMALL_CAPACITY)},
        f"{site.name}: each warning names the capacity ({', '.join(sorted(capacities)) or 'none'})",
        seen,
    )
    levels = [str(warning.get("saturation_level")) for warning in warnings]
    report.check(
        bool(levels) and "None" not in levels and len(set(levels)) == len(levels),
        f"{site.name}: one warning per level ({', '.join(levels) or 'none'})",
        seen,
    )


def is_number(value):
    """Return whether a logged value is a number, also when the logger wrote it as text."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def check_true_loss(report, root, site):
    """Show the example that compares the estimate with what was truly lost; it judges itself."""
    if not (root / "examples" / "true_loss.rs").exists():
        print("SKIP  there is no example true_loss")
        return
    command = ["cargo", "run", "--release", "--quiet", "--example", "true_loss", "--", site.url, str(SMALL_CAPACITY)]
    sys.stdout.flush()
    try:
        status = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, timeout=EXAMPLE_SECONDS).returncode
    except subprocess.TimeoutExpired:
        status = None
    site.log.since_last()
    report.check(status == 0, f"{site.name}: the loss is what the estimate says (exit status {status})")


def check_policies(report, crawler, site):
    """Check that a filter that grows loses nothing, and that one that refuses ends and says what it left out."""
    small = ["--capacity", str(POLICY_CAPACITY), "--delay", "0"]
    done, records = crawler.crawl(f"{site.name}-growing", site.url, *small, "--on-saturation", "grow")
    ours = {bfs.normal_form(record["url"]) for record in records if record["status"] == 200}
    theirs = {visit.url for visit in site.visits if visit.status == 200}
    report.check(
        done.status == 0 and ours == theirs,
        f"{site.name}: from a capacity of {POLICY_CAPACITY} a growing filter finds every page ({len(ours)} of {len(theirs)})",
        differences(ours, theirs, "crawled", "there"),
    )
    done, records = crawler.crawl(f"{site.name}-refusing", site.url, *small, "--on-saturation", "refuse")
    refused = re.search(r"saturated: (\d+)", done.stdout)
    report.check(
        done.status == 0 and abs(len(records) - POLICY_CAPACITY) <= POLICY_CAPACITY // 10 and refused,
        f"{site.name}: at a capacity of {POLICY_CAPACITY} a refusing filter ends well and says what it left out "
        f"({len(records)} records, {refused.group(1) if refused else 'an unknown number of'} links refused)",
    )
    site.log.since_last()


def check_errors(report, crawler, site):
    """Check exit status and message of runs that cannot succeed."""
    output = ["--output", str(crawler.work / "errors.jsonl")]
    nowhere = ["--output", "/nonexistent-dir/x.jsonl"]
    # A small crawl: what is still buffered at the end must not be lost without a word.
    full = ["--output", "/dev/full", "--delay", "0", "--max-pages", "5"]
    for what, expected, arguments in (
        ("a closed port", 1, [*output, "http://127.0.0.1:1/"]),
        ("a host that has no address", 1, [*output, "http://does-not-exist.invalid/"]),
        ("a seed that is no URL", 2, [*output, "not a url"]),
        ("a seed without a host", 2, [*output, "http://"]),
        ("a capacity of zero", 2, [*output, "--capacity", "0", site.url]),
        ("an output directory that does not exist", 1, [*nowhere, site.url]),
        ("an output device that is full", 1, [*full, site.url]),
    ):
        # Quiet, so that a line of progress cannot pass for the message.
        done = crawler.run(*crawler.quiet, *arguments, seconds=ERROR_SECONDS)
        message = done.stderr.strip()
        passed = done.status == expected and bool(message) and "panicked" not in message
        last_line = message.splitlines()[-1] if message else "no message"
        report.check(
            passed,
            f"{what}: {done.ended}, expected {expected} ({last_line})",
            last_lines(message),
        )
    site.log.since_last()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crawler", required=True, help="path of the program under test")
    parser.add_argument("--root", type=Path, required=True, help="top of the repository")
    parser.add_argument("--work", type=Path, required=True, help="directory of the access logs, and for what runs write")
    parser.add_argument("--python", required=True, help="address of the Python manual")
    parser.add_argument("--postgresql", required=True, help="address of the PostgreSQL manual")
    return parser.parse_args()


def main():
    given = arguments()
    report = Report()
    crawler = Crawler(given.crawler, given.work)
    python = Site("python", given.python, AccessLog(given.work / "python.log"), [])
    postgresql = Site("postgresql", given.postgresql, AccessLog(given.work / "postgresql.log"), [])

    for site in (python, postgresql):
        crawl_with_oracle(site)
        check_whole_site(report, crawler, site)
    check_politeness(report, crawler, python)
    check_full_politeness(report, crawler, python)
    check_saturation(report, crawler, postgresql)
    check_true_loss(report, given.root, postgresql)
    check_policies(report, crawler, postgresql)
    check_errors(report, crawler, python)

    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
