//! Which IP addresses may be dialled.
//!
//! A page of the public web may link, redirect or resolve to an address inside the network that the crawler runs in. Only
//! addresses that the IANA special-purpose registries call globally reachable (RFC 6890 and its updates) are dialled,
//! whatever name led to them; a seed that itself points inside opens just its own origin.
//!
//! We are stricter than the registries where they say "globally reachable" of an address that the nearest box answers
//! (anycast of NAT gateways and relays), and where they say nothing: multicast, deprecated networks, and all of IPv6 that is
//! not handed out. An IPv6 address that embeds an IPv4 address (mapped, NAT64, 6to4, ISATAP) is dialled if both are public;
//! of Teredo and IPv4-compatible addresses none is. What cannot be seen from an address: a NAT64 prefix of the network's own
//! (RFC 6052, section 2.2), and a public address that a firewall or a cloud leads to the inside, such as 168.63.129.16.
//!
//! `tests/data/addresses` has the table, and a script that compares it with another implementation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Says whether an address is globally reachable, and so may be dialled without the user's word.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        // "This network", RFC 791; private use, RFC 1918; loopback, RFC 1122.
        [0 | 10 | 127, ..] => true,
        // Shared address space of carriers, RFC 6598.
        [100, 64..=127, ..] => true,
        // Link-local, RFC 3927: cloud metadata services live here.
        [169, 254, ..] => true,
        [172, 16..=31, ..] => true,
        // Protocol assignments, RFC 6890, with two anycast addresses of the nearest gateway; documentation, RFC 5737.
        [192, 0, 0 | 2, _] => true,
        // The 6to4 relay anycast, deprecated by RFC 7526.
        [192, 88, 99, _] => true,
        [192, 168, ..] => true,
        // Benchmarking, RFC 2544.
        [198, 18 | 19, ..] => true,
        [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Multicast, RFC 5771; reserved and broadcast, RFC 1112.
        [224..=255, ..] => true,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let is_open = match embedded_v4(address) {
        Some(v4) => is_public_v4(v4),
        None => is_public_unicast(address),
    };
    is_open && isatap_v4(address).is_none_or(is_public_v4)
}

/// Judges what embeds no IPv4 address.
fn is_public_unicast(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Protocol assignments, RFC 2928: multicast tunnelling, RFC 7450; AS112, RFC 7535; ORCHIDv2, RFC 7343; drones, RFC 9374.
        // Not 2001:1::1 to 2001:1::3, which the nearest gateway, relay or registrar answers.
        [0x2001, low @ 0..=0x01ff, third, ..] => matches!((low, third), (3 | 0x20..=0x3f, _) | (4, 0x0112)),
        // Documentation, RFC 3849 and RFC 9637.
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        // Global unicast is 2000::/3, RFC 4291; all else is loopback, unique local, link-local, multicast or unassigned.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// The IPv4 address that a mapped (RFC 4291), NAT64 (RFC 6052) or 6to4 (RFC 3056) address stands for.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

/// The IPv4 address in an interface identifier of ISATAP (RFC 5214, section 6.1), with or without the universal bit.
fn isatap_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [_, _, _, _, 0 | 0x0200, 0x5efe, high, low] => Some(v4(high, low)),
        _ => None,
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}
