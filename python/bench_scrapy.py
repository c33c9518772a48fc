"""What the duplicate filter costs in Scrapy, beside Scrapy's own: memory and time of a million requests, with and without JOBDIR.

    python bench_scrapy.py

A page has 20 new links. The time is that of `request_seen` and of a 20th of the end of a page, without the fingerprint, which all filters
need. The memory is that of the process at the end. Runs on Linux.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import Crawler

import crawl_sieve.scrapy  # noqa: F401 (in all rows)

REQUESTS = 1_000_000
LINKS = 20
PAGE_BYTES = 4096


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


class Bench(scrapy.Spider):
    name = "bench"

    async def start(self) -> AsyncIterator[Any]:
        slot = self.crawler.engine._slot
        fingerprint = self.crawler.request_fingerprinter.fingerprint
        fingerprints = seen = 0.0
        for number, requests in enumerate(self.pages()):
            start = time.perf_counter()
            for request in requests:
                fingerprint(request)
            middle = time.perf_counter()
            for request in requests:
                slot.scheduler.df.request_seen(request)
            slot.inprogress.add(self.page)
            slot.inprogress.remove(self.page)
            fingerprints += middle - start
            seen += time.perf_counter() - middle
        us = 1e6 / REQUESTS
        print(f"{memory() / 1e6:5.1f} MB, a URL {seen * us:5.1f} us, fingerprint {fingerprints * us:.1f} us", flush=True)
        return
        yield

    def pages(self) -> Iterator[list[scrapy.Request]]:
        self.page = scrapy.Request("https://www.example.com/")
        for page in range(0, REQUESTS, LINKS):
            urls = [f"https://www.example.com/section-{n % 1000}/page-{n}.html?id={n}" for n in range(page, page + LINKS)]
            yield [scrapy.Request(url, self.parse, meta={"depth": 3}) for url in urls]

    def parse(self, response: scrapy.http.Response) -> None:
        pass


def main() -> None:
    if sys.argv[1:]:
        settings = {"DUPEFILTER_CLASS": sys.argv[1], "JOBDIR": sys.argv[2], "SIEVE_CAPACITY": 1_020_000, "LOG_ENABLED": False}
        asyncio.run(Crawler(Bench, {**settings, "TWISTED_REACTOR_ENABLED": False, "DOWNLOAD_HANDLERS": {"http": None, "https": None}}).crawl_async())
        return
    for dupefilter in ["scrapy.dupefilters.BaseDupeFilter", "scrapy.dupefilters.RFPDupeFilter", "crawl_sieve.scrapy.SieveDupeFilter"]:
        for has_jobdir in [False, True]:
            with tempfile.TemporaryDirectory() as folder:
                print(f"{dupefilter.split('.')[-1]:16}{'with JOBDIR' if has_jobdir else '':12}", end="", flush=True)
                subprocess.run([sys.executable, __file__, dupefilter, folder if has_jobdir else ""], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
