//! The demo site, which the command `crawler` shares with its tests and with the examples.
//!
//! This crate is the command. To embed a crawler, use the library [`crawler`], which has none of the command's dependencies.

#![forbid(unsafe_code)]

pub mod demo;
