#!/usr/bin/env python3
"""Crawls a site of 100 000 pages with ten million links, and prints the pages per second in each tenth of the crawl.

    benches/crawl/scale.py [--pages 100000] [--links 100] [--crawler PATH]

The pages are in a thousand directories. Each links to the next one and to random others, half of them by relative paths. The site is
made once, and takes a gigabyte in the target folder. The times are those of nginx.
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import run

DIRECTORIES = 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--links", type=int, default=100)
    parser.add_argument("--crawler", help="path of the crawler; built if it is not given")
    arguments = parser.parse_args()
    run.install(["nginx-light"])
    setup = run.Setup(run.build(["ours"], arguments.crawler))
    root = made(arguments.pages, arguments.links)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work, run.Server(pathlib.Path(work), {"scale": root}) as server:
        server.forget()
        command = run.ours(setup, server.starts["scale"], None)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        asked = [one for one in server.asked() if one["uri"].endswith(".html")]
    cpu = usage.ru_utime + usage.ru_stime
    print(f"{len(asked)} pages, {len(asked) * arguments.links} links, {cpu:.1f} CPU s, {usage.ru_maxrss // 1024} MiB at the peak")
    if status or len(asked) != arguments.pages or len({one["uri"] for one in asked}) != arguments.pages:
        sys.exit(f"not every page was requested once: exit code {status}, {len(asked)} requests")
    times = sorted(one["at"] for one in asked)
    tenth = arguments.pages // 10
    rates = [tenth / max(times[at + tenth - 1] - times[at], 0.001) for at in range(0, tenth * 10, tenth)]
    print("pages/s by tenth: " + " ".join(f"{rate:.0f}" for rate in rates))


def made(pages, links):
    """Returns the folder of the site, and makes it if it does not exist."""
    root = run.TARGET / "crawl-sites" / f"scale-{pages}-{links}"
    if root.exists():
        return root
    unfinished = root.with_suffix(".unfinished")
    draw = random.Random(1)
    for directory in range(DIRECTORIES):
        (unfinished / f"d{directory}").mkdir(parents=True, exist_ok=True)
    for page in range(pages):
        others = [(page + 1) % pages] + [draw.randrange(pages) for _ in range(links - 1)]
        # With numbers only, all pages would be near-duplicates of each other.
        words = " ".join("".join(draw.choices("abcdefghijklmnoprstuvw", k=6)) for _ in range(40))
        text = "".join(f'<li><a href="{href(other, at)}">Page {other}</a>\n' for at, other in enumerate(others))
        (unfinished / path(page)).write_text(f"<!doctype html><title>Page {page}</title>\n<p>{words}\n<ul>\n{text}</ul>\n")
    unfinished.rename(root)
    return root


def path(page):
    return f"d{page % DIRECTORIES}/page-{page}.html"


def href(page, at):
    return f"/{path(page)}" if at % 2 else f"../{path(page)}"


if __name__ == "__main__":
    main()
