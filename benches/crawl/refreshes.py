#!/usr/bin/env python3
"""Checks that pages that are fetched again survive kill -9 and power cuts: what is stored of each is what its lines say.

    benches/crawl/refreshes.py [--kills 300] [--pages 200] [--hosts 8] [--seed 1]
    benches/crawl/refreshes.py --short         20 kills, for CI
    benches/crawl/refreshes.py --power-cuts    what was not synced is lost with each kill; needs strace
    benches/crawl/refreshes.py --keep-fresh    the same with revisits as they are due

Each answer has an ETag of its own; some are 404, some 500 after which there is no other attempt. The crawler runs with --state and --refresh of
a moment, and is killed at a random moment. Then the same command is started again; the last one has no --refresh, so it ends.

Promises, for each crawl:

  * the view `pages` has each URL once, with as many visits as the output has lines of it (but for 500), and the ETag of the last of them;
  * the exit code is 0, `list` and `why` can be read, and a repair finds nothing.
"""

import collections
import json
import pathlib
import random
import sqlite3
import subprocess
import sys

import kill
import site_server

LATEST_KILL = 0.6
LIMIT_SECONDS = 60
KILLS_PER_CRAWL = 20
REFRESH = ["--refresh", "20ms"]
KEEP_FRESH = ["--keep-fresh", "--set", "min-age=20ms", "--set", "revisit-share=90%"]


def main():
    parser = site_server.parser(__doc__)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--power-cuts", action="store_true", help="lose with each kill what was not synced")
    parser.add_argument("--keep-fresh", action="store_true", help="visit pages again as they are due")
    arguments = site_server.parse(parser)
    kills = arguments.kills or (20 if arguments.short else 300)
    moments = random.Random(arguments.seed)
    print("crawl  kills  pages  lines  changes")
    kept = []
    for number in range(-(-kills // KILLS_PER_CRAWL)):
        with site_server.work_folder() as folder, site_server.Server(
            pathlib.Path(folder), "site", arguments.pages, arguments.hosts, arguments.seed + number
        ) as server:
            broken = check(arguments, number, moments, pathlib.Path(folder), server)
        for text in broken:
            print(f"    {text}", flush=True)
        kept.append(not broken)
    site_server.finish(kept, "crawls")


def check(arguments, number, moments, work, server):
    files, state = kill.Files(work / "files", False, None), work / "state"
    seed = kill.url_of(0, arguments.hosts, server.port)
    command = [arguments.crawler, "--scope", "any", "--include", "^http://h[0-9]+[.]localhost:", "--allow-private-addresses"]
    command += ["--delay", 0, "--per-host", 4, "--max-attempts", 1, "--state", state, "--sync-interval", "50ms", "-o", files.pages, seed]
    command = [str(word) for word in command]
    again = KEEP_FRESH if arguments.keep_fresh else REFRESH
    for _ in range(KILLS_PER_CRAWL):
        power = kill.Power(work, files) if arguments.power_cuts else None
        prefix = power.prefix if power else []
        process = subprocess.Popen([*prefix, *command, *again], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            code = process.wait(moments.uniform(0, LATEST_KILL) + (0.3 if power else 0))
            # No page was of age.
            if code != 0:
                return [f"a run ended with {code} before its kill"]
        except subprocess.TimeoutExpired:
            if power:
                power.cut(process, moments)
            else:
                process.kill()
                process.wait()
    last = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
    # 3 and 0: failed pages are no error.
    if last.returncode != 0:
        return [f"the exit code is {last.returncode}: {last.stderr[-300:]}"]
    lines = collections.defaultdict(list)
    for line in files.rows(files.pages):
        if line["status"] < 500:
            # No version is kept of a 404.
            lines[line["url"]].append(line["etag"] if line["status"] == 200 else None)
    database = sqlite3.connect(f"file:{state}/frontier.sqlite?mode=ro", uri=True)
    rows = database.execute("SELECT url, visits, changes, etag FROM pages WHERE end <> 'redirected'").fetchall()
    database.close()
    broken = [f"{len(rows)} rows of {len(set(row[0] for row in rows))} URLs"] * (len(rows) != len(set(row[0] for row in rows)))
    for url, visits, _, etag in rows:
        expected = (len(lines[url]), lines[url][-1] if lines[url] else None)
        if visits != expected[0] or visits and etag != expected[1]:
            broken.append(f"{url} has {visits} visits and {etag}, its lines {expected}")
    missing = set(lines) - {row[0] for row in rows}
    broken += [f"{len(missing)} pages have lines and no row"] * bool(missing)
    for look in [["list", state, "--failed"], ["why", state, seed], ["repair", state]]:
        looked = subprocess.run([arguments.crawler, *map(str, look)], capture_output=True, text=True, check=False)
        if looked.returncode != 0:
            broken.append(f"{look[0]}: {looked.returncode} {looked.stdout[-200:]} {looked.stderr[-200:]}")
    counts = [number, KILLS_PER_CRAWL, len(rows), sum(map(len, lines.values())), sum(row[2] for row in rows)]
    print("{:>5} {:>6} {:>6} {:>6} {:>8}".format(*counts), flush=True)
    return broken[:9]


def site(pages, hosts, seed):
    of_pages, chance = kill.site(pages, hosts), random.Random(int(seed))

    def answer(path):
        status, _ = found = of_pages(path)
        if status != 200:
            return found
        etag = [f'ETag: "{chance.getrandbits(64):016x}"']
        drawn = chance.random()
        if drawn < 0.05 and path != "/1/0":
            return site_server.response("", status="404 Not Found", headers=etag)
        if drawn < 0.1 and path != "/1/0":
            return site_server.response("", status="500 Internal Server Error", headers=etag)
        return site_server.response(found[1].split(b"\r\n\r\n", 1)[1].decode(), headers=etag)

    return answer


if __name__ == "__main__":
    site_server.run(main, {"site": site})
