//! Closed segments as they are stored: each as one string of bytes.

use std::collections::VecDeque;

use serde::{Deserialize as _, Deserializer, Serializer};
use serde_bytes::{ByteBuf, Bytes};

type Segments = Option<Box<VecDeque<Box<[u8]>>>>;

pub(super) fn serialize<S: Serializer>(segments: &Segments, serializer: S) -> Result<S::Ok, S::Error> {
    let segments = segments.iter().flat_map(|segments| segments.iter());
    let segments: Vec<&Bytes> = segments.map(|segment| Bytes::new(segment)).collect();
    serializer.collect_seq(segments)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Segments, D::Error> {
    let segments = Vec::<ByteBuf>::deserialize(deserializer)?;
    let segments: VecDeque<Box<[u8]>> = segments
        .into_iter()
        .map(|one| one.into_vec().into_boxed_slice())
        .collect();
    Ok((!segments.is_empty()).then(|| Box::new(segments)))
}
