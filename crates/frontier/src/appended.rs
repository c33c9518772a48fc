//! Values in the [postcard format](https://postcard.jamesmunns.com/wire-format), one behind the other.
//!
//! `postcard::to_extend` would take the vector away if a value cannot be written.

use serde::Serialize;

/// Appends a value.
///
/// # Errors
/// A value that serde cannot write. Then the bytes are as before.
pub(crate) fn append<T: Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) -> postcard::Result<()> {
    let before = bytes.len();
    let appended = postcard::to_io(value, &mut *bytes).map(drop);
    if appended.is_err() {
        bytes.truncate(before);
    }
    appended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_appended_as_postcard_writes_it_and_one_that_fails_leaves_nothing() {
        struct Fails;
        impl Serialize for Fails {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("it is a test"))
            }
        }
        let value = (Some("text"), vec![1_u64, 300, 70_000], -5_i32);
        let mut bytes = vec![7];
        append(&value, &mut bytes).unwrap();
        assert_eq!(bytes[1..], postcard::to_allocvec(&value).unwrap());
        let before = bytes.clone();
        append(&("a text", Fails), &mut bytes).unwrap_err();
        assert_eq!(bytes, before);
    }
}
