//! Which IP addresses may be dialled.
//!
//! A page of the public web may link, redirect or resolve to an address inside the network that the crawler runs in. Only
//! addresses that the IANA special-purpose registries call globally reachable (RFC 6890 and its updates) are dialled,
//! whatever name led to them; a seed that itself points inside opens just its own origin.

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
        // Protocol assignments, RFC 6890; documentation, RFC 5737.
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
    if let Some(v4) = embedded_v4(address) {
        return is_public_v4(v4);
    }
    let segments = address.segments();
    let special = match segments {
        // Protocol assignments, RFC 2928, but for the anycast addresses that are global by their own RFCs.
        [0x2001, 0..=0x01ff, ..] => !matches!(
            segments,
            [0x2001, 1, 0, 0, 0, 0, 0, 1..=3] | [0x2001, 3 | 0x20..=0x3f, ..]
        ),
        // Documentation, RFC 3849 and RFC 9637.
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => true,
        // Global unicast is 2000::/3, RFC 4291; all else is loopback, unique local, link-local, multicast or unassigned.
        [first, ..] => first & 0xe000 != 0x2000,
    };
    !special
}

/// The IPv4 address that a mapped (RFC 4291), NAT64 (RFC 6052) or 6to4 (RFC 3056) address stands for.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => from(high, low),
        [0x2002, high, low, ..] => from(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_inside_are_told_from_those_outside() {
        let inside = [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001:db8::1",
            "2001::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        let outside = [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001:1::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00::1",
        ];
        for text in inside {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in outside {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}
