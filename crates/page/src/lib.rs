//! From the bytes of a response to what is on its page, without I/O: links, robots directives, text, fields, sitemap, fingerprint.
//!
//! [`read`] does all of it, as the crawler does. Each part is also there alone: [`links::extract`], [`charset::decode`],
//! [`robots::RobotsTxt`], [`sitemap::read`], [`select::select`], [`fingerprint::simhash`].
//!
//! # What it does not do
//!
//! It fetches nothing and undoes no content coding. It runs no JavaScript. It decides nothing of a crawl: whether a link is followed, or a
//! near-duplicate skipped, is up to the [`frontier`].

#![forbid(unsafe_code)]

pub mod charset;
pub mod fingerprint;
pub mod links;
pub mod media_type;
mod read;
pub mod robots;
pub mod select;
pub mod sitemap;
mod xml;

pub use read::{Content, Page, ReadOptions, read};
