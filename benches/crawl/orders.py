#!/usr/bin/env python3
"""Checks that orders survive kill -9: each happened or did not, and no page is lost or fetched twice by them.

    benches/crawl/orders.py [--kills 200] [--pages 1500] [--hosts 24] [--seed 1]
    benches/crawl/orders.py --short    20 kills, for CI

The first page of a site on several hosts links to all others. Once it was read, orders are given one after the other: to the crawl while it runs and is
killed at a random moment, and between two runs. Each sets two hosts at once, drops or allows two, sets a limit of the crawl, drops or allows what matches, adds seeds, pauses, or
goes on. At the end everything is allowed.

Promises, for each crawl:

  * after each kill, what was answered holds; what was not is there as a whole or not at all;
  * at the end every page is in the output once, and those that were added are, too; the pages that were answered again are at most --concurrency per kill;
  * an order is answered within LIMIT_SECONDS, with exit code 0, unless the process was killed meanwhile.
"""

import collections
import json
import pathlib
import random
import subprocess
import sys
import threading
import time

import kill
import site_server

KILLS_PER_CRAWL = 10
CONCURRENCY = 8
LATEST_KILL = 0.8
LIMIT_SECONDS = 60
ADDED = 1_000_000
PATTERN = "[27]$"


def main():
    parser = site_server.parser(__doc__)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--hosts", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1, help="of the orders, and of the moments of the kills")
    arguments = site_server.parse(parser)
    kills = arguments.kills or (20 if arguments.short else 200)
    moments = random.Random(arguments.seed)
    print("crawl  kills  orders  unanswered  pages  refetched")
    kept = []
    for number in range(-(-kills // KILLS_PER_CRAWL)):
        with site_server.work_folder() as folder, site_server.Server(
            pathlib.Path(folder), "site", arguments.pages, arguments.hosts
        ) as server:
            broken = Case(arguments, number, moments, pathlib.Path(folder), server).check()
        for text in broken:
            print(f"    {text}", flush=True)
        kept.append(not broken)
    site_server.finish(kept, "crawls")


class Case:
    def __init__(self, arguments, number, moments, work, server):
        self.arguments, self.number, self.moments, self.work, self.server = arguments, number, moments, work, server
        self.state = work / "state"
        self.output = work / "pages.jsonl"
        # What holds for sure, and what the last order without an answer may have changed. Hosts come in pairs.
        self.holds, self.may_hold = collections.defaultdict(dict), collections.defaultdict(dict)
        self.holds["crawl"]["dropped"] = []
        self.added, self.orders, self.unanswered, self.broken = [], 0, 0, []

    def host(self, number):
        return f"h{number}.localhost"

    def command(self):
        command = [self.arguments.crawler, "--scope", "any", "--include", "^http://h[0-9]+[.]localhost:", "--allow-private-addresses"]
        command += ["--delay", "20ms", "--concurrency", CONCURRENCY, "--state", self.state, "-o", self.output]
        return [str(word) for word in [*command, kill.url_of(0, self.arguments.hosts, self.server.port)]]

    def give(self, *words):
        """Gives an order. Returns its answer; None if there is none."""
        words = [self.arguments.crawler, words[0], str(self.state), *map(str, words[1:])]
        if words[1] == "set":
            words.insert(2, "--json")
        else:
            words.append("--json")
        given = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
        return json.loads(given.stdout) if given.stdout else {"error": given.stderr}

    def order(self):
        """Chooses an order, gives it, and notes what holds from now on."""
        self.orders += 1
        pair = self.moments.randrange(self.arguments.hosts // 2)
        hosts = [self.host(2 * pair + 1), self.host(2 * pair + 2)]
        kind = self.moments.choice(["delay", "drop", "allow", "pattern", "no pattern", "crawl", "add", "pause"])
        place, change, words = {
            "delay": (pair, {"delay": 10 + self.orders}, ["set", *hosts, f"delay={10 + self.orders}ms"]),
            "drop": (pair, {"closed": True}, ["drop", *hosts]),
            "allow": (pair, {"closed": None}, ["allow", *hosts]),
            "pattern": ("crawl", {"dropped": [PATTERN]}, ["drop", "--matching", PATTERN]),
            "no pattern": ("crawl", {"dropped": []}, ["allow", "--matching", PATTERN]),
            "crawl": ("crawl", {"max_depth": 5 + self.orders}, ["set", "--max-depth", 5 + self.orders]),
            "add": ("added", {}, ["add", "--class", self.orders % 8, *self.seeds(pair)]),
            "pause": ("paused", {}, ["pause"]),
        }[kind]
        if kind == "pause":
            self.give("pause")
            self.give("unpause")
            return
        answer = self.give(*words)
        if answer["error"] is None:
            self.holds[place].update(change)
            if kind == "add":
                self.added += words[3:]
                refused = len(answer["refused"])
                if answer["queued"] + answer["seen"] + refused != 2:
                    self.broken.append(f"{words} has the answer {answer}")
                if refused:
                    self.added = self.added[:-2]
        elif "still being dropped" not in answer["error"]:
            self.unanswered += 1
            self.may_hold[place].update(change)

    def seeds(self, pair):
        urls = [kill.url_of(ADDED + self.arguments.hosts * self.orders + 2 * pair + at, self.arguments.hosts, self.server.port) for at in (0, 1)]
        return urls

    def look(self):
        """Compares what is said to hold with what holds."""
        for place in sorted(set(self.holds) | set(self.may_hold), key=str):
            if place == "added":
                continue
            names = [] if place == "crawl" else [self.host(2 * place + 1), self.host(2 * place + 2)]
            # Changes nothing.
            answer = self.give("set", *names, "max-pages=default")
            if answer["error"] is not None:
                self.broken.append(f"what holds cannot be asked for: {answer}")
                return
            found = [answer["crawl"]] if place == "crawl" else [policy for _, policy in answer["hosts"]]
            for field in set(self.holds[place]) | set(self.may_hold[place]):
                values = {json.dumps(one[field]) for one in found}
                plain = [one[field] for one in found][0]
                value = plain["nanos"] // 1_000_000 if field == "delay" and plain else plain
                allowed = [of[place].get(field) for of in (self.holds, self.may_hold) if field in of[place] or of is self.holds]
                if len(values) != 1 or value not in allowed:
                    self.broken.append(f"{names or 'the crawl'}: {field} is {values}, and not one of {allowed}")
                self.holds[place][field] = value
            self.may_hold[place].clear()

    def run(self):
        """Runs the crawler until a random moment, and gives orders meanwhile."""
        with open(self.work / "stderr", "wb") as stderr:
            process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
        timer = threading.Timer(self.moments.uniform(0.05, LATEST_KILL), process.kill)
        timer.start()
        while process.poll() is None:
            self.order()
        timer.join()
        return process.wait()

    def check(self):
        # The first page is read, and its links wait.
        process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        limit = time.monotonic() + LIMIT_SECONDS
        while not self.output.exists() or not self.output.stat().st_size:
            if time.monotonic() > limit:
                process.kill()
                return ["the first page is not read"]
            time.sleep(0.01)
        process.kill()
        process.wait()
        kills = 1
        for _ in range(KILLS_PER_CRAWL - 1):
            code = self.run()
            kills += code < 0
            self.look()
            # To the directory.
            self.order()
            if self.broken:
                return self.broken[:9]
        hosts = [self.host(number + 1) for number in range(self.arguments.hosts)]
        # Lets go on what is still being dropped.
        subprocess.run([*self.command(), "--max-time", "1s"], capture_output=True, check=False, timeout=LIMIT_SECONDS)
        for words in [["allow", *hosts, "--matching", PATTERN], ["set", *hosts, "delay=0"], ["set", "max-depth=default"]]:
            answer = self.give(*words)
            if answer["error"] is not None:
                return [f"{words[0]} at the end: {answer}"]
        last = subprocess.run(self.command(), capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
        if last.returncode != 0:
            return [f"the exit code is {last.returncode}: {last.stderr[-300:]}"]
        wanted = {kill.url_of(number, self.arguments.hosts, self.server.port) for number in range(self.arguments.pages)} | set(self.added)
        found = collections.Counter(json.loads(line)["url"] for line in self.output.read_text().splitlines())
        requests = [line.split() for line in self.server.log.read_text().splitlines()]
        answered = collections.Counter(path for _, path, status, _ in requests if int(status) == 200 and path != "/robots.txt")
        again = sum(count - 1 for count in answered.values())
        lost, twice = wanted - set(found), [url for url, count in found.items() if count > 1]
        self.broken += [f"{len(lost)} pages are lost, such as {min(lost)}"] if lost else []
        self.broken += [f"{len(twice)} pages are there twice, such as {min(twice)}"] if twice else []
        self.broken += [f"{again} pages were answered again after {kills} kills"] if again > CONCURRENCY * kills else []
        print("{:>5} {:>6} {:>7} {:>11} {:>6} {:>10}".format(self.number, kills, self.orders, self.unanswered, len(found), again), flush=True)
        return self.broken[:9]


def site(pages, hosts, port=None):
    pages, hosts, port = int(pages), int(hosts), port or int(sys.argv[3])

    def answer(path):
        host, _, name = path.strip("/").partition("/")
        if not name.isdigit() or not (int(name) < pages or int(name) >= ADDED) or host != str(int(name) % hosts + 1):
            return site_server.NOT_FOUND
        links = range(1, pages) if int(name) == 0 else []
        return site_server.response("".join(f'<a href="{kill.url_of(link, hosts, port)}">{link}</a>' for link in links))

    return answer


if __name__ == "__main__":
    site_server.run(main, {"site": site})
