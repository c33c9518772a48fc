#!/usr/bin/env python3
"""Crawls whole documentation sites with this crawler and its peers, side by side.

    benches/crawl/run.py [--sites python,javadoc] [--peers ours,wget2] [--rounds 3] [--seconds 2] [--connections 16]

The sites are Debian packages, served by nginx on loopback. Their pages are compressed beforehand, so the server takes almost no time.
`ours-output` writes a line per page, and `ours-state` has a state directory on the disk, too; `ours-links`, `ours-refused`, `ours-select`, `ours-warc`
and `ours-save` have one output each. `ours-watched` is `ours-output` with `--watch`, `--metrics-file` and `--report`, and somebody who reads /events. `guided`, `guided-output` and so on are the same crawls by the program of .ci/guided-build. All crawlers run on the same machine, one after the other, without a delay. wget2 has its best number of threads, 8. The pages of a
run are the HTML pages that nginx answered with 200. Processor time and memory are those of the crawler, as the kernel reports them.
Before the first round of a site its files are read once, so that no crawl waits for the disk. Each round begins with another peer, so that none always comes after
the slowest.
A small site takes a tenth of a second, and such times differ more from run to run: each site has `--rounds` rounds, and further ones
until the runs of the first peer have taken `--seconds` together.
The first table has the best of all rounds, the second the medians. For memory, which depends on which large pages are in flight together, the median always counts.
Below each table stands how the first peer compares with each other one, with the geometric mean of all sites at the end.

Requires Debian 12, Python 3.11 and cargo, and root if a package is missing.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
CONNECTIONS = 16
READERS = concurrent.futures.ThreadPoolExecutor()

# For each name: the package, the end of the path of its start page, and the path of that page on the site.
SITES = {
    "python": ("python3.11-doc", "/html/index.html", ""),
    "postgresql": ("postgresql-doc-15", "/html/index.html", ""),
    "libstdc++": ("libstdc++-12-doc", "/user/index.html", "index.html"),
    "javadoc": ("openjdk-17-doc", "/api/index.html", ""),
    "rust": ("rust-doc", "/html/index.html", ""),
    "git": ("git-doc", "/git.html", "git.html"),
    "apache2": ("apache2-doc", "/manual/en/index.html", "en/index.html"),
}
PACKAGES = ["nginx-light", "wget", "wget2", "httrack"]


@dataclasses.dataclass
class Setup:
    """What all rounds have in common."""

    programs: dict[str, pathlib.Path]
    connections: int = CONNECTIONS


def main():
    arguments = parse()
    sites = {name: SITES[name] for name in arguments.sites}
    install([package for package, _, _ in sites.values()] + PACKAGES)
    setup = Setup(build(arguments.peers, arguments.crawler), arguments.connections)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work, Server(pathlib.Path(work), sites) as server:
        runs = {}
        for name in sites:
            read_files(server.roots[name])
            turn, taken = 0, 0.0
            while turn < arguments.rounds or taken < arguments.seconds:
                first = turn % len(arguments.peers)
                for peer in arguments.peers[first:] + arguments.peers[:first]:
                    run = measure(peer, setup, server, name, pathlib.Path(work))
                    print(f"{name} {peer} {turn}: {run}", file=sys.stderr)
                    runs.setdefault((peer, name), []).append(run)
                taken += runs[arguments.peers[0], name][-1]["seconds"]
                turn += 1
    for name, choose in {"best": best, "medians": medians}.items():
        rows = {key: choose(rounds) for key, rounds in runs.items()}
        print(table(name, arguments.peers, list(sites), rows))


def read_files(root):
    """Reads all files below a folder, so that the system has them in memory."""
    for file in pathlib.Path(root).rglob("*"):
        if file.is_file():
            file.read_bytes()


def best(rounds):
    """Returns the best of several runs, with the median of their memory."""
    fastest = min(rounds, key=lambda run: run["seconds"] / max(run["pages"], 1))
    return {**fastest, "mib": statistics.median(run["mib"] for run in rounds)}


def medians(rounds):
    return {key: statistics.median(run[key] for run in rounds) for key in rounds[0]}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("--sites", type=names, default=["python", "postgresql", "libstdc++", "javadoc", "rust"])
    parser.add_argument("--peers", type=names, default=["ours", "wget2", "spider", "wget", "list"])
    parser.add_argument("--rounds", type=int, default=3, help="of each site, at least")
    parser.add_argument("--seconds", type=float, default=2, help="that the runs of the first peer take together on each site, at least")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="of this crawler, spider and the list")
    parser.add_argument("--crawler", help="path of the crawler; built if it is not given")
    arguments = parser.parse_args()
    peers = {*COMMANDS, *(name.replace("ours", "guided") for name in COMMANDS), "list"}
    unknown = sorted(set(arguments.peers) - peers)
    if unknown:
        parser.error(f"no peer is called {', '.join(unknown)}: choose from {', '.join(sorted(peers))}")
    return arguments


def files_of(package):
    found = subprocess.run(["dpkg", "-L", package], capture_output=True, text=True)
    return found.stdout.splitlines() if found.returncode == 0 else []


def site_root(package, marker, page):
    for line in files_of(package):
        if line.endswith(marker) and os.path.exists(line):
            return os.path.realpath(line)[: -len(page or "index.html") - 1]
    return None


def install(packages):
    sites = {site[0]: site for site in SITES.values()}

    def is_missing(package):
        return site_root(*sites[package]) is None if package in sites else not files_of(package)

    missing = [package for package in packages if is_missing(package)]
    if not missing:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = {"check": True, "env": environment, "stdout": sys.stderr}
    subprocess.run(["apt-get", "-q", "update"], **quiet)
    # Container images configure dpkg to leave out /usr/share/doc, which has the pages.
    keep = ["-o", "Dpkg::Options::=--path-include=/usr/share/doc/*"]
    command = ["apt-get", "-q", "install", "--yes", "--no-install-recommends", "--reinstall", *keep, *missing]
    subprocess.run(command, **quiet)


def copy_of(name, root):
    """Returns a copy of a site with each page plain and compressed. Debian has long pages in compressed form only."""
    if root is None:
        sys.exit(f"the package of {name} is installed, but its pages are missing")
    copy = TARGET / "crawl-sites" / name
    if copy.exists():
        return copy
    unfinished = copy.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(root, unfinished, ignore_dangling_symlinks=True)
    for command in ["gunzip --keep --force", "gzip --keep --force"]:
        pattern = "*.html.gz" if command.startswith("gunzip") else "*.html"
        find = f"find . -name '{pattern}' -print0 | xargs -0 -r -n 500 -P 2 {command}"
        subprocess.run(["sh", "-c", find], cwd=unfinished, check=True)
    unfinished.rename(copy)
    return copy


def build(peers, crawler=None):
    """Returns the programs that these peers need, by name."""
    target = TARGET
    cargo = ["cargo", "build", "--quiet"]
    if not crawler:
        dist = ["--profile", "dist", "--features", "jemalloc"]
        subprocess.run([*cargo, *dist, "--manifest-path", ROOT / "Cargo.toml"], check=True)
    # The crawlers run in another folder.
    programs = {"ours": pathlib.Path(crawler or target / "dist/crawler").resolve()}
    if any(peer.startswith("guided") for peer in peers):
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
        printed = subprocess.run([ROOT / ".ci/guided-build"], check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout
        programs["guided"] = pathlib.Path(printed.strip())
    if {"list", "spider"} & set(peers):
        manifest = HERE / "peers/Cargo.toml"
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target / "crawl-peers")}
        subprocess.run([*cargo, "--release", "--locked", "--manifest-path", manifest], check=True, env=environment)
        for name in ["fetch_list", "spider_peer"]:
            programs[name] = target / "crawl-peers/release" / name
    return programs


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Server:
    """nginx on a free port per site, with its access log."""

    marks = 0

    def __init__(self, work, sites):
        self.work = work
        # The workers run as another user.
        work.chmod(0o755)
        self.log = work / "access.log"
        self.roots, self.starts = {}, {}
        blocks = []
        for name, site in sites.items():
            if isinstance(site, pathlib.Path):
                root, page = site, "d0/page-0.html"
            else:
                package, marker, page = site
                root = copy_of(name, site_root(package, marker, page))
            port = free_port()
            self.roots[name] = root
            self.starts[name] = f"http://127.0.0.1:{port}/{page}"
            blocks.append(f"server {{ listen 127.0.0.1:{port} backlog=1024; server_name 127.0.0.1; root {root}; }}")
        (work / "nginx.conf").write_text(CONFIG.format(work=work, servers="\n".join(blocks)))

    def __enter__(self):
        command = ["nginx", "-e", self.work / "error.log", "-c", self.work / "nginx.conf", "-g", "daemon off;"]
        self.process = subprocess.Popen(command)
        # When this file exists, nginx handles signals.
        pid = self.work / "nginx.pid"
        for _ in range(100):
            if pid.exists() and pid.stat().st_size:
                return self
            time.sleep(0.1)
        sys.exit("nginx did not start")

    def forget(self):
        self.logged()
        # nginx appends to the log, so its next line comes to the beginning.
        os.truncate(self.log, 0)

    def asked(self):
        """Returns all requests since the last call of `forget`. They must have ended."""
        return [json.loads(line) for line in self.logged()]

    def logged(self):
        """Returns the lines of the log, after nginx has logged a request of our own, which comes after all others that have ended."""
        self.marks += 1
        mark = f"/mark-{self.marks}"
        with socket.socket(socket.AF_UNIX) as own:
            own.connect(str(self.work / "own.sock"))
            own.sendall(f"GET {mark} HTTP/1.0\r\n\r\n".encode())
            while own.recv(4096):
                pass
        for _ in range(1000):
            lines = self.log.read_text().splitlines()
            if any(f'"{mark}"' in line for line in lines[-100:]):
                return [line for line in lines if '"uri":"/mark-' not in line]
            time.sleep(0.01)
        sys.exit("nginx did not log a request")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


CONFIG = """
user www-data;
worker_processes 1;
pid {work}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    log_format bench escape=json '{{"uri":"$request_uri","status":$status,"type":"$sent_http_content_type","at":$msec}}';
    access_log {work}/access.log bench buffer=256k flush=50ms;
    error_log {work}/error.log;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    index index.html;
    sendfile on;
    open_file_cache max=8000;
    keepalive_timeout 65s;
    keepalive_requests 1000000;
    gzip_static on;
    server {{ listen unix:{work}/own.sock; return 204; }}
    {servers}
}}
"""


def measure(peer, setup, server, site, work):
    start = server.starts[site]
    out = work / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    if peer == "list":
        known = work / f"known-{site}.txt"
        if not known.exists():
            known.write_text(known_list(setup, start, out))
        command = [setup.programs["fetch_list"], known, str(setup.connections)]
    else:
        command = COMMANDS[peer.replace("guided", "ours")](setup, start, out)
        if peer.startswith("guided"):
            command[0] = setup.programs["guided"]
    server.forget()
    reader = None
    if "--watch" in command:
        reader = READERS.submit(look, command[command.index("--watch") + 1])
    waiter = [sys.executable, "-SE", HERE / "waited.py", *command]
    output = subprocess.run(waiter, cwd=out, stdout=subprocess.PIPE, check=True).stdout
    usage = json.loads(output)
    if reader and not reader.result():
        sys.exit(f"{peer} told nobody of its crawl of {site}")
    asked = server.asked()
    if any(one["status"] >= 500 for one in asked):
        sys.exit(f"nginx failed; its reasons: {(work / 'error.log').read_text()[-1000:]}")
    pages = [one["uri"] for one in asked if one["status"] == 200 and one["type"].startswith("text/html")]
    if not pages:
        sys.exit(f"{peer} fetched no page of {site}: {' '.join(map(str, command))}")
    return {
        "pages": len(set(pages)),
        "requests": len(asked),
        "seconds": round(usage["seconds"], 3),
        "cpu": round(usage["cpu"], 3),
        "mib": round(usage["kib"] / 1024, 1),
    }


def look(address):
    """Reads the events of a crawl from when its server is there up to the last one. Returns how many bytes there were."""
    host, port = address.split(":")
    for _ in range(500):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection((host, int(port))) as client:
            client.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return sum(map(len, iter(lambda: client.recv(1 << 16), b"")))
        time.sleep(0.01)
    return 0


def ours(setup, start, _out):
    connections = str(setup.connections)
    return [setup.programs["ours"], start, "--delay", "0", "--per-host", connections, "-qq"]


def ours_output(setup, start, out):
    return [*ours(setup, start, out), "--output", out / "pages.jsonl"]


def ours_state(setup, start, out):
    # On a disk, not in memory as all else.
    state = TARGET / "crawl-state"
    shutil.rmtree(state, ignore_errors=True)
    return [*ours_output(setup, start, out), "--state", state]


def ours_watched(setup, start, out):
    watch = ["--watch", f"127.0.0.1:{free_port()}"]
    return [*ours_output(setup, start, out), *watch, "--metrics-file", out / "crawl.prom", "--report", out / "report.html"]


def ours_with(*options):
    """Returns a crawl with one more output; names of files get the folder."""
    return lambda setup, start, out: [
        *ours(setup, start, out),
        *(out / word if word.startswith("written") else word for word in options),
    ]


def wget2(_setup, start, _out):
    # With --follow-tags it would request the names of anchors, too.
    tags = "--ignore-tags=img,link,script"
    return ["wget2", "-q", "--recursive", "--level=0", "--max-threads=8", "--no-config", "--robots=on", tags, start]


def wget(_setup, start, _out):
    return ["wget", "-q", "--recursive", "--level=inf", "--follow-tags=a,area,frame,iframe", "--compression=auto", start]


def httrack(_setup, start, _out):
    return ["httrack", start, "--quiet", "-%c1000", "-c16", "--max-rate=0", "--disable-security-limits", "-p1"]


def spider(setup, start, _out):
    return [setup.programs["spider_peer"], start, str(setup.connections)]


COMMANDS = {
    "ours": ours,
    "ours-output": ours_output,
    "ours-state": ours_state,
    "ours-watched": ours_watched,
    "ours-links": ours_with("--links", "written.jsonl"),
    "ours-refused": ours_with("--refused", "written.jsonl"),
    "ours-select": ours_with("--output", "written.jsonl", "--select", "heading=h1", "--select", "description=meta[name=description]::attr(content)"),
    "ours-warc": ours_with("--warc", "written.warc.gz"),
    "ours-save": ours_with("--save", "written"),
    "wget2": wget2,
    "wget": wget,
    "httrack": httrack,
    "spider": spider,
}


def known_list(setup, start, out):
    pages = out / "pages.jsonl"
    subprocess.run([*ours(setup, start, out), "--output", pages], check=True, stderr=subprocess.DEVNULL)
    records = (json.loads(line) for line in pages.read_text().splitlines())
    return "\n".join(record["url"] for record in records if record["status"] == 200)


def table(name, peers, sites, rows):
    lines = [f"{name}: pages/s · CPU seconds per 1 000 pages · peak MiB (pages)", ""]
    lines += ["| crawler | " + " | ".join(sites) + " |", "|---" * (len(sites) + 1) + "|"]
    for peer in peers:
        cells = []
        for site in sites:
            run = rows[peer, site]
            cells.append(f"{speed(run):.0f} · {cost(run) * 1000:.2f} · {run['mib']:.1f} ({run['pages']:.0f})")
        lines.append(f"| {peer} | " + " | ".join(cells) + " |")
    lines.append("")
    first = peers[0]
    for peer in peers[1:]:
        for what, of in [("pages/s", speed), ("CPU", cost)]:
            ratios = [of(rows[first, site]) / max(of(rows[peer, site]), 1e-9) for site in sites]
            shown = " ".join(f"{ratio:.3f}" for ratio in ratios)
            mean = math.prod(ratios) ** (1 / len(ratios))
            lines.append(f"{first} beside {peer}, {what}: {shown} ({mean:.3f})")
    return "\n".join([*lines, ""])


def speed(run):
    return run["pages"] / run["seconds"]


def cost(run):
    return run["cpu"] / max(run["pages"], 1)


if __name__ == "__main__":
    main()
