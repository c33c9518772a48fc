#!/usr/bin/env python3
"""Checks the page of a crawl in a browser, and that all places tell the same numbers. Requires Chromium.

    benches/crawl/watch_page.py [--checks follows,buttons,refusals,hostile,reload,fits,gone,end] [--chromium PATH]
    benches/crawl/watch_page.py --pictures FOLDER    also save what `fits` has looked at
    benches/crawl/watch_page.py --short              less than a minute, for CI: one ending

  follows     The numbers of a paused crawl are those of /metrics and /status.json.
  buttons     Pause, resume and stop do what they say; after the end the page says so and keeps its numbers.
  refusals    Without a token the page has no buttons. A wrong token, and a foreign Host for any path, get 403 and change nothing.
  hostile     Texts of the site stay text, and so does any text in the status.
  reload      A page that is loaded again has the whole curve, and the buttons.
  fits        At 390 and 1 280 pixels, light and dark, the page is not wider than its window, whatever its texts are.
  gone        The page of a crawl that was killed says that the connection is lost, and keeps its numbers. Then it shows the next crawl at
              the same address.
  end         At the end of a crawl its summary in the log, `crawler status`, the last event, the metrics file, the page and the
              report have the same numbers, to the last digit. `same_numbers.py` lists which place has which. The commands in the
              report list as many pages as it says.

No page may write an error to the console. Each check has a crawl of its own, of a site whose titles, texts, URLs and hosts try to
become elements of the page. One of its hosts refuses connections.
"""

import collections
import hashlib
import html
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import same_numbers
import site_server
from browser import Browser, BrowserError

SECONDS = 20
CRAWL_SECONDS = 40
SIZES = [(390, 844), (1280, 900)]
HOSTILE = [
    "<script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "</script><script>window.hacked=1</script>",
    "'onmouseover='window.hacked=1",
    "</title></style></textarea><svg onload=window.hacked=1>",
    "&lt;img src=x onerror=window.hacked=1&gt;",
    "javascript:window.hacked=1",
]
# A URL allows quotes and ampersands in a host. It is an address of this machine.
HOSTILE_HOST = "\"'onerror=window.hacked=1&lt;.localhost"
ORDERS = ["/pause", "/resume", "/stop"]
PATHS = ["/", "/page.css", "/page.js", "/metrics", "/status.json", "/series.json", "/events", *ORDERS]
PHASE = "document.getElementById('phase').textContent"
CURVE = "document.querySelector('#pages-chart polyline').getAttribute('points').split(' ').length"


def main():
    parser = site_server.parser(__doc__)
    parser.add_argument("--checks", type=lambda text: text.split(","))
    parser.add_argument("--chromium", help="the browser")
    parser.add_argument("--pictures", type=pathlib.Path, help="save pictures of the page in this folder")
    arguments = site_server.parse(parser)
    names = arguments.checks or list(CHECKS)
    if unknown := set(names) - set(CHECKS):
        parser.error(f"no such checks: {', '.join(unknown)}")
    usage = subprocess.run([arguments.crawler, "--help"], capture_output=True, text=True, check=True).stdout
    arguments.has_report = "--report <FILE>" in usage
    with site_server.work_folder() as folder, Browser(arguments.chromium) as browser:
        work = pathlib.Path(folder)
        with site_server.Server(work, "site", 2_000) as large, site_server.Server(work, "site", 60) as small:
            stage = Stage(arguments, work, browser, large, small)
            site_server.finish([show(name, stage) for name in names], "checks")


Stage = collections.namedtuple("Stage", "arguments work browser large small")


def show(name, stage):
    """Runs a check, and prints its result. Returns whether its promises hold."""
    began = time.monotonic()
    try:
        measured, promises = CHECKS[name](stage)
        promises.append((not stage.browser.errors, f"the console has errors: {stage.browser.errors[:3]}"))
    except (BrowserError, OSError, http.client.HTTPException) as error:
        measured, promises = "not finished", [(False, str(error))]
    broken = [text for is_kept, text in promises if not is_kept]
    print(f"{name}: {measured}, {time.monotonic() - began:.1f} s: {'broken' if broken else 'held'}")
    for text in broken:
        print(f"    {text}", flush=True)
    return not broken


# A crawl and its page.


class Watched(site_server.Crawl):
    """A crawl with a page, which is paced so that it lives while the browser looks."""

    def __init__(self, stage, server, *options, address="127.0.0.1:0"):
        folder = stage.work / f"crawl-{time.monotonic_ns()}"
        folder.mkdir()
        self.state, self.metrics_file, self.report = folder / "state", folder / "crawl.prom", folder / "report.html"
        outputs = ["--output", folder / "pages.jsonl", "--state", self.state, "--metrics-file", self.metrics_file]
        if stage.arguments.has_report:
            outputs += ["--report", self.report]
        fixed = ["--watch", address, "--log-format", "json", "--delay", 0.05, "--scope", "any", "--allow-private-addresses"]
        super().__init__(stage.arguments.crawler, stage.work, *fixed, *outputs, *options, server.url)
        self.wait(SECONDS, until=lambda: self.record("crawler::watch"))
        if not (record := self.record("crawler::watch")):
            raise BrowserError(f"the log has no address of a page: {self.lines[:3]}")
        self.address, self.token = record["address"], record["token"]

    def record(self, target):
        """Returns the last record of the log with a target."""
        records = (json.loads(line) for _, line in reversed(self.lines) if line.startswith("{"))
        return next((record for record in records if record["target"] == target), None)

    def ask(self, method, path, authorization=None, host=None):
        """Returns the status and the text of an answer."""
        connection = http.client.HTTPConnection(self.address, timeout=SECONDS)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host or self.address)
        if authorization is not None:
            connection.putheader("Authorization", authorization)
        connection.endheaders()
        answer = connection.getresponse()
        text = answer.read().decode() if answer.getheader("Content-Type") != "text/event-stream" else ""
        connection.close()
        return answer.status, text

    def order(self, name):
        return self.ask("POST", f"/{name}", f"Bearer {self.token}")[0]

    def status(self):
        return json.loads(self.ask("GET", "/status.json")[1])

    def open(self, browser, token=True):
        """Opens the page, and waits for its first numbers."""
        browser.open(f"http://{self.address}/" + (f"#token={self.token}" if token else ""))
        wait(browser, "document.title.includes(' pages')", "the page has no numbers")


def wait(browser, script, otherwise, seconds=SECONDS):
    if not browser.wait_until(script, seconds):
        raise BrowserError(f"{otherwise}, after {seconds} s: {page_of(browser)}")


def click(browser, order, phase):
    # A stop is asked for twice.
    for _ in range(2 if order == "stop" else 1):
        browser.evaluate(f"document.querySelector('[data-order={order}]').click()")
    wait(browser, f"{PHASE} === '{phase}'", f"{order} has not led to {phase!r}")


def ticks(browser, number):
    """Waits until the crawl has published its numbers this many times."""
    browser.evaluate(
        f"""new Promise((done) => {{
            const events = new EventSource("events");
            let left = {number} + 1;
            events.onmessage = () => --left || (events.close(), done());
        }})"""
    )


def page_of(browser):
    """Returns what the page shows."""
    return browser.evaluate(same_numbers.READ_PAGE)


# The checks.


def follows(stage):
    browser = stage.browser
    with Watched(stage, stage.large) as crawl:
        crawl.open(browser)
        wait(browser, "document.querySelector('#figures dd').textContent > 20", "there are no pages")
        click(browser, "pause", "paused")
        page, status = page_of(browser), crawl.status()["summary"]
        metrics = same_numbers.metrics_of(crawl.ask("GET", "/metrics")[1])
    promises = []
    for name in ["pages", "queued", "failed", "bytes", "lost_at_least", "elapsed_seconds"]:
        metric, shown = same_numbers.NUMBERS[name]
        number, (got, wanted) = status[name], shown(page, status[name])
        promises.append((got == wanted, f"{name} is {got} on the page, and {wanted} in /status.json"))
        promises.append((number == metrics[metric], f"{name} is {number} in /status.json, and {metrics[metric]} in /metrics"))
    ends = [page["figures"]["pages"], page["figures"]["queued"]]
    promises.append((page["end_of_curve"][1:] == ends, f"the curve ends at {page['end_of_curve']}, and not at {ends}"))
    promises.append((page["title"].startswith(f"paused, {page['figures']['pages']} pages"), f"the title is {page['title']}"))
    return f"{status['pages']} pages, {status['failed']} failed, {status['queued']} queued", promises


def buttons(stage):
    browser = stage.browser
    with Watched(stage, stage.large) as crawl:
        crawl.open(browser)
        running = page_of(browser)["buttons"]
        click(browser, "pause", "paused")
        before = stage.large.count()
        ticks(browser, 2)
        while_paused, paused = stage.large.count() - before, page_of(browser)["buttons"]
        click(browser, "resume", "running")
        crawl.wait(SECONDS, until=lambda: stage.large.count() > before)
        after_resume = stage.large.count() - before
        click(browser, "stop", "ended, incomplete: stopped")
        has_ended, page = crawl.wait(SECONDS), page_of(browser)
        summary = crawl.record("crawler::summary") or {}
    pages = same_numbers.grouped(summary.get("pages", 0))
    promises = [
        (running == ["pause", "stop"], f"a running crawl has the buttons {running}"),
        (paused == ["resume", "stop"], f"a paused crawl has the buttons {paused}"),
        (page["buttons"] == [], f"a crawl that has ended has the buttons {page['buttons']}"),
        (while_paused == 0, f"{while_paused} requests came in a pause"),
        (after_resume > 0, "no request came after the pause"),
        (has_ended and crawl.process.returncode == 0, f"after stop, the exit code is {crawl.process.returncode}"),
        (summary.get("ending") == "stopped", f"the ending is {summary.get('ending')}"),
        (page["figures"]["pages"] == pages, f"the page has {page['figures']['pages']} pages at the end, and the log {pages}"),
        (page["phase"] == "ended, incomplete: stopped" and not page["note"], f"the page says {page['phase']!r}, {page['note']!r}"),
    ]
    return f"no request in the pause, {after_resume} at once after it", promises


def refusals(stage):
    browser, other = stage.browser, "evil.example"
    with Watched(stage, stage.large) as crawl:
        crawl.open(browser, token=False)
        page = page_of(browser)
        token = crawl.token
        wrong = [None, "", token, f"Bearer {'0' * 32}", f"Bearer {token[:-1]}", f"Bearer {token}0", f"Basic {token}"]
        hosts = [other, f"{other}:{crawl.address.split(':')[1]}", f"{crawl.address}.{other}", f"localhost.{other}"]
        requests = [("POST", path, authorization, None) for path in ORDERS for authorization in wrong]
        requests += [(method, path, f"Bearer {token}", host) for path in PATHS for host in hosts for method in ["GET", "POST"]]
        # The first one may have ended the crawl.
        taken = next((one for one in requests if crawl.ask(*one)[0] != 403), None)
        before = stage.large.count()
        crawl.wait(SECONDS, until=lambda: stage.large.count() > before)
        phase, goes_on = crawl.status()["phase"], stage.large.count() > before
        right = crawl.order("pause")
    promises = [
        (page["buttons"] == [], f"without a token the page has the buttons {page['buttons']}"),
        (not taken, f"a request was not refused: {taken}"),
        (phase == "running" and goes_on, f"after the refusals the crawl is {phase}"),
        (right == 204, f"the right token gets {right}"),
    ]
    return f"{len(requests)} requests refused", promises


# Elements and attributes that only a text of a site can have made.
FOREIGN = """[...document.querySelectorAll("*")].filter((one) =>
    /^(img|image|iframe|object|embed|base|form|textarea)$/i.test(one.tagName)
    || (one.tagName === "SCRIPT" && one.text.trim().startsWith("window.hacked"))
    || [...one.attributes].some((its) => its.name.startsWith("on") || /^javascript:/i.test(its.value))
).map((one) => one.outerHTML.slice(0, 200))"""
# Shows a status in which each text is hostile, and nothing more.
SPOIL = """(async (texts) => {
    const status = await (await fetch("status.json")).json();
    const counts = Object.fromEntries(texts.map((text) => [text, 1]));
    const is_counts = (value) => value && typeof value === "object" && !Array.isArray(value);
    let next = 0;
    const spoil = (value) => {
        if (typeof value === "string") return texts[next++ % texts.length];
        if (Array.isArray(value)) return value.map(spoil);
        return is_counts(value) ? Object.fromEntries(Object.entries(value).map(([name, its]) => [name, spoil(its)])) : value;
    };
    const spoilt = spoil(status);
    for (const [name, value] of Object.entries(spoilt.summary)) if (is_counts(value)) spoilt.summary[name] = counts;
    const hosts = texts.map((text) => ({ host: text, state: text, until: text, waiting: 1, requests: 1, failures: 1, explanation: text }));
    Object.assign(spoilt.summary, { missing: texts, hint: texts[0], host_table: hosts, held_up_by: hosts[0] });
    show(spoilt);
    window.show = () => {};
})"""


def spoil(browser, texts):
    browser.evaluate(f"{SPOIL}({json.dumps(texts)})")


def hostile(stage):
    browser = stage.browser
    with Watched(stage, stage.large) as crawl:
        crawl.open(browser)
        wait(browser, f"document.body.textContent.includes({json.dumps(HOSTILE_HOST)})", "a host is not shown")
        promises = stays_text(browser, "the page")
        spoil(browser, HOSTILE)
        shown = browser.evaluate("document.body.textContent")
        promises += [(text in shown, f"{text!r} is not shown as it is") for text in HOSTILE]
        promises += stays_text(browser, "the page with hostile texts alone")
        promises.append((not browser.errors, f"with hostile texts, the console has errors: {browser.errors[:3]}"))
        if stage.arguments.has_report:
            crawl.order("stop")
            crawl.wait(SECONDS)
            promises += check_report(browser, crawl.report)
    return f"{len(HOSTILE)} texts", promises


def stays_text(browser, where):
    foreign, hacked = browser.evaluate(FOREIGN), browser.evaluate("typeof window.hacked")
    return [
        (hacked == "undefined", f"{where}: a script of the site has run"),
        (not foreign, f"{where}: a text became {len(foreign)} elements, such as {foreign[:1]}"),
    ]


def check_report(browser, path):
    """Opens a report as a file, and returns the promises about it."""
    browser.open(path.as_uri())
    return stays_text(browser, "the report") + [(not browser.errors, f"the report has errors: {browser.errors[:3]}")]


def check_commands(stage, folder):
    """Runs the commands in the table of a report, and returns the promises that each lists as many lines as its row says."""
    rows = stage.browser.evaluate("[...document.querySelectorAll('#counts tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
    path = f"{pathlib.Path(stage.arguments.crawler).resolve().parent}:{os.environ['PATH']}"
    promises = []
    for name, number, command in rows:
        if command.startswith("crawler list"):
            listed = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=folder, env={"PATH": path})
            found = same_numbers.grouped(len(listed.stdout.splitlines()))
            promises.append((found == number, f"{name} is {number} in the report, and {command} lists {found} {listed.stderr}"))
    return promises + [(len(promises) >= 3, "the report has no commands")]


def reload(stage):
    browser = stage.browser
    with Watched(stage, stage.large) as crawl:
        crawl.open(browser)
        wait(browser, f"{CURVE} >= 3", "the curve has no points")
        before = len(page_of(browser)["curve"])
        crawl.open(browser, token=False)
        page = page_of(browser)
        series = json.loads(crawl.ask("GET", "/series.json")[1])["pages"]
    after = len(page["curve"])
    promises = [
        (before <= after, f"the curve had {before} points, and {after} when it was loaded again"),
        (after <= len(series) + 1, f"the curve has {after} points, of {len(series)} in /series.json"),
        (page["buttons"] == ["pause", "stop"], f"a page that is loaded again has the buttons {page['buttons']}"),
    ]
    return f"{before} points before, {after} after", promises


def fits(stage):
    browser, promises, backgrounds = stage.browser, [], set()
    with Watched(stage, stage.large) as crawl:
        crawl.open(browser)
        wait(browser, "document.getElementById('hosts').textContent.includes('away')", "no host is away")
        ticks(browser, 2)
        click(browser, "pause", "paused")
        views = [(width, height, theme) for width, height in SIZES for theme in ["light", "dark"]]
        for kind in ["paused", "hostile"]:
            if kind == "hostile":
                spoil(browser, [text * 20 for text in HOSTILE])
            for width, height, theme in views:
                browser.show(width, height, theme)
                found = browser.evaluate("[document.documentElement.scrollWidth, innerWidth]")
                promises.append((found[0] <= width == found[1], f"{kind}, {width} pixels, {theme}: it is {found[0]} pixels wide"))
                backgrounds.add((theme, browser.evaluate("getComputedStyle(document.body).backgroundColor")))
                if stage.arguments.pictures:
                    stage.arguments.pictures.mkdir(parents=True, exist_ok=True)
                    browser.screenshot(stage.arguments.pictures / f"{kind}-{width}-{theme}.png")
    is_themed = len(backgrounds) == 2 == len({color for _, color in backgrounds})
    promises.append((is_themed, f"the backgrounds are {backgrounds}"))
    return f"{2 * len(views)} views", promises


def gone(stage):
    browser = stage.browser
    with Watched(stage, stage.large) as crawl:
        crawl.open(browser)
        wait(browser, f"document.querySelector('#figures dd').textContent > 0 && {CURVE} >= 6", "there are no pages")
        crawl.process.kill()
        wait(browser, "!document.getElementById('note').hidden", "the page does not say that the crawl is gone")
        page = page_of(browser)
        # The browser says itself that it cannot connect.
        browser.errors = [error for error in browser.errors if "net::ERR_" not in error]
    with Watched(stage, stage.small, address=crawl.address) as other:
        wait(browser, "document.getElementById('note').hidden", "the page does not show the next crawl at the address")
        other.order("pause")
        wait(browser, f"{PHASE} === 'paused'", "the next crawl does not pause")
        series, curve = json.loads(other.ask("GET", "/series.json")[1])["pages"], page_of(browser)["curve"]
    promises = [
        (len(curve) <= len(series) + 1, f"the curve has {len(curve)} points, and the next crawl at the address {len(series)}"),
        ("No connection to the crawl" in page["note"], f"the page says {page['note']!r}"),
        (page["figures"].get("pages", "0") != "0", f"the page has {page['figures']}"),
    ]
    return "said so", promises


# How crawls end, and their options.
ENDINGS = {
    "drained": ["--capacity", 20, "--on-saturation", "warn"],
    "budget_spent": ["--max-pages", 25],
    "time_up": ["--max-time", 1.5],
}


def end(stage):
    browser, measured, promises = stage.browser, [], []
    for ending, options in list(ENDINGS.items())[: 1 if stage.arguments.short else None]:
        with Watched(stage, stage.small, "--max-attempts", 2, "--set", "max-first-downtime=1s", *options) as crawl:
            # It must not end before the page is there.
            crawl.order("pause")
            crawl.open(browser)
            browser.evaluate(
                """(() => {
                    const events = new EventSource("events");
                    events.onmessage = (event) => {
                        window.last = JSON.parse(event.data);
                        if (window.last.finished) events.close();
                    };
                })()"""
            )
            crawl.order("resume")
            wait(browser, f"{PHASE}.startsWith('ended')", "the crawl does not end", CRAWL_SECONDS)
            wait(browser, "window.last?.finished", "the last event did not come")
            has_ended, log = crawl.wait(CRAWL_SECONDS + SECONDS), crawl.record("crawler::summary")
            event, pages = browser.evaluate("window.last")["summary"], {"the page": page_of(browser)}
            status = subprocess.run([stage.arguments.crawler, "status", crawl.state, "--json"], capture_output=True, check=True)
            metrics = same_numbers.metrics_of(crawl.metrics_file.read_text())
            if stage.arguments.has_report:
                promises += check_report(browser, crawl.report) + check_commands(stage, crawl.report.parent)
                pages["the report"] = page_of(browser)
        found = same_numbers.differences(log, json.loads(status.stdout), event, metrics, pages)
        counted = f"{len(found)} of {len(same_numbers.NUMBERS)} numbers differ"
        measured.append(f"{ending}: {log['pages']} pages, {log['failed']} failed, {counted}")
        promises += [(has_ended and log["ending"] == ending, f"the crawl has ended as {log['ending']}, not {ending}")]
        promises += [(False, f"{ending}: {text}") for text in found]
    return "; ".join(measured), promises


# The site: a tree. Its server has the port as the second argument after --serve.


def site(pages):
    pages, port = int(pages), int(sys.argv[3])

    def answer(path):
        number = re.match(r"/page/([0-9]+)", path)
        number = int(number[1]) if number else 0
        if number >= pages or path.startswith("/missing"):
            return site_server.NOT_FOUND
        if number % 20 == 7:
            return site_server.response(HOSTILE[0], status=f"500 {HOSTILE[0]}")
        if number % 20 == 17 or path.startswith("/round"):
            return site_server.response("", status="302 Found", headers=["Location: /round"])
        if number % 20 == 13:
            return site_server.response("", status="302 Found", headers=[f"Location: /page/{number + 1}?{HOSTILE[1]}"])
        if number % 20 == 19:
            return site_server.response("<title>The same</title><p>The same text on some pages.")
        return page(number)

    def page(number):
        text = HOSTILE[number % len(HOSTILE)]
        children = range(4 * number + 1, min(4 * number + 5, pages))
        links = [f"/page/{child}?{text}" if child % 2 else f"/page/{child}" for child in children] + ["/", "mailto:a@example.com"]
        if number % 5 == 0:
            links += [f"/missing/{number}/{text}", text, f"http://127.0.0.2:{port}/{number}/{text}"]
        if number < 5:
            links.append(f"http://{HOSTILE_HOST}:{port}/page/{number}")
        anchors = "".join(f'<a href="{html.escape(link)}">{html.escape(text)}</a>' for link in links)
        words = hashlib.shake_128(str(number).encode()).hexdigest(200)
        unlike = " ".join(words[at : at + 7] for at in range(0, len(words), 7))
        return site_server.response(f"<title>{html.escape(text)}</title>{text}{anchors}<p>{unlike}")

    return answer


CHECKS = {
    "follows": follows,
    "buttons": buttons,
    "refusals": refusals,
    "hostile": hostile,
    "reload": reload,
    "fits": fits,
    "gone": gone,
    "end": end,
}


if __name__ == "__main__":
    site_server.run(main, {"site": site})
