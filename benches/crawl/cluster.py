#!/usr/bin/env python3
"""Checks that a crawl of several processes over Redis loses nothing when they or Redis are killed, and when Redis forgets what it knew.

    benches/crawl/cluster.py [--partitions 4] [--pages 200000] [--hosts 5000] [--kills 100] [--flushes 5] [--seed 1]
    benches/crawl/cluster.py --short            2 000 pages on 100 hosts, for CI
    benches/crawl/cluster.py --equal            compares the outputs with that of one process
    benches/crawl/cluster.py --no-append-only   a kill of Redis costs all that it knew
    benches/crawl/cluster.py --redis-cluster    three masters and three replicas, with failovers
    benches/crawl/cluster.py --partitions 1     one process without Redis, which is killed

A web on many hosts below localhost is crawled by one process for each partition. It has redirects to other hosts, pages that are only in a sitemap
on another host, and pages that answer 503 once. Faults come at random moments, spread over the crawl:

  kill         kill -9 of a random crawler, which is started again, as systemd does;
  kill_redis   kill -9 of Redis, which is started again up to three seconds later; one for each ten kills of a crawler;
  flush        FLUSHALL; one kill and one flush more come when all pages are fetched, while the processes agree on the end;
  pause        a crawler is stopped, and continued after --pause seconds;
  split        Redis' answers to one crawler are lost for --pause seconds; needs root, not in --short and not with --redis-cluster;
  fail_over    with --redis-cluster: a replica becomes a master; kill_redis is of a master, and a replica takes over;
  order        a random crawler is ordered the policy of a host of any partition.

Promises:

  * every process ends by itself with exit code 0, at most --limit seconds after the last fault and the last request. None ends
    otherwise, but one that is started while Redis is away, and is then started again;
  * every page is in the outputs once, and all lines of a site are in one output;
  * at the end, all orders that were confirmed hold in all directories;
  * the requests that are repeated are at most --concurrency per kill of a crawler;
  * no request comes sooner than --delay after the end of the one before to the same host; but the first page comes right after robots.txt;
  * with --equal, URLs, statuses and hashes are those of one process without Redis and faults.

Requires Debian's redis, but for one partition.
"""

import asyncio
import collections
import contextlib
import functools
import hashlib
import json
import operator
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import time
import zlib

import outages
import redis_server
import site_server

FULL = {"partitions": 4, "pages": 200_000, "hosts": 5_000, "kills": 100, "flushes": 5, "delay": 1.0, "pause": 60, "limit": 120}
SHORT = {"partitions": 3, "pages": 2_000, "hosts": 100, "kills": 6, "flushes": 1, "delay": 0.2, "pause": 2, "limit": 20}
FAN_OUT = 6
# Answers end before a killed crawler is started again.
MAX_LATENCY_SECONDS, RESTART_SECONDS = 0.03, 0.5
# A start takes at most so long, and may fail if Redis is away meanwhile.
START_SECONDS = 3
MAX_REDIS_AWAY_SECONDS, FAIL_OVER_SECONDS = 3, 5
# The clock of the crawler has milliseconds.
TOLERANCE_SECONDS = 0.002


def main():
    parser = site_server.parser(__doc__)
    for name in ["partitions", "pages", "hosts", "kills", "flushes"]:
        parser.add_argument(f"--{name}", type=int)
    for name in ["delay", "pause", "limit"]:
        parser.add_argument(f"--{name}", type=float, help="in seconds")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1, help="of the web and of the faults")
    for name in ["no-append-only", "redis-cluster", "equal"]:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--keep", help="copy the files of a crawl with broken promises into this folder")
    arguments = site_server.parse(parser)
    for name, value in (SHORT if arguments.short else FULL).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    # A shell that starts this in the background lets it ignore SIGINT, and a crawler would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    open_more_files()
    with site_server.work_folder() as folder:
        kept = check(arguments, pathlib.Path(folder))
        if not all(kept) and arguments.keep:
            subprocess.run(["cp", "-r", folder, arguments.keep], check=False)
    site_server.finish(kept, "promises")


def open_more_files():
    """Raises the limit of this process and its children: there is a connection for each host."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def check(arguments, work):
    with contextlib.ExitStack() as stack:
        shape = [arguments.pages, arguments.hosts, arguments.seed, MAX_LATENCY_SECONDS]
        server = stack.enter_context(site_server.Server(work, "web", *shape))
        web = Web(server.port, *shape)
        redis = None
        if arguments.partitions > 1:
            network = None if arguments.short or arguments.redis_cluster else network_if_possible(stack, arguments.partitions)
            redis = redis_server.Redis(work, not arguments.no_append_only, arguments.redis_cluster, network)
            stack.enter_context(redis)
        run = Run(arguments, work / "crawl", web, redis)
        kept = run.run(server)
        requests, seconds = server.requests(), cpu_seconds(server.process)
        print(f"       the server took {seconds:.1f} s of a processor: it can answer {len(requests) / seconds:.0f} requests per second")
        kept += judge(arguments, web, run, requests)
        if arguments.equal:
            # A new server does not know which pages have answered 503.
            server.end(signal.SIGTERM)
            server.start()
            alone = Run(arguments, work / "alone", web, None, is_reference=True)
            kept += alone.run(server)
            fields = operator.itemgetter("url", "status", "content_hash")
            of, of_one = ({fields(line) for _, line in one.lines} for one in [run, alone])
            kept.append(fact(of == of_one, f"{len(of ^ of_one)} lines are not those of one process", of ^ of_one))
    return kept


def network_if_possible(stack, partitions):
    try:
        return stack.enter_context(redis_server.Network(partitions))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"       the split is left out: {getattr(error, 'stderr', error)}")


def fact(holds, text, examples=()):
    example = next((f", such as {one}" for one in examples if not holds), "")
    print(f"{'ok    ' if holds else 'BROKEN'} {text}{example}", flush=True)
    return bool(holds)


def judge(arguments, web, run, requests):
    """Checks the outputs and the access log."""
    found = collections.Counter(line["url"] for _, line in run.lines)
    wanted = {web.url(number) for number in range(web.pages)}
    missing, more = wanted - found.keys(), found.keys() - wanted
    twice = [url for url, count in found.items() if count > 1]
    bad = [line["url"] for _, line in run.lines if line["status"] != 200]
    shares = collections.Counter(at for at, _ in run.lines)
    outputs = collections.defaultdict(set)
    for at, line in run.lines:
        outputs[line["url"].split("/")[2].removeprefix("www.")].add(at)
    torn = [site for site, numbers in outputs.items() if len(numbers) > 1]
    answers = collections.Counter(one.path for one in requests if one.status != 503)
    repeated, kills = sum(answers.values()) - len(answers), run.played["kill"]
    early = early_requests(requests, web, arguments.delay)
    return [
        fact(not missing, f"{len(wanted) - len(missing)} of {len(wanted)} pages are in the outputs: {dict(sorted(shares.items()))}", missing),
        fact(not twice, f"{len(twice)} are there more than once", twice),
        fact(not more and not bad, f"{len(more)} other pages and {len(bad)} with another status than 200 are there", more or bad),
        fact(not torn, f"{len(torn)} of {len(outputs)} sites are in more than one output", torn),
        fact(repeated <= kills * arguments.concurrency, f"{repeated} requests were repeated after {kills} kills of a crawler"),
        fact(not early, f"{len(early)} of {len(requests)} requests came early", early),
    ]


def early_requests(requests, web, delay):
    """Returns the requests that came too early after the end of the one before to the same host."""
    before, early = {}, []
    for one in requests:
        # A request that was read after its sender was killed says nothing about the time at which it was sent.
        if one.status == site_server.GONE:
            continue
        host, path = one.path.split("/", 1)
        ended, last_path = before.get(host, (0, "robots.txt"))
        # The first page comes over the connection of robots.txt, which is still open.
        if last_path != "robots.txt" and one.at - ended < delay - TOLERANCE_SECONDS:
            early.append(f"{one.path}, {(one.at - ended) * 1000:.1f} ms after {last_path}")
        before[host] = one.at + web.latency(one.path), path
    return early


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# A crawl, and its faults.


class Part:
    """The process of a partition. It is started again after a kill or a failure, as systemd does."""

    def __init__(self, command, folder, number):
        self.output, self.log, self.state = (folder / f"{number}.{kind}" for kind in ["jsonl", "log", "state"])
        self.command = [str(word) for word in [*command, "--state", self.state, "--output", self.output]]
        self.failures, self.is_paused, self.has_ended = [], False, False
        self.start()

    def start(self):
        self.started, self.start_at = time.monotonic(), None
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def watch(self, now):
        code = self.process.poll()
        if code == 0:
            self.has_ended = True
        elif code is not None and self.start_at is None:
            if code != -signal.SIGKILL:
                self.failures.append((self.started, f"exit code {code}: {self.log.read_text().splitlines()[-1:]}"))
            self.start_at = now + RESTART_SECONDS
        elif self.start_at is not None and now >= self.start_at:
            self.start()

    @property
    def is_running(self):
        return self.process.poll() is None and not self.is_paused

    def kill(self):
        # SIGKILL also ends a stopped process.
        self.process.kill()
        self.process.wait()

    def pause(self, is_paused):
        self.process.send_signal(signal.SIGSTOP if is_paused else signal.SIGCONT)
        self.is_paused = is_paused

    def lines(self):
        return [json.loads(line) for line in self.output.read_text().splitlines()] if self.output.exists() else []


class Run:
    """A crawl of all partitions. A fault comes when so many requests were answered, and up to half a second later."""

    def __init__(self, arguments, folder, web, redis, is_reference=False):
        folder.mkdir()
        self.pause_seconds, self.limit, self.redis, self.draw = arguments.pause, arguments.limit, redis, random.Random(arguments.seed)
        delay, concurrency = (0, arguments.partitions * arguments.concurrency) if is_reference else (arguments.delay, arguments.concurrency)
        command = [arguments.crawler, *web.options(), "--delay", delay, "--concurrency", concurrency]
        count = arguments.partitions if redis else 1
        options = [["--cluster", redis.url(at), "--partition", f"{at}/{count}"] if redis else [] for at in range(count)]
        self.parts, self.commands, self.folder = [], [[*command, *own] for own in options], folder
        kinds, tenth = {} if is_reference else {"kill": arguments.kills}, -(-arguments.kills // 10)
        if redis:
            kinds |= {"kill_redis": tenth, "flush": arguments.flushes, "pause": 1, "split": int(redis.network is not None)}
            kinds |= {"order": arguments.kills}
            kinds |= {"fail_over": tenth if redis.is_cluster else 0}
        self.wanted, self.crawler, self.hosts, self.orders = kinds, arguments.crawler, [web.host(at) for at in range(web.hosts)], {}
        plan = [(web.requests() * self.draw.uniform(0, 0.9), kind) for kind, count in kinds.items() for _ in range(count)]
        self.plan = sorted(plan) + [(web.requests(), kind) for kind in ["kill", "flush"] if kinds.get(kind)]
        self.due, self.undo, self.played, self.last_fault = [], [], collections.Counter(), 0
        # The partitions from which Redis was away, since when and until when.
        self.aways = []
    def run(self, server):
        """Returns which promises hold about how it ended."""
        before, answered, began = server.count(), 0, time.monotonic()
        last_request = now = began
        try:
            for at, command in enumerate(self.commands):
                self.parts.append(Part(command, self.folder, at))
            while not all(part.has_ended for part in self.parts) and (self.undo or now < max(last_request, self.last_fault) + self.limit):
                time.sleep(0.01)
                now = time.monotonic()
                if server.count() - before > answered:
                    answered, last_request = server.answered - before, now
                self.play(now, answered)
                for part in self.parts:
                    part.watch(now)
        finally:
            for part in self.parts:
                part.kill()
        print(f"       {len(self.parts)} processes, {answered} requests, {now - began:.1f} s, {answered / (now - began):.0f} requests per second")
        faults = ", ".join(f"{kind} {self.played[kind]}" for kind in self.wanted if self.played[kind])
        ended, quiet = sum(part.has_ended for part in self.parts), now - max(last_request, self.last_fault)
        failures = [(at, *failure) for at, part in enumerate(self.parts) for failure in part.failures]
        other = [text for at, started, text in failures if not self.was_away(at, started)]
        return [
            fact(all(self.played[kind] >= count for kind, count in self.wanted.items()), f"faults: {faults or 'none'}", [self.wanted]),
            fact(ended == len(self.parts), f"{ended} processes ended by themselves, {quiet:.1f} s after the last request and the last fault"),
            fact(not other, f"{len(other)} times a process ended otherwise; {len(failures) - len(other)} starts failed while Redis was away", other),
            *self.orders_hold(),
        ]

    def orders_hold(self):
        if not self.orders:
            return []
        lacking = []
        for at, part in enumerate(self.parts):
            hosts = subprocess.run([self.crawler, "hosts", part.state], capture_output=True, check=True, text=True).stdout
            found = {line.split()[0]: line for line in hosts.splitlines() if line.strip()}
            lacking += [(at, host) for host, pages in self.orders.items() if f"max-pages={pages}" not in found.get(host, "")]
        return [fact(not lacking, f"{len(self.orders)} orders hold in all directories", lacking)]

    def was_away(self, at, started):
        """Returns whether Redis was away during a start of a partition."""
        return any(at in parts and since - START_SECONDS < started < until + START_SECONDS for parts, since, until in self.aways)

    def play(self, now, answered):
        for one in [one for one in self.undo if now >= one[0]]:
            one[1]()
            self.undo.remove(one)
            self.last_fault = now
        while self.plan and answered >= self.plan[0][0]:
            self.due.append((now + self.draw.uniform(0, 0.5), self.plan.pop(0)[1]))
        for one in [one for one in self.due if now >= one[0]]:
            undo = getattr(self, one[1])()
            # One that cannot come now comes later.
            if undo is not None:
                self.undo += [(now + seconds, function) for seconds, function in undo]
                self.due.remove(one)
                self.played[one[1]] += 1
                self.last_fault = now

    # A fault returns what must be done some seconds later, or None if it cannot come now.

    def any_running(self):
        running = [part for part in self.parts if part.is_running]
        return self.draw.choice(running) if running else None

    def kill(self):
        if part := self.any_running():
            part.kill()
            return []

    def order(self):
        """One that is refused, or that a kill has cut short, comes later: again, or of another host."""
        if part := self.any_running():
            host, pages = self.draw.choice(self.hosts), 1_000_000 + self.played["order"]
            command = [self.crawler, "set", part.state, host, f"max-pages={pages}"]
            if host not in self.orders and subprocess.run(command, capture_output=True, check=False).returncode == 0:
                self.orders[host] = pages
                return []

    def pause(self):
        if part := self.any_running():
            part.pause(True)
            return [(self.pause_seconds, lambda: part.pause(False))]

    def kill_redis(self):
        if node := self.redis.kill_master(self.draw):
            seconds = FAIL_OVER_SECONDS if self.redis.is_cluster else self.draw.uniform(0, MAX_REDIS_AWAY_SECONDS)
            self.aways.append((range(len(self.parts)), time.monotonic(), time.monotonic() + seconds))
            return [(seconds, node.start)]

    def flush(self):
        return [] if self.redis.flush() else None

    def fail_over(self):
        return [] if self.redis.fail_over(self.draw) else None

    def split(self):
        at = self.draw.randrange(len(self.parts))
        self.redis.network.cut(at)
        self.aways.append(([at], time.monotonic(), time.monotonic() + self.pause_seconds))
        return [(self.pause_seconds, lambda: self.redis.network.mend(at))]

    @functools.cached_property
    def lines(self):
        """The lines of the outputs, each with the number of its partition."""
        return [(at, line) for at, part in enumerate(self.parts) for line in part.lines()]


# The web. A page is linked to directly, or by a redirect on another host; some are only in a sitemap.


class Web:
    def __init__(self, port, pages, hosts, seed, max_latency):
        self.port, self.pages, self.hosts, self.seed, self.max_latency = int(port), int(pages), int(hosts), seed, float(max_latency)
        self.have_failed = set()

    def options(self):
        seeds = [self.url(number) for number in range(4)]
        return [*seeds, "--scope", "any", "--allow-private-addresses", "--sitemaps", "--exact", "--quiet"]

    def requests(self):
        """Returns how many requests a crawl makes."""
        more = sum(self.is_redirected(number) + self.fails_once(number) for number in range(self.pages))
        return self.pages + more + 2 * self.hosts

    def host(self, number):
        """Returns the name of a host. It is a site of its own, or belongs to that of the host before."""
        number %= self.hosts
        return f"www.h{number - 1}.localhost" if number % 10 == 9 else f"h{number}.localhost"

    def url(self, number, path=None):
        return f"http://{self.host(number)}:{self.port}/{number if path is None else path}"

    def link(self, number):
        return self.url(7 * number + 3, f"go/{number}") if self.is_redirected(number) else self.url(number)

    def is_in_sitemap(self, number):
        return number % 13 == 7

    def is_only_in_sitemap(self, number):
        """Not with links to more pages, and not on a host with no other page: its robots.txt would not be asked for."""
        return self.is_in_sitemap(number) and number * FAN_OUT + 1 >= self.pages and number >= self.hosts

    def is_redirected(self, number):
        return number % 17 == 5 and not self.is_only_in_sitemap(number)

    def fails_once(self, number):
        return number % 97 == 11

    def latency(self, name):
        """Returns the seconds from a request to its answer."""
        return self.max_latency * (zlib.crc32(name.encode()) % 256) / 255

    def answer(self, name):
        host, _, path = name.partition("/")
        kind, _, text = path.rpartition("/")
        if path == "robots.txt":
            at = int(host.removeprefix("www.").removesuffix(".localhost")[1:]) + host.startswith("www.")
            return text_of(f"User-agent: *\nAllow: /\nSitemap: {self.url(at + at % 2, f'sitemap/{at}')}\n")
        number = int(text) if text.isdigit() else self.pages
        if number >= self.pages or not kind and host != self.host(number):
            return site_server.NOT_FOUND
        if kind == "sitemap":
            return text_of("".join(f"{self.url(page)}\n" for page in range(number, self.pages, self.hosts) if self.is_in_sitemap(page)))
        if kind == "go":
            return site_server.response("", status="302 Found", headers=[f"Location: {self.url(number)}"])
        if self.fails_once(number) and number not in self.have_failed:
            self.have_failed.add(number)
            return site_server.response("", status="503 Service Unavailable")
        return self.page(number)

    def page(self, number):
        drawn = hashlib.blake2b(f"{self.seed} {number}".encode(), digest_size=16).digest()
        others = [int.from_bytes(drawn[at : at + 4], "big") % self.pages for at in range(0, 16, 4)]
        children = range(number * FAN_OUT + 1, min(number * FAN_OUT + FAN_OUT + 1, self.pages))
        same_host = [page for page in [number - self.hosts, number + self.hosts] if 0 <= page < self.pages]
        links = [self.link(page) for page in [*children, *same_host, *others] if not self.is_only_in_sitemap(page)]
        words = outages.words_of(number)
        anchors = "\n".join(f'<a href="{link}">{word}</a>' for link, word in zip(links, words))
        return site_server.response(f"<!doctype html><title>{words[0]}</title>\n<p>{' '.join(words)}\n{anchors}\n")


def text_of(body):
    return site_server.response(body, kind="text/plain")


class Connection(site_server.Connection):
    """The log and the site know the host of a request, and answers take time."""

    def asked(self, head):
        host = head.lower().partition(b"\r\nhost: ")[2].partition(b"\r\n")[0].partition(b":")[0]
        return host.decode("latin-1") + super().asked(head)

    def send(self, name, answer):
        seconds = self.answer.__self__.latency(name)
        asyncio.get_running_loop().call_later(seconds, self.transport.write, answer)


def site(*shape):
    # The server process has its port as the second argument after --serve.
    return Web(sys.argv[3], *shape).answer


if __name__ == "__main__":
    site_server.run(main, {"web": site}, Connection)
