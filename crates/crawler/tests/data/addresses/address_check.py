#!/usr/bin/env python3
"""Checks networks.json against Python's `ipaddress`, and writes the list of boundary addresses that the tests walk.

    python3 address_check.py [--random 2000000] [--seed 1] [--write]

The networks are those of IANA's special-purpose registries (IPv4 and IPv6, RFC 6890 and its updates) and of the address
space itself. "registry" is the column "Globally Reachable", null where it says "N/A" or the network is in another
registry; "public" is what the address guard is to say, of an address by the smallest network that holds it. Where we are
stricter than the registry, "stricter" says why; we are never laxer, but for what an address embeds: "embedded" means that
the IPv4 address at bit "embeds_at" decides. An interface identifier of ISATAP (RFC 5214) embeds one too, in any prefix,
and both must be public then.

The oracle is `is_global`. Where it answers otherwise for any address of a network, "python_differs" says who is right and
why; it is an error if it does not differ any more. The notes were true of Python 3.11.7.

The boundaries are the first and the last address of every network, and the one before and the one after; and every IPv4
boundary again, embedded in every way there is. boundaries.txt must be what --write would write.
"""

import argparse
import ipaddress
import json
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).parent
BITS = {4: 32, 6: 128}
NAT64, SIX_TO_FOUR, MAPPED = 0x0064FF9B << 96, 0x2002 << 112, 0xFFFF << 32
PUBLIC_PREFIX = 0x26064700 << 96


class Table:
    def __init__(self, rows):
        self.rows = rows
        self.by_length = {4: [], 6: []}
        for row in rows:
            network = ipaddress.ip_network(row["network"])
            self.by_length[network.version].append((network.prefixlen, int(network.network_address), row))
        for networks in self.by_length.values():
            networks.sort(key=lambda network: -network[0])

    def row(self, version, number):
        for length, first, row in self.by_length[version]:
            if (number ^ first) >> (BITS[version] - length) == 0:
                return row
        raise LookupError(number)

    def is_public(self, version, number):
        row = self.row(version, number)
        if row["public"] == "embedded":
            if not self.is_public(4, number >> (96 - row["embeds_at"]) & 0xFFFFFFFF):
                return False
        elif not row["public"]:
            return False
        isatap = version == 6 and number >> 32 & 0xFDFFFFFF == 0x00005EFE
        return not isatap or self.is_public(4, number & 0xFFFFFFFF)


def edges(network):
    first, last = int(network.network_address), int(network.broadcast_address)
    return [edge for edge in (first - 1, first, last, last + 1) if 0 <= edge < 1 << network.max_prefixlen]


def boundaries(rows):
    networks = [ipaddress.ip_network(row["network"]) for row in rows]
    four = sorted({edge for network in networks if network.version == 4 for edge in edges(network)})
    six = {edge for network in networks if network.version == 6 for edge in edges(network)}
    for address in four:
        six |= {address, MAPPED | address, MAPPED << 16 | address, NAT64 | address, NAT64 | 1 << 80 | address}
        six |= {SIX_TO_FOUR | address << 80, SIX_TO_FOUR | address << 80 | 1, 0x20010000 << 96 | (address ^ 0xFFFFFFFF)}
        six |= {PUBLIC_PREFIX | kind << 32 | address for kind in (0x5EFE, 0x02005EFE, 0x01005EFE)}
    return [(4, address) for address in four] + [(6, address) for address in sorted(six)]


def made_up(source, rows):
    """An address anywhere, or within or near a network of the table."""
    network = ipaddress.ip_network(source.choice(rows)["network"])
    bits = BITS[network.version]
    number = source.getrandbits(bits)
    length = max(0, network.prefixlen - source.choice([0, 0, 1, 2, bits]))
    kept = (1 << bits) - (1 << (bits - length))
    return network.version, int(network.network_address) & kept | number & ~kept


def shown(version, number):
    return str(ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number))


def oracle(version, number):
    return (ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number)).is_global


def check_rows(rows):
    wrong = []
    for row in rows:
        registry, public = row.get("registry", row["public"]), row["public"]
        if public != "embedded" and bool(registry) != public and "stricter" not in row:
            wrong.append(f"{row['network']}: the registry says otherwise, and no reason is given")
        if public is True and registry is not True:
            wrong.append(f"{row['network']}: laxer than the registry")
    return wrong


def check_oracle(table, addresses):
    """Asks both about every address; a network's note must be there if and only if they differ."""
    wrong, differing, examples = [], set(), {}
    for version, number in addresses:
        row = table.row(version, number)
        public, found = table.is_public(version, number), oracle(version, number)
        if public == found:
            continue
        isatap = version == 6 and number >> 32 & 0xFDFFFFFF == 0x00005EFE
        if "python_differs" in row:
            differing.add(row["network"])
        elif not isatap:
            examples.setdefault(row["network"], f"{shown(version, number)} is {public} by the table, {found} by Python")
    wrong += [f"{network}: {example}" for network, example in examples.items()]
    for row in table.rows:
        if "python_differs" in row and row["network"] not in differing:
            wrong.append(f"{row['network']}: Python does not differ any more")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=2_000_000, metavar="COUNT", help="so many made-up addresses (default 2000000)")
    parser.add_argument("--seed", type=int, default=1, help="what they are made up from (default 1)")
    parser.add_argument("--write", action="store_true", help="write boundaries.txt")
    arguments = parser.parse_args()
    data = json.loads((HERE / "networks.json").read_text(encoding="utf-8"))
    table = Table(data["networks"])
    wrong = check_rows(table.rows)

    edges_of_all = boundaries(table.rows)
    verdict = {True: "public", False: "closed"}
    text = "".join(f"{shown(*address)} {verdict[table.is_public(*address)]}\n" for address in edges_of_all)
    file = HERE / "boundaries.txt"
    if arguments.write:
        file.write_text(text)
    elif file.read_text() != text:
        wrong.append("boundaries.txt is out of date: run with --write")

    cases = []
    for case in data["cases"]:
        address = ipaddress.ip_address(case["address"])
        cases.append((address.version, int(address)))
        if table.is_public(*cases[-1]) != case["public"]:
            wrong.append(f"{address}: the networks say otherwise than the case")

    source = random.Random(arguments.seed)
    random_ones = (made_up(source, table.rows) for _ in range(arguments.random))
    every = edges_of_all + cases + list(random_ones)
    wrong += check_oracle(table, every)
    print("\n".join(wrong) or f"{len(edges_of_all)} boundaries, {len(cases)} cases, {arguments.random} made up: all as stated")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
