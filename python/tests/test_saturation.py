"""What a sieve says of itself, and what it does beyond its capacity."""

import logging

import pytest

from crawl_sieve import SaturatedError, Sieve


def test_the_loss_is_about_what_was_lost(urls):
    seen = Sieve(10_000, on_saturation="warn", seed=1)
    lost = 20_000 - seen.update(urls(20_000))
    saturation = seen.saturation
    assert saturation.accepted == 20_000 - lost
    assert saturation.lost_at_least <= lost
    # 3.6 % by the table of the crate; five standard deviations.
    assert abs(saturation.lost - lost) < 5 * lost**0.5
    assert 600 < lost < 850
    assert abs(saturation.estimated - 20_000) < 500
    assert (saturation.level, saturation.capacity, saturation.grown_capacity) == ("2x", 10_000, None)
    assert 0.1 < saturation.rate < 0.25 and 0.5 < saturation.fill < 1
    assert (saturation.layers, saturation.consistent) == (1, True)
    assert 12_000 < saturation.memory_bytes < 14_000


def test_a_saturation_is_frozen_and_a_sentence(urls):
    seen = Sieve(1000, on_saturation="warn", seed=1)
    before = seen.saturation
    seen.update(urls(10))
    assert (before.accepted, seen.saturation.accepted) == (0, 10)
    with pytest.raises(AttributeError):
        before.accepted = 3
    assert str(seen.saturation).startswith("about 10 distinct keys for a capacity of 1000; ")
    assert repr(seen) == f"<Sieve: {seen.saturation}>"


def test_a_sieve_that_grows_loses_no_more_than_its_rate(urls):
    seen = Sieve(1000, rate=0.01, seed=1)
    lost = 20_000 - seen.update(urls(20_000))
    assert lost < 200
    saturation = seen.saturation
    assert saturation.layers > 2 and saturation.rate < 0.01
    assert saturation.capacity == 1000 and saturation.grown_capacity >= 20_000


def test_a_sieve_that_refuses_raises_and_marks_nothing(urls):
    seen = Sieve(1000, on_saturation="refuse", seed=1)
    with pytest.raises(SaturatedError, match="past its capacity") as refused:
        seen.new(iter(urls(5000)))
    new = refused.value.new
    accepted = seen.saturation.accepted
    assert 900 < accepted < 1100
    assert len(new) == accepted and set(new) <= set(urls(5000))
    for call in (seen.add, lambda key: seen.update([key])):
        # A new key that is taken for a seen one is not refused.
        key = next(key for key in urls(5000, 10_000) if key not in seen)
        with pytest.raises(SaturatedError) as refused:
            call(key)
        assert isinstance(refused.value, RuntimeError) and refused.value.new == []
        assert key not in seen
    assert seen.add(new[0]) is False
    assert seen.update(new) == 0
    assert seen.saturation.accepted == accepted


@pytest.mark.parametrize("by", ["add", "update", "new"])
def test_each_level_is_logged_once(urls, lines, by):
    seen = Sieve(1000, on_saturation="warn", seed=1)
    for url in urls(2200) + urls(2200):
        getattr(seen, by)(url if by == "add" else [url])
    assert lines() == [("INFO", "filling"), ("WARNING", "full"), ("WARNING", "1.5x"), ("WARNING", "2x")]


def test_a_record_has_the_numbers_as_attributes(urls, caplog):
    Sieve(1000, on_saturation="warn", seed=1).update(urls(1200))
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("sieve.saturation", logging.WARNING)
    assert "about 1000 distinct keys for a capacity of 1000" in record.getMessage()
    assert record.capacity == "1000" and 900 < int(record.accepted) < 1100 and float(record.lost) > 0


def test_a_level_of_the_logger_that_is_changed_later_is_obeyed(urls, lines):
    logger = logging.getLogger("sieve.saturation")
    logger.setLevel(logging.ERROR)
    Sieve(1000, on_saturation="warn", seed=1).update(urls(1200))
    assert lines() == []
    logger.setLevel(logging.WARNING)
    Sieve(1000, on_saturation="warn", seed=1).update(urls(1200))
    assert lines() == [("WARNING", "full")]


@pytest.fixture
def handler():
    """Installs a handler that calls a function."""
    logger = logging.getLogger("sieve.saturation")
    installed = []

    def install(emit):
        handler = logging.Handler()
        handler.emit = emit
        logger.addHandler(handler)
        installed.append(handler)

    yield install
    for handler in installed:
        logger.removeHandler(handler)


def test_a_handler_may_use_the_same_sieve(urls, handler):
    seen = Sieve(1000, on_saturation="warn", seed=1)
    found = []
    handler(lambda record: found.append((seen.saturation.level, seen.add(f"{record.levelno}"))))
    for url in urls(600):
        seen.add(url)
    seen.update(urls(600, 600))
    assert found == [("full", True)]


def test_a_handler_may_empty_the_list_that_is_added(urls, handler):
    keys = urls(5000)
    handler(lambda record: keys.clear())
    seen = Sieve(2000, on_saturation="warn", seed=1)
    assert 2000 < seen.update(keys) == seen.saturation.accepted < 3100


@pytest.mark.parametrize("exception", [KeyError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_what_a_handler_raises_gets_through_and_costs_no_answer(urls, handler, exception, one_by_one):
    def raises(record):
        raise exception("from the handler")

    handler(raises)
    seen = Sieve(1000, on_saturation="warn", seed=1)
    new = []
    with pytest.raises(exception, match="from the handler") as raised:
        if one_by_one:
            new.extend(url for url in urls(5000) if seen.add(url))
        else:
            seen.new(iter(urls(5000)))
    new += raised.value.new
    assert 1000 < len(new) == seen.saturation.accepted < 2100
    assert new[-1] in seen and not seen.add(new[-1])
    assert seen.add("https://example.org/")
