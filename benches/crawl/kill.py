#!/usr/bin/env python3
"""Checks that a crawl with --state survives kill -9 at any moment: nothing is lost, nothing is written twice, no request comes early.

    benches/crawl/kill.py [--kills 1000] [--pages 2000] [--hosts 32] [--delay 0.1] [--concurrency 16] [--seed 1]
    benches/crawl/kill.py --short        20 kills, for CI
    benches/crawl/kill.py --io-errors    an I/O error instead of each kill; needs strace
    benches/crawl/kill.py --power-cuts   what was not synced is lost with each kill; needs strace

A site on several hosts below localhost is crawled with all outputs: --output, --links, --refused, --warc and --save, in every second crawl as
CSV, and in every third as series of files of about 100 kB. The seen-set grows, is exact, is exact over a much too small filter, or has a bound of memory. The crawler is killed at a random moment, from its first instruction on; one time in
five it is stopped by SIGTERM or by two SIGINT instead. The same command is started again until it ends by itself. Crawls are repeated until
there were enough kills. With --io-errors, a call of the system fails instead, at a random place: a write, read, sync, or change of length in the
state directory, or a write to an output. Then the run must end with exit code 1, after a failed read also with 2 (SQLite takes it for damage), or as
without the error. With --power-cuts, all runs sync
20 times per second. After each kill, each output and the log of the database is cut off at a random place behind what was synced, or ends there with zeros. The access log of the server is the truth. An uninterrupted crawl without --state says which lines are expected. Half of the crawls have no delay, and four requests in flight to each host.

Promises, for each crawl:

  * every page was requested, and is in the output once; so is every line of the other outputs, and none is torn;
  * the archive has each answer once, and every saved body is whole, in a file of its own;
  * the pages that were answered again are at most --concurrency per kill; after a power cut, those since the last sync are, too;
  * no request came sooner after the one before to the same host than --delay, also across a kill; a power cut takes back what is known of requests since the last sync;
  * the report of the state directory has the right totals, and numbers over time without gaps;
  * the summary counts every page once, the exit code is 0, and the same command once more sends no request and changes no file.
"""

import collections
import csv
import gzip
import hashlib
import importlib.util
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import site_server

FAN_OUT = 6
ELSEWHERE = "http://elsewhere.example/"
# So that there are crawls of all kinds.
MAX_KILLS_PER_CRAWL = 50
# A kill lands at a random time up to this, in seconds after the start.
LATEST_KILL = 0.5
# A crawl without a delay ends within half a second.
LATEST_KILL_WITHOUT_DELAY = 0.1
# A crawl that is not killed any more must end within this time.
LIMIT_SECONDS = 120
# A run that gets a signal must end within this time.
END_SECONDS = 10
KILL, STOP, STOP_NOW = [signal.SIGKILL], [signal.SIGTERM], [signal.SIGINT, signal.SIGINT]
# The clock of the crawler has milliseconds.
TOLERANCE_SECONDS = 0.002
HAS_WARCIO = importlib.util.find_spec("warcio") is not None
# Calls of the system and their errors; whether only calls for the outputs count. SQLite does not use write(2), and sockets do not use the others.
IO_ERRORS = [
    ("pwrite64", "ENOSPC", False),
    ("pwrite64", "EIO", False),
    ("pread64", "EIO", False),
    ("fdatasync,fsync", "EIO", False),
    ("ftruncate", "EIO", False),
    ("rename", "EIO", False),
    ("write", "ENOSPC", True),
    ("write", "EIO", True),
]
# The seen-sets and memory of crawls.
STATES = [
    [],
    ["--exact"],
    # Its filter is much too small, and wrong about most new URLs.
    ["--exact", "--on-saturation", "warn", "--capacity", "100"],
    ["--memory", "256MiB"],
]
SYNC_INTERVAL = "50ms"
# A call that renames a file, as strace prints it.
RENAMED = r' *rename.*?"([^"]*)".*?"([^"]*)"'
# The call that fails is one of so many of its kind, in each thread.
LATEST_IO_ERROR = 150
COLUMNS = "{:>5} {:>6} {:>6} {:>6} {:>6} {:>9} {:>7} {:>8} {:>7}"


def main():
    parser = site_server.parser(__doc__)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--pages", type=int)
    parser.add_argument("--hosts", type=int, default=32)
    parser.add_argument("--delay", type=float, default=0.1, help="in seconds, longer than a start of the crawler")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--io-errors", action="store_true", help="let a call of the system fail instead of each kill")
    parser.add_argument("--power-cuts", action="store_true", help="lose with each kill what was not synced")
    parser.add_argument("--keep", help="keep the files of crawls with broken promises in this folder")
    arguments = site_server.parse(parser)
    # A shell that starts this in the background lets it ignore SIGINT, and a crawler would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments.kills = arguments.kills or (20 if arguments.short else 1000)
    arguments.pages = arguments.pages or (600 if arguments.short else 2000)
    moments = random.Random(arguments.seed)
    print("warcio, an independent reader, checks the archives" if HAS_WARCIO else "warcio is not installed: it checks no archive")
    print(COLUMNS.format("crawl", "kills", "pages", "lost", "twice", "refetched", "early", "orphans", "wall s"))
    kept, killed, number = [], 0, 0
    per_crawl = min(MAX_KILLS_PER_CRAWL, -(-arguments.kills // 3))
    # A crawl that ends before its first kill counts as no kill.
    while killed < arguments.kills and number < arguments.kills + 10:
        holds, kills = run_case(arguments, number, moments, min(per_crawl, arguments.kills - killed))
        kept.append(holds)
        killed += kills
        number += 1
    print(f"{killed} kills")
    site_server.finish(kept, "crawls")


def run_case(arguments, number, moments, max_kills):
    with site_server.work_folder() as folder:
        work = pathlib.Path(folder)
        with site_server.Server(work, "site", arguments.pages, arguments.hosts) as server:
            broken, kills = check(arguments, number, moments, max_kills, work, server)
        for text in broken:
            print(f"    {text}", flush=True)
        if broken and arguments.keep:
            subprocess.run(["cp", "-r", folder, str(pathlib.Path(arguments.keep) / f"crawl-{number}")], check=False)
    return not broken, kills


class Files:
    """The outputs of a crawl in a folder."""

    def __init__(self, folder, is_csv, max_file):
        folder.mkdir()
        ending = "csv" if is_csv else "jsonl"
        self.is_csv = is_csv
        self.pages, self.links, self.refused = (folder / f"{name}.{ending}" for name in ["pages", "links", "refused"])
        self.archive, self.site, self.folder = folder / "all.warc.gz", folder / "site", folder
        self.options = ["--output", self.pages, "--links", self.links, "--refused", self.refused]
        self.options += ["--warc", self.archive, "--save", self.site]
        self.options += ["--set", f"output-max-bytes={max_file}"] if max_file else []

    def series(self, first):
        """Returns the files that begin with this one."""
        stem, ending = first.name.split(".", 1)
        return sorted(self.folder.glob(f"{stem}*.{ending}"))

    def rows(self, first):
        """Returns the lines of all files as dictionaries. A torn line is an error."""
        return [row for file in self.series(first) if file.stat().st_size for row in self.rows_of(file)]

    def rows_of(self, file):
        text = file.read_text()
        if not self.is_csv:
            if text and not text.endswith("\n"):
                raise ValueError(f"{file.name} ends with a part of a line")
            return [json.loads(line) for line in text.splitlines()]
        rows = list(csv.reader(text.splitlines(keepends=True)))
        if any(len(row) != len(rows[0]) for row in rows):
            raise ValueError(f"{file.name} has a torn line")
        return [dict(zip(rows[0], row)) for row in rows[1:]]

    def keys(self):
        """Returns what identifies the lines of each output, with how often it is there."""
        names = {
            "pages": (self.pages, ["url", "status"]),
            "links": (self.links, ["from", "to", "kind"]),
            "refused": (self.refused, ["url", "class", "reason"]),
        }
        found = {
            name: collections.Counter(tuple(str(row[field]) for field in fields) for row in self.rows(file))
            for name, (file, fields) in names.items()
        }
        targets = collections.Counter()
        for file in self.series(self.archive):
            for kind, target in records_of(file):
                if kind in ["response", "revisit", "request"]:
                    targets["answer" if kind != "request" else kind, target] += 1
        found["archive"] = targets
        return found

    def digests(self):
        return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in self.folder.rglob("*") if path.is_file()}


def records_of(file):
    """Yields the type and the target of each record. An incomplete one is an error."""
    data = gzip.decompress(file.read_bytes()) if file.stat().st_size else b""
    while data:
        head, rest = data.split(b"\r\n\r\n", 1)
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        length = int(fields["Content-Length"])
        if len(rest) < length + 4 or rest[length : length + 4] != b"\r\n\r\n":
            raise ValueError(f"{file.name} has an incomplete record")
        data = rest[length + 4 :]
        yield fields["WARC-Type"], fields.get("WARC-Target-URI")


def check(arguments, number, moments, max_kills, work, server):
    """Runs a crawl with kills. Prints its row; returns the promises that it breaks, and the number of kills."""
    is_csv, max_file = number % 2 == 1, 100_000 if number % 3 == 2 else None
    common = ["--scope", "any", "--include", "^http://h[0-9]+[.]localhost:", "--allow-private-addresses"]
    common += ["--concurrency", arguments.concurrency]
    seed = url_of(0, arguments.hosts, server.port)
    # What is expected, without a delay.
    expected = Files(work / "expected", is_csv, max_file)
    with site_server.Crawl(arguments.crawler, work, *common, "--delay", 0, *expected.options, seed) as crawl:
        if not crawl.wait(LIMIT_SECONDS) or crawl.process.returncode != 0:
            return [f"the uninterrupted crawl failed: {crawl.process.poll()}", *[line for _, line in crawl.lines[-5:]]], 0
    wanted = expected.keys()
    first = len(server.log.read_text().splitlines())

    files = Files(work / "files", is_csv, max_file)
    state = ["--state", work / "state", *STATES[(3 * number + number // 4) % len(STATES)]]
    state += ["--sync-interval", SYNC_INTERVAL] if arguments.power_cuts else []
    # Without a delay, requests do not wait until their leases are committed.
    delay, per_host, latest_kill = (0, 4, LATEST_KILL_WITHOUT_DELAY) if number // 2 % 2 else (arguments.delay, 1, LATEST_KILL)
    pace = ["--delay", delay, "--per-host", per_host]
    command = [arguments.crawler, *common, *pace, *state, *files.options, seed]
    command = [str(word) for word in command]
    kills, began, codes, errors = 0, time.monotonic(), [], []
    met = collections.Counter()
    while True:
        error = choose_io_error(moments, files, work / "state") if arguments.io_errors and kills < max_kills else []
        power = Power(work, files) if arguments.power_cuts and kills < max_kills else None
        prefix = power.prefix if power else error
        with open(work / "stdout", "wb") as stdout, open(work / "stderr", "wb") as stderr:
            process = subprocess.Popen([*prefix, *command], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
            try:
                may_kill = kills < max_kills and not error
                code = process.wait(moments.uniform(0, latest_kill) if may_kill else LIMIT_SECONDS)
                if error and (code == 1 or code == 2 and "pread64" in error[-1]):
                    kills += 1
                    if "crawler: " not in (work / "stderr").read_text():
                        return [f"no message about {error[-1]}"], kills
                    met[error[-1].split("=")[1]] += 1
                    continue
                # Without an error the crawl has ended, or the error did no harm.
                codes.append(code)
                break
            except subprocess.TimeoutExpired:
                if not may_kill:
                    process.kill()
                    process.wait()
                    return [f"the crawl did not end within {LIMIT_SECONDS} s after {kills} kills"], kills
                kills += 1
                if power:
                    met[power.cut(process, moments)] += 1
                    met["went back"] += "goes back" in (work / "stderr").read_text()
                    continue
                if not end(process, moments.choices([KILL, STOP, STOP_NOW], [8, 1, 1])[0]):
                    return ["the crawl did not end after a signal"], kills
    if met:
        print(" " * 4, "met:", ", ".join(f"{name} {count}" for name, count in sorted(met.items())))
    wall = time.monotonic() - began
    summary, log = (work / "stdout").read_text(), (work / "stderr").read_text()
    if codes[-1] != 0:
        last = [line for line in log.splitlines() if line][-3:]
        return [f"after {kills} kills the exit code is {codes[-1]}: {' / '.join(last)}"], kills

    requests = [line.split() for line in server.log.read_text().splitlines()[first:]]
    broken = []
    try:
        found = files.keys()
    except (ValueError, EOFError, gzip.BadGzipFile, json.JSONDecodeError, KeyError) as error:
        return [f"after {kills} kills an output cannot be read: {error}"], kills
    lost = {name: set(wanted[name]) - set(found[name]) for name in wanted}
    more = {name: set(found[name]) - set(wanted[name]) for name in wanted}
    twice = {name: [key for key, count in found[name].items() if count > wanted[name].get(key, 1)] for name in wanted}
    for what, by_name in [("lacks", lost), ("has unexpected", more), ("has more than once", twice)]:
        for name, keys in by_name.items():
            if keys:
                broken.append(f"{name} {what} {len(keys)}, such as {sorted(keys)[0]}")

    archives = [file for file in files.series(files.archive) if file.stat().st_size]
    warcio = subprocess.run([sys.executable, "-m", "warcio.cli", "check", *archives], capture_output=True) if HAS_WARCIO else None
    if warcio and warcio.returncode != 0:
        broken.append(f"warcio refuses an archive: {warcio.stdout.decode()[-300:]}")

    answered = collections.Counter(path for _, path, status, _ in requests if int(status) != site_server.GONE)
    again = sum(count - 1 for count in answered.values()) - robots_again(answered, arguments.hosts)
    never = [path for name, status in wanted["pages"] if (path := site_server.path_of(name)) not in answered]
    if never:
        broken.append(f"{len(never)} pages were never requested, such as {never[0]}")
    if again > arguments.concurrency * kills and not arguments.power_cuts:
        broken.append(f"{again} pages were answered again after {kills} kills")
    early = early_requests(requests, delay)
    # Here the crawl is started again at once, and not when the system is back.
    if early and not arguments.power_cuts:
        broken.append(f"{len(early)} requests came early, such as {early[0]}")

    saved = [(row["url"], row["saved_as"]) for row in files.rows(files.pages) if row["saved_as"]]
    names = collections.Counter(name for _, name in saved)
    shared = [name for name, count in names.items() if count > 1]
    if shared:
        broken.append(f"{len(shared)} files belong to two pages, such as {shared[0]}")
    page = site(arguments.pages, arguments.hosts, server.port)
    torn = [name for url, name in saved if (files.site / name).read_bytes() != body_of(page(site_server.path_of(url)))]
    if torn:
        broken.append(f"{len(torn)} saved bodies are not those of their pages, such as {torn[0]}")
    orphans = sum(path.is_file() and path.name != ".crawler-id" for path in files.site.rglob("*")) - len(names)

    pages = sum(status == "200" for _, status in wanted["pages"])
    row = next((line.split() for line in summary.splitlines() if line.split()[:1] == ["pages"]), [])
    counted = [word.replace(",", "") for word in row if word.replace(",", "").isdigit()]
    if str(pages) not in counted:
        broken.append(f"the summary counts {row} instead of {pages} pages")
    broken += faults_of_report(arguments.crawler, work, pages, latest_kill)
    lost_pages, twice_pages = len(lost["pages"]), len(twice["pages"])
    shown = [number, kills, len(found["pages"]), lost_pages, twice_pages, again, len(early), orphans, f"{wall:.1f}"]
    print(COLUMNS.format(*shown), flush=True)

    # Once more: nothing is left.
    before, count = files.digests(), server.count()
    result = subprocess.run(command, capture_output=True, check=False, timeout=LIMIT_SECONDS)
    if result.returncode != 0 or server.count() != count or files.digests() != before:
        changed = [path.name for path, digest in files.digests().items() if before.get(path) != digest]
        log = result.stderr.decode().splitlines()[-1:]
        broken.append(f"once more: exit code {result.returncode}, {server.count() - count} requests, changed {changed} {log}")
    return broken, kills


def faults_of_report(crawler, work, pages, latest_kill):
    """Returns what is wrong with the report of a crawl: its totals, and its numbers over time."""
    report = work / "report.html"
    subprocess.run([crawler, "report", work / "state", "-o", report], check=True, timeout=LIMIT_SECONDS)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', report.read_text(), re.DOTALL)[1]
    data = json.loads(data)
    summary, series = data["status"]["summary"], data["series"]
    times, counts = series["elapsed_seconds"], series["pages"]
    steps = [after - before for before, after in zip(times, times[1:])]
    checks = [
        (summary["pages"] == counts[-1] == pages, f"the report counts {summary['pages']} and {counts[-1]} instead of {pages} pages"),
        (round(summary["elapsed_seconds"], 3) == times[-1], f"the series ends at {times[-1]} of {summary['elapsed_seconds']} s"),
        (all(step > 0 for step in steps) and counts == sorted(counts), "the series goes back"),
        # Each run has a point at its start, and one each second.
        (max(steps, default=0) < latest_kill + 1.5, f"the series has a gap of {max(steps, default=0):.1f} s"),
        (data["status"]["finished"] and summary["ending"] == "drained", "the report does not say that the crawl has ended"),
    ]
    return [text for holds, text in checks if not holds]


class Power:
    """Knows what of the outputs and of the log of the database is synced while the crawler runs, and takes the rest."""

    def __init__(self, work, files):
        self.trace = work / "trace"
        self.prefix = ["strace", "-f", "-y", "--seccomp-bpf", "-qqq", "-e", "signal=none", "-o", str(self.trace)]
        self.prefix += ["-e", "trace=write,pwrite64,fsync,fdatasync,ftruncate,rename,renameat,renameat2"]
        self.state = work / "state"
        self.files = files
        # What an earlier run has left survived its power cut.
        self.before = {path: path.stat().st_size for path in self.found()}

    def found(self):
        files = self.files
        series = [path for first in [files.pages, files.links, files.refused, files.archive] for path in files.series(first)]
        return [path for path in [*series, self.state / "saved-names", self.state / "frontier.sqlite-wal"] if path.is_file()]

    def synced(self):
        """Returns how many bytes of each file survive."""
        lengths, synced, begun = dict(self.before), dict(self.before), {}
        for line in self.trace.read_text(errors="replace").splitlines():
            thread, _, call = line.partition(" ")
            if call.endswith("<unfinished ...>"):
                begun[thread] = call.removesuffix("<unfinished ...>").rstrip()
                continue
            call = re.sub(r"^ *<\.\.\. \w+ resumed>", lambda _: begun.pop(thread, ""), call)
            if renamed := re.match(RENAMED + r".* = 0$", call):
                self.rename(renamed, lengths, synced)
                continue
            match = re.match(r" *(\w+)\(\d+<([^>]*)>", call)
            numbers = re.search(r"(?:, (\d+))?(?:, (\d+))?\) += (\d+)$", call)
            if not match or not numbers:
                continue
            name, path, result = match[1], pathlib.Path(match[2]), int(numbers[3])
            if name == "ftruncate":
                lengths[path] = int(numbers[1])
                synced[path] = min(synced.get(path, 0), lengths[path])
            elif name == "write":
                lengths[path] = lengths.get(path, 0) + result
            elif name == "pwrite64":
                lengths[path] = max(lengths.get(path, 0), int(numbers[2]) + result)
            else:
                synced[path] = lengths.get(path, 0)
        # The kill may have met a call after its effect.
        for call in begun.values():
            if (renamed := re.match(RENAMED, call)) and not os.path.exists(renamed[1]):
                self.rename(renamed, lengths, synced)
        return synced

    def rename(self, renamed, lengths, synced):
        for known in [lengths, synced]:
            known[pathlib.Path(renamed[2])] = known.pop(pathlib.Path(renamed[1]), 0)

    def kill(self, process):
        """Kills the child of strace, which may not be there yet, and then strace ends. A helper of strace may be there for an instant."""
        while process.poll() is None:
            try:
                children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                crawlers = [child for child in children if pathlib.Path(f"/proc/{child}/comm").read_text().strip() != "strace"]
                for child in crawlers:
                    os.kill(int(child), signal.SIGKILL)
                if crawlers:
                    return
            except (FileNotFoundError, ProcessLookupError):
                pass
            time.sleep(0.001)

    def cut(self, process, moments):
        """Kills the crawler, and takes a part of what was not synced. Returns a word for what was lost."""
        self.kill(process)
        process.wait(END_SECONDS)
        synced, lost = self.synced(), "nothing"
        for path in self.found():
            first, last = min(synced.get(path, 0), path.stat().st_size), path.stat().st_size
            end = moments.choice([first, last, moments.randint(first, last)])
            if end < last:
                lost = "bytes"
                os.truncate(path, end)
                if moments.random() < 0.3:
                    os.truncate(path, last)
        return lost


def choose_io_error(moments, files, state):
    """Returns the start of a command in which one call of the system fails."""
    calls, error, is_output = moments.choice(IO_ERRORS)
    # Early calls are met by every run, late ones by long runs only.
    number = int(LATEST_IO_ERROR ** moments.random())
    database = [state / f"frontier.sqlite{ending}" for ending in ["", "-wal", ".new"]]
    paths = [files.pages, files.links, files.refused, files.archive] if is_output else database
    only = [word for path in paths for word in ("-P", str(path))]
    command = ["strace", "-f", "--seccomp-bpf", "-qqq", "-o", "/dev/null", *only, "-e", f"trace={calls}"]
    return [*command, "-e", f"inject={calls}:error={error}:when={number}"]


def end(process, how):
    """Ends a run: at once, after the requests in flight, or without them. Returns whether it ended."""
    for number in how:
        process.send_signal(number)
        time.sleep(0.005)
    try:
        process.wait(END_SECONDS)
        return True
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False


def robots_again(answered, hosts):
    """All hosts have one path for their robots.txt."""
    return max(0, answered["/robots.txt"] - 1)


def early_requests(requests, delay):
    """Returns the requests that came too early after the one before to the same host. The path starts with the host."""
    last, early = {}, []
    for at, path, status, _ in requests:
        host = path.split("/")[1]
        # A request that was read after its sender was killed says nothing about the time at which it was sent.
        if path == "/robots.txt" or int(status) == site_server.GONE:
            continue
        at = float(at)
        if host in last and at - last[host] < delay - TOLERANCE_SECONDS:
            early.append((path, f"{(at - last[host]) * 1000:.1f} ms"))
        last[host] = at
    return early


# The site. The page `n` is on the host hK.localhost, which is 127.0.0.1, and its path is /K/n, so that the access log has the host.


def url_of(number, hosts, port):
    host = number % hosts + 1
    return f"http://h{host}.localhost:{port}/{host}/{number}"


def body_of(answer):
    return answer[1].split(b"\r\n\r\n", 1)[1]


def site(pages, hosts, port=None):
    # The server process has its port as the second argument after --serve.
    pages, hosts, port = int(pages), int(hosts), port or int(sys.argv[3])
    url = lambda number: url_of(number, hosts, port)

    def answer(path):
        host, _, name = path.strip("/").partition("/")
        if not name.isdigit() or int(name) >= pages or host != str(int(name) % hosts + 1):
            return site_server.NOT_FOUND
        number = int(name)
        if number % 17 == 5 and not path.endswith("/"):
            return site_server.response("", status="302 Found", headers=[f"Location: {url(number)}/"])
        return page(number)

    def page(number):
        children = range(number * FAN_OUT + 1, min(number * FAN_OUT + FAN_OUT + 1, pages))
        links = [url(child) for child in children] + [url(number // FAN_OUT), f"{ELSEWHERE}{number % 50}"]
        if number % 10 == 3:
            links.append(f"{url(0)}-missing-{number}")
        if number % 10 == 4:
            links.append(f"mailto:{number}@example.com")
        anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
        nofollow = f'<a rel=nofollow href="/{number}/nofollow">n</a>'
        text = hashlib.sha256(str(number).encode()).hexdigest() * (number % 40)
        # Some pages have the same text.
        same = "<p>the same" if number % 50 == 49 else f"<title>Page {number}</title>{anchors}{nofollow}<p>{text}"
        return site_server.response(same)

    return answer


if __name__ == "__main__":
    site_server.run(main, {"site": site})
