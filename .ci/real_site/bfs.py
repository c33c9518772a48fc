#!/usr/bin/env python3
"""Crawl one origin breadth first, one request at a time, and list what was found.

This is the oracle of the acceptance check. It shares no code and no library with the crawler: URLs are resolved by
`urllib.parse` (RFC 3986), documents are read by `html.parser`, robots.txt by `urllib.robotparser`, and refused if it
has more than `Disallow` lines, which that one reads otherwise than RFC 9309. It knows no delays.

    bfs.py http://127.0.0.1:8080/ > visits.jsonl
"""

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
import urllib.robotparser
from collections import deque
from dataclasses import asdict, dataclass
from html.parser import HTMLParser

TIMEOUT_SECONDS = 30
FOLLOWED_RELATIONS = {"next", "canonical", "alternate"}
LINK_ATTRIBUTE = {"a": "href", "area": "href", "iframe": "src", "frame": "src"}
UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
# WHATWG HTML, "shared declarative refresh steps", without its error recovery.
REFRESH = re.compile(r"""^\s*[\d.]+\s*[;,\s]\s*(?:url\s*=\s*)?(?P<quote>['"]?)(?P<url>[^'"]*)(?P=quote)""", re.I)
META_CHARSET = re.compile(rb"""<meta[^>]*?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.I)


@dataclass
class Visit:
    """What one URL answered. `referrer` is the page that named it first."""

    url: str
    status: int
    content_type: str
    depth: int
    referrer: str | None
    links: int = 0


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Hand a 3xx answer back: its target is a link like any other."""

    def redirect_request(self, *_):
        return None


class LinkParser(HTMLParser):
    """Collect the links of a document as they are written, and its first `<base href>`."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.base = None
        self.links = []

    def handle_starttag(self, tag, attributes):
        # Of a repeated attribute the first counts, so the later ones must not overwrite it.
        values = dict(reversed(attributes))
        if tag == "base" and self.base is None and values.get("href") is not None:
            self.base = values["href"]
        elif tag == "meta" and (values.get("http-equiv") or "").strip().lower() == "refresh":
            if match := REFRESH.match(values.get("content") or ""):
                self.links.append(match["url"])
        elif tag == "link":
            if FOLLOWED_RELATIONS & set((values.get("rel") or "").lower().split()):
                self.links.append(values.get("href"))
        elif tag in LINK_ATTRIBUTE:
            self.links.append(values.get(LINK_ATTRIBUTE[tag]))


def normal_form(url):
    """Return the form in which two spellings of one address are equal.

    Scheme and host in lower case, no default port, no fragment, `/` for an empty path, no dot segments; percent-encoded
    unreserved characters decoded, every other escape in upper case (RFC 3986, section 6.2.2), all that a URL may not
    hold escaped.
    """
    parts = urllib.parse.urlsplit(url)
    host = (parts.hostname or "").lower()
    default_port = {"http": 80, "https": 443}.get(parts.scheme)
    port = "" if parts.port in (None, default_port) else f":{parts.port}"
    path = without_dots(normal_escapes(parts.path or "/"))
    query = f"?{normal_escapes(parts.query)}" if parts.query else ""
    return f"{parts.scheme}://{host}{port}{path}{query}"


def normal_escapes(text):
    """Return the text with one spelling per character; see `normal_form`."""

    def one_escape(match):
        character = chr(int(match[1], 16))
        return character if UNRESERVED.fullmatch(character) else match[0].upper()

    text = re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", text)
    text = re.sub(r"%([0-9A-Fa-f]{2})", one_escape, text)
    return urllib.parse.quote(text, safe="%/:?@!$&'()*+,;=~")


def without_dots(path):
    """Return the path without `.` and `..` (RFC 3986, section 5.2.4)."""
    kept = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if path.endswith(("/.", "/..")):
        kept.append("")
    return "/" + "/".join(kept)


def origin(url):
    """Return scheme, host and port: two sites of the check differ in the port alone."""
    return urllib.parse.urlsplit(normal_form(url))[:2]


def resolve(base, link):
    """Return the normal form of a link as written on a page, or None if it cannot be an http address."""
    try:
        absolute = urllib.parse.urljoin(base, without_fragment(link))
        if urllib.parse.urlsplit(absolute).scheme not in ("http", "https"):
            return None
        return normal_form(absolute)
    except ValueError:
        return None


def without_fragment(link):
    """Return a link as written, less its fragment and what does not count.

    WHATWG URL: white space around a link, and tabs and line breaks inside it, are ignored.
    """
    link = link.strip("".join(map(chr, range(0x21))))
    return re.sub(r"[\t\r\n]", "", link).partition("#")[0]


def decode(body, headers):
    """Return the text of a document: charset of the header, else of a `<meta>`, else UTF-8."""
    charset = headers.get_content_charset()
    if charset is None and (declared := META_CHARSET.search(body[:1024])):
        charset = declared[1].decode("ascii")
    try:
        return body.decode(charset or "utf-8", errors="replace")
    except LookupError:
        return body.decode("utf-8", errors="replace")


def links_of(url, text):
    """Return the distinct addresses a document links to, resolved against its base."""
    parser = LinkParser()
    parser.feed(text)
    parser.close()
    base = url
    if parser.base is not None:
        base = resolve(url, parser.base) or url
    # An index page has forty links into each page: they are told apart before the costly part.
    written = dict.fromkeys(without_fragment(link) for link in parser.links if link is not None)
    resolved = dict.fromkeys(resolve(base, link) for link in written)
    return [link for link in resolved if link is not None]


def fetch(opener, url):
    """Return status, headers and body of one GET request, whatever the status."""
    try:
        with opener.open(url, timeout=TIMEOUT_SECONDS) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as response:
        with response:
            return response.code, response.headers, response.read()


def visit(opener, url, depth, referrer):
    """Ask for one URL; return the visit and the addresses it leads to."""
    status, headers, body = fetch(opener, url)
    content_type = headers.get_content_type()
    links = []
    if 300 <= status < 400 and headers.get("Location") is not None:
        links = [link for link in [resolve(url, headers["Location"])] if link is not None]
    elif status == 200 and content_type == "text/html":
        links = links_of(url, decode(body, headers))
    return Visit(url, status, content_type, depth, referrer, len(links)), links


def crawl(seed):
    """Visit every address of the seed's origin that can be reached; return the visits in order."""
    # An empty proxy table: HTTP_PROXY of the environment must not stand between us and a local server.
    opener = urllib.request.build_opener(NoRedirects, urllib.request.ProxyHandler({}))
    seed = normal_form(seed)
    status, _, body = fetch(opener, urllib.parse.urljoin(seed, "/robots.txt"))
    robots = urllib.robotparser.RobotFileParser()
    robots.parse(body.decode().splitlines() if status == 200 else [])
    rules = [rule for entry in [robots.default_entry, *robots.entries] if entry for rule in entry.rulelines]
    # It escapes the wildcards of RFC 9309, for it takes them for letters.
    if any(rule.allowance or "%2A" in rule.path or "%24" in rule.path for rule in rules):
        raise SystemExit(f"bfs: the robots.txt of {seed} has rules that this oracle does not read")

    seen = {seed}
    waiting = deque([(seed, 0, None)])
    visits = []
    while waiting:
        url, depth, referrer = waiting.popleft()
        done, links = visit(opener, url, depth, referrer)
        visits.append(done)
        for link in links:
            if link not in seen and origin(link) == origin(seed) and robots.can_fetch("*", link):
                seen.add(link)
                waiting.append((link, depth + 1, url))
    return visits


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: bfs.py URL")
    visits = crawl(sys.argv[1])
    for done in visits:
        print(json.dumps(asdict(done)))
    statuses = sorted({done.status for done in visits})
    counts = ", ".join(f"{sum(done.status == status for done in visits)} x {status}" for status in statuses)
    print(f"{len(visits)} addresses: {counts}", file=sys.stderr)


if __name__ == "__main__":
    main()
