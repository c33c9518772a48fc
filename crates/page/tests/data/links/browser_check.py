#!/usr/bin/env python3
"""Asks a browser about cases.json and reports where it sees other links than the cases say.

    python3 browser_check.py [--browser chromium] [--only TEXT]

Needs Chromium and nothing else; it is no part of `cargo test`. Every case is served on loopback under its own URL (all
host names are mapped to this script's server, so nothing leaves the machine) and shown in a frame whose sandbox runs no
scripts, as our crawler runs none.

A sandbox forbids a refresh too. So pages with a refresh are shown once more, in a browser that runs no scripts at all,
and what it asks this server for next is where the refresh leads. What takes longer than a second is not seen.

"PAD" in a case's markup stands for as many letters as its "pad" says.
A case with "differs_from_browser" states why we mean to differ; it is an error if it does not differ any more.
Exit status: 0 when everything is as stated.
"""

import argparse
import base64
import html
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

CONTROL = "/~browser-check/"
DEFAULT_URL = "http://site.test/dir/page.html"
HARNESS = r"""<!doctype html><meta charset=windows-1252><body><script>
const CONTROL = "/~browser-check/";
const XLINK = "http://www.w3.org/1999/xlink";
function resolved(doc, href) {
  const anchor = doc.createElement("a");
  anchor.setAttribute("href", href);
  return anchor.href;
}
function target(doc, el) {
  const html = el.namespaceURI === "http://www.w3.org/1999/xhtml";
  const get = name => el.getAttribute(name);
  if (el.namespaceURI === "http://www.w3.org/2000/svg" && el.localName === "a") {
    const href = el.hasAttribute("href") ? get("href") : el.getAttributeNS(XLINK, "href");
    return href === null ? null : resolved(doc, href);
  }
  if (!html) return null;
  switch (el.localName) {
    case "a": case "area": return el.hasAttribute("href") ? el.href : null;
    case "frame": return get("src") ? el.src : null;
    case "iframe": return get("src") && !el.hasAttribute("srcdoc") ? el.src : null;
    case "link": {
      const rel = new Set((get("rel") || "").toLowerCase().split(/[ \t\n\f\r]+/));
      const wanted = ["next", "prev", "previous", "sitemap", "canonical"].some(token => rel.has(token)) || rel.has("alternate") && !rel.has("stylesheet");
      return wanted && get("href") ? el.href : null;
    }
  }
  return null;
}
function http(address) {
  let url;
  try { url = new URL(address); } catch { return null; }
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  return address.replace(/#.*$/s, "");
}
const loaded = el => new Promise(done => el.addEventListener("load", done, {once: true}));
const late = ms => new Promise(done => setTimeout(done, ms));
async function links(url) {
  const el = document.createElement("iframe"), done = loaded(el);
  el.setAttribute("sandbox", "allow-same-origin");
  el.src = url;
  document.body.append(el);
  await Promise.race([done, late(5000)]);
  const doc = el.contentDocument;
  const found = [...doc.querySelectorAll("*")].map(e => target(doc, e)).filter(a => a !== null);
  const seen = {links: found.map(http).filter(a => a !== null), title: doc.title, encoding: doc.characterSet};
  el.remove();
  return seen;
}
(async () => {
  const cases = await (await fetch(CONTROL + "cases")).json();
  for (const [index, url] of cases.entries()) {
    await fetch(CONTROL + "select?" + index);
    let seen;
    try { seen = await links(url); }
    catch (error) { seen = {links: [String(error)], title: "", encoding: ""}; }
    await fetch(CONTROL + "result?" + index, {method: "POST", body: JSON.stringify(seen)});
  }
  await fetch(CONTROL + "finished");
})();
</script>"""
# Without scripts a refresh has to lead from case to case, too; it is not carried out before the frame has loaded.
REFRESH_HARNESS = """<!doctype html><meta http-equiv=refresh content="0;url={next}"><iframe src="{url}"></iframe>"""
REFRESH_SECONDS = 1.0


class Server(http.server.ThreadingHTTPServer):
    """Serves the harness, the selected case, and a blank page for everything else."""

    daemon_threads = True

    def __init__(self, cases):
        super().__init__(("127.0.0.1", 0), Handler)
        self.cases = cases
        self.results = {}
        self.selected = None
        self.visits = []
        self.moved_on = threading.Event()
        self.finished = threading.Event()

    def select(self, index):
        self.selected, self.visits = index, []
        self.moved_on.clear()

    def handle_error(self, request, client_address):
        """A browser hangs up on frames that it has removed; anything else is worth a trace."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, content=b"", content_type="text/html; charset=windows-1252"):
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self):
        seen = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith(CONTROL):
            self.server.results[int(self.path.partition("?")[2])] = seen
        self.answer()

    def do_GET(self):
        server = self.server
        if self.path.startswith(CONTROL):
            return self.control(*self.path.removeprefix(CONTROL).partition("?")[::2])
        if server.selected is None:
            return self.answer()
        url = "http://" + self.headers["Host"] + self.path
        case = server.cases[server.selected]
        own = address(case)
        # What is to be shown asks for HTML first. (Sec-Fetch-Dest would say it better, but only https gets it.)
        if self.headers.get("Accept", "").startswith("text/html"):
            server.visits.append(url)
            if len(server.visits) > 1:
                server.moved_on.set()
        if url != own or server.visits.count(own) > 1:
            return self.answer()
        return self.answer(body(case), case.get("content_type", "text/html; charset=utf-8"))

    def control(self, name, query):
        server = self.server
        if name == "harness":
            self.answer(HARNESS.encode())
        elif name == "cases":
            self.answer(json.dumps([address(case) for case in server.cases]).encode(), "application/json")
        elif name == "select":
            server.select(int(query))
            self.answer()
        elif name == "refresh":
            self.answer(self.refresh(int(query)).encode())
        elif name == "finished":
            self.answer()
            server.finished.set()
        else:
            self.answer()

    def refresh(self, position):
        """Waits for the refresh of the case before this one, and shows the next one."""
        server = self.server
        if position > 0:
            server.moved_on.wait(REFRESH_SECONDS)
            server.results[server.selected]["links"] += server.visits[1:2]
        refreshing = [index for index, case in enumerate(server.cases) if has_refresh(case)]
        if position == len(refreshing):
            server.finished.set()
            return ""
        server.select(refreshing[position])
        url = address(server.cases[server.selected])
        return REFRESH_HARNESS.format(url=html.escape(url), next=f"{CONTROL}refresh?{position + 1}")


def address(case):
    return case.get("url", DEFAULT_URL)


def body(case):
    if "base64" in case:
        return base64.b64decode(case["base64"])
    return case["html"].replace("PAD", "x" * case.get("pad", 0)).encode("utf-8", "surrogatepass")


def has_refresh(case):
    return re.search(rb"http-equiv\W*refresh", body(case), re.I) is not None


def run_browser(browser, server, page, *flags):
    port = server.server_address[1]
    # Helpers of the browser may outlive it for a moment and write to its profile, which must not spoil the result.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-features=HttpsUpgrades", f"--host-resolver-rules=MAP * 127.0.0.1:{port}",
            f"--user-data-dir={profile}", "--remote-debugging-port=0", *flags, f"http://site.test{CONTROL}{page}",
        ]
        server.selected = None
        server.finished.clear()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            finished = server.finished.wait(600)
        finally:
            process.terminate()
            process.wait()
    if not finished:
        sys.exit("the browser did not finish")


def differences(case, seen):
    expected = sorted(case["links"])
    found = sorted(set(seen["links"]))
    if expected != found:
        yield f"links: ours {expected}\n       browser {found}"
    if "title" in case and (case["title"] or "") != seen["title"]:
        yield f"title: ours {case['title']!r}, browser {seen['title']!r}"
    if "encoding" in case and case["encoding"].lower() != seen["encoding"].lower():
        yield f"encoding: ours {case['encoding']}, browser {seen['encoding']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--only", default="", help="only cases with this in their name")
    arguments = parser.parse_args()
    cases = json.loads(pathlib.Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))
    cases = [case for case in cases if arguments.only in case["name"]]
    server = Server(cases)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    run_browser(arguments.browser, server, "harness")
    run_browser(arguments.browser, server, "refresh?0", "--blink-settings=scriptEnabled=false")

    wrong = stated = 0
    for index, case in enumerate(cases):
        found = list(differences(case, server.results[index]))
        reason = case.get("differs_from_browser")
        if bool(found) == bool(reason):
            stated += bool(reason)
            continue
        wrong += 1
        print(f"- {case['name']}")
        print("  " + ("\n  ".join(found) if found else f"does not differ any more: {reason}"))
    print(f"{len(cases)} cases, {stated} differ as stated, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
