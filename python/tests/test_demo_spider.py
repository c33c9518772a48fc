"""The example spider finds what the crawler of this project finds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SPIDER = Path(__file__).parent.parent / "examples" / "demo_spider.py"


@pytest.mark.skipif("CRAWLER" not in os.environ, reason="CRAWLER is the path of the command `crawler`")
def test_the_example_spider_finds_every_page_of_the_demo(tmp_path: Path) -> None:
    crawler = os.environ["CRAWLER"]
    with subprocess.Popen([crawler, "demo", "--serve", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout
            seeds = [server.stdout.readline().strip() for _ in range(4)]
            port = re.findall(r"\d+", seeds[0])[0]
            subprocess.run([crawler, *seeds, "-qq", "--delay", "0s", "-o", "expected.jsonl"], check=True)
            command = [sys.executable, "-m", "scrapy", "runspider", str(SPIDER), "-a", f"port={port}", "-s", "JOBDIR=job"]
            subprocess.run([*command, "-o", "found.jsonl", "--loglevel", "WARNING"], check=True)
        finally:
            server.terminate()
    expected = [json.loads(line) for line in Path("expected.jsonl").read_text().splitlines()]
    found = [json.loads(line) for line in Path("found.jsonl").read_text().splitlines()]
    pages = {page["url"] for page in expected if page["status"] == 200}
    assert len(pages) > 300
    assert pages - {url for page in found for url in [page["url"], *page["redirected_from"]]} == set()
