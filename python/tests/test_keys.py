"""Adding and finding keys."""

import gc

import pytest

from crawl_sieve import Sieve

HASHES = ["murmur3", "xxh3", "siphash"]
POLICIES = ["grow", "warn", "refuse"]


@pytest.mark.parametrize("hash", HASHES)
@pytest.mark.parametrize("on_saturation", POLICIES)
def test_a_key_is_new_once(hash, on_saturation):
    seen = Sieve(1000, on_saturation=on_saturation, hash=hash, seed=1)
    assert "a" not in seen
    assert seen.add("a") is True
    assert seen.add("a") is False
    assert "a" in seen and "b" not in seen
    assert seen.saturation.accepted == 1


def test_a_str_is_its_utf8():
    seen = Sieve(1000, seed=1)
    seen.add("https://example.com/ü€𝄞")
    assert "https://example.com/ü€𝄞".encode() in seen
    assert not seen.add("https://example.com/ü€𝄞".encode())
    assert seen.add("") and not seen.add(b"")


def test_a_type_derived_from_str_or_bytes_is_a_key():
    class Url(str):
        pass

    class Raw(bytes):
        pass

    seen = Sieve(1000, seed=1)
    assert seen.add(Url("a")) and not seen.add("a")
    assert seen.add(Raw(b"b")) and seen.new([Raw(b"b"), Url("c")]) == ["c"]


@pytest.mark.parametrize("key", [1, None, bytearray(b"a"), ("a",)])
def test_another_type_is_an_error_that_says_so(key):
    seen = Sieve(1000, seed=1)
    says = f"a key is a str or bytes, not {type(key).__name__}"
    for call in (seen.add, seen.__contains__, lambda key: seen.update([key]), lambda key: seen.new((key,))):
        with pytest.raises(TypeError, match=says):
            call(key)
    assert seen.saturation.accepted == 0


def test_a_lone_surrogate_is_an_error_that_says_so():
    seen = Sieve(1000, seed=1)
    for call in (seen.add, seen.__contains__, lambda key: seen.update([key]), lambda key: seen.new(iter([key]))):
        with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
            call("a\ud800")
    assert seen.saturation.accepted == 0


@pytest.mark.parametrize("given", [list, tuple, iter, lambda keys: dict.fromkeys(keys), lambda keys: (key for key in keys)])
@pytest.mark.parametrize("on_saturation", POLICIES)
def test_many_keys_are_added_as_one_by_one(urls, given, on_saturation):
    keys = [key for url in urls(20_000) for key in (url, url[:-1].encode())]
    one_by_one = Sieve(100_000, on_saturation=on_saturation, seed=3)
    expected = [key for key in dict.fromkeys(keys) if one_by_one.add(key)]
    by_new, by_update = (Sieve(100_000, on_saturation=on_saturation, seed=3) for _ in range(2))
    new = by_new.new(given(keys))
    assert new == expected
    assert by_update.update(given(keys)) == len(expected)
    assert by_new.saturation.accepted == by_update.saturation.accepted == len(expected)
    assert by_new.update(keys) == 0


def test_new_returns_the_same_objects():
    keys = ["".join(["https://example.com/", str(n)]) for n in range(5)]
    new = Sieve(1000, seed=1).new(keys + keys)
    assert [id(key) for key in new] == [id(key) for key in keys]


def test_what_came_before_an_error_is_added(urls):
    def broken():
        yield from urls(1500)
        raise KeyError("broken")

    seen = Sieve(10_000, seed=1)
    with pytest.raises(KeyError, match="broken"):
        seen.update(broken())
    assert seen.saturation.accepted == 1500
    with pytest.raises(TypeError, match="not int"):
        seen.update(urls(1500, 1500) + [3] + urls(10, 5000))
    assert seen.saturation.accepted == 3000
    with pytest.raises(UnicodeEncodeError) as failed:
        seen.new(urls(10, 3000) + ["\ud800"] + urls(10, 5000))
    assert failed.value.new == urls(10, 3000)

    class Closed(Exception):
        def __setattr__(self, name, value):
            raise AttributeError(name)

    def closed():
        yield "https://example.com/"
        raise Closed

    with pytest.raises(Closed):
        Sieve(1000).new(closed())
    assert seen.saturation.accepted == 3010
    with pytest.raises(TypeError, match="not iterable"):
        seen.update(3)


@pytest.mark.parametrize("key", ["https://example.com/", b"https://example.com/"])
def test_one_key_is_not_an_iterable_of_keys(key):
    seen = Sieve(1000, seed=1)
    for add in (seen.update, seen.new):
        with pytest.raises(TypeError, match="use `add`, or put it in a list"):
            add(key)
    assert seen.saturation.accepted == 0


def test_an_iterable_may_use_the_same_sieve(urls):
    seen = Sieve(10_000, seed=1)

    def links():
        for url in urls(3000):
            seen.add(url + "/by itself")
            yield url

    assert len(seen.new(links())) == 3000
    assert seen.saturation.accepted == 6000


def test_an_error_in_a_list_may_run_code_that_uses_the_same_sieve(urls):
    """Making the error may start the garbage collector, which runs this code."""
    seen = Sieve(10_000, seed=1)
    keys = urls(1000) + ["\ud800"] + urls(1000)
    used = []

    class Cycle:
        def __init__(self):
            self.itself = self

        def __del__(self):
            used.append(seen.add("from the collector"))
            keys.clear()

    Cycle()
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        seen.update(keys)
    except UnicodeEncodeError:
        is_raised = True
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()
    assert is_raised and gc.isenabled()
    assert used == [True] and keys == []
    assert seen.saturation.accepted == 1001


def test_a_list_that_grows_is_read_to_its_end(urls):
    class Growing(list):
        def __iter__(self):
            yield "from the iterator"

    assert Sieve(1000, seed=1).new(Growing(["from the list"])) == ["from the iterator"]


def test_wrong_options_are_errors_that_say_so():
    for options, says in [
        ({"capacity": 0}, "capacity is 0"),
        ({"rate": 0.0}, "not between 0 and 1"),
        ({"on_saturation": "drop"}, '"grow", "warn" or "refuse", not "drop"'),
        ({"hash": "md5"}, '"murmur3", "xxh3" or "siphash", not "md5"'),
        ({"seed": 2**64}, "below 2"),
    ]:
        with pytest.raises(ValueError, match=says):
            Sieve(**options)
    assert Sieve(hash="siphash", seed=2**128 - 1).add("a")
    with pytest.raises(OverflowError):
        Sieve(seed=-1)
    with pytest.raises(TypeError):
        Sieve(1000, 0.01)
