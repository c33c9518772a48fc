"""What the acceptance scripts of this folder share: a small web server that can be killed and frozen, and a run of the crawler.

The server is a process of its own on 127.0.0.1, so that it can be stopped at any moment without the script. It writes one line for
each request, `time path status connection`, before it answers: a kill loses no line of an answer that was sent. A status of 0 is a
request that is never answered; 499, as with nginx, one whose client had gone when its turn came.
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


# The side of the server.


def response(body, status="200 OK", kind="text/html", headers=()):
    """A whole answer: its status as a number, and its bytes."""
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
        # Not used again, not even by a server that was started again.
        self.name = f"{os.getpid()}-{next(CONNECTION_NUMBERS)}"
        self.end = select.poll()
        self.end.register(transport.get_extra_info("socket").fileno(), select.POLLRDHUP)

    def connection_lost(self, _):
        self.connections.discard(self)

    def data_received(self, data):
        self.received += data
        if not self.received[:1].isalpha():
            # As plain servers do when they are spoken to by TLS.
            self.transport.write(response("", status="400 Bad Request", headers=["Connection: close"])[1])
            self.transport.close()
            return
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head, self.received = self.received[:end], self.received[end + 4 :]
            self.reply(head.split(b" ", 2)[1].decode("latin-1"))

    def reply(self, path):
        if self.end.poll(0):
            # The client gave up while this process was frozen. An answer would count as given, though nobody reads it.
            self.note(path, GONE)
            return
        found = ROBOTS if path == "/robots.txt" else self.answer(path)
        if found is SILENCE:
            self.note(path, 0)
            return
        status, answer = found
        self.note(path, status)
        self.transport.write(answer)

    def note(self, path, status):
        os.write(self.log, f"{time.time():.6f} {path} {status} {self.name}\n".encode())


async def serve(answer, port, log, certificate):
    """Answers until SIGTERM, which ends open connections after what was answered has been sent."""
    loop, connections, stopped = asyncio.get_running_loop(), set(), asyncio.Event()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    # Ctrl-C is for the script, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    make = lambda: Connection(answer, descriptor, connections)
    server = await loop.create_server(make, "127.0.0.1", port, backlog=1024, reuse_address=True, ssl=tls)
    print("ready", flush=True)
    await stopped.wait()
    server.close()
    for connection in list(connections):
        connection.transport.close()
    await asyncio.sleep(0)


# The side of the script.


def free_port():
    """A port below those that the system gives to outgoing connections: while the server is down, none may take it."""
    for port in random.sample(range(15_000, 32_000), 100):
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
    sys.exit("no free port was found")


class Server:
    """A site that the calling script serves in a process of its own, on the same port after each start.

    `name` is looked up in the sites that the script has given to `run`; `arguments` are handed to it.
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
        """How many lines the log has; cheap enough to be asked all the time."""
        with self.log.open("rb") as log:
            log.seek(self.offset)
            new = log.read()
        self.offset += len(new)
        self.answered += new.count(b"\n")
        return self.answered

    def requests(self):
        """All requests so far except for robots.txt, in the order in which the server came to them."""
        lines = (line.split() for line in self.log.read_text().splitlines())
        found = [Request(float(at), path, int(status), connection) for at, path, status, connection in lines]
        return [request for request in found if request.path != "/robots.txt"]

    def __exit__(self, *_):
        if self.process.poll() is None:
            # Also ends a frozen one.
            self.end(signal.SIGKILL)


class Crawl:
    """A run of the crawler; the lines of its standard error are kept with the seconds after which they came."""

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
        """Waits for its end, for `until`, or until so many seconds after its start; says whether it has ended by itself."""
        while self.is_running and self.seconds < seconds and not until():
            time.sleep(step)
        return not self.is_running

    def stop(self, grace=10):
        """Asks it to end, with its summary and with whole files, and kills it if it does not."""
        if self.is_running:
            self.process.terminate()
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.reader.join(5)
        self.summary = self.summary_file.read_text()

    def told(self, *names):
        """Rows of the summary by their names, and last words if there is none."""
        rows = [" ".join(row.split()) for row in self.summary.splitlines() if row.strip().startswith(names)]
        return rows or [line for _, line in self.lines[:3]] or [f"no summary, exit code {self.process.poll()}"]

    def __exit__(self, *_):
        self.stop(grace=0.5)


def paths_in(output):
    """How often each path, with its query, is in an output with status 200; a last line that a kill has cut is left out."""
    if not output.exists():
        return collections.Counter()
    whole = [line for line in output.read_text().splitlines(keepends=True) if line.endswith("\n")]
    pages = map(json.loads, whole)
    return collections.Counter(path_of(page["url"]) for page in pages if page["status"] == 200)


def path_of(url):
    return urlsplit(url)._replace(scheme="", netloc="").geturl()


def parser(description):
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--crawler", default=TARGET / "dist/crawler", help="the command that is judged")
    made.add_argument("--short", action="store_true", help="the small version for CI")
    return made


def finish(kept, what):
    """Says how many of these were kept, and ends the script with 1 unless all were."""
    broken = list(kept).count(False)
    print(f"{broken} of {len(kept)} {what} are broken" if broken else f"all {len(kept)} {what} hold", flush=True)
    sys.exit(1 if broken else 0)


def parse(parser):
    arguments = parser.parse_args()
    if not os.access(arguments.crawler, os.X_OK):
        parser.error(f"{arguments.crawler} is not a program: build it, or name another one by --crawler")
    return arguments


def run(main, sites):
    """Starts a script, or its server: `sites` has, by name, what makes the function from a path to a response."""
    # So that children are ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if sys.argv[1:2] != ["--serve"]:
        main()
        return
    name, port, log, certificate, *arguments = sys.argv[2:]
    asyncio.run(serve(sites[name](*arguments), int(port), log, certificate))


def work_folder():
    """A folder in memory where there is one: what is measured is not the disk."""
    memory = pathlib.Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None)
