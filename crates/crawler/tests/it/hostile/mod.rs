//! A hostile server on loopback, and the table of its behaviours.

pub(crate) mod behaviours;
pub(crate) mod codings;
pub(crate) mod pages;
pub(crate) mod server;
pub(crate) mod tls;
