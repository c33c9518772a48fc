"""Docstrings and the README: their examples run."""

import doctest
import re
from pathlib import Path

import crawl_sieve

README = Path(__file__).parent.parent / "README.md"


def documented():
    """The docstring of each public name, `load` after `save`."""
    for of in (crawl_sieve.Sieve, crawl_sieve.Saturation):
        yield of.__name__, of.__doc__
        for name in sorted(vars(of), reverse=True):
            if not name.startswith("_"):
                yield f"{of.__name__}.{name}", getattr(of, name).__doc__


def test_every_name_has_a_docstring():
    assert [name for name, text in documented() if not text] == []


def test_the_examples_in_the_docstrings_run():
    runner = doctest.DocTestRunner()
    for name, text in documented():
        example = doctest.DocTestParser().get_doctest(text, {"Sieve": crawl_sieve.Sieve}, name, None, None)
        assert example.examples or not name.startswith("Sieve"), f"{name} has no example"
        runner.run(example)
    assert runner.summarize().failed == 0


def test_the_lines_of_the_readme_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 1
    exec(blocks[0], {})
    shown = re.search(r"print\(seen.saturation\)  # (.*) …", blocks[0]).group(1)
    assert capsys.readouterr().out.startswith(shown)


def test_the_readme_is_short():
    assert len(README.read_text().split()) <= 320
