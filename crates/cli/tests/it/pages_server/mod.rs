//! A small web server for one test.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

/// Starts a server of pages, which a function makes of their paths. Returns its URL.
pub(crate) fn site_of(page: impl Fn(&str) -> Option<String> + Send + 'static) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let seed = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]);
            let body = head.split_whitespace().nth(1).and_then(&page);
            let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
            let body = body.unwrap_or_default();
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nConnection: close");
            let _ = write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}");
        }
    });
    seed
}
