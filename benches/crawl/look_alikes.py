#!/usr/bin/env python3
"""Checks that similar pages are all fetched, and that traps of similar pages end.

    benches/crawl/look_alikes.py [--pages 3000] [--crawler PATH]
    benches/crawl/look_alikes.py --short    for CI: 700 pages of each kind, and lower limits

One site has three kinds of ordinary pages, --pages of each:

  words      forty common words, and one that differs on each page; an index links to all
  gallery    an image and no text; only the page before links to each page
  products   the same words with different numbers; an index links to all

and three endless traps:

  calendar   each month links to the next and the previous one
  shop       each page links to itself with a session number in its query, which changes with each request
  maze       each page has the same text, and links to two directories below it

Promises: all ordinary pages are in the output with status 200. The crawl ends by itself, before --max-time, with exit code 0. The
script also prints the number of requests to each trap.
"""

import hashlib
import pathlib
import random
import re
import time
from collections import Counter

import site_server

MAX_SECONDS = 600
SHORT_SECONDS = 120
SHORT_LIMITS = ["--set", "max-near-duplicates=100", "--set", "max-near-duplicates-in-all=1000"]
ORDINARY = ["words", "gallery", "products"]
TRAPS = ["calendar", "shop", "maze"]
SHOP_PAGES = 5


def main():
    parser = site_server.parser(__doc__)
    parser.add_argument("--pages", type=int, help="number of pages of each ordinary kind")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=ORDINARY + TRAPS, help="the kinds of pages on the site")
    parser.add_argument("--option", action="append", default=[], help="another option for the crawler, as in --option=--name=value")
    parser.add_argument("--max-seconds", type=int, help="the --max-time of the crawler; a crawl that reaches it fails")
    arguments = site_server.parse(parser)
    pages = arguments.pages or (700 if arguments.short else 3000)
    seconds = arguments.max_seconds or (SHORT_SECONDS if arguments.short else MAX_SECONDS)
    options = ["--delay", 0, "--max-time", seconds, *(SHORT_LIMITS if arguments.short else []), *arguments.option]
    with site_server.work_folder() as folder:
        work = pathlib.Path(folder)
        output = work / "pages.jsonl"
        with site_server.Server(work, "site", pages, ",".join(arguments.kinds)) as server:
            with site_server.Crawl(arguments.crawler, work, *options, "--output", output, server.url) as crawl:
                ended = crawl.wait(seconds + 20)
                wall = crawl.seconds
            asked = Counter(kind_of(request.path) for request in server.requests())
        fetched = site_server.paths_in(output)

    code = crawl.process.returncode
    promises = [
        (ended and wall < seconds, f"the crawl did not end by itself within {seconds} s"),
        (code == 0 or not ended, f"the exit code is {code}"),
    ]
    print(f"{'kind':9} {'requests':>8} {'fetched':>8} {'of':>8}")
    for kind in arguments.kinds:
        ordinary = ordinary_pages(kind, pages)
        found = sum(path in fetched for path in ordinary) if ordinary else sum(kind_of(path) == kind for path in fetched)
        print(f"{kind:9} {asked[kind]:8} {found:8} {len(ordinary) or 'no end':>8}")
        promises.append((found == len(ordinary) or not ordinary, f"{len(ordinary) - found} pages of {kind} are not fetched"))
    broken = [text for is_kept, text in promises if not is_kept]
    for text in broken + crawl.summary_rows("ended", "duplicates", "paths closed", "links refused", "not fetched"):
        print(f"    {text}")
    print(f"{wall:.1f} s")
    site_server.finish([bool(is_kept) for is_kept, _ in promises], "promises")


def kind_of(path):
    return path.split("/")[1]


def ordinary_pages(kind, pages):
    return [f"/{kind}/{page}.html" for page in range(pages)] if kind in ORDINARY else []


# The site.


def site(pages, kinds):
    pages, draw = int(pages), random.Random(1)
    starts = {"gallery": "/gallery/0.html", "calendar": f"/calendar/{time.strftime('%Y/%m')}/"}
    home = html("Home", "Here begins what this site has.", [starts.get(kind, f"/{kind}/") for kind in kinds.split(",")])
    index = lambda kind: html(f"All {kind}", f"Find all {kind} of this site here.", ordinary_pages(kind, pages))
    indexes = {f"/{kind}/": index(kind) for kind in ["words", "products"]}
    makers = [
        (r"/words/([0-9]+)\.html", lambda page: words(page) if page < pages else None),
        (r"/products/([0-9]+)\.html", lambda page: product(page) if page < pages else None),
        (r"/gallery/([0-9]+)\.html", lambda page: picture(page, pages) if page < pages else None),
        (r"/calendar/([0-9]+)/([0-9]+)/", month),
        (r"/shop/(?:item-([0-9]+)/)?(?:\?sid=[0-9]+)?", lambda item=None: shop(item, draw)),
    ]
    makers = [(re.compile(pattern), make) for pattern, make in makers]

    def answer(path):
        if path == "/":
            return home
        if path in indexes:
            return indexes[path]
        if path.startswith("/maze/"):
            return maze(path)
        for pattern, make in makers:
            if found := pattern.fullmatch(path):
                return make(*(int(number) for number in found.groups() if number)) or site_server.NOT_FOUND
        return site_server.NOT_FOUND

    return answer


def html(title, text, links=(), names=()):
    anchors = "\n".join(f'<a href="{link}">{name}</a>' for link, name in zip(links, names or map(kind_of, links)))
    return site_server.response(f"<!doctype html><title>{title}</title>\n<p>{text}\n{anchors}\n")


COMMON = """the report that follows was written for readers who want to know how water moves through old towns and which of the many
wells near its walls were still in use when the last survey had been made by hand"""


def words(page):
    word = hashlib.shake_128(f"words {page}".encode()).hexdigest(4)
    text = COMMON.split()
    return html("A report", " ".join(text[:20] + [word] + text[20:]))


def product(page):
    draw = random.Random(page)
    price, stock, weight = draw.randrange(100, 100_000) / 100, draw.randrange(500), draw.randrange(20, 9_000)
    return html(
        f"Lamp {page}",
        f"Lamp number {page} costs {price} euros and weighs {weight} grams. We have {stock} of it in our store and send it within"
        f" {1 + page % 9} days. Its cable is {1 + page % 4} metres long; the bulb is not part of it. Ask us for other colours, for"
        " larger quantities and for spare parts.",
    )


def picture(page, pages):
    link = f'<a href="{page + 1}.html">' if page + 1 < pages else "<a>"
    return site_server.response(f'<!doctype html>\n{link}<img src="/photographs/{page}.jpg" alt=""></a>\n')


MONTHS = "January February March April May June July August September October November December".split()


def month(year, number):
    if not 1 <= number <= 12:
        return None
    at = year * 12 + number - 1
    near = [f"/calendar/{other // 12:04}/{other % 12 + 1:02}/" for other in [at - 1, at + 1] if other >= 12]
    days = " ".join(str(day) for day in range(1, 29))
    week = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
    text = f"What happens in {MONTHS[number - 1]} {year}. {week} {days}. Nothing is planned yet."
    return html("Calendar", text, near, ["the month before", "the month after"])


def shop(item, draw):
    others = [f"/shop/item-{other}/" for other in range(1, SHOP_PAGES)] if item is None else []
    here = f"/shop/item-{item}/" if item else "/shop/"
    text = "Our shop is open day and night. Put what you like into the basket, pay at the end, and keep your receipt until it comes."
    return html("Shop", text, [f"{here}?sid={draw.getrandbits(48)}", *others])


def maze(path):
    """Returns a page with relative links to two directories. Their names are derived from the path, so few segments repeat."""
    letters = hashlib.shake_128(path.encode()).digest(2)
    below = [chr(ord("a") + letters[0] % 13) + "/", chr(ord("n") + letters[1] % 13) + "/"]
    text = "You stand between high hedges. Two ways lead on from here; behind you the gravel is already smooth again, and nobody calls."
    return html("A maze", text, below, ["to the left", "to the right"])


if __name__ == "__main__":
    site_server.run(main, {"site": site})
