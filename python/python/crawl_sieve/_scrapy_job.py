"""What a Scrapy job keeps in its JOBDIR: the URLs that were seen, and the requests that have not ended.

Scrapy writes its queue only when it stops cleanly, so after a kill the queue lacks requests that its duplicate filter has seen. Here
one SQLite transaction has the end of a request together with all that its page led to. So a killed crawl makes again the requests that
were in flight, and loses none.
"""

from __future__ import annotations

import io
import logging
import pickle
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from scrapy import Request, Spider
from scrapy.utils.request import request_from_dict

from crawl_sieve import Sieve

logger = logging.getLogger(__name__)

# The key in `Request.meta` of the row of a request, while it is in Scrapy's queue.
_ROW = "_sieve_row"
# The key in the `meta` of a request that had a row, and so of its retries.
HAD_ROW = "_sieve_had_row"
# Values of `user_version`.
_NEW, _RUNNING, _CLEAN = 0, 1, 2
_MIN_JOURNAL_BYTES = 1 << 20


def read_fingerprints(file: BinaryIO) -> Iterator[bytes]:
    """Yields fingerprints in the formats of Scrapy's `requests.seen`: two bytes of length and the fingerprint, or, before 2.19, lines
    of hexadecimal digits. A last one that is torn is left out."""
    while head := file.read(2):
        if head[:1] in b"0123456789abcdef":
            line = head + file.readline()
            if line.endswith(b"\n"):
                yield bytes.fromhex(line.decode())
        else:
            fingerprint = file.read(int.from_bytes(head, "big"))
            if len(fingerprint) == int.from_bytes(head, "big"):
                yield fingerprint


class InProgress(set[Request]):
    """The requests that Scrapy's engine works on. It removes one when all that its callback yielded is scheduled."""

    def __init__(self, requests: set[Request], ended: Callable[[int | None], None]) -> None:
        super().__init__(requests)
        self._rows: dict[Request, int] = {}
        self._ended = ended

    def add(self, request: Request) -> None:
        super().add(request)
        # Taken out of `meta`, which retries, redirects and callbacks copy: theirs are requests of their own.
        row = request.meta.pop(_ROW, None)
        if row is not None:
            self._rows[request] = row
            request.meta[HAD_ROW] = True

    def remove(self, request: Request) -> None:
        # First, because the engine closes as soon as no request is left.
        self._ended(self._rows.pop(request, None))
        super().remove(request)


class Job:
    """The files of one job. After a kill they are as of the last commit.

    Raises `RuntimeError` if another process has the directory, or it cannot be written.
    """

    def __init__(self, folder: str, sieve: Sieve, settings: str) -> None:
        self.sieve = sieve
        self._settings = settings
        self._snapshot = Path(folder, "sieve.snapshot")
        self._queue = Path(folder, "requests.queue")
        self._old_queue = Path(folder, "requests.queue.old")
        self._is_complete = False
        self._fingerprints = bytearray()
        self._journal_bytes = 0
        path = Path(folder, "sieve.sqlite")
        try:
            self._db = sqlite3.connect(path, timeout=0)
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            # Syncs at checkpoints only: a power cut takes back the last commits, but does not damage the file.
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA wal_autocheckpoint = 8000")
            self._db.execute("CREATE TABLE IF NOT EXISTS pending (id INTEGER PRIMARY KEY, request BLOB NOT NULL)")
            self._db.execute("CREATE TABLE IF NOT EXISTS journal (fingerprints BLOB NOT NULL)")
            self._db.execute("CREATE TABLE IF NOT EXISTS made_with (settings TEXT NOT NULL)")
            (self._state,) = self._db.execute("PRAGMA user_version").fetchone()
            (self._row,) = self._db.execute("SELECT coalesce(max(id), 0) FROM pending").fetchone()
        except sqlite3.Error as error:
            hint = ", another crawl uses this JOBDIR" if "locked" in str(error) else ""
            raise RuntimeError(f"{path}: {error}{hint}") from error
        if self._state == _NEW:
            self._take_over(Path(folder, "requests.seen"))
        else:
            self._resume()

    def _take_over(self, seen: Path) -> None:
        """Reads what Scrapy's own filter has left, and keeps a copy of its queue until `open` has read that."""
        if seen.exists():
            try:
                with seen.open("rb") as file:
                    count = self.sieve.update(read_fingerprints(file))
            except ValueError as error:
                raise RuntimeError(f"{seen} is not from Scrapy's duplicate filter: {error}") from error
            logger.info("Took over %d URLs from %s", count, seen)
        self._db.execute("DELETE FROM made_with")
        self._db.execute("INSERT INTO made_with VALUES (?)", (self._settings,))
        self._db.commit()
        self._save()
        if self._old_queue.exists():
            shutil.rmtree(self._queue, ignore_errors=True)
        elif self._queue.exists():
            self._queue.rename(self._old_queue)
        if self._old_queue.exists():
            shutil.copytree(self._old_queue, self._queue)

    def _resume(self) -> None:
        self.sieve = Sieve.load(self._snapshot)
        self._snapshot_bytes = self._snapshot.stat().st_size
        (made_with,) = self._db.execute("SELECT settings FROM made_with").fetchone()
        if made_with != self._settings:
            logger.warning("The settings %s have no effect: the filter in JOBDIR keeps %s", self._settings, made_with)
        for (fingerprints,) in self._db.execute("SELECT fingerprints FROM journal"):
            self.sieve.update(read_fingerprints(io.BytesIO(fingerprints)))
            self._journal_bytes += len(fingerprints)
        if self._state == _RUNNING and self._queue.exists():
            shutil.rmtree(self._queue)
        self._set_state(_RUNNING)

    def open(self, spider: Spider, next_request: Callable[[], Request | None]) -> None:
        """Reads the queue of Scrapy's own filter, if there is one. `next_request` takes a request out of it."""
        self._spider = spider
        if self._state == _NEW:
            try:
                for request in iter(next_request, None):
                    self.record(request)
            except Exception as error:
                self._db.rollback()
                remedy = f"to start without its requests, remove it and {self._queue}"
                raise RuntimeError(f"cannot read {self._old_queue} ({error!r}); {remedy}") from error
            self._set_state(_RUNNING)
        shutil.rmtree(self._old_queue, ignore_errors=True)
        self._last_row = self._row

    def lacking(self) -> Iterator[Request]:
        """Yields the requests that Scrapy's queue lacks: none after a clean stop."""
        failed, first = 0, None
        if self._state != _CLEAN:
            for row, pickled in self._db.execute("SELECT id, request FROM pending WHERE id <= ? ORDER BY id", (self._last_row,)):
                try:
                    request = request_from_dict(pickle.loads(pickled), spider=self._spider)
                except Exception as error:
                    failed, first = failed + 1, first or error
                    continue
                request.meta[_ROW] = row
                yield request
        if failed:
            logger.error("Cannot put back %d requests, and keep them for the next start. The first: %r", failed, first)
        self._is_complete = not failed

    def record(self, request: Request, fingerprint: bytes | None = None) -> None:
        """Keeps a request until it has ended, and the fingerprint for ever. The next call of `ended` commits both."""
        if fingerprint is not None:
            self._fingerprints += len(fingerprint).to_bytes(2, "big") + fingerprint
        request.meta.pop(_ROW, None)
        try:
            pickled = pickle.dumps(self._to_dict(request), protocol=4)
        except (pickle.PicklingError, AttributeError, TypeError, ValueError):
            # Scrapy keeps it in memory only, too.
            return
        self._row += 1
        self._db.execute("INSERT INTO pending VALUES (?, ?)", (self._row, pickled))
        request.meta[_ROW] = self._row

    def _to_dict(self, request: Request) -> dict[str, Any]:
        """Does what `Request.to_dict` does, which searches all members of the spider for each callback."""
        callback, errback = request.callback, request.errback
        try:
            request.callback, request.errback = self._name(callback), self._name(errback)
            return request.to_dict(spider=self._spider)
        finally:
            request.callback, request.errback = callback, errback

    def _name(self, method: Any) -> Any:
        name = getattr(method, "__name__", "")
        return name if name and method == getattr(self._spider, name, None) else method

    def ended(self, row: int | None) -> None:
        """Forgets a request, and commits."""
        if row is not None:
            self._db.execute("DELETE FROM pending WHERE id = ?", (row,))
        if self._fingerprints:
            self._db.execute("INSERT INTO journal VALUES (?)", (self._fingerprints,))
            self._journal_bytes += len(self._fingerprints)
            self._fingerprints.clear()
        self._db.commit()
        if self._journal_bytes > max(_MIN_JOURNAL_BYTES, self._snapshot_bytes):
            self._save()

    def close(self, is_stopped: bool, is_finished: bool) -> None:
        """Closes the files. Commits, unless a failure `is_stopped` the crawl. If it `is_finished`, Scrapy's queue is empty."""
        if not is_stopped:
            self.ended(None)
            self._save()
            (is_empty,) = self._db.execute("SELECT NOT EXISTS (SELECT * FROM pending)").fetchone()
            # If Scrapy has lost requests, as by an error of its queue, the next start puts them back.
            if self._is_complete and (is_empty or not is_finished):
                self._set_state(_CLEAN)
        self._db.close()

    def _save(self) -> None:
        """Writes a snapshot, and drops the journal. All that the sieve has seen must be committed."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self.sieve.save(self._snapshot)
        self._snapshot_bytes = self._snapshot.stat().st_size
        self._db.execute("DELETE FROM journal")
        self._db.commit()
        self._journal_bytes = 0

    def _set_state(self, state: int) -> None:
        self._db.execute(f"PRAGMA user_version = {state}")
        self._db.commit()
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
