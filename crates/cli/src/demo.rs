//! A small web site of our own, served on loopback: the program at work without the internet.
//!
//! Four hosts share one port and are told apart by the `Host` header: `www`, `docs`, `blog` and `private`, all under
//! `demo.localhost` (RFC 6761 section 6.3 sends such names to loopback). Between them they hold some three hundred
//! ordinary pages and a laboratory of the oddities that real sites have: every odd way to write a link leads to a
//! page that nothing else links to, so that whoever misses the way misses the page.
//!
//! The site is drawn from tables and knows by itself, without parsing its own HTML, what a polite visitor must find:
//! [`DemoSite::reachable`]. Read on in `page` (the vocabulary), `places` (the ordinary part), `lab` (the odd part),
//! `well_known` (robots.txt and the sitemap), `html` (how a page is written) and `server`.

mod html;
mod lab;
mod page;
mod places;
mod server;
mod site;
mod well_known;

pub use server::{DemoServer, RequestRecord, serve};
pub use site::DemoSite;
