//! What the tests of this folder and those inside of the library share. Beside it lie the modules of the library that only tests and fuzz
//! targets build: `memory_store.rs`, `simulation.rs` and `fuzzing.rs`.

pub(crate) mod calls;
pub(crate) mod common;
pub(crate) mod pair;
pub(crate) mod seen_sets;
pub(crate) mod settlements;

use super::frontier;
