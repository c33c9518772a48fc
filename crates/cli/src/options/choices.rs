//! Options whose value is one of a few words.

use clap::ValueEnum;
use frontier::Reach;
use sieve::{Hashing, OnSaturation};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line of text.
    Text,
    /// A JSON object per line, with the key-values of the record.
    Json,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum OnSaturationArg {
    /// Go on, lose a growing share of the new URLs, and say how many in the log.
    Warn,
    /// Add a layer: the share that is lost stays below --false-positive-rate, and the memory grows.
    Grow,
    /// Take no new URLs in, finish what is queued, and say how many were left out.
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
    /// SipHash-2-4: no site can craft URLs against it without its key.
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
    Host,
    Site,
    Prefix,
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
