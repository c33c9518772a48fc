//! A host to look at.

use std::ops::Deref;

use crate::hosts::host::Host;

/// A resident host, or a copy of an evicted one.
#[derive(Debug)]
pub(crate) enum HostRef<'t> {
    Here(&'t Host),
    Read(Box<Host>),
}

impl Deref for HostRef<'_> {
    type Target = Host;

    fn deref(&self) -> &Host {
        match self {
            Self::Here(host) => host,
            Self::Read(host) => host,
        }
    }
}
