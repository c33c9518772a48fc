//! Values in the [postcard format](https://postcard.jamesmunns.com/wire-format), one behind the other.
//!
//! `postcard::to_extend` appends bytes one by one, and takes the vector away if a value cannot be written.

use postcard::ser_flavors::Flavor;
use serde::Serialize;

struct Appended<'b>(&'b mut Vec<u8>);

impl Flavor for Appended<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// Appends a value.
///
/// # Errors
/// A value that serde cannot write. Then the bytes are as before.
pub(crate) fn append<T: Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) -> postcard::Result<()> {
    let before = bytes.len();
    let appended = postcard::serialize_with_flavor(value, Appended(bytes));
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
