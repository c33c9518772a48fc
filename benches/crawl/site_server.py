"""Shared by the acceptance scripts of this folder: a small web server that can be killed and frozen, and a run of the crawler.

The server is a process of its own on 127.0.0.1, so that it can be stopped at any moment without the script. It logs one line per
request, `time path status connection`, before it answers, so a kill loses no line of a sent answer. Status 0 is a request that is
never answered. Status 499, as with nginx, is a request whose client had closed the connection.
"""

import argparse
import asyncio
import collections
import itertools
import json
import os
import pathlib
import random
import select
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import urlsplit

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
START_SECONDS = 10
GONE = 499
SILENCE = None
CONNECTION_NUMBERS = itertools.count()

Request = collections.namedtuple("Request", "at path status connection")


# The server.


def response(body, status="200 OK", kind="text/html", headers=()):
    """Returns the status of an answer as a number, and its bytes."""
    body = body.encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return int(status[:3]), "\r\n".join(lines).encode() + b"\r\n\r\n" + body


ROBOTS = response("User-agent: *\nAllow: /\n", kind="text/plain")
NOT_FOUND = response("<p>There is no such page.", status="404 Not Found")


class Connection(asyncio.Protocol):
    def __init__(self, answer, log, connections):
        self.answer, self.log, self.connections = answer, log, connections
        self.received = b""

    def connection_made(self, transport):
        self.transport = transport
        self.connections.add(self)
        # Unique, also after a restart of the server.
        self.name = f"{os.getpid()}-{next(CONNECTION_NUMBERS)}"
        self.end = select.poll()
        self.end.register(transport.get_extra_info("socket").fileno(), select.POLLRDHUP)

    def connection_lost(self, _):
        self.connections.discard(self)

    def data_received(self, data):
        self.received += data
        if not self.received[:1].isalpha():
            # A server without TLS answers like this to a TLS handshake.
            self.transport.write(response("", status="400 Bad Request", headers=["Connection: close"])[1])
            self.transport.close()
            return
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head, self.received = self.received[:end], self.received[end + 4 :]
            self.reply(self.asked(head))

    def asked(self, head):
        """Returns what the log and the site call this request: its path."""
        return head.split(b" ", 2)[1].decode("latin-1")

    def reply(self, path):
        if self.end.poll(0):
            # The client timed out while this process was frozen. An answer would be counted, but never read.
            self.note(path, GONE)
            return
        found = ROBOTS if path == "/robots.txt" else self.answer(path)
        if found is SILENCE:
            self.note(path, 0)
            return
        status, answer = found
        self.note(path, status)
        self.send(path, answer)

    def send(self, _, answer):
        self.transport.write(answer)

    def note(self, path, status):
        os.write(self.log, f"{time.time():.6f} {path} {status} {self.name}\n".encode())


async def serve(answer, port, log, certificate, connection):
    """Answers until SIGTERM. Then it sends all answers, and closes the connections."""
    loop, connections, stopped = asyncio.get_running_loop(), set(), asyncio.Event()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    # Ctrl-C ends the script, and the script ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    make = lambda: connection(answer, descriptor, connections)
    server = await loop.create_server(make, "127.0.0.1", port, backlog=1024, reuse_address=True, ssl=tls)
    print("ready", flush=True)
    await stopped.wait()
    server.close()
    for connection in list(connections):
        connection.transport.close()
    await asyncio.sleep(0)


# The script.


PORTS_GIVEN = set()


def free_port():
    """Returns a port below the range of outgoing connections, so that none takes it while the server is down. It returns none twice."""
    for port in random.sample(range(15_000, 32_000), 100):
        if port in PORTS_GIVEN:
            continue
        try:
            with socket.create_server(("127.0.0.1", port)):
                PORTS_GIVEN.add(port)
                return port
        except OSError:
            continue
    sys.exit("no free port was found")


class Server:
    """A site that the calling script serves in a process of its own. Its port stays the same after a restart.

    `name` is a key of the sites that the script passes to `run`. The site gets `arguments`.
    """

    def __init__(self, work, name, *arguments, certificate=""):
        self.port = free_port()
        scheme = "https" if certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self.port}/"
        self.log = work / f"access-{self.port}.log"
        self.log.touch()
        fixed = [name, self.port, self.log, certificate, *arguments]
        self.command = [sys.executable, sys.argv[0], "--serve", *map(str, fixed)]
        self.answered = self.offset = 0

    def __enter__(self):
        self.start()
        return self

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        is_readable, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        if not is_readable or not self.process.stdout.readline():
            self.end(signal.SIGKILL)
            sys.exit("the server did not start")

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, number):
        """Ends the process by a signal."""
        self.process.send_signal(number)
        try:
            self.process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def count(self):
        """Returns the number of lines in the log. It reads new lines only, so it can be called often."""
        with self.log.open("rb") as log:
            log.seek(self.offset)
            new = log.read()
        self.offset += len(new)
        self.answered += new.count(b"\n")
        return self.answered

    def requests(self):
        """Returns all requests except those for robots.txt, in the order in which the server handled them."""
        lines = (line.split() for line in self.log.read_text().splitlines())
        found = [Request(float(at), path, int(status), connection) for at, path, status, connection in lines]
        return [request for request in found if request.path != "/robots.txt"]

    def __exit__(self, *_):
        if self.process.poll() is None:
            # SIGKILL also ends a frozen process.
            self.end(signal.SIGKILL)


class Crawl:
    """A run of the crawler. It keeps the lines of standard error with their times, in seconds after the start."""

    def __init__(self, crawler, work, *arguments):
        self.lines, self.summary = [], ""
        self.summary_file = pathlib.Path(tempfile.mkstemp(dir=work, suffix=".summary")[1])
        self.began = time.monotonic()
        with self.summary_file.open("wb") as summary:
            self.process = subprocess.Popen(
                [crawler, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=summary, stderr=subprocess.PIPE
            )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.lines.append((time.monotonic() - self.began, line.decode(errors="replace").rstrip()))

    def __enter__(self):
        return self

    @property
    def seconds(self):
        return time.monotonic() - self.began

    @property
    def is_running(self):
        return self.process.poll() is None

    def matching(self, pattern):
        return [line for _, line in list(self.lines) if pattern.search(line)]

    def wait(self, seconds, until=lambda: False, step=0.05):
        """Waits for the end of the crawl, for `until`, or until `seconds` after the start. Returns whether the crawl ended."""
        while self.is_running and self.seconds < seconds and not until():
            time.sleep(step)
        return not self.is_running

    def stop(self, grace=10):
        """Sends SIGTERM, so that the crawl writes its summary and whole files. After `grace` seconds it is killed."""
        if self.is_running:
            self.process.terminate()
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join(5)
        self.summary = self.summary_file.read_text()

    def summary_rows(self, *names):
        """Returns the rows of the summary with these names. Without a summary it returns the first lines of the log."""
        rows = [" ".join(row.split()) for row in self.summary.splitlines() if row.strip().startswith(names)]
        return rows or [line for _, line in self.lines[:3]] or [f"no summary, exit code {self.process.poll()}"]

    def __exit__(self, *_):
        self.stop(grace=0.5)


def paths_in(output):
    """Counts the records of each path, with its query, with status 200 in an output. An incomplete last line is left out."""
    if not output.exists():
        return collections.Counter()
    whole = [line for line in output.read_text().splitlines(keepends=True) if line.endswith("\n")]
    pages = map(json.loads, whole)
    return collections.Counter(path_of(page["url"]) for page in pages if page["status"] == 200)


def path_of(url):
    return urlsplit(url)._replace(scheme="", netloc="").geturl()


def parser(description):
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--crawler", default=TARGET / "dist/crawler", help="the crawler to test")
    made.add_argument("--short", action="store_true", help="the small version for CI")
    return made


def finish(kept, what):
    """Prints how many of these hold, and exits with code 1 unless all do."""
    broken = list(kept).count(False)
    print(f"{broken} of {len(kept)} {what} are broken" if broken else f"all {len(kept)} {what} hold", flush=True)
    sys.exit(1 if broken else 0)


def parse(parser):
    arguments = parser.parse_args()
    if not os.access(arguments.crawler, os.X_OK):
        parser.error(f"{arguments.crawler} is not a program: build it, or give another one with --crawler")
    return arguments


def run(main, sites, connection=Connection):
    """Starts a script, or its server. `sites` maps a name to a function that makes the function from a path to a response."""
    # The exit also ends child processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if sys.argv[1:2] != ["--serve"]:
        main()
        return
    name, port, log, certificate, *arguments = sys.argv[2:]
    asyncio.run(serve(sites[name](*arguments), int(port), log, certificate, connection))


def work_folder():
    """Returns a temporary folder, in memory if possible, so that the disk does not change the results."""
    memory = pathlib.Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None)
