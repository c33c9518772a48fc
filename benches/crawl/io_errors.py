#!/usr/bin/env python3
"""Checks that a crawl with --state survives an I/O error of the system: the n-th call of a kind fails, for every n. Needs strace.

    benches/crawl/io_errors.py [--pages 20] [--hosts 2]
    benches/crawl/io_errors.py --short        the calls while a directory is made and a page is crawled, for CI

A small site is crawled with all outputs, again and again from the beginning. In each crawl, a call on the database or on an output fails: a write,
read, sync, rename, open, or change of length, the n-th of its kind in each thread. kill.py --io-errors chooses calls at random, in long crawls.

Promises, for each call:

  * the run ends with exit code 1 and a message, or as without the error. Denied access is a 2, and so may a failed read be, which SQLite
    takes for damage;
  * the same command again ends with exit code 0, and every line of every output is there once.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import zlib

import kill
import site_server

# More than long crawls meet often.
CALLS = [
    *kill.IO_ERRORS,
    ("openat", "EIO", False),
    ("fdatasync,fsync", "EIO", True),
    ("ftruncate", "EIO", True),
    ("openat", "EACCES", True),
]
LIMIT_SECONDS = 60
COLUMNS = "{:>16} {:>7} {:>7} {:>7} {:>7}"


def main():
    parser = site_server.parser(__doc__)
    parser.add_argument("--pages", type=int)
    parser.add_argument("--hosts", type=int, default=2)
    arguments = site_server.parse(parser)
    arguments.pages = arguments.pages or (1 if arguments.short else 20)
    print(COLUMNS.format("call", "error", "for", "met", "broken"))
    with site_server.work_folder() as folder:
        work = pathlib.Path(folder)
        with site_server.Server(work, "site", arguments.pages, arguments.hosts) as server:
            command = [arguments.crawler, "--scope", "any", "--include", "^http://h[0-9]+[.]localhost:"]
            command += ["--allow-private-addresses", "--delay", 0]
            seed = kill.url_of(0, arguments.hosts, server.port)
            expected = kill.Files(work / "expected", False, None)
            subprocess.run(words([*command, *expected.options, seed]), check=True, capture_output=True, timeout=LIMIT_SECONDS)
            kept = [fails_well(work, command, seed, expected.keys(), *call) for call in CALLS]
    site_server.finish(kept, "kinds of calls")


def words(command):
    return [str(word) for word in command]


def fails_well(work, command, seed, wanted, calls, error, is_output):
    """Lets the first call of a kind fail in each thread, then the second, until no thread has so many. Returns whether all promises hold."""
    met, broken = 0, []
    while True:
        home = work / "crawl"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        files, state, trace = kill.Files(home / "files", False, None), home / "state", home / "trace"
        crawl = words([*command, "--state", state, *files.options, seed])
        injection = ["-e", f"trace={calls}", "-e", f"inject={calls}:error={error}:when={met + 1}"]
        paths = outputs(files) if is_output else database(state)
        only = [word for path in paths for word in ("-P", str(path))]
        first = run(["strace", "-f", "--seccomp-bpf", "-qqq", "-o", str(trace), *only, *injection, *crawl])
        if "(INJECTED)" not in trace.read_text():
            break
        met += 1
        codes = (0, 1, 2) if calls == "pread64" or error == "EACCES" else (0, 1)
        if first.returncode not in codes or first.returncode and b"crawler: " not in first.stderr:
            broken.append((met, f"exit code {first.returncode}: {last_line(first)}"))
        again = run(crawl)
        if again.returncode != 0:
            broken.append((met, f"again: exit code {again.returncode}: {last_line(again)}"))
        elif (found := keys(files)) != wanted:
            broken.append((met, f"again: {found} instead of {wanted}"))
    print(COLUMNS.format(calls, error, "output" if is_output else "state", met, len(broken)), flush=True)
    for number, text in broken:
        print(f"    call {number}: {text}", flush=True)
    # A kind that is never met would prove nothing.
    return met > 0 and not broken


def database(state):
    return [state, *(state / f"frontier.sqlite{ending}" for ending in ["", "-wal", ".new", ".new-journal", ".new-wal"])]


def outputs(files):
    return [files.pages, files.links, files.refused, files.archive]


def run(command):
    """Runs a command to its end. One that takes too long is killed with its children, and its exit code is that of a kill."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        output = process.communicate(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, *output)


def last_line(result):
    return (result.stderr.decode(errors="replace").splitlines() or [""])[-1]


def keys(files):
    try:
        return files.keys()
    except (ValueError, EOFError, OSError, KeyError, zlib.error) as error:
        return error


if __name__ == "__main__":
    site_server.run(main, {"site": kill.site})
