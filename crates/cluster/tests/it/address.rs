//! Addresses.

use cluster::Address;

#[test]
fn an_address_is_shown_without_its_password() {
    for (address, shown) in [
        ("redis://localhost/web", "redis://localhost:6379/web"),
        (
            "redis://:p%40ss@a:1,b,[::1]:3,[fe80::2]/A-b_c.9",
            "redis://:***@a:1,b:6379,[::1]:3,[fe80::2]:6379/A-b_c.9",
        ),
        (
            "rediss://u:@h/web?db=12&ssl_ca_certs=/a%20b.pem",
            "rediss://u:***@h:6379/web",
        ),
    ] {
        let parsed: Address = address.parse().unwrap();
        assert_eq!(parsed.to_string(), shown);
        assert_eq!(format!("{parsed:?}"), shown);
    }
}

#[test]
fn a_wrong_address_is_refused_with_what_is_wrong_and_without_its_password() {
    for (address, why) in [
        ("localhost:6379/web", "does not begin with redis://"),
        ("http://localhost/web", "does not begin with redis://"),
        ("redis://localhost", "has to end with the name"),
        ("redis://localhost/", "has to end with the name"),
        ("redis://localhost/my/web", "has to end with the name"),
        ("redis:///web", "a host is missing"),
        ("redis://a,,b/web", "a host is missing"),
        ("redis://a:70000/web", "a port is not a number below 65536"),
        ("redis://secret@localhost/web", "the user has no password"),
        ("redis://:sec/ret@localhost/web", "%2F"),
        ("redis://:sec?secret@localhost/web", "%2F"),
        ("redis://:%ffsecret@localhost/web", "not UTF-8"),
        ("redis://localhost/web?db=x", "db is not a number"),
        ("redis://localhost/web?database=1", "the only options are"),
        ("redis://localhost/web?ssl_ca_certs=/a.pem", "with rediss://"),
    ] {
        let error = address.parse::<Address>().unwrap_err().to_string();
        assert!(
            error.contains(why) && error.contains("redis://[user:password@]host[:port]/NAME"),
            "{address}: {error}"
        );
        assert!(!error.contains("sec"), "{address}: {error}");
    }
}
