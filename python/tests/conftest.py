import os

import pytest


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    """Examples save files."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def urls():
    return lambda count, start=0: [f"https://example.com/{n}" for n in range(start, start + count)]


@pytest.fixture
def lines(caplog):
    """The saturation lines, as (level, saturation_level)."""
    caplog.set_level("INFO", logger="sieve.saturation")
    return lambda: [(record.levelname, record.saturation_level) for record in caplog.records]
