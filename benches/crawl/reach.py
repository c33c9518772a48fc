#!/usr/bin/env python3
"""Compares the pages that this crawler fetches from whole documentation sites with those of an independent crawl.

    benches/crawl/reach.py [--sites python,javadoc] [--crawler PATH]

The independent crawl is that of .ci/real-site, and shares no code with the crawler. Both must fetch the same pages. By the server's
log, no page may be requested twice. The independent crawl of Rust's manuals takes some minutes.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from collections import Counter

import run

sys.path.insert(0, str(run.ROOT / ".ci/real_site"))
import bfs  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=lambda text: text.split(","), default=list(run.SITES))
    parser.add_argument("--crawler", help="path of the crawler; built if it is not given")
    arguments = parser.parse_args()
    sites = {name: run.SITES[name] for name in arguments.sites}
    run.install([package for package, _, _ in sites.values()] + ["nginx-light"])
    setup = run.Setup(run.build(["ours"], arguments.crawler))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work, run.Server(pathlib.Path(work), sites) as server:
        differing = [name for name in sites if not is_same(name, server, setup, pathlib.Path(work))]
    sys.exit(f"they differ: {', '.join(differing)}" if differing else 0)


def is_same(name, server, setup, work):
    start, records = server.starts[name], work / "pages.jsonl"
    server.forget()
    command = [*run.ours(setup, start, work), "--output", records]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    asked = Counter(request["uri"] for request in server.asked())
    pages = (page for page in map(json.loads, records.open()) if page["status"] == 200)
    ours = {bfs.normal_form(page["url"]) for page in pages if page["content_type"].startswith("text/html")}
    theirs = {visit.url for visit in bfs.crawl(start) if visit.status == 200 and visit.content_type == "text/html"}
    twice = [uri for uri, times in asked.items() if times > 1]
    missed, only_ours = sorted(theirs - ours), sorted(ours - theirs)
    print(f"{name}: {len(ours)} pages, {len(theirs)} in the independent crawl; {len(missed)} missed, {len(only_ours)} only here, {len(twice)} requested twice", flush=True)
    for what, urls in [("missed", missed), ("only here", only_ours), ("twice", twice)]:
        for url in urls[:5]:
            print(f"  {what}: {url}")
    return not (missed or only_ours or twice)


if __name__ == "__main__":
    main()
