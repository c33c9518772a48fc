#!/usr/bin/env python3
"""Crawls a built docs site on loopback, and names its dead links: book_links.py CRAWLER FOLDER"""

import functools
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin


class Site(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


crawler, folder = sys.argv[1:]
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Site, directory=folder))
threading.Thread(target=server.serve_forever, daemon=True).start()
root = f"http://127.0.0.1:{server.server_port}/"
options = "-q --output - --format jsonl --delay 0 --assets --set max-select-values=1M --set max-select-bytes=100MB"
fields = ["--select=ids=[id]::attr(id)", "--select=links=a[href]::attr(href)"]
crawl = subprocess.run([crawler, root, *options.split(), *fields], check=True, stdout=subprocess.PIPE)
pages = {page["url"]: page for page in map(json.loads, crawl.stdout.splitlines())}

mistakes = [f"{url}: status {page['status']}, linked from {page['referrer']}" for url, page in pages.items() if page["status"] >= 400]
for url, page in pages.items():
    for link in page["selected"]["links"]:
        target, fragment = urldefrag(urljoin(url, link))
        if fragment and target in pages and unquote(fragment) not in pages[target]["selected"]["ids"]:
            mistakes.append(f"{url}: {link} leads to no place on its page")
for file in Path(folder).rglob("*.html"):
    if root + file.relative_to(folder).as_posix() not in pages:
        mistakes.append(f"no link leads to {file}")
print(*mistakes, f"{len(pages)} files of the docs site, {len(mistakes)} mistakes", sep="\n")
sys.exit(bool(mistakes))
