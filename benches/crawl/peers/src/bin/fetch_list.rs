//! Fetches a known list of URLs by reqwest and looks at nothing: what no crawler on top of reqwest can outrun.
//!
//! `fetch_list FILE CONNECTIONS`; prints how many answered 200 and how many bytes they had.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(connections)) = (arguments.next(), arguments.next()) else {
        return Err("usage: fetch_list FILE CONNECTIONS".into());
    };
    let list: Arc<[String]> = std::fs::read_to_string(file)?.lines().map(str::to_owned).collect();
    let client = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
    let (next, pages, bytes) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicU64::new(0)),
    );
    let mut workers = Vec::new();
    for _ in 0..connections.parse()? {
        let (client, list) = (client.clone(), Arc::clone(&list));
        let (next, pages, bytes) = (Arc::clone(&next), Arc::clone(&pages), Arc::clone(&bytes));
        workers.push(tokio::spawn(async move {
            while let Some(url) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
                let response = client.get(url).send().await?;
                let found = response.status().as_u16() == 200;
                let body = response.bytes().await?;
                pages.fetch_add(u64::from(found), Ordering::Relaxed);
                bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
            }
            Result::Ok(())
        }));
    }
    for worker in workers {
        worker.await??;
    }
    println!("{} pages, {} bytes", pages.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed));
    Ok(())
}
