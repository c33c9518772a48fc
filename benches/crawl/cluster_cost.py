#!/usr/bin/env python3
"""Measures what a crawl costs as several processes over Redis: processor time per page, that of Redis, and bytes to and from Redis.

    benches/crawl/cluster_cost.py [--partitions 4] [--hosts 10000] [--rounds 3]
    benches/crawl/cluster_cost.py --no-tls [--pages 20000]     small pages without TLS: the web of cluster.py
    benches/crawl/cluster_cost.py --short                      400 small pages on 200 hosts, once

A part of the web of broad.py is crawled over TLS, to its end: by one process without Redis, by one with it, and by one for each partition, in
turns, all with a state directory. There is no delay, and --concurrency is for all processes together. Of each, the round with the least
processor time counts. The exit code is 1 if a crawl failed or had other pages; the times are for a reader to judge. Requires Debian's redis,
and for TLS what broad.py requires.
"""

import collections
import contextlib
import json
import os
import pathlib
import subprocess
import time

import broad
import cluster
import redis_server
import run
import site_server

# Enough that each partition has some.
SITES = 32
# Pages differ in size, so all crawls must have the same. These are all that are linked to on other hosts, and a few more on the same.
PAGES = "[.]html([?]page=7)?$"


def main():
    parser = site_server.parser(__doc__)
    for name, value in {"partitions": 4, "pages": 20_000, "hosts": 10_000, "rounds": 3, "concurrency": 128}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--no-tls", action="store_true")
    arguments = site_server.parse(parser)
    if arguments.short:
        arguments.pages, arguments.hosts, arguments.rounds, arguments.no_tls = 400, 200, 1, True
    cluster.open_more_files()
    with site_server.work_folder() as folder, contextlib.ExitStack() as stack:
        work, environment = pathlib.Path(folder), dict(os.environ)
        if arguments.no_tls:
            shape = [arguments.pages, arguments.hosts, 1, 0]
            server = stack.enter_context(site_server.Server(work, "web", *shape))
            options = [*cluster.Web(server.port, *shape).options(), "--delay", 0]
        else:
            run.install(["nginx-light"])
            server = stack.enter_context(broad.Server(work, broad.made(arguments.hosts, SITES), SITES))
            options, environment["SSL_CERT_FILE"] = [*broad.OPTIONS, "--include", PAGES], str(server.authority)
        ways = {"one process": (1, False), "one partition": (1, True), f"{arguments.partitions} partitions": (arguments.partitions, True)}
        runs = {name: [] for name in ways}
        for turn in range(arguments.rounds):
            for name, way in ways.items():
                with redis_server.Redis(work) as redis:
                    runs[name].append(measure(arguments, work / f"{turn} {name}", options, environment, redis, *way))
                one = runs[name][-1]
                print(f"{name}: exit codes {one.codes}, {len(one.pages)} pages, {one.seconds:.1f} s, {one.cpu:.1f} s of a processor", flush=True)
    same = runs["one process"][0].pages
    kept = [one.codes == {0} and one.pages == same for of in runs.values() for one in of]
    best = {name: min(of, key=lambda one: one.cpu) for name, of in runs.items()}
    print("| crawl | pages/s | CPU ms per page | of one process | CPU of Redis, of the crawlers | bytes to and from Redis per page |")
    print("|---|---|---|---|---|---|")
    for name, one in best.items() if same else []:
        cells = [name, f"{len(same) / one.seconds:.0f}", f"{1000 * one.cpu / len(same):.3f}", f"{one.cpu / best['one process'].cpu:.2f}"]
        print("| " + " | ".join([*cells, f"{one.redis_cpu / one.cpu:.3f}", f"{one.redis_bytes / len(same):.0f}"]) + " |")
    site_server.finish(kept, "crawls")


Crawl = collections.namedtuple("Crawl", "codes pages seconds cpu redis_cpu redis_bytes")


def measure(arguments, folder, options, environment, redis, partitions, has_redis):
    folder.mkdir()
    before, began, cpu, codes = redis.used(), time.monotonic(), 0, set()
    outputs = [folder / f"{at}.jsonl" for at in range(partitions)]
    with contextlib.ExitStack() as stack:
        log, processes = stack.enter_context((folder / "log").open("wb")), []
        for at, output in enumerate(outputs):
            command = [arguments.crawler, *options, "--concurrency", arguments.concurrency // partitions]
            command += ["--state", folder / f"{at}.state", "--output", output]
            command += ["--cluster", redis.url(at), "--partition", f"{at}/{partitions}"] if has_redis else []
            processes.append(subprocess.Popen(list(map(str, command)), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
            stack.callback(processes[-1].kill)
        for process in processes:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            codes.add(process.returncode)
            cpu += usage.ru_utime + usage.ru_stime
    seconds, (redis_cpu, redis_bytes) = time.monotonic() - began, (now - then for now, then in zip(redis.used(), before))
    pages = sorted(json.loads(line)["url"] for output in outputs for line in output.read_text().splitlines())
    return Crawl(codes, pages, seconds, cpu, redis_cpu, redis_bytes)


if __name__ == "__main__":
    site_server.run(main, {"web": cluster.site}, cluster.Connection)
