#!/usr/bin/env python3
"""Asks a browser about assets.json and reports where it loads something else than the cases say.

    python3 assets_check.py [--browser chromium]

Needs Chromium and nothing else; it is no part of `cargo test`. Every case is served on loopback and shown by a browser of
its own; what it asks this server for is what it loads. Of the URLs that a case lists, those "unloaded" are candidates
that the browser has no use for here. Those "also_asked" it loads though the crawler does not look for them.
Exit status: 0 when everything is as stated.
"""

import argparse
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading

TYPES = {"css": "text/css", "js": "text/javascript", "png": "image/png", "svg": "image/svg+xml", "vtt": "text/vtt"}


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    page = b""
    asked = set()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_page = self.path == "/dir/page.html"
        if not is_page and self.path != "/favicon.ico":
            self.server.asked.add(self.path)
        ending = self.path.split("?")[0].rsplit(".", 1)[-1]
        body = self.server.page if is_page else b""
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8" if is_page else TYPES.get(ending, "text/plain"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def asked_for(server, browser, case):
    server.page, server.asked = b"<!doctype html>" + case["html"].encode(), set()
    address = f"http://site.test:{server.server_port}/dir/page.html"
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
             "--host-resolver-rules=MAP * 127.0.0.1", "--autoplay-policy=no-user-gesture-required",
             "--virtual-time-budget=3000", "--dump-dom", address],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=True)
    return set(server.asked)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--browser", default="chromium")
    browser = arguments.parse_args().browser
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cases = json.loads(pathlib.Path(__file__).with_name("assets.json").read_text())
    wrong = 0
    for case in cases:
        expected = set(case["loads"]) - set(case.get("unloaded", [])) | set(case.get("also_asked", []))
        asked = asked_for(server, browser, case)
        if asked != expected:
            wrong += 1
            print(f"{case['name']}: expected {sorted(expected)}, the browser asked for {sorted(asked)}")
    print(f"{len(cases)} cases, {wrong} not as stated")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
