#!/usr/bin/env python3
"""Crawls 10 000 hosts over TLS, a few pages of each, with up to a million URLs waiting.

    benches/crawl/broad.py [--hosts 10000] [--pages 20000] [--concurrency 128] [--rounds 3] [--crawler PATH] [--crawler PATH]...
    benches/crawl/broad.py --short        200 hosts, once

The hosts are names below localhost, at one nginx with a certificate of an authority of its own. A page has 138 KB in the median and 220 KB in the
mean, and 100 links, 30 of which lead to other hosts. Every host has the same pages. There is no delay. Several crawlers take turns.

Printed for each crawler: pages per second, processor time per page, peak memory, TLS handshakes per host, how many of them were resumed, and on how
many hosts the first page came over the connection of robots.txt. All but the memory, which is the median, are those of the round with the least
processor time. Requires Debian 12, Python 3.11,
openssl and cargo, and root if nginx is missing.
"""

import argparse
import collections
import gzip
import itertools
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import run

PORT = 28443
FILES = 400
LINKS, LINKS_ELSEWHERE = 100, 30
MEDIAN_BYTES, SIGMA, MAX_BYTES = 138_000, 0.966, 4_000_000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--crawler", action="append", help="path of a crawler; built if none is given")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--option", action="append", default=[], help="another option for the crawler, as in --option=--name=value")
    arguments = parser.parse_args()
    if arguments.short:
        arguments.hosts, arguments.pages, arguments.rounds = 200, 400, 1
    run.install(["nginx-light"])
    crawlers = arguments.crawler or [run.build(["ours"])["ours"]]
    root = made(arguments.hosts)
    runs = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, Server(pathlib.Path(folder), root) as server:
        for _ in range(arguments.rounds):
            for crawler in crawlers:
                runs[crawler].append(measure(crawler, arguments, server))
                print(f"{crawler}: {runs[crawler][-1]}", file=sys.stderr, flush=True)
    print("| crawler | hosts | pages | pages/s | CPU ms per page | peak MiB | handshakes per host | resumed | first page over the connection of robots.txt |")
    print("|---|---|---|---|---|---|---|---|---|")
    for crawler, of in runs.items():
        best = min(of, key=lambda one: one["cpu"] / one["pages"])
        cells = [crawler, best["hosts"], best["pages"], f"{best['pages'] / best['seconds']:.0f}"]
        cells += [f"{1000 * best['cpu'] / best['pages']:.3f}", f"{statistics.median(one['mib'] for one in of):.0f}"]
        cells += [f"{best['handshakes'] / best['hosts']:.2f}", f"{best['resumed'] / best['handshakes']:.0%}", f"{best['warm']:.1%}"]
        print("| " + " | ".join(map(str, cells)) + " |")


def measure(crawler, arguments, server):
    server.forget()
    command = [crawler, *OPTIONS, "--include", f"[.]{domain(0, 1)}:", "--concurrency", arguments.concurrency, "--max-pages", arguments.pages]
    command += arguments.option
    waiter = [sys.executable, "-SE", run.HERE / "waited.py", *map(str, command)]
    environment = {**os.environ, "SSL_CERT_FILE": str(server.authority)}
    usage = json.loads(subprocess.run(waiter, env=environment, stdout=subprocess.PIPE, check=True).stdout)
    asked = server.asked()
    pages = [one for one in asked if one["status"] == 200 and one["type"].startswith("text/html")]
    if not pages:
        sys.exit(f"no page was fetched: {asked[:3]}, {(server.work / 'error.log').read_text()[-1000:]}")
    connections = {one["connection"]: one["reused"] for one in asked}
    robots, first = {}, {}
    for one in asked:
        (robots if one["uri"] == "/robots.txt" else first).setdefault(one["host"], one["connection"])
    warm = sum(robots.get(host) == connection for host, connection in first.items())
    return {
        "hosts": len(robots),
        "pages": len(pages),
        "seconds": round(usage["seconds"], 2),
        "cpu": round(usage["cpu"], 2),
        "mib": round(usage["kib"] / 1024, 1),
        "handshakes": len(connections),
        "resumed": sum(reused == "r" for reused in connections.values()),
        "warm": warm / len(first),
    }


def domain(host, sites):
    """Returns the registrable domain of a host, one of so many."""
    return f"broad{host % sites or ''}.localhost"


OPTIONS = [f"https://h0.{domain(0, 1)}:{PORT}/0.html", "--scope", "any", "--set", "max-hosts-per-site=0", "--allow-private-addresses"]
OPTIONS += ["--delay", 0, "--capacity", "4M", "-qq"]


class Server(run.Server):
    def __init__(self, work, root, sites=1):
        self.work, self.log = work, work / "access.log"
        work.chmod(0o755)
        self.authority = work / "authority.pem"
        certificates(work, sites)
        server = f"""server {{ listen 127.0.0.1:{PORT} ssl backlog=4096; server_name _; root {root};
            ssl_certificate {work}/server.pem; ssl_certificate_key {work}/server.key; ssl_session_cache shared:s:20m; ssl_session_tickets on; }}"""
        config = run.CONFIG.format(work=work, servers=server)
        config = config.replace("worker_connections 1024", "worker_connections 40000")
        config = "worker_rlimit_nofile 50000;" + config.replace(
            '"uri":"$request_uri"', '"uri":"$request_uri","host":"$host","connection":"$connection","reused":"$ssl_session_reused"'
        )
        (work / "nginx.conf").write_text(config)


def certificates(work, sites):
    """Makes an authority, and a certificate of it for all hosts."""
    call = lambda *words: subprocess.run(["openssl", *map(str, words)], cwd=work, check=True, capture_output=True)
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    call("req", "-x509", *new_key, "-keyout", "authority.key", "-out", "authority.pem", "-days", 2, "-subj", "/CN=Authority of a bench")
    call("req", *new_key, "-keyout", "server.key", "-out", "server.csr", "-subj", f"/CN={domain(0, 1)}")
    names = ",".join(f"DNS:*.{domain(site, sites)}" for site in range(sites))
    (work / "names").write_text(f"subjectAltName={names}\nbasicConstraints=CA:FALSE\n")
    signer = ["-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial"]
    call("x509", "-req", "-in", "server.csr", *signer, "-out", "server.pem", "-days", 2, "-extfile", "names")


def made(hosts, sites=1):
    """Returns the folder with the pages, and makes it if it does not exist. Together, the links lead to all hosts, or to 12 000 of them."""
    root = run.TARGET / "crawl-sites" / f"broad-{hosts}-{sites}-{PORT}"
    if root.exists():
        return root
    unfinished = root.with_suffix(".unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnoprstuvw", k=draw.randrange(2, 10))) for _ in range(5000)]
    order = [draw.sample(range(hosts), hosts) for _ in range(1 + FILES * LINKS_ELSEWHERE // hosts)]
    elsewhere = iter([host for hosts_in_turn in order for host in hosts_in_turn])
    (unfinished / "robots.txt").write_text("User-agent: *\nAllow: /\n")
    for number in range(FILES):
        links = [f"{draw.randrange(FILES)}.html?page={draw.randrange(100)}" for _ in range(LINKS - LINKS_ELSEWHERE)]
        for host in itertools.islice(elsewhere, LINKS_ELSEWHERE):
            links.append(f"https://h{host}.{domain(host, sites)}:{PORT}/{draw.randrange(FILES)}.html")
        draw.shuffle(links)
        size = min(MAX_BYTES, int(draw.lognormvariate(math.log(MEDIAN_BYTES), SIGMA)))
        parts = [f"<!doctype html><title>{' '.join(draw.choices(words, k=5))}</title>\n"]
        length = 0
        while links or length < size:
            link = f"<a class='entry link' href='{links.pop()}'>{' '.join(draw.choices(words, k=3))}</a>" if links else ""
            text = " ".join(draw.choices(words, k=12))
            part = f"<div class='block block-{draw.randrange(99)}' data-id='{draw.randrange(10**6)}'>{link}<p class='text'>{text}</p></div>\n"
            # The links are spread over the page.
            share = max(1, (size - length) // (len(links) + 1) // 140) if links else 1
            part += "".join(f"<p class='text more'>{' '.join(draw.choices(words, k=14))}</p>\n" for _ in range(share - 1))
            parts.append(part)
            length += len(part)
        text = "".join(parts).encode()
        (unfinished / f"{number}.html").write_bytes(text)
        (unfinished / f"{number}.html.gz").write_bytes(gzip.compress(text, 6))
    unfinished.rename(root)
    return root


if __name__ == "__main__":
    main()
