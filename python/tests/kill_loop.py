"""Kills a Scrapy crawl again and again, and says by the server's log which pages are missing and which were fetched twice.

    python kill_loop.py [--kills 50] [--pages 4000] [--seed 1] [--filter scrapy.dupefilters.RFPDupeFilter]

The server, on a loopback port, has pages that answer 503 at first, pages that are slow, redirects, and URLs that never answer. The crawl
uses callbacks and errbacks, with and without `async`, and requests with and without `dont_filter`.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import scrapy
from scrapy.http import Response

CONCURRENCY = 16
SIEVE = "crawl_sieve.scrapy.SieveDupeFilter"


class LinkSpider(scrapy.Spider):
    name = "links"
    custom_settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY, "CONCURRENT_REQUESTS": CONCURRENCY, "LOG_LEVEL": "INFO"}

    async def start(self) -> AsyncIterator[Any]:
        yield scrapy.Request(f"{self.base}/p/0", dont_filter=True)
        yield scrapy.Request(f"{self.base}/p/1", self.parse_async)

    def parse(self, response: Response) -> Iterator[Any]:
        for link in response.css("a::attr(href)").getall():
            yield self.request_of(response, link)

    async def parse_async(self, response: Response) -> AsyncIterator[Any]:
        for link in response.css("a::attr(href)").getall():
            await asyncio.sleep(0.001)
            yield self.request_of(response, link)

    def failed(self, failure: Any) -> Iterator[Any]:
        yield scrapy.Request(failure.request.url.replace("/never/", "/afterwards/"))

    def request_of(self, response: Response, link: str) -> scrapy.Request:
        callback = self.parse_async if link.endswith("1") else self.parse
        # Many spiders pass on the meta of the page.
        meta = {**response.meta, "retry_times": 0, "redirect_times": 0}
        return response.follow(link, callback, errback=self.failed, meta=meta, dont_filter="/unfiltered/" in link)


class Site(ThreadingHTTPServer):
    """The server and its log."""

    # So that `server_close` waits for all.
    daemon_threads = False

    def __init__(self, pages: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages = pages
        self.log: list[tuple[str, int]] = []
        self.asked: Counter[str] = Counter()
        self.wanted = {f"/p/{page}" for page in range(pages)}
        for page in range(0, pages, 40):
            self.wanted |= {f"/unfiltered/{page}", f"/afterwards/{page}"}

    def handle_error(self, *_: Any) -> None:
        pass  # A client was killed.

    def links(self, page: int) -> list[str]:
        shuffle = random.Random(page)
        to = [child for child in range(3 * page + 2, 3 * page + 5) if child < self.pages]
        links = [f"/redirect/{child}" if child % 9 == 0 else f"/p/{child}" for child in to]
        links += [f"/p/{shuffle.randrange(self.pages // 3)}" for _ in range(8)]
        if page % 40 == 0:
            links += [f"/unfiltered/{page}", f"/never/{page}"]
        return links


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def do_GET(self) -> None:
        _, kind, number = self.path.split("/")
        page = int(number)
        self.server.asked[self.path] += 1
        if kind == "never":
            self.server.log.append((self.path, 0))
            self.close_connection = True
        elif kind == "redirect":
            self.answer(302, location=f"/p/{page}")
        elif page % 23 == 0 and self.server.asked[self.path] <= 1 + page % 2:
            self.answer(503)
        else:
            time.sleep(0.2 if page % 31 == 0 else 0)
            links = self.server.links(page) if kind == "p" else []
            self.answer(200, "".join(f'<a href="{link}">' for link in links))

    def answer(self, status: int, body: str = "", location: str = "") -> None:
        self.server.log.append((self.path, status))
        try:
            self.send_response(status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(body.encode())
        except OSError:
            pass  # The client was killed.

    def log_message(self, *_: Any) -> None:
        pass


@dataclass
class Outcome:
    wanted: int
    missing: set[str]
    requests: int
    repeats: int
    runs: int
    kills: int
    last_log: str


def run(kills: int, pages: int, seed: int, dupefilter: str, requests_per_kill: int = 120) -> Outcome:
    """Kills a crawl at random moments, stops it cleanly now and then, and lets it end."""
    chance = random.Random(seed)
    site = Site(pages)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "scrapy", "runspider", __file__, "-a", f"base=http://127.0.0.1:{site.server_port}"]
        command += ["-s", f"JOBDIR={folder}/job", "-s", f"DUPEFILTER_CLASS={dupefilter}", "-s", f"LOG_FILE={folder}/log"]
        runs = killed = 0
        while True:
            runs += 1
            before = len(site.log)
            crawl = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            if killed < kills:
                # Most kills come between two requests, some while the crawl starts.
                until = before + chance.randint(1, requests_per_kill)
                end = time.monotonic() + (chance.uniform(0.5, 2) if chance.random() < 0.1 else 60)
                while crawl.poll() is None and len(site.log) < until and time.monotonic() < end:
                    time.sleep(0.001)
                time.sleep(chance.uniform(0, 0.02))
                if chance.random() < 0.1:
                    crawl.send_signal(signal.SIGTERM)
                elif crawl.poll() is None:
                    crawl.kill()
                    killed += 1
                crawl.wait()
            elif crawl.wait() == 0:
                break
            else:
                raise RuntimeError(Path(folder, "log").read_text())
        last_log = Path(folder, "log").read_text()
    site.shutdown()
    site.server_close()
    answered = Counter(path for path, status in site.log if status in (200, 302))
    return Outcome(
        wanted=len(site.wanted),
        missing=site.wanted - set(answered),
        requests=len(site.log),
        repeats=sum(answered.values()) - len(answered),
        runs=runs,
        kills=killed,
        last_log=last_log,
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--kills", type=int, default=50)
    arguments.add_argument("--pages", type=int, default=4000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--filter", default=SIEVE)
    options = arguments.parse_args()
    outcome = run(options.kills, options.pages, options.seed, options.filter)
    print(f"{options.filter}, seed {options.seed}: {outcome.kills} kills in {outcome.runs} runs")
    print(f"{len(outcome.missing)} of {outcome.wanted} pages missing, {outcome.requests} requests, {outcome.repeats} repeated")
    sys.exit(bool(outcome.missing))


if __name__ == "__main__":
    main()
