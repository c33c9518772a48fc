"""Threads, interpreters and memory."""

import os
import subprocess
import sys
import threading
import time

import pytest

from crawl_sieve import Sieve


def run_threads(*calls):
    errors = []

    def catching(call):
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=catching, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        join(thread)
    assert errors == []


def join(thread):
    """Fails at a deadlock, which takes no processor time, and at a loop without end, which takes much. Neither depends on the load of the machine."""
    start = last = time.process_time()
    while thread.is_alive():
        thread.join(60)
        now = time.process_time()
        assert not thread.is_alive() or (now - last > 0.01 and now - start < 120), "a deadlock"
        last = now


@pytest.fixture
def eager_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_threads_that_share_a_sieve_find_each_key_new_once(urls, eager_switches):
    seen = Sieve(1_000_000, seed=1)
    found = []

    def one_by_one():
        found.extend(url for url in urls(30_000) if seen.add(url))

    def at_once():
        found.extend(seen.new(urls(30_000)))

    def by_iterator():
        found.extend(seen.new(iter(urls(30_000))))

    run_threads(one_by_one, at_once, by_iterator, one_by_one, at_once)
    assert len(found) == len(set(found)) == seen.saturation.accepted
    assert len(found) > 29_900


def test_a_sieve_is_saved_whole_while_another_thread_adds(urls, eager_switches):
    seen = Sieve(1_000_000, on_saturation="warn", seed=1)
    is_done = threading.Event()
    # More keys only with each save, so that a slow disk does not make more of them.
    wanted = threading.Semaphore(0)
    added = []

    def save():
        try:
            for _ in range(30):
                wanted.release()
                before = len(added)
                seen.save("seen")
                # Loading counts the bits, and compares their number with that in the file.
                assert Sieve.load("seen").update(added[:before]) == 0
        finally:
            is_done.set()
            wanted.release()

    def add():
        while wanted.acquire() and not is_done.is_set():
            some = urls(5000, len(added))
            seen.update(some[:2500])
            for url in some[2500:]:
                seen.add(url)
            added.extend(some)

    run_threads(save, add)
    assert len(added) > 500


def test_threads_can_save_to_one_file():
    def saving(seen):
        return lambda: [(seen.save("seen"), Sieve.load("seen")) for _ in range(50)]

    run_threads(*(saving(Sieve(100_000 + number, seed=number)) for number in range(2)))


def test_unions_in_both_directions_do_not_wait_for_each_other(urls, eager_switches):
    one, two = (Sieve(100_000, on_saturation="warn", seed=1) for _ in range(2))

    def repeat(call):
        return lambda: [call() for _ in range(200)]

    run_threads(repeat(lambda: one | two), repeat(lambda: two | one), repeat(lambda: one.save("one")), repeat(lambda: two.save("two")))


def test_other_threads_run_while_many_keys_are_added(urls):
    seen = Sieve(1_000_000, seed=1)
    keys = urls(1000) * 4000
    times = []
    is_done = threading.Event()

    def other():
        while not is_done.is_set():
            times.append(time.perf_counter())

    def add():
        start = time.perf_counter()
        seen.update(keys)
        end = time.perf_counter()
        is_done.set()
        # Not only where the interpreter itself switches, before and after.
        tenth = (end - start) / 10
        assert any(start + 2 * tenth < at < start + 8 * tenth for at in times)

    run_threads(other, add)


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_process_that_was_forked_while_a_thread_saves_can_use_the_sieve():
    program = """
import os, threading
from crawl_sieve import Sieve
seen = Sieve(5_000_000, on_saturation="warn", seed=1)
seen.add("before")
is_done = threading.Event()
def save():
    while not is_done.is_set():
        seen.save("seen")
saving = threading.Thread(target=save)
saving.start()
for number in range(10):
    while not os.path.exists("seen"):
        pass
    child = os.fork()
    if child == 0:
        assert not seen.add("before") and seen.add("after")
        seen.save("seen of the child")
        assert "after" in Sieve.load("seen of the child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
is_done.set()
saving.join()
assert seen.add("after"), "the parent has a sieve of its own"
"""
    ended = run(program)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to itself")
@pytest.mark.parametrize("keys", ["itertools.repeat('a')", "map(str, itertools.count())", "itertools.islice(itertools.repeat('a'), 0, None, 10**6)"])
@pytest.mark.parametrize("method", ["update", "new"])
def test_an_iterator_without_end_can_be_interrupted(method, keys):
    program = f"""
import itertools, signal
from crawl_sieve import Sieve
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
seen = Sieve()
try:
    seen.{method}({keys})
except KeyboardInterrupt:
    assert seen.add("after")
"""
    ended = run(program)
    assert ended.returncode == 0, ended.stderr


def test_other_threads_run_while_an_iterator_in_c_is_slow():
    program = """
import itertools, os, threading, time
from crawl_sieve import Sieve
# Each key takes a million steps without Python code.
keys = itertools.islice(itertools.repeat("a"), 0, 2000 * 10**6, 10**6)
next(keys)
start = time.thread_time()
next(keys)
per_key = time.thread_time() - start
times, seen = [], Sieve()
threading.Thread(target=seen.update, args=[keys], daemon=True).start()
for _ in range(20):
    before = time.perf_counter()
    time.sleep(0)
    times.append(time.perf_counter() - before)
# A run of 1024 keys takes a thousand times as long.
assert sorted(times)[10] < 100 * per_key, (times, per_key)
os._exit(0)
"""
    ended = run(program)
    assert ended.returncode == 0, ended.stderr


def test_an_interpreter_without_the_gil_is_refused():
    ended = run("import sys; sys._is_gil_enabled = lambda: False; import crawl_sieve")
    assert "ImportError: crawl_sieve needs the GIL" in ended.stderr


def test_a_second_interpreter_is_refused():
    program = """
import crawl_sieve
try:
    import _interpreters as interpreters  # 3.13
    other = interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    other = interpreters.create(isolated=False)
failed = interpreters.run_string(other, '''
try:
    import crawl_sieve
except ImportError as error:
    print("refused:", error, flush=True)
''')
assert failed is None, failed
assert crawl_sieve.Sieve(1000, seed=1).add("a")
"""
    ended = run(program)
    assert ended.returncode == 0, ended.stderr
    assert "refused: crawl_sieve works in one interpreter of a process" in ended.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_million_urls_take_a_megabyte_and_a_third():
    program = """
from crawl_sieve import Sieve
def bytes_of_process():
    fields = dict(line.split(":") for line in open("/proc/self/smaps_rollup") if ":" in line[:20])
    return int(fields["Rss"].split()[0]) * 1024
def add(seen, count):
    for n in range(count):
        seen.add(f"https://example.com/a/path/of/some/length/{n:012}/page.html")
# What the code itself needs is there before, also to log.
add(Sieve(1000, on_saturation="warn", seed=1), 2000)
before = bytes_of_process()
seen = Sieve(1_000_000, on_saturation="warn", seed=1)
add(seen, 1_000_000)
print((bytes_of_process() - before) / 1_000_000)
"""
    ended = run(program)
    assert ended.returncode == 0, ended.stderr
    assert 1.2 < float(ended.stdout) < 1.35
