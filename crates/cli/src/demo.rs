//! A small web site on loopback, which shows the crawler at work without the internet.
//!
//! Four hosts share one port, and differ in the `Host` header: `www`, `docs`, `blog` and `private`, all under `demo.localhost` (RFC 6761
//! section 6.3 resolves such names to loopback), or sites of their own for several processes. They have about three hundred ordinary pages, and a laboratory with the unusual
//! features of real sites. Each unusual form of a link points to a page that nothing else links to. So a crawler that does not
//! understand the form misses the page.
//!
//! The site is built from tables, which say where each link leads. So it knows, without parsing its own HTML, which pages a polite crawler
//! must find: [`DemoSite::reachable`]. Its modules are `page` (a page, and its HTML), `places` (the ordinary pages), `lab` (the unusual
//! pages), `site` and `server`.

mod lab;
mod page;
mod places;
mod server;
mod site;

pub use server::{DemoServer, serve, serve_four_sites};
pub use site::DemoSite;
