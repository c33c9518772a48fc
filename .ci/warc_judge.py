"""Compare WARC files with the crawl that wrote them: `warc_judge.py PAGES.jsonl FILE.warc.gz...`"""

import json
import subprocess
import sys
from collections import Counter

from warcio.archiveiterator import ArchiveIterator


def main(pages_file, archives):
    # This checks the digests of blocks and payloads, and exits with 1 if one is wrong.
    subprocess.run([sys.executable, "-m", "warcio.cli", "check", *archives], check=True)

    kinds, payloads, referred = Counter(), {}, {}
    for archive in archives:
        with open(archive, "rb") as stream:
            for at, record in enumerate(ArchiveIterator(stream)):
                kind = record.rec_type
                kinds[kind] += 1
                assert (at == 0) == (kind == "warcinfo"), f"{archive}: record {at} is a {kind}"
                if kind == "response":
                    url = record.rec_headers.get_header("WARC-Target-URI")
                    status = int(record.http_headers.get_statuscode())
                    payloads[url, status] = len(record.content_stream().read())
                elif kind == "revisit":
                    url = record.rec_headers.get_header("WARC-Target-URI")
                    status = int(record.http_headers.get_statuscode())
                    referred[url, status] = record.rec_headers.get_header("WARC-Refers-To-Target-URI")

    assert kinds["warcinfo"] == len(archives)
    assert kinds["request"] == kinds["response"] + kinds["revisit"], kinds
    lengths = {url: length for (url, _), length in payloads.items()}
    pages = 0
    with open(pages_file) as lines:
        for page in map(json.loads, lines):
            pages += 1
            key = page["url"], page["status"]
            length = payloads[key] if key in payloads else lengths[referred[key]]
            assert length == page["bytes"], f"{key}: {length} bytes in the archive, {page['bytes']} in the crawl"
    print(f"warcio accepts {dict(kinds)} in {len(archives)} files; all {pages} pages are in them")


main(sys.argv[1], sys.argv[2:])
