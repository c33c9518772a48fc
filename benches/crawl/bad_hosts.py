#!/usr/bin/env python3
"""Checks that bad links and dead hosts do not delay other pages, and that the log names the cause in time.

    benches/crawl/bad_hosts.py [--checks hanging,throttled,in_turn,causes,dead_hosts] [--dead-hosts 100000]
    benches/crawl/bad_hosts.py --short      75 seconds, for CI: without `throttled`, and 2 000 dead hosts

  hanging     On the seed page, ten links that never answer are before 200 good pages. All good pages are fetched before the
              second request for a hanging link.
  throttled   One URL among 100 good pages answers 429 with `Retry-After: 86400`; the setting max-retry-wait is 3. All good pages are
              fetched, with one pause (no request for more than 2 s) before the last of them.
  in_turn     Twenty hanging links and twenty good ones, in turn. The promise is that of `hanging`.
  causes      A closed port, an unknown name, TLS on a plain port, a self-signed certificate: a log line names
              the host and the cause within 3 s, and the crawl ends within 40 s.
  dead_hosts  Seeds on many hosts whose port is closed. The log has fewer than 200 lines, and the summary names the cause with
              the number of hosts.

All checks except `dead_hosts` run at the same time, because they mostly wait. A crawl is stopped when its result is known.
Requires the command `openssl`.
"""

import concurrent.futures
import pathlib
import re
import subprocess
from urllib.parse import urlsplit

import site_server

SECONDS = 68
PAUSE_SECONDS = 2
CAUSE_SECONDS = 3
END_SECONDS = 40
MAX_LINES = 200
SECONDS_OF_DEAD_HOSTS = 1800
# Parts of a log line that are not a cause: counts, URLs and the last error of a crawl that fetched nothing.
NO_CAUSE = re.compile(r"\S+://\S*|no-such-name\.invalid|127\.0\.0\.1\S*|\d+ links refused|every seed was refused", re.I)


def main():
    parser = site_server.parser(__doc__)
    parser.add_argument("--checks", type=lambda text: text.split(","))
    parser.add_argument("--dead-hosts", type=int)
    arguments = site_server.parse(parser)
    names = arguments.checks or [name for name in CHECKS if not (arguments.short and name == "throttled")]
    if unknown := set(names) - set(CHECKS):
        parser.error(f"no such checks: {', '.join(unknown)}")
    arguments.dead_hosts = arguments.dead_hosts or (2_000 if arguments.short else 100_000)
    with site_server.work_folder() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        work = pathlib.Path(folder)
        # The short version has few dead hosts, so this check runs with the others.
        is_last = lambda name: name == "dead_hosts" and not arguments.short
        running = [pool.submit(CHECKS[name], arguments, work) for name in names if not is_last(name)]
        held = [show(check.result()) for check in running]
        held += [show(CHECKS[name](arguments, work)) for name in names if is_last(name)]
    site_server.finish(held, "checks")


def show(check):
    """Prints the result of a check, and returns whether its promises hold."""
    name, measured, promises, notes = check
    broken = [text for is_kept, text in promises if not is_kept]
    print(f"{name}: {measured}: {'broken' if broken else 'held'}")
    for text in broken + (notes if broken or name == "dead_hosts" else []):
        print(f"    {text}", flush=True)
    return not broken


# Links that hang.


def hanging(arguments, work):
    return good_beside_hanging(arguments, work, "hanging", 2)


def in_turn(arguments, work):
    return good_beside_hanging(arguments, work, "in_turn", 1)


def good_beside_hanging(arguments, work, name, timeout):
    good = {path for path in LINKS[name] if path.startswith("/good")}
    with site_server.Server(work, name) as server:
        crawl, fetched, seconds = crawl_until_fetched(arguments, work, server, good, "--timeout", timeout)
        requests = server.requests()
    asked, second = set(), None
    for request in requests:
        if request.path.startswith("/hang"):
            if request.path in asked and second is None:
                second = request.at
            asked.add(request.path)
    late = [request for request in requests if request.path in good and second and request.at > second]
    late_ones = f"{len(late)} after a second request for a hanging link"
    measured = f"{fetched} of {len(good)} good pages, {late_ones}, {seconds:.1f} s"
    promises = [
        (fetched == len(good), f"{len(good) - fetched} good pages are not fetched"),
        (not late, f"{len(late)} good pages were fetched after the second request for a hanging link"),
    ]
    return name, measured, promises, crawl.summary_rows("ended", "failed by", "not fetched")


def crawl_until_fetched(arguments, work, server, good, *options):
    """Crawls until all good pages are answered. Returns the crawl, the number of good pages in its output, and its time in seconds."""
    output = work / f"{server.port}.jsonl"

    def is_done():
        return good <= {request.path for request in server.requests() if request.status == 200}

    with site_server.Crawl(arguments.crawler, work, "--delay", 0, *options, "--output", output, server.url) as crawl:
        crawl.wait(SECONDS, until=is_done, step=0.2)
        seconds = crawl.seconds
        # The crawl ends normally, so that it writes the last page, too.
        crawl.stop(grace=5)
    return crawl, len(good & site_server.paths_in(output).keys()), seconds


# A link that throttles.


def throttled(arguments, work):
    good = {path for path in LINKS["throttled"] if path.startswith("/good")}
    with site_server.Server(work, "throttled") as server:
        crawl, fetched, seconds = crawl_until_fetched(arguments, work, server, good, "--set", "max-retry-wait=3")
        requests = server.requests()
    last = max((request.at for request in requests if request.path in good), default=0)
    times = [request.at for request in requests if request.at <= last]
    pauses = sum(after - before > PAUSE_SECONDS for before, after in zip(times, times[1:]))
    measured = f"{fetched} of {len(good)} good pages, {pauses} pauses before the last one, {seconds:.1f} s"
    promises = [
        (fetched == len(good), f"{len(good) - fetched} good pages are not fetched"),
        (pauses == 1, f"the host had {pauses} pauses before the last good page"),
    ]
    return "throttled", measured, promises, crawl.summary_rows("ended", "failed by", "not fetched")


# Causes that the log names.


def causes(arguments, work):
    certificate = self_signed(work)
    with site_server.Server(work, "plain") as plain, site_server.Server(work, "plain", certificate=certificate) as secret:
        seeds = [
            ("closed port", "http://127.0.0.1:1/", r"refused"),
            ("no such name", "http://no-such-name.invalid/", r"resolv|\bnames?\b"),
            ("TLS on a plain port", plain.url.replace("http:", "https:"), r"\bTLS\b|\bsecure\b"),
            ("self-signed certificate", secret.url, r"certificate"),
        ]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            crawls = list(pool.map(lambda seed: crawl_without_pages(arguments, work, *seed[:2]), seeds))
    measured, promises, notes = [], [], []
    for (what, seed, pattern), (ended, crawl) in zip(seeds, crawls):
        host, pattern = urlsplit(seed).hostname, re.compile(pattern, re.I)
        # Lines of libraries lack the host, so they do not count.
        lines = [(after, line) for after, line in crawl.lines if host in line]
        naming = [(after, line) for after, line in lines if pattern.search(NO_CAUSE.sub("", line))]
        after = naming[0][0] if naming else None
        named = f"named after {after:.1f} s" if naming else "not named"
        is_over = f"over after {ended:.1f} s" if ended else f"not over after {END_SECONDS} s"
        measured.append(f"{what} {named}, {is_over}")
        missing = f"{what}: no line of the first {CAUSE_SECONDS} s names {host} and matches {pattern.pattern!r}"
        promises.append((naming and after <= CAUSE_SECONDS, missing))
        promises.append((ended, f"{what}: the crawl did not end within {END_SECONDS} s"))
        notes += [f"{what}: {line}" for _, line in naming[:1]]
    return "causes", "; ".join(measured), promises, notes


def crawl_without_pages(arguments, work, name, seed):
    output = work / f"{name.replace(' ', '-')}.jsonl"
    with site_server.Crawl(arguments.crawler, work, "--delay", 0, "--output", output, seed) as crawl:
        ended = crawl.seconds if crawl.wait(END_SECONDS) else None
    return ended, crawl


def self_signed(work):
    """Returns a file with a key and a self-signed certificate."""
    both = work / "self-signed.pem"
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names]
    subprocess.run([*make, "-keyout", both, "-out", work / "certificate.pem"], check=True, capture_output=True)
    both.write_text(both.read_text() + (work / "certificate.pem").read_text())
    return both


# Hosts that are dead.


def dead_hosts(arguments, work):
    seeds, count = work / "seeds.txt", arguments.dead_hosts
    seeds.write_text("".join(f"http://{loopback(host)}:1/\n" for host in range(count)))
    limit = SECONDS if arguments.short else SECONDS_OF_DEAD_HOSTS
    options = ["--delay", 0, "--set", "max-hosts-per-site=0", "--concurrency", 64, "--seeds", seeds]
    # With a file for the pages, only the summary goes to standard output.
    options += ["--output", work / "dead.jsonl"]
    with site_server.Crawl(arguments.crawler, work, *options) as crawl:
        ended, seconds = crawl.wait(limit, step=0.2), crawl.seconds
        # A crawl that did not end writes a summary when it is stopped.
        crawl.stop(grace=3)
    named = [int(number.replace(" ", "")) for number in re.findall(r"\bconnect\w*: *([0-9][0-9 ]*)", crawl.summary)]
    middle = [line for _, line in crawl.lines[len(crawl.lines) // 2 :][:1]]
    measured = f"{count} hosts, {len(crawl.lines)} lines, connect in the summary: {named or 'no'}, {seconds:.1f} s"
    promises = [
        (ended, f"the crawl did not end within {limit} s"),
        (len(crawl.lines) < MAX_LINES, f"the log has {len(crawl.lines)} lines, such as {middle}"),
        (count in named, f"the summary does not count {count} failed connections"),
    ]
    return "dead_hosts", measured, promises, crawl.summary_rows("ended", "failed", "not fetched", "hosts")


def loopback(number):
    """Returns a different loopback address for each number below 16 million, none of them in 127.0.0.0/16."""
    return f"127.{1 + number // 65_536}.{number // 256 % 256}.{number % 256}"


# The sites.

# The links of each site's seed page, in order.
LINKS = {
    "hanging": [f"/hang/{page}" for page in range(10)] + [f"/good/{page}" for page in range(200)],
    "throttled": [f"/good/{page}" for page in range(50)] + ["/throttled"] + [f"/good/{page}" for page in range(50, 100)],
    "in_turn": [f"/{kind}/{page}" for page in range(20) for kind in ["hang", "good"]],
    "plain": [],
}


def site(name):
    links = LINKS[name]
    anchors = "\n".join(f'<a href="{path}">{path}</a>' for path in links)
    seed = site_server.response(f"<!doctype html><title>Seed</title><p>Some links.\n{anchors}\n")
    wait = site_server.response("", status="429 Too Many Requests", headers=["Retry-After: 86400"])

    def answer(path):
        if path == "/":
            return seed
        if path.startswith("/hang/"):
            return site_server.SILENCE
        if path == "/throttled":
            return wait
        if path in links:
            return site_server.response(f"<!doctype html><title>{path}</title><p>A good page.\n")
        return site_server.NOT_FOUND

    return answer


CHECKS = {"hanging": hanging, "throttled": throttled, "in_turn": in_turn, "causes": causes, "dead_hosts": dead_hosts}


if __name__ == "__main__":
    site_server.run(main, {name: lambda name=name: site(name) for name in LINKS})
