"""Drives a headless Chromium over two pipes, by the Chrome DevTools Protocol: messages in JSON, each ended by a zero byte."""

import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ["chromium", "chromium-browser", "google-chrome"]
# Also as root in a container: without a sandbox, a GPU, a large /dev/shm, a proxy, or requests of its own.
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-extensions",
    "--disable-sync",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-features=MediaRouter,OptimizationHints",
    "--remote-debugging-pipe",
]
ANSWER_SECONDS = 20
END_SECONDS = 5


class BrowserError(Exception):
    """The browser did not start, does not answer, or a script in it has failed."""


class Browser:
    """One tab. `errors` has all that its page wrote to the console as an error, and exceptions, since the last `open`."""

    def __init__(self, program=None):
        program = program or next(filter(None, map(shutil.which, NAMES)), None)
        if not program:
            raise BrowserError(f"none of {', '.join(NAMES)} is installed")
        self.program, self.errors, self.received, self.numbers = program, [], b"", itertools.count(1)
        self.session = None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
        # Chromium reads descriptor 3 and writes to 4. The shell moves the pipes there.
        command = ["sh", "-c", 'exec "$@" 3<&0 4>&1 < /dev/null > /dev/null 2>&1', "sh", self.program, *FLAGS]
        self.process = subprocess.Popen(
            [*command, f"--user-data-dir={self.folder.name}/profile", "about:blank"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "HOME": self.folder.name},
            # The browser has many processes: they end together.
            start_new_session=True,
        )
        try:
            tab = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
            for domain in ["Page", "Runtime", "Log"]:
                self.call(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.session = None
        try:
            self.call("Browser.close")
            self.process.wait(END_SECONDS)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdout.close()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.folder.cleanup()

    def call(self, method, **parameters):
        """Returns the result of a method of the protocol. Events that come before are noted."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        self.process.stdin.flush()
        end = time.monotonic() + ANSWER_SECONDS
        while (answer := self.receive(end)).get("id") != number:
            self.note(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def receive(self, end):
        """Returns the next message."""
        while b"\0" not in self.received:
            is_readable, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            more = os.read(self.process.stdout.fileno(), 1 << 20) if is_readable else b""
            if not more:
                raise BrowserError(f"{self.program} has ended" if is_readable else f"{self.program} does not answer")
            self.received += more
        message, _, self.received = self.received.partition(b"\0")
        return json.loads(message)

    def note(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Inspector.targetCrashed":
            raise BrowserError("the page has crashed")
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(one.get("value", one.get("description"))) for one in parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}".rstrip())

    def open(self, url):
        """Loads a page, also if another part of it is open already."""
        for address in ["about:blank", url]:
            self.errors = []
            result = self.call("Page.navigate", url=address)
            if "errorText" in result:
                raise BrowserError(f"{address}: {result['errorText']}")
            is_there = f"(location.href === 'about:blank') === {json.dumps(address == 'about:blank')}"
            if not self.wait_until(f"{is_there} && document.readyState === 'complete'"):
                raise BrowserError(f"{address} was not loaded within {ANSWER_SECONDS} s")

    def evaluate(self, script):
        """Returns the value of an expression, or of its promise."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(f"{details.get('exception', {}).get('description') or details['text']}: {script[:200]}")
        return result["result"].get("value")

    def wait_until(self, script, seconds=ANSWER_SECONDS):
        """Waits until an expression is true. Returns whether it became so in time."""
        end = time.monotonic() + seconds
        while not self.evaluate(f"Boolean({script})"):
            if time.monotonic() > end:
                return False
            time.sleep(0.03)
        return True

    def show(self, width, height, theme):
        """Sets the size of the page in pixels, and the theme: light or dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def screenshot(self, file):
        """Saves a picture of the whole page, as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        picture = self.call("Page.captureScreenshot", clip={**size, "scale": 1}, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(picture["data"]))
