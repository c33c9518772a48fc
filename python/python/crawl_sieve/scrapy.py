"""A duplicate filter for Scrapy that says when it is full and how many URLs that has cost.

    DUPEFILTER_CLASS = "crawl_sieve.scrapy.SieveDupeFilter"

| setting | default | |
|---|---|---|
| `SIEVE_CAPACITY` | 1 000 000 | the number of URLs that the filter is made for |
| `SIEVE_RATE` | 0.01 | the share of new URLs that it may take for seen ones, at this number |
| `SIEVE_ON_SATURATION` | `"grow"` | what it does past this number: `"grow"`, `"warn"` or `"refuse"`, which stops the crawl |

With `JOBDIR`, it keeps the requests that have not ended, too: after `kill -9`, no page is missing. It needs Scrapy 2.14 or later.
"""

from __future__ import annotations

import logging
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir

from crawl_sieve import SaturatedError, Sieve
from crawl_sieve._scrapy_job import HAD_ROW, InProgress, Job

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings
    from typing_extensions import Self

__all__ = ["SieveDupeFilter"]

logger = logging.getLogger(__name__)

_NEW_PER_STATS = 100


class SieveDupeFilter(RFPDupeFilter):
    """Scrapy's duplicate filter with a sieve in place of a set, see the module."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(debug=crawler.settings.getbool("DUPEFILTER_DEBUG"), fingerprinter=crawler.request_fingerprinter)
        self._crawler = crawler
        self._sieve, settings = _sieve_of(crawler.settings)
        self._new = 0
        self._is_stopped = False
        self._put_back: Request | None = None
        folder = job_dir(crawler.settings)
        self._job = Job(folder, self._sieve, settings) if folder else None
        if self._job:
            self._sieve = self._job.sieve
            self._warn_of_losses("in the runs before")
            crawler.signals.connect(self._engine_started, signals.engine_started)
            crawler.signals.connect(self._request_scheduled, signals.request_scheduled)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Returns the filter of a crawl. Raises `ValueError` for a wrong setting, and `RuntimeError` if JOBDIR cannot be used."""
        try:
            return cls(crawler)
        except Exception as error:
            # Scrapy shows it in the middle of a long traceback.
            logger.error("The crawl cannot start: %s", error)
            raise

    def open(self) -> None:
        """Begins to watch which requests end."""
        slot, spider = self._crawler.engine._slot, self._crawler.spider
        if self._job:
            assert slot and spider
            self._job.open(spider, slot.scheduler.next_request)
            slot.inprogress = InProgress(slot.inprogress, self._ended)

    def request_seen(self, request: Request) -> bool:
        """Returns whether the URL was seen, and marks it."""
        if request is self._put_back:
            return False
        fingerprint = self.fingerprinter.fingerprint(request)
        try:
            if not self._sieve.add(fingerprint):
                return True
        except SaturatedError as error:
            self._stop("sieve_saturated", f"{error}. The filter in JOBDIR stays full: begin another job" if self._job else error)
            return True
        except Exception as error:
            # A handler of the log raised it. The URL is marked, so the request must be made.
            if not hasattr(error, "new"):
                raise
            sys.excepthook(type(error), error, error.__traceback__)
            if not getattr(error, "new"):
                return True
        self._record(request, fingerprint)
        self._new += 1
        if self._new % _NEW_PER_STATS == 0:
            self._set_stats()
        return False

    def close(self, reason: str) -> None:
        """Saves the filter, if there is a JOBDIR."""
        self._set_stats()
        self._warn_of_losses("so far" if self._job else "in this crawl")
        if self._job:
            self._job.close(self._is_stopped, is_finished=reason == "finished")

    def _engine_started(self) -> None:
        assert self._job
        count = 0
        for self._put_back in self._job.lacking():
            self._crawler.engine.crawl(self._put_back)
            count += 1
        self._put_back = None
        if count:
            logger.info("Put back %d requests that had not ended", count)
            self._crawler.stats.set_value("sieve/put_back", count)

    def _request_scheduled(self, request: Request) -> None:
        # The others come to request_seen. Scrapy makes start requests again by itself; callbacks that pass on their `meta` have a depth.
        meta = request.meta
        is_start = meta.get("is_start_request") and not meta.get("depth") and not meta.get(HAD_ROW)
        if request.dont_filter and request is not self._put_back and not is_start:
            self._record(request)

    def _record(self, request: Request, fingerprint: bytes | None = None) -> None:
        if self._job and not self._is_stopped:
            try:
                self._job.record(request, fingerprint)
            except sqlite3.Error as error:
                self._stop("sieve_failed", error)

    def _ended(self, row: int | None) -> None:
        if self._job and not self._is_stopped:
            try:
                self._job.ended(row)
            except (sqlite3.Error, OSError) as error:
                self._stop("sieve_failed", error)

    def _stop(self, reason: str, error: Exception | str) -> None:
        """Stops the crawl. Nothing is written from here on, so the next start continues from the last commit."""
        if not self._is_stopped:
            self._is_stopped = True
            logger.error("The crawl stops: %s", error)
            deferred_from_coro(self._crawler.engine.close_spider_async(reason=reason))

    def _warn_of_losses(self, when: str) -> None:
        saturation = self._sieve.saturation
        if saturation.lost_at_least:
            # Twice the capacity and a tenth of the rate lose less than one of a million.
            logger.warning(
                "About %d new URLs were taken for seen ones %s, and their pages are missing. To get them, begin a new %s with SIEVE_CAPACITY = %d, "
                'SIEVE_RATE = %.1g and SIEVE_ON_SATURATION = "grow"',
                max(saturation.lost, saturation.lost_at_least), when, "job" if self._job else "crawl",
                2 * round(saturation.estimated), self._crawler.settings.getfloat("SIEVE_RATE", 0.01) / 10,
            )

    def _set_stats(self) -> None:
        saturation, stats = self._sieve.saturation, self._crawler.stats
        stats.set_value("sieve/estimated", round(saturation.estimated))
        stats.set_value("sieve/lost", round(saturation.lost, 1))
        stats.set_value("sieve/level", saturation.level)


def _sieve_of(settings: BaseSettings) -> tuple[Sieve, str]:
    """Returns a sieve, and its settings in words."""
    options: dict[str, Any] = {}
    words = []
    for name, option, read, default in [
        ("SIEVE_RATE", "rate", settings.getfloat, 0.01),
        ("SIEVE_ON_SATURATION", "on_saturation", settings.get, "grow"),
        ("SIEVE_CAPACITY", "capacity", settings.getint, 1_000_000),
    ]:
        try:
            options[option] = read(name, default)
            # With those before, which are right, and a small capacity at first.
            sieve = Sieve(**{"capacity": 1, **options})
        except (TypeError, ValueError, OverflowError, MemoryError) as error:
            raise ValueError(f"the setting {name} is {settings.get(name)!r}: {error}") from error
        words.append(f"{name}={options[option]}")
    return sieve, ", ".join([words[2], *words[:2]])
