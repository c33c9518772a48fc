//! Connections by TLS.

use std::process::Command;

use cluster::{LinkLog, LogError};

use crate::server::{Server, connect, free_port};

#[test]
fn the_certificate_of_the_server_is_checked() {
    let server = Server::start("");
    let file = |name| server.folder.join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=redis -days 2".split(' '));
    openssl.args([
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]);
    let made = openssl.args(["-out", &certificate, "-keyout", &key]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let port = free_port();
    server.cli(&format!(
        "CONFIG SET tls-cert-file {certificate} tls-key-file {key} tls-auth-clients no tls-port {port}"
    ));
    let address = format!("rediss://127.0.0.1:{port}/web");
    let mut log = connect(&format!("{address}?ssl_ca_certs={certificate}")).unwrap();
    log.enter("id", 1, 3);
    log.say("word").unwrap();
    assert_eq!(server.cli("HGET web:id:words 1"), "word");
    for (address, why) in [
        (address.clone(), "ssl_ca_certs=FILE"),
        (
            format!("{address}?ssl_ca_certs=/missing.pem"),
            "/missing.pem: No such file",
        ),
        (format!("redis://127.0.0.1:{port}/web"), "cannot be reached"),
        (format!("rediss://{}/web", server.at()), "cannot be reached"),
    ] {
        let error = connect(&address).map(drop).unwrap_err();
        assert!(matches!(error, LogError::NotReachable { .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
    }
}
