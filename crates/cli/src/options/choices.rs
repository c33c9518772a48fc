//! The options that have a fixed list of values.

use clap::ValueEnum;
use frontier::Reach;
use sieve::{Hashing, OnSaturation};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line of text per record.
    Text,
    /// One JSON object per record, with its fields.
    Json,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum OnSaturationArg {
    /// Drop a growing share of the new URLs; the log and the summary say at least how many.
    Warn,
    /// Add a layer: the share that is dropped stays below --false-positive-rate, and the memory grows.
    Grow,
    /// Refuse new URLs, fetch what is queued, and count the links that were refused.
    Refuse,
}

impl From<OnSaturationArg> for OnSaturation {
    fn from(policy: OnSaturationArg) -> Self {
        match policy {
            OnSaturationArg::Warn => Self::Warn,
            OnSaturationArg::Grow => Self::Grow,
            OnSaturationArg::Refuse => Self::Refuse,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum HashArg {
    /// MurmurHash3.
    Murmur3,
    /// XXH3, the fastest.
    Xxh3,
    /// SipHash-2-4: without its key, no site can craft URLs that collide.
    Hardened,
}

impl HashArg {
    pub(super) fn with(self, secret: u128) -> Hashing {
        let seed = secret as u64;
        match self {
            Self::Murmur3 => Hashing::Murmur3 { seed },
            Self::Xxh3 => Hashing::Xxh3 { seed },
            Self::Hardened => Hashing::Hardened {
                key: secret.to_le_bytes(),
            },
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum ReachArg {
    /// Links to the host of a seed, on every port.
    Host,
    /// Links to the registrable domain of a seed: from www.example.com also docs.example.com.
    Site,
    /// Links to the host and the directory of a seed: from example.com/docs/ also example.com/docs/a.
    Prefix,
    /// All links.
    Any,
}

impl From<ReachArg> for Reach {
    fn from(reach: ReachArg) -> Self {
        match reach {
            ReachArg::Host => Self::Host,
            ReachArg::Site => Self::Site,
            ReachArg::Prefix => Self::Prefix,
            ReachArg::Any => Self::Any,
        }
    }
}
