//! What the command `crawler` shares with its tests and with the examples: the web site of its demo.
//!
//! This crate is the command. Whoever embeds a crawler wants the library [`crawler`], which has none of the command's
//! dependencies.

#![forbid(unsafe_code)]

pub mod demo;
