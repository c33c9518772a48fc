//! A server on loopback that does what no server should, and the table of its behaviours.

#![allow(dead_code, reason = "not every test needs all of it")]

pub(crate) mod behaviours;
pub(crate) mod codings;
pub(crate) mod pages;
pub(crate) mod server;
