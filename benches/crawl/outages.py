#!/usr/bin/env python3
"""Proves that an outage of a site costs time, and nothing else: no page is lost, and none is asked for again.

    benches/crawl/outages.py [--pages 20000] [--seconds 5,20,40,120] [--per-host 1,8,32] [--kinds stop,kill,freeze]
    benches/crawl/outages.py --short        a minute, for CI

A site of pages with distinct texts is crawled without a delay. When a third of it is answered, its server

  stop    ends in order, and is started again after so many seconds;
  kill    is killed, and started again;
  freeze  is halted with all its connections open, and goes on.

Promises, for each kind, length and --per-host: every page is in the output with status 200, once. The server answers no page with
200 twice, except for those whose answer was in flight when a kill or a freeze began or ended, --per-host of them at most. The log has one
line that says the site is away and one that says it is back; none are fine for a freeze in which fewer than three pages time out. The exit
code is 0. All lengths, kinds and numbers together take about half an hour.

"asked twice" counts answers beyond the first, "unanswered" the requests whose client had given up when a frozen server came to them,
"resumed" the seconds from the server's return to its first answer.
"""

import hashlib
import pathlib
import re
import signal
import time

import site_server

FAN_OUT = 10
KINDS = ["stop", "kill", "freeze"]
# An answer may have been on its way so close to the beginning or the end of an outage.
IN_FLIGHT_SECONDS = 1
IS_AWAY = re.compile(r"WARN .* is away: ")
IS_BACK = re.compile(r" is back after ")
COLUMNS = "{:7} {:>7} {:>8} {:>7} {:>6} {:>11} {:>10} {:>14} {:>7} {:>7}"


def main():
    parser = site_server.parser(__doc__)
    numbers = lambda text: [int(number) for number in text.split(",")]
    parser.add_argument("--pages", type=int)
    parser.add_argument("--seconds", type=numbers, help="lengths of the outages")
    parser.add_argument("--per-host", type=numbers)
    parser.add_argument("--kinds", type=lambda text: text.split(","))
    parser.add_argument("--timeout", type=float, help="the crawler's option of that name")
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


# No outage lasts a multiple of the timeout: a request sent when the first ones time out would time out just when the server answers it.
FULL = {"pages": 20_000, "seconds": [5, 20, 40, 120], "per_host": [1, 8, 32], "kinds": KINDS, "timeout": 9, "limit": None}
# Four cases, in a minute also if none of them ends.
SHORT = {"pages": 2_000, "seconds": [3], "per_host": [1, 8], "kinds": ["kill", "freeze"], "timeout": 0.8, "limit": 14}


def holds(arguments, kind, seconds, per_host):
    """Runs a case, prints its row and what it breaks, and says whether it breaks nothing."""
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
    # A host that is silent is taken to be away after three pages in a row without an answer.
    rounds = -(-3 // per_host)
    may_be_silent = kind == "freeze" and seconds < (rounds + 1) * arguments.timeout
    right_lines = [(1, 1), (0, 0)] if may_be_silent else [(1, 1)]
    promises = [
        (began, f"the crawl was over before a third of the pages was answered: exit code {code}"),
        (ended_itself, f"the crawl did not end within {limit:.0f} s"),
        (code == 0 or not ended_itself, f"the exit code is {code}"),
        (not lost, f"{len(lost)} pages are lost, such as {lost[:1]}"),
        (max(found.values(), default=0) <= 1, "a page is in the output twice"),
        (len(again) <= allowed, f"{len(again)} answers were given again, {allowed} may be"),
        (not arrived, f"{len(arrived)} of them had arrived when they were asked for again, such as {arrived[:1]}"),
        ((away, back) in right_lines, f"{away} lines match {IS_AWAY.pattern!r}, {back} {IS_BACK.pattern!r}"),
    ]
    broken = [text for is_kept, text in promises if not is_kept]
    for text in broken + (crawl.told("ended", "failed by", "not fetched") if broken else []):
        print(f"    {text}", flush=True)
    return not broken


def outage(server, crawl, kind, seconds, after, limit):
    """Takes the server away once it has had so many requests; when that was, and when it was back."""
    crawl.wait(limit, until=lambda: server.count() >= after, step=0.002)
    if server.count() < after:
        return None, None
    began = time.time()
    if kind == "freeze":
        server.signal(signal.SIGSTOP)
    else:
        server.end(signal.SIGTERM if kind == "stop" else signal.SIGKILL)
    # A crawl that has given up need not be waited for.
    crawl.wait(limit, until=lambda: time.time() > began + seconds, step=0.01)
    if kind == "freeze":
        server.signal(signal.SIGCONT)
    else:
        server.start()
    return began, time.time()


def earlier(answers):
    """Of each page that was answered more than once, all answers but the last."""
    last = {request.path: request for request in answers}
    return [request for request in answers if request is not last[request.path]]


def may_be_lost(answer, requests, *moments):
    """Whether an answer was in flight when the outage began or ended: at that time, and the last one of its connection."""
    is_near = any(moment and abs(answer.at - moment) < IN_FLIGHT_SECONDS for moment in moments)
    return is_near and not any(other.connection == answer.connection and other.at > answer.at for other in requests)


# The site: a tree, with links to pages that are known already.


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
    """Forty-five words of six letters, the same for the same page and others for each other one."""
    letters = hashlib.shake_128(f"outages {page}".encode()).hexdigest(135).encode().translate(LETTERS).decode()
    return [letters[at : at + 6] for at in range(0, len(letters), 6)]


if __name__ == "__main__":
    site_server.run(main, {"tree": tree})
