#!/usr/bin/env python3
"""Run the table of robots.txt cases through Protego, as a second opinion on what the table expects.

    pip install protego && ./robots_check.py [NAME OF A CASE ...]

Protego (Scrapy's parser) is independent of the parser we use. Where it answers otherwise than the table, the case says
in `protego_differs` why RFC 9309 or Google's reference parser says otherwise; the exit status is 1 if such a note is
missing or no longer true. The two differences in kind that are no case's business: Protego takes text, so the file is
decoded as Scrapy does it (UTF-8, no byte order mark, wrong bytes dropped), and it hands out the sitemaps as written,
so they are compared less those that are no absolute address.
"""

import base64
import json
import multiprocessing
import queue
import sys
from pathlib import Path
from urllib.parse import urlsplit

from protego import Protego

SECONDS_PER_CASE = 30


def body(case):
    """Return the bytes of the case's file."""
    if "robots_base64" in case:
        return base64.b64decode(case["robots_base64"])
    text = case["robots"]
    if "repeat" in case:
        text = text.replace("@REPEAT@", case["repeat"]["text"] * case["repeat"]["times"])
    return text.encode()


def is_absolute(url):
    """Return whether a sitemap's value is an address at all."""
    parts = urlsplit(url)
    return bool(parts.scheme and parts.netloc)


def differences(case):
    """Return what Protego answers otherwise than the table says, one text each."""
    rules = Protego.parse(body(case).decode("utf-8-sig", errors="ignore"))
    found = []
    allowed = rules.can_fetch(case["url"], case["agent"])
    if allowed != case["allowed"]:
        found.append(f"allowed is {allowed}")
    if "crawl_delay_ms" in case:
        delay = rules.crawl_delay(case["agent"])
        expected = case["crawl_delay_ms"]
        if delay != (None if expected is None else expected / 1000):
            found.append(f"the delay is {delay} s")
    if "sitemaps" in case:
        sitemaps = [url for url in rules.sitemaps if is_absolute(url)]
        if sitemaps != case["sitemaps"]:
            found.append(f"the sitemaps are {sitemaps}")
    return found


def answer(case, answers):
    """Put the differences of one case into the queue; an exception is a difference too."""
    try:
        answers.put(differences(case))
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is what Protego answers
        answers.put([f"{type(error).__name__}: {error}"])


def judge(case):
    """Return the differences of one case, asked in a process of its own.

    Protego matches with regular expressions, which a pattern of many asterisks can keep busy for ever.
    """
    answers = multiprocessing.Queue()
    process = multiprocessing.Process(target=answer, args=(case, answers))
    process.start()
    try:
        return answers.get(timeout=SECONDS_PER_CASE)
    except queue.Empty:
        return [f"no answer within {SECONDS_PER_CASE} s"]
    finally:
        process.kill()
        process.join()


def main():
    cases = json.loads((Path(__file__).parent / "robots.json").read_text(encoding="utf-8"))["cases"]
    wanted = set(sys.argv[1:])
    wrong = noted = 0
    for case in cases:
        if wanted and case["name"] not in wanted:
            continue
        found = judge(case)
        noted += "protego_differs" in case
        if found and "protego_differs" not in case:
            wrong += 1
            print(f"differs:  {case['name']}: {'; '.join(found)}")
        elif not found and "protego_differs" in case:
            wrong += 1
            print(f"agrees now, so take the note out: {case['name']}")
    print(f"{len(wanted) or len(cases)} cases, {noted} with a note on Protego, {wrong} to look at")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
