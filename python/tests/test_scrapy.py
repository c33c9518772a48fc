"""The duplicate filter in whole crawls of a site in memory."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import resource
import shutil
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kill_loop
import pytest
import scrapy
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Request, Response
from scrapy.squeues import PickleLifoDiskQueue
from scrapy.utils.request import fingerprint

from crawl_sieve import _scrapy_job

SIEVE = "crawl_sieve.scrapy.SieveDupeFilter"
SCRAPY = "scrapy.dupefilters.RFPDupeFilter"
CONCURRENCY = 4


class Site:
    """A tree of pages with links across. If it is difficult, some answer 503 at first, and leaves are not filtered."""

    def __init__(self, pages: int = 60, is_difficult: bool = False) -> None:
        self.pages = pages
        self.is_difficult = is_difficult
        self.fetched: list[int] = []
        self.moment: Callable[[], None] = lambda: None
        self.in_progress: set[Request] = set()

    def links(self, page: int) -> Iterator[str]:
        for to in [page // 2, page * 7 % self.pages, 2 * page + 1, 2 * page + 2]:
            if to < self.pages:
                is_leaf = self.is_difficult and to > 2 * page and 2 * to >= self.pages
                yield f"http://site/{'redirect/' if to % 5 == 0 else ''}{'leaf/' if is_leaf else ''}{to}"

    def answer(self, request: Request) -> Response:
        self.moment()
        page = int(request.url.split("/")[-1])
        if "redirect" in request.url:
            return Response(request.url, status=302, headers={"Location": request.url.replace("redirect/", "")})
        self.fetched.append(page)
        if self.is_difficult and page % 7 == 6 and self.fetched.count(page) == 1:
            return Response(request.url, status=503)
        body = "".join(f'<a href="{link}">' for link in self.links(page))
        return HtmlResponse(request.url, body=body.encode())


class Handler(BaseDownloadHandler):
    async def download_request(self, request: Request) -> Response:
        await asyncio.sleep(0)
        return self.crawler.spider.site.answer(request)  # type: ignore[union-attr]


class SiteSpider(scrapy.Spider):
    name = "site"
    site: Site

    async def start(self) -> AsyncIterator[Any]:
        self.site.in_progress = self.crawler.engine._slot.inprogress  # type: ignore[union-attr]
        yield Request("http://site/0", dont_filter=True)

    def parse(self, response: Response) -> Iterator[Any]:
        for link in response.css("a::attr(href)").getall():
            # Many spiders pass on the `meta` of the page.
            yield response.follow(link, self.parse, meta={**response.meta, "retry_times": 0}, dont_filter="leaf" in link)
            self.site.moment()


def crawl(site: Site, jobdir: Path | None = None, spider: type[scrapy.Spider] = SiteSpider, **settings: Any) -> Crawler:
    """Runs a crawl to its end."""
    defaults = {
        "TWISTED_REACTOR_ENABLED": False,
        "DUPEFILTER_CLASS": SIEVE,
        "DOWNLOAD_HANDLERS": {"http": Handler, "https": None},
        "CONCURRENT_REQUESTS": CONCURRENCY,
        "LOG_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "JOBDIR": jobdir and str(jobdir),
    }
    crawler = Crawler(spider, {**defaults, **settings})
    asyncio.run(crawler.crawl_async(site=site))
    return crawler


def rows(jobdir: Path) -> int:
    count = "SELECT (SELECT count(*) FROM pending) + (SELECT count(*) FROM journal)"
    with closing(sqlite3.connect(jobdir / "sieve.sqlite")) as database:
        return int(database.execute(count).fetchone()[0])


def test_each_page_is_fetched_once_and_the_stats_say_how_full_the_filter_is() -> None:
    site = Site()
    stats = crawl(site).stats
    assert set(site.fetched) == set(range(60))
    # The start request is not filtered, so links to it are new once.
    assert len(site.fetched) == 61
    assert stats.get_value("dupefilter/filtered") > 50
    assert 60 <= stats.get_value("sieve/estimated") <= 75
    assert stats.get_value("sieve/level") == "healthy"
    assert stats.get_value("sieve/lost") == 0


def test_a_full_filter_warns_where_monitors_count() -> None:
    stats = crawl(Site(200), SIEVE_CAPACITY=20, SIEVE_ON_SATURATION="warn").stats
    assert stats.get_value("log_count/WARNING") >= 1
    assert stats.get_value("sieve/level") != "healthy"
    assert stats.get_value("sieve/lost") > 0


@pytest.mark.parametrize("has_job", [False, True])
def test_lost_pages_are_warned_of_at_the_end_and_at_the_next_start_with_what_to_set(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, has_job: bool
) -> None:
    def warnings() -> list[str]:
        found = [record.message for record in caplog.records if record.name == "crawl_sieve.scrapy" and record.levelname == "WARNING"]
        caplog.clear()
        return found

    settings = {"SIEVE_CAPACITY": 20, "SIEVE_ON_SATURATION": "warn"}
    site, job = Site(200), tmp_path / "job" if has_job else None
    crawl(site, job, **settings)
    (warning,) = warnings()
    assert "their pages are missing" in warning
    assert len(set(site.fetched)) < 200
    crawl(Site(1), job, **settings)
    assert len(warnings()) == (2 if has_job else 0)
    found = re.search(r"SIEVE_CAPACITY = (\d+), SIEVE_RATE = (\S+) and SIEVE_ON_SATURATION = \"(\w+)\"", warning)
    assert found
    site = Site(200)
    crawl(site, tmp_path / "new", SIEVE_CAPACITY=found[1], SIEVE_RATE=found[2], SIEVE_ON_SATURATION=found[3])
    assert set(site.fetched) == set(range(200))
    assert warnings() == []


def test_a_handler_that_raises_costs_no_page(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("no log")

    broken = Broken()
    logging.getLogger("sieve.saturation").addHandler(broken)
    site = Site(200)
    try:
        crawl(site, SIEVE_CAPACITY=100)
    finally:
        logging.getLogger("sieve.saturation").removeHandler(broken)
    assert set(site.fetched) == set(range(200))
    assert "no log" in capsys.readouterr().err


def test_a_filter_that_refuses_stops_the_crawl_and_loses_no_request(tmp_path: Path) -> None:
    settings = {"SIEVE_CAPACITY": 20, "SIEVE_ON_SATURATION": "refuse"}
    stats = crawl(Site(200), tmp_path, **settings).stats
    assert stats.get_value("finish_reason") == "sieve_saturated"
    assert stats.get_value("log_count/ERROR") == 1
    # Those that led to the refused ones are made again.
    assert crawl(Site(200), tmp_path, **settings).stats.get_value("sieve/put_back") > 0


def test_a_crawl_that_fails_to_start_loses_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def open_spider(self) -> None:
            raise OSError("no disk")

    (copy, *_) = crawl_and_copy(Site(), tmp_path / "job", monkeypatch, 1 / 100)[2:]
    with pytest.raises(OSError, match="no disk"):
        crawl(Site(), copy.job, ITEM_PIPELINES={Broken: 1})
    rest = Site()
    rest.fetched = copy.fetched
    crawl(rest, copy.job)
    assert set(rest.fetched) == set(range(60))


@pytest.mark.parametrize(
    ("setting", "value"),
    [("SIEVE_CAPACITY", 0), ("SIEVE_CAPACITY", "many"), ("SIEVE_CAPACITY", 10**17), ("SIEVE_RATE", 2), ("SIEVE_RATE", "low"), ("SIEVE_ON_SATURATION", "wait")],
)
def test_a_wrong_setting_is_an_error_at_the_start(caplog: pytest.LogCaptureFixture, setting: str, value: Any) -> None:
    site = Site()
    with pytest.raises(Exception):
        crawl(site, **{setting: value})
    (error,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert error.startswith(f"The crawl cannot start: the setting {setting} is {value!r}: ")
    assert error.count("SIEVE_") == 1
    assert not site.fetched


def test_a_crawl_that_was_stopped_goes_on_without_repeats(tmp_path: Path) -> None:
    site = Site()
    crawl(site, tmp_path, CLOSESPIDER_PAGECOUNT=20)
    assert len(site.fetched) < 40
    stats = crawl(site, tmp_path).stats
    assert set(site.fetched) == set(range(60))
    assert len(site.fetched) == 62, "the start request of each run, and a link to it"
    assert stats.get_value("sieve/put_back") is None
    assert rows(tmp_path) == 0


class LongFingerprints:
    """Fingerprints that soon make the journal longer than the snapshot."""

    def fingerprint(self, request: Request) -> bytes:
        return fingerprint(request) * 25


@dataclass
class Copy:
    """JOBDIR as a kill between two steps leaves it."""

    job: Path
    fetched: list[int]
    in_progress: int


def crawl_and_copy(site: Site, job: Path, patch: pytest.MonkeyPatch, share: float, **settings: Any) -> list[Copy]:
    """Runs a crawl, and copies its JOBDIR after each snapshot, and before a share of the commands to SQLite and of the requests."""
    chance = random.Random(1)
    copies: list[Copy] = []
    snapshots: set[int] = set()

    def moment() -> None:
        before = len(snapshots)
        snapshots.update(path.stat().st_mtime_ns for path in job.glob("sieve.snapshot"))
        if len(snapshots) > before or chance.random() < share:
            copy = job.with_name(f"copy-{len(copies)}")
            shutil.copytree(job, copy)
            copies.append(Copy(copy, site.fetched.copy(), len(site.in_progress)))

    class Steps(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            moment()
            return super().execute(*arguments)

        def commit(self) -> None:
            moment()
            super().commit()

    connect = sqlite3.connect
    site.moment = moment
    with patch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, factory=Steps, **options))
        patch.setattr(_scrapy_job, "_MIN_JOURNAL_BYTES", 0)
        crawl(site, job, **settings)
    return copies


def test_no_page_is_missing_after_a_kill_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(is_difficult=True)
    settings = {"SIEVE_CAPACITY": 50, "REQUEST_FINGERPRINTER_CLASS": LongFingerprints}
    copies = crawl_and_copy(site, tmp_path / "job", monkeypatch, 0.04, **settings)
    assert len(copies) > 30
    once = Counter(site.fetched)
    for copy in copies:
        rest = Site(is_difficult=True)
        rest.fetched = copy.fetched
        crawl(rest, copy.job, **settings)
        assert set(rest.fetched) == set(range(60)), copy
        # A page that is fetched again brings its unfiltered links again.
        repeats = Counter(page for page in rest.fetched if page < 30) - once
        assert repeats.total() <= copy.in_progress + 1, copy
        assert rows(copy.job) == 0


def test_a_short_kill_loop_loses_no_page() -> None:
    kills = 8
    outcome = kill_loop.run(kills, pages=450, seed=1, dupefilter=SIEVE, requests_per_kill=60)
    assert outcome.kills == kills
    assert not outcome.missing
    assert outcome.repeats <= kills * kill_loop.CONCURRENCY + 2 * outcome.runs
    assert "[crawl_sieve" not in outcome.last_log.replace("[crawl_sieve.scrapy] INFO", ""), "nothing to warn of"


@pytest.mark.parametrize("format", ["binary", "lines", "both"])
def test_urls_that_scrapys_filter_has_seen_are_taken_over(tmp_path: Path, format: str) -> None:
    crawl(Site(), tmp_path, DUPEFILTER_CLASS=SCRAPY)
    seen = tmp_path / "requests.seen"
    binary = seen.read_bytes()
    lines = b"".join(binary[at : at + 20].hex().encode() + b"\n" for at in range(2, len(binary), 22))
    if format == "lines":
        seen.write_bytes(lines + b"12ab")
    elif format == "both":
        # 2.19 appends to the lines of an earlier version.
        seen.write_bytes(lines[: 41 * 30] + binary[22 * 30 :] + b"\x00\x14torn")
    site = Site()
    stats = crawl(site, tmp_path).stats
    assert site.fetched == [0]
    assert stats.get_value("sieve/estimated") == len(binary) // 22


def test_requests_that_scrapys_filter_has_queued_survive_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, job = Site(), tmp_path / "job"
    crawl(site, job, DUPEFILTER_CLASS=SCRAPY, CLOSESPIDER_PAGECOUNT=20)
    copies = crawl_and_copy(site, job, monkeypatch, 0.06)
    assert sum((copy.job / "requests.queue.old").exists() for copy in copies) > 2
    for copy in copies:
        rest = Site()
        rest.fetched = copy.fetched
        crawl(rest, copy.job)
        assert set(rest.fetched) == set(range(60)), copy


def test_a_queue_that_cannot_be_taken_over_is_an_error_at_the_start(tmp_path: Path) -> None:
    queue = {"SCHEDULER_START_DISK_QUEUE": None}
    crawl(Site(), tmp_path, DUPEFILTER_CLASS=SCRAPY, CLOSESPIDER_PAGECOUNT=20, **queue)
    (path,) = tmp_path.glob("requests.queue/*/0")
    content = path.read_bytes()
    # The requests at the end are whole, and come first.
    path.write_bytes(content[:4] + b"damage" * 50 + content[304:])
    site = Site()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cannot read .*requests.queue.old .*remove it"):
            crawl(site, tmp_path, **queue)
        assert rows(tmp_path) == 0
    assert not site.fetched
    shutil.rmtree(tmp_path / "requests.queue")
    shutil.rmtree(tmp_path / "requests.queue.old")
    crawl(site, tmp_path)
    assert site.fetched == [0]


def test_a_file_of_other_contents_is_an_error_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "requests.seen").write_text("a line\n")
    with pytest.raises(Exception):
        crawl(Site(), tmp_path)
    assert "requests.seen is not from Scrapy" in caplog.text


def test_a_job_keeps_its_capacity_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    crawl(Site(), tmp_path, CLOSESPIDER_PAGECOUNT=20, SIEVE_CAPACITY=5000)
    assert "keeps" not in caplog.text
    crawl(Site(), tmp_path, SIEVE_CAPACITY=9000)
    assert "SIEVE_CAPACITY=9000" in caplog.text and "the filter in JOBDIR keeps SIEVE_CAPACITY=5000" in caplog.text


def test_each_of_many_start_requests_is_made_once_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Many(SiteSpider):
        async def start(self) -> AsyncIterator[Any]:
            for page in range(30):
                yield Request(f"http://site/{page}", self.end, dont_filter=True)

        def end(self, response: Response) -> None:
            pass

    for copy in crawl_and_copy(Site(), tmp_path / "job", monkeypatch, 0.2, spider=Many)[-5:]:
        rest = Site()
        crawl(rest, copy.job, Many)
        assert sorted(rest.fetched) == list(range(30))


def test_the_retry_of_a_filtered_start_request_survives_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Filtered(SiteSpider):
        async def start(self) -> AsyncIterator[Any]:
            # Answers 503 at first. The retry has `dont_filter` and the `meta` of the start request.
            yield Request("http://site/6")

    site = Site(is_difficult=True)
    for copy in crawl_and_copy(site, tmp_path / "job", monkeypatch, 0.2, spider=Filtered):
        rest = Site(is_difficult=True)
        rest.fetched = copy.fetched
        crawl(rest, copy.job, Filtered)
        assert set(rest.fetched) == set(site.fetched), copy


def test_middlewares_can_tell_start_requests(tmp_path: Path) -> None:
    class Filtered(SiteSpider):
        async def start(self) -> AsyncIterator[Any]:
            yield Request("http://site/0")

    is_start = []

    class See:
        def process_response(self, request: Request, response: Response) -> Response:
            is_start.append(request.meta.get("is_start_request", False))
            return response

    crawl(Site(1), tmp_path, Filtered, DOWNLOADER_MIDDLEWARES={See: 1})
    assert is_start == [True]


def test_a_request_that_is_scheduled_when_the_spider_opens_is_made_once(tmp_path: Path) -> None:
    class Early(SiteSpider):
        @classmethod
        def from_crawler(cls, crawler: Crawler, *args: Any, **options: Any) -> Early:
            spider = super().from_crawler(crawler, *args, **options)
            crawler.signals.connect(spider.opened, scrapy.signals.spider_opened)
            return spider

        def opened(self) -> None:
            self.crawler.engine.crawl(Request("http://site/59"))  # type: ignore[union-attr]

    site = Site()
    crawl(site, tmp_path, Early)
    assert site.fetched.count(59) == 1


def test_a_request_that_scrapys_queue_refuses_is_made_by_the_next_run(tmp_path: Path) -> None:
    class Queue(PickleLifoDiskQueue):  # type: ignore[misc]
        def push(self, request: Request) -> None:
            if request.url.endswith("/4"):
                raise OSError("no disk")
            super().push(request)

    site = Site()
    crawl(site, tmp_path, SCHEDULER_DISK_QUEUE=Queue, SCHEDULER_START_DISK_QUEUE=Queue)
    assert 4 not in site.fetched
    crawl(site, tmp_path)
    assert set(site.fetched) == set(range(60))


def test_requests_that_never_reach_the_downloader_end_too(tmp_path: Path) -> None:
    class Ignore:
        def process_request(self, request: Request) -> None:
            if request.url.endswith("3"):
                raise IgnoreRequest

    site = Site()
    crawl(site, tmp_path, DOWNLOADER_MIDDLEWARES={Ignore: 1})
    assert 4 in site.fetched and 3 not in site.fetched
    assert rows(tmp_path) == 0


def test_a_page_has_not_ended_when_a_download_of_its_callback_has(tmp_path: Path) -> None:
    job, copy = tmp_path / "job", tmp_path / "copy"

    class Nested(SiteSpider):
        async def parse(self, response: Response) -> AsyncIterator[Any]:
            await self.crawler.engine.download_async(Request("http://site/59", meta=response.meta))
            if response.url.endswith("/7"):
                shutil.copytree(job, copy)
            for request in super().parse(response):
                yield request

    crawl(Site(), job, Nested)
    rest = Site()
    crawl(rest, copy)
    assert {7, 15, 16, 31, 32} < set(rest.fetched)


def test_a_request_that_cannot_be_pickled_is_made_all_the_same(tmp_path: Path) -> None:
    class Lambdas(SiteSpider):
        def parse(self, response: Response) -> Iterator[Any]:
            for request in super().parse(response):
                yield request.replace(callback=lambda response: self.parse(response))

    site = Site()
    crawl(site, tmp_path, Lambdas)
    assert set(site.fetched) == set(range(60))


def test_a_job_dir_has_one_crawl_at_a_time(tmp_path: Path) -> None:
    site = Site()

    def second() -> None:
        site.moment = lambda: None
        with pytest.raises(RuntimeError, match="database is locked, another crawl uses this JOBDIR"):
            _scrapy_job.Job(str(tmp_path), _scrapy_job.Sieve(), "")

    site.moment = second
    crawl(site, tmp_path)
    assert set(site.fetched) == set(range(60))


def test_a_job_dir_that_cannot_be_written_is_an_error_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "sieve.sqlite").mkdir()
    site = Site()
    with pytest.raises(Exception):
        crawl(site, tmp_path)
    assert "The crawl cannot start: " + str(tmp_path / "sieve.sqlite") in caplog.text
    assert not site.fetched


def test_a_full_disk_stops_the_crawl_and_loses_no_page(tmp_path: Path) -> None:
    site = Site(300)

    def fill() -> None:
        site.moment = lambda: None
        size = max(file.stat().st_size for file in tmp_path.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50_000, resource.RLIM_INFINITY))

    site.moment = fill
    try:
        stats = crawl(site, tmp_path).stats
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert stats.get_value("finish_reason") == "sieve_failed"
    assert stats.get_value("log_count/ERROR") == 1
    assert len(set(site.fetched)) < 200
    crawl(site, tmp_path)
    assert set(site.fetched) == set(range(300))


def test_requests_whose_callback_is_gone_are_kept_until_it_is_back(tmp_path: Path) -> None:
    class Renamed(SiteSpider):
        async def start(self) -> AsyncIterator[Any]:
            yield Request("http://site/0", self.parse_page, dont_filter=True)

        def parse_page(self, response: Response) -> Iterator[Any]:
            for request in SiteSpider.parse(self, response):
                yield request.replace(callback=self.parse_page)

    site, job, copy = Site(), tmp_path / "job", tmp_path / "copy"

    def moment() -> None:
        if len(site.fetched) == 20 and not copy.exists():
            shutil.copytree(job, copy)

    site.moment = moment
    crawl(site, job, Renamed)
    rest = Site()
    rest.fetched = site.fetched[:20]
    assert crawl(rest, copy).stats.get_value("log_count/ERROR") == 1
    crawl(rest, copy, Renamed)
    assert set(rest.fetched) == set(range(60))
