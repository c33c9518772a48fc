"""Crawls the demo site, a small site with the unusual features of real ones, and writes a line per page.

    crawler demo --serve 8080
    scrapy runspider demo_spider.py -a port=8080 -s JOBDIR=job -o pages.jsonl

Stop it at any moment and start it again: it continues. After `kill -9`, items are missing that the feed had not written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.resolver import dnscache


class DemoSpider(scrapy.Spider):
    name = "demo"
    allowed_domains = [f"{host}-demo.localhost" for host in ["www", "docs", "blog", "private"]]
    custom_settings = {
        "DUPEFILTER_CLASS": "crawl_sieve.scrapy.SieveDupeFilter",
        "SIEVE_CAPACITY": 10_000,
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
    }

    # A path that repeats itself often is a trap.
    links = LinkExtractor(tags=["a", "area", "frame", "iframe", "link"], attrs=["href", "src"], deny=r"(/[^/]+)\1{5}/", deny_extensions=[])

    async def start(self) -> AsyncIterator[Any]:
        for host in self.allowed_domains:
            # Names below `localhost` mean this machine (RFC 6761), but not all systems resolve them.
            dnscache[host] = "127.0.0.1"
            yield scrapy.Request(f"http://{host}:{self.port}/")

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "redirected_from": response.meta.get("redirect_urls", [])}
        if isinstance(response, HtmlResponse) and "nofollow" not in response.css("meta[name=robots]::attr(content)").get(""):
            for link in self.links.extract_links(response):
                if not link.nofollow:
                    yield response.follow(link)
