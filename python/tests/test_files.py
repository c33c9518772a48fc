"""Saving, loading, pickling and uniting."""

import copy
import os
import pickle
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crawl_sieve import SaturatedError, Sieve

HASHES = ["murmur3", "xxh3", "siphash"]
NUMBERS = ["level", "estimated", "capacity", "grown_capacity", "accepted", "rate", "lost", "layers", "fill", "memory_bytes"]


def numbers(sieve):
    return {name: getattr(sieve.saturation, name) for name in NUMBERS}


def by_file(sieve):
    sieve.save("seen")
    return Sieve.load(Path("seen"))


def by_pickle(sieve):
    return pickle.loads(pickle.dumps(sieve))


COPIES = [by_file, by_pickle, copy.copy, copy.deepcopy]


@pytest.mark.parametrize("again", COPIES)
@pytest.mark.parametrize("hash", HASHES)
@pytest.mark.parametrize("on_saturation", ["grow", "warn"])
def test_a_copy_goes_on_as_the_sieve_would(urls, again, hash, on_saturation, lines):
    seen = Sieve(1000, on_saturation=on_saturation, hash=hash, seed=1)
    seen.update(urls(1700))
    before = len(lines())
    other = again(seen)
    assert numbers(other) == numbers(seen)
    assert other.update(urls(1700)) == 0
    assert len(lines()) == before, "no level is logged twice"
    assert other.new(urls(1000, 3000)) == seen.new(urls(1000, 3000))
    # A loss that goes on from a file is summed up in other steps.
    about = {name: pytest.approx(n, rel=1e-3) if isinstance(n, float) else n for name, n in numbers(seen).items()}
    assert numbers(other) == about
    assert lines()[before:] == [("WARNING", "2x")] * 2
    only_there = [key for key in urls(100, 5000) if other.add(key)]
    assert only_there and not all(key in seen for key in only_there), "they are two"


@pytest.mark.parametrize("again", COPIES)
def test_a_copy_of_a_sieve_that_refuses_does_so_too(urls, again):
    seen = Sieve(1000, on_saturation="refuse", hash="siphash", seed=1)
    with pytest.raises(SaturatedError):
        seen.update(urls(2000))
    with pytest.raises(SaturatedError):
        again(seen).update(urls(2000, 2000))


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size")
def test_a_file_is_replaced_as_a_whole(urls):
    import resource

    Sieve(1000, seed=1).save("seen")
    old = Path("seen").read_bytes()
    seen = Sieve(1000, seed=1)
    seen.update(urls(10))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(OSError) as failed:
            seen.save("seen")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert failed.value.filename == "seen"
    assert Path("seen").read_bytes() == old
    seen.save("seen")
    assert Path("seen").read_bytes() != old
    assert [path.name for path in Path().iterdir()] == ["seen"]


@pytest.mark.skipif(sys.platform == "win32", reason="no permissions")
def test_only_the_owner_can_read_a_random_seed():
    def mode():
        return stat.S_IMODE(Path("seen").stat().st_mode)

    random = Sieve(1000, on_saturation="warn")
    random.save("seen")
    assert mode() == 0o600
    for sieve in (random, Sieve.load("seen"), pickle.loads(pickle.dumps(random)), random | random):
        Path("seen").chmod(0o644)
        sieve.save("seen")
        assert mode() == 0o600
    known = Sieve(1000, on_saturation="warn", seed=1)
    known.save("known")
    for sieve in (known, Sieve.load("known"), pickle.loads(pickle.dumps(known)), known | known):
        Path("seen").chmod(0o640)
        sieve.save("seen")
        assert mode() == 0o640


@pytest.mark.skipif(sys.platform == "win32", reason="no such files")
def test_what_is_no_file_is_never_replaced_and_links_are_followed():
    os.mkfifo("fifo")
    Path("link").symlink_to("/dev/null")
    reader, writer = os.pipe()
    descriptors = [f"/proc/self/fd/{writer}"] if sys.platform == "linux" else []
    for path in ("/dev/null", "link", "fifo", ".", *descriptors):
        with pytest.raises(OSError, match="not a file") as failed:
            Sieve(1000, seed=1).save(path)
        assert failed.value.filename == path
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode) and stat.S_ISFIFO(os.stat("fifo").st_mode)
    Path("below").mkdir()
    Path("dangling").symlink_to("below/seen")
    for _ in range(2):
        Sieve(1000, seed=1).save("dangling")
        assert Path("dangling").is_symlink() and Path("below/seen").is_file()
        assert Sieve.load("dangling").saturation.accepted == 0


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root is two users")
def test_what_another_user_has_left_is_no_hindrance_and_a_closed_folder_is_that_error():
    for folder, owner in (("own", 65_534), ("closed", 0)):
        Path(folder).mkdir()
        os.chown(folder, owner, owner)
    Path("own/.seen.new0").touch()
    os.chmod(".", 0o755)
    os.seteuid(65_534)
    try:
        Sieve(1000, seed=1).save("own/seen")
        with pytest.raises(PermissionError):
            Sieve(1000, seed=1).save("closed/seen")
    finally:
        os.seteuid(0)
    assert Sieve.load("own/seen").saturation.accepted == 0 and Path("own/.seen.new0").exists()


def test_savers_of_one_path_leave_a_whole_file_and_no_other(urls):
    # One saves in the other process, and two threads here. A killed one has left half of a file.
    Path(".seen.new0").write_bytes(b"half of it")
    code = "from crawl_sieve import Sieve\nseen = Sieve(50_000, seed=1)\nfor _ in range(200): seen.save('seen')"
    Sieve(50_000, seed=1).save("seen")
    assert not Path(".seen.new0").exists()
    other = subprocess.Popen([sys.executable, "-c", code])
    with ThreadPoolExecutor(2) as threads:
        savers = [threads.submit(lambda: [Sieve(50_000, seed=1).save("seen") for _ in range(100)]) for _ in range(2)]
        while other.poll() is None or not all(saver.done() for saver in savers):
            Sieve.load("seen")
    assert other.returncode == 0 and all(saver.result() for saver in savers)
    assert [path.name for path in Path().iterdir()] == ["seen"]


@pytest.mark.parametrize("on_saturation", ["grow", "refuse"])
def test_a_file_that_was_cut_off_anywhere_is_an_error(on_saturation):
    Sieve(10, seed=1, on_saturation=on_saturation).save("seen")
    whole = Path("seen").read_bytes()
    for size in range(len(whole)):
        Path("seen").write_bytes(whole[:size])
        with pytest.raises(ValueError):
            Sieve.load("seen")


def test_a_file_that_is_not_there_is_that_error():
    with pytest.raises(FileNotFoundError) as missing:
        Sieve.load("nowhere")
    assert missing.value.filename == "nowhere"
    with pytest.raises(FileNotFoundError):
        Sieve(1000, seed=1).save("no/such/folder")


def test_a_damaged_file_is_an_error_that_says_so(urls):
    seen = Sieve(1000, hash="siphash", seed=1)
    seen.update(urls(100))
    seen.save("seen")
    whole = Path("seen").read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        Path("seen").write_bytes(damaged)
        with pytest.raises(ValueError, match="^seen: "):
            Sieve.load("seen")
    Path("seen").write_text("https://example.com/\n" * 10)
    with pytest.raises(ValueError, match="not the file of a filter"):
        Sieve.load("seen")


def test_the_snapshot_of_the_crate_alone_is_loaded(urls):
    """As a program in Rust saves it."""
    for on_saturation in ("grow", "warn"):
        seen = Sieve(1000, on_saturation=on_saturation, seed=1)
        seen.update(urls(1500))
        seen.save("seen")
        snapshot = Path("seen").read_bytes()[8:-40]
        Path("seen").write_bytes(snapshot + b"more")
        with pytest.raises(ValueError):
            Sieve.load("seen")
        Path("seen").write_bytes(snapshot)
        again = Sieve.load("seen")
        assert numbers(again) == numbers(seen)
        assert again.new(urls(3000)) == seen.new(urls(3000))


def test_an_equal_seed_makes_equal_sieves_and_none_a_secret_one(urls):
    def saved(**options):
        seen = Sieve(1000, on_saturation="warn", **options)
        seen.update(urls(100))
        return pickle.dumps(seen)

    for hash in HASHES:
        assert saved(hash=hash, seed=7) == saved(hash=hash, seed=7)
        assert saved(hash=hash, seed=7) != saved(hash=hash, seed=8)
        assert saved(hash=hash) != saved(hash=hash)


def test_a_union_has_the_keys_of_both_and_what_both_lost(urls):
    one, two = (Sieve(10_000, on_saturation="warn", seed=1) for _ in range(2))
    one.update(urls(7000))
    two.update(urls(9000, 5000))
    both = one | two
    assert both.update(urls(14_000)) == 0
    saturation = both.saturation
    assert abs(saturation.estimated - 14_000) < 150 and saturation.consistent
    assert saturation.accepted == pytest.approx(saturation.estimated - saturation.lost, abs=1)
    assert one.saturation.lost > 0.5 and two.saturation.lost > 5
    assert saturation.lost == pytest.approx(one.saturation.lost + two.saturation.lost, abs=0.02)
    assert one.saturation.accepted < 7001, "they are as before"
    assert (both | both).update(urls(14_000)) == 0


def test_a_union_has_the_policy_of_the_first(urls):
    one, two = (Sieve(1000, on_saturation=policy, seed=1) for policy in ("refuse", "warn"))
    two.update(urls(1500))
    with pytest.raises(SaturatedError):
        (one | two).update(urls(1000, 2000))
    assert (two | one).update(urls(1000, 2000)) > 800


def test_sieves_that_do_not_fit_together_say_why():
    def sieve(capacity=1000, **options):
        return Sieve(capacity, **{"on_saturation": "warn", "seed": 1} | options)

    for other, says in [
        (sieve(seed=2), "seed"),
        (sieve(seed=None), "seed"),
        (sieve(hash="xxh3"), "hash"),
        (sieve(capacity=5000), "number of bits"),
        (sieve(on_saturation="grow"), "sieves that grow have no union"),
    ]:
        with pytest.raises(ValueError, match=says):
            sieve() | other
    with pytest.raises(TypeError):
        sieve() | {"a"}
