#!/usr/bin/env python3
"""Checks --keep-fresh against pages that change by themselves: how fresh they are by the server, over kill -9.

    benches/crawl/fresh.py [--seconds 600] [--kills 100] [--pages 2000] [--hosts 20]
    benches/crawl/fresh.py --short       half a minute, for CI

Each page changes at random (a Poisson process); the rates are log-normal around a change in two minutes. The crawler visits them for some minutes, and is killed
and started again meanwhile. The server knows which version of a page was fetched last. Promises:

  * no request to a host comes sooner after the one before than --delay, no page is visited again within min-age;
  * every page is found, and none is forgotten: the last visit of each is no older than max-age and what politeness adds;
  * the state directory and the memory do not grow in the second half (a long run);
  * the share of pages that are fresh is near that of the policy with known rates, which the script computes (a long run).
"""

import argparse
import asyncio
import math
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import threading
import time

DELAY, MIN_AGE, MAX_AGE, SHARE = 0.05, 2.0, 300.0, 0.25
MEDIAN_SECONDS, SPREAD = 120.0, 1.5
# The clock of the crawler has milliseconds.
TOLERANCE_SECONDS = 0.002
WORDS = ["".join(random.Random(n).choices("abcdefghijklmnopqrstuvwxyz", k=7)) for n in range(2000)]


class Site:
    """Hosts on addresses of loopback, with pages in a tree. All that is asked of it is in `visits` and `requests`."""

    def __init__(self, hosts, pages):
        self.hosts, self.of_host = hosts, pages // hosts
        dice = self.dice = random.Random(5)
        self.rates = [math.exp(dice.gauss(-math.log(MEDIAN_SECONDS), SPREAD)) for _ in range(hosts * self.of_host)]
        self.next = [time.time() + dice.expovariate(rate) for rate in self.rates]
        self.versions = [0] * len(self.rates)
        self.fetched = [-1] * len(self.rates)
        self.visits = [[] for _ in self.rates]
        self.requests = [[] for _ in range(hosts)]
        self.freshness = []

    def version(self, page, now):
        while self.next[page] <= now:
            self.versions[page] += 1
            self.next[page] += self.dice.expovariate(self.rates[page])
        return self.versions[page]

    def answer(self, host, head):
        now, path = time.time(), head.split(" ")[1].strip("/")
        self.requests[host].append(now)
        number = int(path or 0) if (path or "0").isdigit() else self.of_host
        if number >= self.of_host:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
        page = host * self.of_host + number
        self.visits[page].append(now)
        self.fetched[page] = self.version(page, now)
        tag = f'ETag: "{self.fetched[page]}"'
        if f'if-none-match: "{self.fetched[page]}"' in head.lower():
            return f"HTTP/1.1 304 Not Modified\r\n{tag}\r\n\r\n".encode()
        links = [f"/{child}" for child in range(8 * number + 1, 8 * number + 9) if child < self.of_host]
        if number == 0 and host + 1 < self.hosts:
            links.append(f"http://127.0.47.{host + 2}:{self.port}/")
        words = random.Random(f"{page} {self.fetched[page]}").choices(WORDS, k=80)
        body = "".join(f"<a href={link}>x</a>" for link in links) + " ".join(words)
        return f"HTTP/1.1 200 OK\r\n{tag}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()

    async def serve(self):
        def client(host):
            async def run(reader, writer):
                try:
                    while True:
                        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                        writer.write(self.answer(host, head))
                except (OSError, asyncio.IncompleteReadError):
                    writer.close()

            return run

        first = await asyncio.start_server(client(0), "127.0.47.1", 0)
        self.port = first.sockets[0].getsockname()[1]
        for host in range(1, self.hosts):
            await asyncio.start_server(client(host), f"127.0.47.{host + 1}", self.port)
        self.is_ready.set()
        while True:
            await asyncio.sleep(1)
            now = time.time()
            known = [page for page, fetched in enumerate(self.fetched) if fetched >= 0]
            fresh = sum(self.fetched[page] == self.version(page, now) for page in known)
            self.freshness.append((len(known), fresh / max(len(known), 1)))

    def start(self):
        self.is_ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True).start()
        self.is_ready.wait(10)


def known_rates(rates, visits_per_second):
    """The share of fresh pages if each is visited when its crawl value reaches one threshold that spends the budget."""

    def age(rate, threshold):
        low, high = 0.0, 60.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if 1 - (1 + middle) * math.exp(-middle) < threshold * rate else (low, middle)
        return min(max(high / rate, MIN_AGE), MAX_AGE)

    low, high = -10.0, 15.0
    for _ in range(40):
        middle = (low + high) / 2
        spent = sum(1 / age(rate, math.exp(middle)) for rate in rates)
        low, high = (middle, high) if spent > visits_per_second else (low, middle)
    changes = [rate * age(rate, math.exp(high)) for rate in rates]
    return sum((1 - math.exp(-x)) / x for x in changes) / len(rates)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--crawler", default="target/release/crawler")
    parser.add_argument("--short", action="store_true")
    for name, default in [("seconds", 600), ("kills", 100), ("pages", 2000), ("hosts", 20)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    if options.short:
        options.seconds, options.kills, options.pages, options.hosts = 30, 5, 200, 5
    site = Site(options.hosts, options.pages)
    site.start()
    dice, folder = random.Random(1), pathlib.Path(tempfile.mkdtemp())
    command = [options.crawler, f"http://127.0.47.1:{site.port}/", "--scope", "any", "--include", r"^http://127\.0\.47\.", "-q"]
    command += ["--allow-private-addresses", "--state", folder / "state", "-o", folder / "pages.jsonl", "--keep-fresh", "--delay", f"{DELAY}s"]
    command += ["--set", f"min-age={MIN_AGE}s", "--set", f"max-age={MAX_AGE}s", "--set", f"revisit-share={SHARE}"]
    start = lambda: subprocess.Popen(command, stdout=subprocess.DEVNULL)
    begin, kills, sizes = time.time(), [], []
    process = start()
    # All pages are found first.
    while len(kills) < options.kills or time.time() < begin + options.seconds:
        time.sleep(dice.uniform(0.5, 1.5) * (options.seconds - 10) / (options.kills + 1))
        assert process.poll() is None, f"it has ended with {process.returncode}"
        memory = int(next(line for line in open(f"/proc/{process.pid}/status") if line.startswith("VmRSS")).split()[1]) / 1024
        sizes.append((memory, sum(file.stat().st_size for file in (folder / "state").iterdir()) / 2**20))
        if len(kills) < options.kills:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills.append(time.time())
            process = start()
    end = time.time()
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0

    gaps = [after - before for requests in site.requests for before, after in zip(requests, requests[1:])]
    assert min(gaps) > DELAY - TOLERANCE_SECONDS, f"a request after {min(gaps):.4f} s"
    again = [(after - before, after) for visits in site.visits for before, after in zip(visits, visits[1:])]
    # What was in flight at a kill is requested again.
    is_repeated = lambda after: any(kill < after < kill + 5 for kill in kills)
    early = [gap for gap, after in again if gap < MIN_AGE - TOLERANCE_SECONDS and not is_repeated(after)]
    assert not early, f"{len(early)} visits too early: {early[:5]}"
    forgotten = sum(not visits for visits in site.visits)
    assert not forgotten, f"{forgotten} pages were not found"
    oldest = end - min(visits[-1] for visits in site.visits)
    assert oldest < 1.2 * MAX_AGE, f"a page was visited {oldest:.0f} s ago"
    found = max(visits[0] for visits in site.visits)
    later = [fresh for known, fresh in site.freshness if known == len(site.visits)][int(30 * (not options.short)):]
    visits = sum(after > found for _, after in again) / (end - found)
    bound, fresh = known_rates(site.rates, visits), sum(later) / len(later)
    print(f"{len(site.visits)} pages, {len(again)} visits again, {len(kills)} kills: {fresh:.3f} fresh by the server; {bound:.3f} with known rates "
          f"and as many visits; oldest {oldest:.0f} s; MiB of memory and of the state: {sizes[len(sizes) // 2]}, then {sizes[-1]}")
    if not options.short:
        assert fresh > 0.9 * bound, "too few pages are fresh"
        half = sizes[len(sizes) // 2 :]
        assert max(size for _, size in half) < 2 * max(size for _, size in sizes[: len(sizes) // 2]), "the directory grows"


main()
