//! Atomics, which the model checker replaces by its own.

#[cfg(not(loom))]
pub(crate) use std::{hint::spin_loop, sync::atomic::AtomicU64, sync::atomic::Ordering};

#[cfg(loom)]
pub(crate) use loom::{hint::spin_loop, sync::atomic::AtomicU64, sync::atomic::Ordering};
