#!/usr/bin/env python3
"""Checks that an outage of a site costs only time: no page is lost, and none is requested again.

    benches/crawl/outages.py [--pages 20000] [--seconds 5,20,40,120] [--per-host 1,8,32] [--kinds stop,kill,freeze]
    benches/crawl/outages.py --short        a minute, for CI

A site of pages with distinct texts is crawled without a delay. After a third of the pages, its server

  stop    ends normally, and is restarted after the outage;
  kill    is killed, and restarted;
  freeze  is stopped with its connections open, and continued.

Promises, for each kind, length and --per-host: every page is in the output once, with status 200. The server answers no page with
200 twice. The exceptions are at most --per-host answers in flight when a kill or a freeze began or ended. The log has one line that
the site is away and one that it is back. Both may be missing after a freeze in which not three pages and a probe time out. The exit code
is 0. All cases together take about half an hour.

"asked twice" counts answers beyond the first. "unanswered" counts requests that timed out before a frozen server handled them.
"resumed" is the time from the server's return to its first answer, in seconds.
"""

import hashlib
import pathlib
import re
import signal
import time

import site_server

FAN_OUT = 10
KINDS = ["stop", "kill", "freeze"]
# The time around the start or the end of an outage in which an answer may be in flight.
IN_FLIGHT_SECONDS = 1
IS_AWAY = re.compile(r"WARN .* is away: ")
IS_BACK = re.compile(r" is back after ")
COLUMNS = "{:7} {:>7} {:>8} {:>7} {:>6} {:>11} {:>10} {:>14} {:>7} {:>7}"


def main():
    parser = site_server.parser(__doc__)
    numbers = lambda text: [int(number) for number in text.split(",")]
    parser.add_argument("--pages", type=int)
    parser.add_argument("--seconds", type=numbers, help="lengths of the outages, in seconds")
    parser.add_argument("--per-host", type=numbers)
    parser.add_argument("--kinds", type=lambda text: text.split(","))
    parser.add_argument("--timeout", type=float, help="passed to the crawler")
    arguments = site_server.parse(parser)
    defaults = SHORT if arguments.short else FULL
    for name, value in defaults.items():
        if getattr(arguments, name, None) is None:
            setattr(arguments, name, value)
    heads = ["kind", "seconds", "per-host", "pages", "lost", "asked twice", "unanswered", "lines", "resumed", "wall s"]
    print(COLUMNS.format(*heads))
    cases = [
        (kind, seconds, per_host)
        for seconds in arguments.seconds
        for kind in arguments.kinds
        for per_host in arguments.per_host
    ]
    site_server.finish([holds(arguments, *case) for case in cases], "cases")


# No length is a multiple of the timeout. Otherwise a retry would time out at the moment when the server answers it.
FULL = {"pages": 20_000, "seconds": [5, 20, 40, 120], "per_host": [1, 8, 32], "kinds": KINDS, "timeout": 9, "limit": None}
# Four cases. They take at most a minute, even if no crawl ends.
SHORT = {"pages": 2_000, "seconds": [3], "per_host": [1, 8], "kinds": ["kill", "freeze"], "timeout": 0.8, "limit": 14}


def holds(arguments, kind, seconds, per_host):
    """Runs a case, and prints its row and its broken promises. Returns whether all promises hold."""
    limit = arguments.limit or 3 * seconds + 4 * arguments.timeout + 60 + arguments.pages / 200
    with site_server.work_folder() as folder:
        work = pathlib.Path(folder)
        output = work / "pages.jsonl"
        options = ["--delay", 0, "--per-host", per_host, "--concurrency", 32, "--timeout", arguments.timeout]
        with site_server.Server(work, "tree", arguments.pages) as server:
            with site_server.Crawl(arguments.crawler, work, *options, "--output", output, server.url) as crawl:
                began, ended = outage(server, crawl, kind, seconds, arguments.pages // 3, limit)
                ended_itself = crawl.wait(limit)
                wall = crawl.seconds
            requests = server.requests()
        found = site_server.paths_in(output)

    lost = [path for path in map(path_of, range(arguments.pages)) if path not in found]
    answers = [request for request in requests if request.status == 200]
    again = earlier(answers)
    unanswered = sum(request.status == site_server.GONE for request in requests)
    away, back = len(crawl.matching(IS_AWAY)), len(crawl.matching(IS_BACK))
    lines = f"{away} away, {back} back"
    resumed = next((f"{request.at - ended:.1f}" for request in answers if ended and request.at > ended), "never")
    row = [kind, seconds, per_host, len(found), len(lost), len(again), unanswered, lines, resumed, f"{wall:.1f}"]
    print(COLUMNS.format(*row), flush=True)

    code = crawl.process.returncode
    allowed = 0 if kind == "stop" else per_host
    arrived = [request.path for request in again if not may_be_lost(request, requests, began, ended)]
    # A host is away after three pages in a row, and a probe about a second later, without an answer.
    rounds = -(-3 // per_host)
    may_be_silent = kind == "freeze" and seconds < (rounds + 1) * arguments.timeout + 2
    right_lines = [(1, 1), (0, 0)] if may_be_silent else [(1, 1)]
    promises = [
        (began, f"the crawl ended before the server had answered a third of the pages: exit code {code}"),
        (ended_itself, f"the crawl did not end within {limit:.0f} s"),
        (code == 0 or not ended_itself, f"the exit code is {code}"),
        (not lost, f"{len(lost)} pages are lost, such as {lost[:1]}"),
        (max(found.values(), default=0) <= 1, "a page is in the output twice"),
        (len(again) <= allowed, f"{len(again)} pages were answered twice, {allowed} are allowed"),
        (not arrived, f"{len(arrived)} of them had arrived before the second request, such as {arrived[:1]}"),
        ((away, back) in right_lines, f"{away} lines match {IS_AWAY.pattern!r}, {back} {IS_BACK.pattern!r}"),
    ]
    broken = [text for is_kept, text in promises if not is_kept]
    for text in broken + (crawl.summary_rows("ended", "failed by", "not fetched") if broken else []):
        print(f"    {text}", flush=True)
    return not broken


def outage(server, crawl, kind, seconds, after, limit):
    """Starts an outage after `after` requests. Returns when it began and when it ended."""
    crawl.wait(limit, until=lambda: server.count() >= after, step=0.002)
    if server.count() < after:
        return None, None
    began = time.time()
    if kind == "freeze":
        server.signal(signal.SIGSTOP)
    else:
        server.end(signal.SIGTERM if kind == "stop" else signal.SIGKILL)
    # The outage ends early if the crawl has ended.
    crawl.wait(limit, until=lambda: time.time() > began + seconds, step=0.01)
    if kind == "freeze":
        server.signal(signal.SIGCONT)
    else:
        server.start()
    return began, time.time()


def earlier(answers):
    """Returns all answers except the last one of each page."""
    last = {request.path: request for request in answers}
    return [request for request in answers if request is not last[request.path]]


def may_be_lost(answer, requests, *moments):
    """Returns whether an answer may have been in flight when the outage began or ended: the last one of its connection, near that time."""
    is_near = any(moment and abs(answer.at - moment) < IN_FLIGHT_SECONDS for moment in moments)
    return is_near and not any(other.connection == answer.connection and other.at > answer.at for other in requests)


# The site: a tree, with extra links to seen pages.


def path_of(page):
    return f"/page/{page}.html" if page else "/"


def tree(pages):
    pages = int(pages)
    made = {}

    def answer(path):
        if path not in made:
            number = 0 if path == "/" else number_of(path)
            made[path] = html(number, pages) if 0 <= number < pages else site_server.NOT_FOUND
        return made[path]

    return answer


def number_of(path):
    number = re.fullmatch(r"/page/([0-9]+)\.html", path)
    return int(number[1]) if number else -1


def html(page, pages):
    children = range(page * FAN_OUT + 1, min(page * FAN_OUT + FAN_OUT + 1, pages))
    known = [0, max(page - 1, 0) // FAN_OUT, max(page - 1, 0), (page + 1) % pages]
    words = words_of(page)
    links = "\n".join(f'<a href="{path_of(other)}">{words_of(other)[0]}</a>' for other in [*children, *known])
    return site_server.response(f"<!doctype html><title>{words[0]}</title>\n<p>{' '.join(words)}\n{links}\n")


LETTERS = bytes.maketrans(b"0123456789abcdef", b"bcdfghklmnprstvz")


def words_of(page):
    """Returns forty-five words of six letters, which are different for each page."""
    letters = hashlib.shake_128(f"outages {page}".encode()).hexdigest(135).encode().translate(LETTERS).decode()
    return [letters[at : at + 6] for at in range(0, len(letters), 6)]


if __name__ == "__main__":
    site_server.run(main, {"tree": tree})
