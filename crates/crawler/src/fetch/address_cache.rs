//! Addresses of host names, remembered for a minute, so that the name server is not asked for each connection.

use std::collections::HashMap;
use std::future::ready;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::guard::{Resolver, Resolving};
use super::lock;

/// How long an address is used. The system does not tell how long the name server allows (POSIX.1-2024, `getaddrinfo`).
const LIFETIME: Duration = Duration::from_secs(60);

/// The names that are remembered, at most: some 3 MB, and with the longest answers 12 MB. With one more, all are forgotten.
const MOST_NAMES: usize = 16_384;

/// A longer answer is not remembered, nor is an empty one.
const MOST_ADDRESSES: usize = 32;

/// Remembers the addresses that another resolver has found, for one minute and of up to 16 384 names.
///
/// The [`HttpFetcher`](crate::HttpFetcher) asks the system through one. A resolver of your own is asked for each connection, unless
/// it is wrapped. Errors are not remembered, nor are answers without an address, or with more than 32. A name is forgotten if none of its
/// addresses could be connected to. Look-ups that begin before the first one has ended are not joined.
#[derive(Debug, Clone)]
pub struct CachedResolver<R> {
    resolver: R,
    names: Arc<Mutex<HashMap<String, Found>>>,
}

/// The addresses of a name, and when they were found.
type Found = (Vec<IpAddr>, Instant);

impl<R> CachedResolver<R> {
    /// Remembers what `resolver` finds.
    pub fn new(resolver: R) -> Self {
        Self {
            resolver,
            names: Arc::default(),
        }
    }
}

impl<R: Resolver> Resolver for CachedResolver<R> {
    fn resolve(&self, name: &str) -> Resolving {
        let names = lock(&self.names);
        let known = names.get(name).filter(|(_, at)| at.elapsed() < LIFETIME);
        if let Some((addresses, _)) = known {
            return Box::pin(ready(Ok(addresses.clone())));
        }
        drop(names);
        let (looking_up, names, name) = (self.resolver.resolve(name), Arc::clone(&self.names), name.to_owned());
        Box::pin(async move {
            let addresses = looking_up.await?;
            if (1..=MOST_ADDRESSES).contains(&addresses.len()) {
                let mut names = lock(&names);
                if names.len() >= MOST_NAMES {
                    names.clear();
                }
                names.insert(name, (addresses.clone(), Instant::now()));
            }
            Ok(addresses)
        })
    }

    fn not_connected(&self, name: &str) {
        lock(&self.names).remove(name);
        self.resolver.not_connected(name);
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::advance;

    use super::*;

    /// Has another address for each look-up, but fails for the name `none`, has no address for `empty`, and very many for `many`.
    #[derive(Default)]
    struct Numbered(AtomicU32);

    impl Resolver for Numbered {
        fn resolve(&self, name: &str) -> Resolving {
            let number = self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(ready(match name {
                "none" => Err(io::Error::other(number.to_string())),
                "empty" => Ok(Vec::new()),
                "many" => Ok(vec![Ipv4Addr::LOCALHOST.into(); MOST_ADDRESSES + 1]),
                _ => Ok(vec![Ipv4Addr::from_bits(number).into()]),
            }))
        }
    }

    async fn number(resolver: &CachedResolver<Numbered>, name: &str) -> u32 {
        match resolver.resolve(name).await.unwrap().as_slice() {
            [IpAddr::V4(address)] => address.to_bits(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_looked_up_once_a_minute_or_when_it_could_not_be_connected_to() {
        let resolver = CachedResolver::new(Numbered::default());
        assert_eq!(number(&resolver, "a.example").await, 0);
        advance(Duration::from_secs(59)).await;
        assert_eq!(number(&resolver, "a.example").await, 0);
        assert_eq!(number(&resolver, "b.example").await, 1);
        advance(Duration::from_secs(1)).await;
        assert_eq!(number(&resolver, "a.example").await, 2);
        assert_eq!(number(&resolver, "b.example").await, 1);
        resolver.not_connected("b.example");
        assert_eq!(number(&resolver, "b.example").await, 3);
        // Errors and odd answers are not remembered, nor are too many names.
        for name in ["none", "none", "empty", "many", "empty", "many"] {
            let _ = resolver.resolve(name).await;
        }
        for n in 0..MOST_NAMES as u32 {
            assert_eq!(number(&resolver, &format!("host{n}.example")).await, n + 10);
        }
        assert!(resolver.names.lock().unwrap().len() <= MOST_NAMES);
    }
}
