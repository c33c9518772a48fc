#!/usr/bin/env python3
"""Asks other implementations of the URL standard about cases.json, and reports where they differ from what it says.

    npm install --prefix /tmp/oracles whatwg-url          (the reference implementation; optional)
    pip install ada-url                                   (optional)
    NODE_PATH=/tmp/oracles/node_modules python3 oracle_check.py [--browser chromium] [--fuzz 100000] [--seed 1]

Needs Node.js, whose own parser is always asked; it is no part of `cargo test`. The oracles parse and serialise. What is
ours on top of the standard - no fragment, no credentials, one spelling of percent-escapes, and the rules on request - is
computed here a second time, from the oracle's serialisation, by code that shares nothing with the first.

A case with "differs" names the oracles that answer otherwise, with the reason; it is an error if one does not differ any
more. The file's notes were true of Node.js 20.20 (Ada 2.9), whatwg-url 16.0, ada-url 4.0 and Chromium 156. ("fails" is
not looked at here: it says where our own code is known to be wrong, and the tests hold it to that.)

With --fuzz, made-up URLs are put to the example `canonical_keys` (so cargo is needed) and to the oracles, the reference
implementation foremost: only where all others contradict it, it is left aside. And whatever shares a key with us must mean the same: the same host, and the same
sequence of plain characters and escaped bytes, where only letters, digits, `-`, `.`, `_` and `~` may be either (RFC 3986,
section 6.2.2.2).

"PAD" in a text stands for as many letters as its "pad" says. Exit status: 0 when everything is as stated.
"""

import argparse
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
from urllib.parse import unquote

HERE = pathlib.Path(__file__).parent
UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
PAGE = """<!doctype html><meta charset=utf-8><pre></pre><script>
const href = text => { try { return new URL(text).href; } catch { return null; } };
document.querySelector("pre").textContent = encodeURIComponent(JSON.stringify(TEXTS.map(href)));
</script>"""


def ask_node(texts):
    command = ["node", str(HERE / "parse_urls.mjs")]
    answer = subprocess.run(command, input=json.dumps(texts).encode(), capture_output=True, check=True)
    return json.loads(answer.stdout)


def ask_ada(texts):
    try:
        import ada_url
    except ImportError:
        return {}

    def href(text):
        try:
            return ada_url.URL(text).href
        except ValueError:
            return None

    return {"ada-url": [href(text) for text in texts]}


def ask_browser(browser, texts):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = pathlib.Path(folder, "page.html")
        page.write_text(PAGE.replace("TEXTS", json.dumps(texts).replace("<", "\\u003c")))
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        command += ["--virtual-time-budget=100000", "--dump-dom", page.as_uri()]
        dom = subprocess.run(command, capture_output=True, check=True, timeout=600).stdout.decode()
    return {"chromium": json.loads(unquote(re.search("<pre>(.*?)</pre>", dom, re.S)[1]))}


def ask_all(texts, browser):
    answers = ask_node(texts) | ask_ada(texts)
    if browser:
        answers |= ask_browser(browser, texts)
    return answers


def normal_escapes(text):
    """One pass of a regular expression. A stray `%`, with the hex digit that may follow it, swallows the escape behind it."""

    def replace(match):
        stray, escaped = match["stray"], match["escape"]
        if escaped is None:
            return stray
        character = chr(int(escaped[1:], 16))
        return character if not stray and UNRESERVED.fullmatch(character) else stray + escaped.upper()

    pattern = r"(?P<stray>(?:%(?![0-9A-Fa-f]{2})(?:[0-9A-Fa-f](?=%))?)?)(?P<escape>%[0-9A-Fa-f]{2})|(?P<rest>[^%]+|%)"
    return re.sub(pattern, lambda m: m["rest"] if m["rest"] else replace(m), text)


def path_of_key(path, rules):
    path = normal_escapes(path)
    if rules.get("lower_case_path"):
        path = normal_escapes(re.sub("[A-Z]", lambda letter: letter[0].lower(), path))
    if rules.get("drop_trailing_slash"):
        path = path.rstrip("/") or "/"
    return path


def query_of_key(query, rules):
    if query is None or query == "":
        return None if rules.get("drop_empty_query") else query

    def dropped(name):
        wanted = rules.get("drop_query_params", [])
        return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in wanted)

    def name(parameter):
        return parameter.partition("=")[0]

    parameters = normal_escapes(query).split("&")
    if rules.get("sort_query") or rules.get("drop_query_params"):
        parameters = [parameter for parameter in parameters if not dropped(name(parameter))]
        if rules.get("sort_query"):
            parameters.sort(key=name)
        return "&".join(parameters) or None
    return "&".join(parameters)


def host_of_key(host, rules):
    labels = host.split(".")
    if rules.get("ignore_www"):
        # The name that is left must have two labels at least, not counting the one of the root.
        while labels[0] == "www" and labels[1:2] != [""] and len(".".join(labels[1:]).rstrip(".").split(".")) > 1:
            labels.pop(0)
    return ".".join(labels)


def split(href):
    pattern = r"(https?)://(?:[^/@]*@)?(\[[^\]]*\]|[^:/]*)(:[0-9]+)?(/[^?#]*)(?:\?([^#]*))?(?:#(.*))?"
    scheme, host, port, path, query, fragment = re.fullmatch(pattern, href, re.S).groups()
    return scheme, host, port or "", path, query, fragment


def judge(href, rules):
    """What a case says: its key and its URL, or why it is refused."""
    if href is None:
        return "not_a_url"
    if not href.startswith(("http://", "https://")):
        return "scheme"
    scheme, host, port, path, query, fragment = split(href)
    if not host.strip("."):
        return "no_host"
    tail = f"#{fragment}" if fragment and rules.get("keep_fragment") else ""
    url = f"{scheme}://{host}{port}{path}" + ("" if query is None else f"?{query}") + tail
    if rules.get("ignore_scheme") and not port:
        scheme = "https"
    key = f"{scheme}://{host_of_key(host, rules)}{port}{path_of_key(path, rules)}"
    query = query_of_key(query, rules)
    return key + ("" if query is None else f"?{query}") + tail, url


def full(case):
    pad = "x" * case.get("pad", 0)
    return {name: value.replace("PAD", pad) if isinstance(value, str) else value for name, value in case.items()}


def complaint(case, found):
    """How an oracle's verdict differs from the case; nothing if it does not."""
    if "why" in case:
        return None if found == case["why"] else f"{ascii(found)[:300]} instead of {case['why']}"
    if isinstance(found, str):
        return f"refused as {found}"
    expected = (case["key"], case.get("url", found[1]))
    return None if found == expected else f"{ascii(found)[:300]} instead of {ascii(expected)[:300]}"


def check_cases(data, browser):
    cases = [full(case) for case in data["cases"] + data["refused"]]
    answers = ask_all([case["in"] for case in cases], browser)
    wrong = stated = 0
    for name, hrefs in answers.items():
        for case, href in zip(cases, hrefs, strict=True):
            difference = complaint(case, judge(href, case.get("rules", {})))
            reason = case.get("differs", {}).get(name)
            if bool(difference) == bool(reason):
                stated += bool(reason)
                continue
            wrong += 1
            print(f"- {ascii(case['in'])[:200]}, {name}: {difference or f'does not differ any more: {reason}'}")
    print(f"{len(cases)} cases, asked of {', '.join(answers)}: {stated} answers differ as stated, {wrong} are wrong")
    return wrong


def check_groups(data, browser):
    groups = [({"urls": pair}, 2) for pair in data["distinct"]] + [(group, 1) for group in data["same"]]
    wrong = 0
    for name, hrefs in ask_all([url for group, _ in groups for url in group["urls"]], browser).items():
        rest = iter(hrefs)
        for group, expected in groups:
            keys = {judge(next(rest), group.get("rules", {}))[0] for _ in group["urls"]}
            if (len(keys) != expected) != (name in group.get("differs", {})):
                wrong += 1
                print(f"- {ascii(group)}, {name}: {len(keys)} keys instead of {expected}")
    return wrong


def made_up(source):
    """A text that is mostly a URL, thick with what parsers fall over."""

    def some(alphabet, most):
        return "".join(source.choice(alphabet) for _ in range(source.randint(0, most)))

    digits = ["0", "1", "127", "255", "256", "0x", "0x7f", "017", "08", "65536", "2130706433", "%31", ".", ".", ".", "a", ":"]
    letters = ["a", "B", "xn--", "www.", ".", "-", "_", "%41", "%2e", "%C3%BC", "\u00fc", "\u00df", "\u3002", "\uff41", "*", "%", "\u00ad"]
    six = ["0", "1", "ffff", "7f00", ":", ":", "::", "1.2.3.4", "F", ".", "00001", "%"]
    path = ["/", "/", "\\", ".", "..", "%2e", "%2E", "%2f", "a", "Z", "~", "%7e", "%", "%4", "%41", "%zz", "%25", "^", "|", "{", '"', "'", "`",
            "<", " ", "\t", "\u00e9", "\U0001f600", "\u0000", "\u007f", "+", ";", "=", "&", "@", ":", "[", "]", "!", "$", "(", ")", "*", ","]
    scheme = source.choice(["http://"] * 9 + ["https://"] * 5 + ["HTTP:", "http:/", "http:\\\\", "ht\ttp://", "ftp://", "h:", "", "//"])
    user = source.choice([""] * 8 + ["u@", "u:p@", "@", "a@b@", "%40:@"])
    host = source.choice([lambda: "a.example"] * 3 + [lambda: some(digits, 5), lambda: some(letters, 5), lambda: f"[{some(six, 8)}]"])()
    port = source.choice([""] * 6 + [":", ":80", ":443", ":0080", ":8080", ":65535", ":65536", ":a"])
    tail = source.choice(["/", "/", "\\", ""]) + some(path, 8)
    tail += source.choice(["", "", "?"]) + some([*path, "?"], 5) + source.choice(["", "", "#"]) + some([*path, "#"], 2)
    return scheme + user + host + port + tail


def ours(texts):
    command = ["cargo", "run", "-q", "-p", "crawl-frontier", "--example", "canonical_keys"]
    lines = "\n".join(texts).encode()
    answer = subprocess.run(command, input=lines, capture_output=True, check=True, cwd=HERE).stdout.decode()
    found = [tuple(line.split("\t")) for line in answer.removesuffix("\n").split("\n")]
    return [None if first == "refused" else (first, second) for first, second in found]


def meaning(url):
    """What a server can tell apart: plain characters and escaped bytes, in order."""
    head, _, tail = url.partition("://")
    tokens = re.findall("%[0-9A-Fa-f]{2}|.", tail, re.S)
    plain = [chr(int(token[1:], 16)) if len(token) == 3 else "" for token in tokens]
    return head, *(one if UNRESERVED.fullmatch(one) else token.upper() if one else token for one, token in zip(plain, tokens))


def check_fuzz(count, seed, browser):
    source = random.Random(seed)
    texts = [made_up(source) for _ in range(count)]
    found, answers = ours(texts), ask_all(texts, browser)
    foremost = "whatwg-url" if "whatwg-url" in answers else "node"
    wrong = undecided = accepted = 0
    meanings = {}
    for at, text in enumerate(texts):
        verdicts = {name: judge(hrefs[at], {}) for name, hrefs in answers.items()}
        verdicts = {name: None if isinstance(verdict, str) else verdict for name, verdict in verdicts.items()}
        expected = verdicts.pop(foremost)
        accepted += found[at] is not None
        if found[at] != expected and verdicts and expected not in verdicts.values():
            undecided += 1
        elif found[at] != expected:
            wrong += 1
            print(f"- {ascii(text)}: ours {ascii(found[at])}, {foremost} {ascii(expected)}, others {ascii(verdicts)}")
        if found[at]:
            key, url = found[at]
            first = meanings.setdefault(key, url)
            if meaning(first) != meaning(url):
                wrong += 1
                print(f"- {ascii(first)} and {ascii(url)} share a key")
    print(f"{count} made up, {accepted} of them URLs: {wrong} wrong; {undecided} left aside")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", help="also ask this browser, such as chromium")
    parser.add_argument("--fuzz", type=int, default=0, metavar="COUNT", help="put so many made-up URLs to ours and to the oracles")
    parser.add_argument("--seed", type=int, default=1, help="what they are made up from (default 1)")
    arguments = parser.parse_args()
    data = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
    wrong = check_cases(data, arguments.browser) + check_groups(data, arguments.browser)
    if arguments.fuzz:
        wrong += check_fuzz(arguments.fuzz, arguments.seed, arguments.browser)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
