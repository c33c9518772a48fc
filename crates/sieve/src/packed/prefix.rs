//! The prefix that a key shares with the previous key.

/// The longest shared prefix: the largest number in a byte.
const MAX_SHARED: usize = 255;

/// The start of the previous key, on the writing or on the reading side.
#[derive(Clone, Default)]
pub(super) struct Previous {
    bytes: Box<[u8]>,
    len: usize,
}

impl Previous {
    /// Creates an empty one. If it does not remember, no key shares a prefix.
    pub(super) fn new(remembers: bool) -> Self {
        let bytes = if remembers { MAX_SHARED } else { 0 };
        Self {
            bytes: vec![0; bytes].into_boxed_slice(),
            len: 0,
        }
    }

    pub(super) fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Replaces the previous key, and returns the length of the prefix that both share.
    #[inline]
    pub(super) fn replace(&mut self, key: &[u8]) -> u8 {
        let shared = shared(&self.bytes[..self.len], key);
        self.put(shared, &key[shared..]);
        // At most `MAX_SHARED`, the size of the memory.
        shared as u8
    }

    /// Returns the key that consists of the shared prefix and the rest, and replaces the previous key by it.
    #[inline]
    pub(super) fn join(&mut self, shared: u8, rest: &[u8]) -> Vec<u8> {
        let shared = usize::from(shared);
        let mut key = Vec::with_capacity(shared + rest.len());
        key.extend_from_slice(&self.bytes[..shared]);
        key.extend_from_slice(rest);
        self.put(shared, rest);
        key
    }

    #[inline]
    fn put(&mut self, shared: usize, rest: &[u8]) {
        let taken = rest.len().min(self.bytes.len() - shared);
        self.bytes[shared..shared + taken].copy_from_slice(&rest[..taken]);
        self.len = shared + taken;
    }
}

/// Returns the length of the common prefix.
#[inline]
fn shared(one: &[u8], other: &[u8]) -> usize {
    let len = one.len().min(other.len());
    let (one, other) = (&one[..len], &other[..len]);
    let (ones, _) = one.as_chunks::<8>();
    let (others, _) = other.as_chunks::<8>();
    for (n, (a, b)) in ones.iter().zip(others).enumerate() {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return n * 8 + differing.trailing_zeros() as usize / 8;
        }
    }
    let whole = ones.len() * 8;
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_length_is_right_wherever_two_keys_part() {
        let key: Vec<u8> = (0..60).collect();
        for len in 0..60 {
            for at in 0..len {
                let mut other = key[..len].to_vec();
                other[at] ^= 0x80;
                assert_eq!(shared(&key, &other), at);
                assert_eq!(shared(&other, &key), at);
            }
            assert_eq!(shared(&key, &key[..len]), len);
        }
    }

    #[test]
    fn no_more_is_shared_than_a_byte_counts() {
        let key = vec![b'x'; 1000];
        let mut previous = Previous::new(true);
        assert_eq!(previous.replace(&key), 0);
        assert_eq!(previous.replace(&key), 255);
        assert_eq!(previous.join(255, &key[255..]), key);
    }
}
