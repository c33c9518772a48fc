#!/usr/bin/env python3
"""Proves that bad links and dead hosts neither hold up nor end what is good, and that the log names the cause in time.

    benches/crawl/bad_hosts.py [--checks hanging,throttled,in_turn,causes,dead_hosts] [--dead-hosts 100000]
    benches/crawl/bad_hosts.py --short      75 seconds, for CI: without `throttled`, and 2 000 dead hosts

  hanging     Ten links that never answer stand before 200 good pages on the seed page. All good pages are fetched, none of
              them after the second request for a hanging link.
  throttled   One URL among 100 good pages answers 429 with `Retry-After: 86400`; --max-retry-wait is 3. All good pages are
              fetched, and the host rests once (no request for more than 2 s) before the last of them.
  in_turn     Twenty links that hang and twenty good ones, in turn. As in `hanging`.
  causes      A closed port, a name that does not exist, TLS on a port without it, a self-signed certificate: a log line names
              the host and the cause within 3 s, and the crawl ends within 40 s.
  dead_hosts  Seeds on many hosts whose port is closed. The log has fewer than 200 lines, and the summary names the cause with
              the number of hosts.

All but `dead_hosts` run at the same time: they wait more than they work. A crawl is ended as soon as its promise is decided.
Wants the command `openssl`.
"""

import concurrent.futures
import pathlib
import re
import subprocess
from urllib.parse import urlsplit

import site_server

SECONDS = 68
REST_SECONDS = 2
CAUSE_SECONDS = 3
END_SECONDS = 40
MOST_LINES = 200
SECONDS_OF_DEAD_HOSTS = 1800
# Words of a log line that are no cause: counts, URLs and the last words of a crawl in vain.
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
        # In the short version they are few, and run beside the others.
        is_last = lambda name: name == "dead_hosts" and not arguments.short
        running = [pool.submit(CHECKS[name], arguments, work) for name in names if not is_last(name)]
        held = [show(check.result()) for check in running]
        held += [show(CHECKS[name](arguments, work)) for name in names if is_last(name)]
    site_server.finish(held, "checks")


def show(check):
    """Prints what a check has measured, and says whether it holds."""
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
        (not late, f"{len(late)} good pages had to wait for the second request for a hanging link"),
    ]
    return name, measured, promises, crawl.told("ended", "failed by", "not fetched")


def crawl_until_fetched(arguments, work, server, good, *options):
    """A crawl that is ended when all good pages were answered, how many are in its output with status 200, and its seconds."""
    output = work / f"{server.port}.jsonl"

    def is_done():
        return good <= {request.path for request in server.requests() if request.status == 200}

    with site_server.Crawl(arguments.crawler, work, "--delay", 0, *options, "--output", output, server.url) as crawl:
        crawl.wait(SECONDS, until=is_done, step=0.2)
        seconds = crawl.seconds
        # What was answered last is to be written, too.
        crawl.stop(grace=5)
    return crawl, len(good & site_server.paths_in(output).keys()), seconds


# A link that throttles.


def throttled(arguments, work):
    good = {path for path in LINKS["throttled"] if path.startswith("/good")}
    with site_server.Server(work, "throttled") as server:
        crawl, fetched, seconds = crawl_until_fetched(arguments, work, server, good, "--max-retry-wait", 3)
        requests = server.requests()
    last = max((request.at for request in requests if request.path in good), default=0)
    times = [request.at for request in requests if request.at <= last]
    rests = sum(after - before > REST_SECONDS for before, after in zip(times, times[1:]))
    measured = f"{fetched} of {len(good)} good pages, {rests} rests before the last one, {seconds:.1f} s"
    promises = [
        (fetched == len(good), f"{len(good) - fetched} good pages are not fetched"),
        (rests == 1, f"the host rested {rests} times before the last good page"),
    ]
    return "throttled", measured, promises, crawl.told("ended", "failed by", "not fetched")


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
            crawls = list(pool.map(lambda seed: crawl_in_vain(arguments, work, seed[1]), seeds))
    measured, promises, notes = [], [], []
    for (what, seed, pattern), (ended, crawl) in zip(seeds, crawls):
        host, pattern = urlsplit(seed).hostname, re.compile(pattern, re.I)
        # Without the host it is no news: a library says so much by itself.
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


def crawl_in_vain(arguments, work, seed):
    with site_server.Crawl(arguments.crawler, work, "--delay", 0, "--output", work / "none.jsonl", seed) as crawl:
        ended = crawl.seconds if crawl.wait(END_SECONDS) else None
    return ended, crawl


def self_signed(work):
    """A file with a key and a certificate that nobody vouches for."""
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
    options = ["--delay", 0, "--max-hosts-per-site", 0, "--concurrency", 64, "--seeds", seeds]
    # With a file for the pages, the summary has standard output to itself.
    options += ["--output", work / "dead.jsonl"]
    with site_server.Crawl(arguments.crawler, work, *options) as crawl:
        ended, seconds = crawl.wait(limit, step=0.2), crawl.seconds
        # Also a crawl that goes on has a summary to judge.
        crawl.stop(grace=3)
    named = [int(number.replace(" ", "")) for number in re.findall(r"\bconnect\w*: *([0-9][0-9 ]*)", crawl.summary)]
    middle = [line for _, line in crawl.lines[len(crawl.lines) // 2 :][:1]]
    measured = f"{count} hosts, {len(crawl.lines)} lines, connect in the summary: {named or 'no'}, {seconds:.1f} s"
    promises = [
        (ended, f"the crawl did not end within {limit} s"),
        (len(crawl.lines) < MOST_LINES, f"the log has {len(crawl.lines)} lines, such as {middle}"),
        (count in named, f"the summary does not say that {count} could not connect"),
    ]
    return "dead_hosts", measured, promises, crawl.told("ended", "failed", "not fetched", "hosts")


def loopback(number):
    """An address of this machine for each number below sixteen millions, and none of 127.0.0.0/16."""
    return f"127.{1 + number // 65_536}.{number // 256 % 256}.{number % 256}"


# The sites.

# By site, the links of the seed page in their order.
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
