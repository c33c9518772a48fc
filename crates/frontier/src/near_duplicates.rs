//! Which earlier page a page resembles.

mod clusters;

pub use clusters::{Clusters, Resemblance, ResemblanceCounts};
