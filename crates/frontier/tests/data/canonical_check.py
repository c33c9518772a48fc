#!/usr/bin/env python3
"""Checks canonical.json against a second implementation of the default rules, which shares no code with the first.

Written from WHATWG URL (parsing of absolute special URLs) and RFC 3986, section 6.2.2, with the standard library only.
Cases with rules of their own are skipped: their meaning is ours, no standard's.

    python3 canonical_check.py      prints each difference; exit code 1 if there is any
"""

import ipaddress
import json
import pathlib
import re
import string
import sys
import unicodedata
import urllib.parse

UNRESERVED = (string.ascii_letters + string.digits + "-._~").encode()
QUERY_ESCAPES = b" \"#<>'"
PATH_ESCAPES = b" \"#<>?^`{}"
DEFAULT_PORT = {"http": "80", "https": "443"}


class Refused(Exception):
    pass


def escape(text, special):
    return "".join(
        f"%{byte:02X}" if byte < 0x20 or byte > 0x7E or byte in special else chr(byte)
        for byte in text.encode()
    )


def normal_escapes(text):
    """One pass of a regular expression. A stray `%`, with the hex digit that may follow it, swallows the escape behind it."""

    def replace(match):
        stray, escaped = match["stray"], match["escape"]
        if escaped is None:
            return stray
        byte = int(escaped[1:], 16)
        return chr(byte) if not stray and byte in UNRESERVED else stray + escaped.upper()

    pattern = r"(?P<stray>(?:%(?![0-9A-Fa-f]{2})(?:[0-9A-Fa-f](?=%))?)?)(?P<escape>%[0-9A-Fa-f]{2})|(?P<rest>[^%]+|%)"
    return re.sub(pattern, lambda m: m["rest"] if m["rest"] else replace(m), text)


def resolve_dots(path):
    out = []
    segments = path.split("/")[1:]
    for at, segment in enumerate(segments):
        last = at == len(segments) - 1
        plain = re.sub("%2e", ".", segment, flags=re.I)
        if plain == "..":
            out[-1:] = []
        elif plain != ".":
            out.append(segment)
            continue
        if last:
            out.append("")
    return "/" + "/".join(out)


def ipv4_number(part):
    if part.lower().startswith("0x"):
        return int(part[2:] or "0", 16)
    if len(part) > 1 and part.startswith("0"):
        return int(part, 8)
    return int(part, 10)


def ipv4(host):
    """The address, or None when the last label is not a number."""
    parts = host.split(".")
    if parts[-1] == "" and len(parts) > 1:
        parts.pop()
    if not re.fullmatch(r"[0-9]+|0[xX][0-9a-fA-F]*", parts[-1]):
        return None
    try:
        numbers = [ipv4_number(part) for part in parts]
    except ValueError:
        raise Refused("not_a_url") from None
    if len(numbers) > 4 or any(n > 255 for n in numbers[:-1]) or numbers[-1] >= 256 ** (5 - len(numbers)):
        raise Refused("not_a_url")
    value = numbers[-1] + sum(n * 256 ** (3 - at) for at, n in enumerate(numbers[:-1]))
    return str(ipaddress.IPv4Address(value))


def ascii_label(label):
    return label if label.isascii() else "xn--" + label.encode("punycode").decode()


def canonical_host(host):
    if host.startswith("["):
        if not host.endswith("]"):
            raise Refused("not_a_url")
        return f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
    host = urllib.parse.unquote(host)
    host = unicodedata.normalize("NFKC", host.lower())
    host = ".".join(ascii_label(label) for label in re.split("[.\u3002]", host))
    if not host or re.search(r"[\x00-\x20\x7f#%/:<>?@\[\\\]^|]", host):
        raise Refused("not_a_url")
    return ipv4(host) or host


def canonical(text):
    text = text.strip("".join(map(chr, range(0x21))))
    text = re.sub("[\t\n\r]", "", text)
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", text)
    if not match:
        raise Refused("not_a_url")
    scheme = match[1].lower()
    if scheme not in DEFAULT_PORT:
        raise Refused("scheme")
    rest = text[match.end() :].partition("#")[0]
    rest, mark, query = rest.partition("?")
    rest = rest.replace("\\", "/").lstrip("/")
    authority, slash, path = rest.partition("/")
    host, _, port = re.fullmatch(r"(\[.*\]|[^:]*|\[.*)(:([0-9]*))?", authority.rpartition("@")[2], re.S).groups()
    host = canonical_host(host)
    if not host.strip("."):
        raise Refused("no_host")
    if port and int(port) > 65535:
        raise Refused("not_a_url")
    port = str(int(port)) if port else ""
    key = f"{scheme}://{host}" + (f":{port}" if port not in ("", DEFAULT_PORT[scheme]) else "")
    key += normal_escapes(escape(resolve_dots("/" + path), PATH_ESCAPES))
    if mark:
        key += "?" + normal_escapes(escape(query, QUERY_ESCAPES))
    return key


def main():
    data = json.loads(pathlib.Path(__file__).with_name("canonical.json").read_text())
    asked = [(case["in"], case["key"]) for case in data["cases"] if "rules" not in case]
    asked += [(case["in"], case["why"]) for case in data["refused"]]
    differences = []
    for text, expected in asked:
        try:
            found = canonical(text)
        except Refused as why:
            found = str(why)
        if found != expected:
            differences.append(f"{text!r}: the file says {expected!r}, this script {found!r}")
    for pair in data["distinct"]:
        if len({canonical(text) for text in pair}) != 2:
            differences.append(f"{pair}: one key, should be two")
    for group in data["same"]:
        if "rules" not in group and len({canonical(text) for text in group["urls"]}) != 1:
            differences.append(f"{group['urls']}: several keys, should be one")
    print("\n".join(differences) or f"{len(asked)} cases agree")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
