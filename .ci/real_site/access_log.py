"""Read the access log that the check's nginx writes: one JSON object per request.

nginx logs a request when it ends, with a clock of whole milliseconds: `end` is `$msec`, and `start` is `$msec` less
`$request_time`. Each is cut to a millisecond, so a span between the two may look up to 1 ms shorter than it was.
"""

import json
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

CLOCK_STEP_MS = 1
QUIET_SECONDS = 0.2


@dataclass(frozen=True)
class Request:
    """One request as nginx saw it; times are whole milliseconds since the epoch."""

    start_ms: int
    end_ms: int
    host: str
    method: str
    uri: str
    status: int


class AccessLog:
    """The log of one site, read in pieces: `since_last` returns what came after the last call."""

    def __init__(self, path):
        self.path = Path(path)
        self.read_up_to = 0

    def since_last(self):
        """Return the new requests in the order of their starts, once the log has stopped growing."""
        size = -1
        while size != (size := self.path.stat().st_size):
            # The line is written after the client has its answer, so the client may be gone before it.
            time.sleep(QUIET_SECONDS)
        with self.path.open("rb") as file:
            file.seek(self.read_up_to)
            lines = file.read().splitlines()
            self.read_up_to = file.tell()
        return sorted(map(parse, lines), key=lambda request: (request.start_ms, request.end_ms))


def parse(line):
    """Return the request of one log line."""
    fields = json.loads(line)
    end_ms = milliseconds(fields["msec"])
    return Request(
        start_ms=end_ms - milliseconds(fields["request_time"]),
        end_ms=end_ms,
        host=fields["host"],
        method=fields["method"],
        uri=fields["uri"],
        status=int(fields["status"]),
    )


def milliseconds(text):
    """Return `12.345` as 12345, without the rounding of a float."""
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 1000 + int(fraction.ljust(3, "0")[:3])


def gaps_ms(requests):
    """Return (gap, earlier, later) per pair of neighbours of one host: end of the one to start of the other.

    The end is the latest of all that began before, so that two requests under way at once show as a negative gap.
    """
    by_host = defaultdict(list)
    for request in requests:
        by_host[request.host].append(request)
    gaps = []
    for same_host in by_host.values():
        latest = same_host[0]
        for request in same_host[1:]:
            gaps.append((request.start_ms - latest.end_ms, latest, request))
            latest = max(latest, request, key=lambda one: one.end_ms)
    return gaps
