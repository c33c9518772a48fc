//! Crawls a site with a seen-set that is too small, beside an exact shadow of it: how many URLs were wrongly dropped, and
//! how many the crawler says were.
//!
//! `cargo run --release --example true_loss -- http://127.0.0.1:8080/ 300`; without arguments it crawls the demo site with a
//! capacity of 60. It fails when the estimate is not within three standard deviations of the truth.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::{Crawl, CrawlOptions, Event, HttpOptions};
use crawler_cli::demo;
use frontier::{FrontierConfig, OnSaturation, PolitenessConfig, Reach, ScopeConfig, SeenSetConfig, Verdict};

/// Remembers, exactly, every URL that reached the seen-set, and how many of them it accepted.
#[derive(Default)]
struct Shadow {
    offered: HashSet<String>,
    accepted: usize,
}

impl Shadow {
    fn watch(&mut self, event: &Event<'_>) {
        let Event::Offered { links, verdicts } = event else {
            return;
        };
        for (link, verdict) in links.iter().zip(*verdicts) {
            if matches!(verdict, Verdict::Queued | Verdict::Seen) {
                self.offered.insert(link.url.key().to_owned());
                self.accepted += usize::from(*verdict == Verdict::Queued);
            }
        }
    }

    fn truly_lost(&self) -> usize {
        self.offered.len() - self.accepted
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = demo::serve().await?;
    let mut arguments = std::env::args().skip(1);
    let seed = arguments.next();
    let is_demo = seed.is_none();
    let capacity = arguments.next().map_or(Ok(60), |text| text.parse())?;

    let options = CrawlOptions {
        seeds: vec![seed.unwrap_or_else(|| server.site().seed().to_string())],
        frontier: FrontierConfig {
            scope: ScopeConfig {
                reach: Reach::Site,
                ..ScopeConfig::default()
            },
            seen_set: SeenSetConfig {
                capacity, // By default it grows, and loses none.
                on_saturation: OnSaturation::Warn,
                ..SeenSetConfig::default()
            },
            politeness: PolitenessConfig {
                delay: Duration::ZERO,
                ..PolitenessConfig::default()
            },
            ..FrontierConfig::default()
        },
        ..CrawlOptions::default()
    };
    let shadow = Arc::new(Mutex::new(Shadow::default()));
    let watched = Arc::clone(&shadow);
    // The demo is on loopback.
    let http = HttpOptions {
        allow_private_addresses: is_demo,
        ..HttpOptions::default()
    };
    let crawl = Crawl::builder(options)?.http(http).build()?.on_event(move |event| {
        if let Ok(mut shadow) = watched.lock() {
            shadow.watch(event);
        }
    });
    let summary = crawl.run().await?;

    let truly_lost = shadow.lock().map_err(|_| "the shadow broke")?.truly_lost() as f64;
    let saturation = &summary.report.saturation;
    // A sum of geometric variables with mean f/(1-f): it varies by a factor 1/(1-f) more than a Poisson count.
    let deviation = (saturation.lost.max(1.0) / (1.0 - saturation.rate)).sqrt();
    let sigmas = (saturation.lost - truly_lost) / deviation;
    println!("{summary}");
    println!(
        "distinct URLs offered     {}",
        shadow.lock().map_err(|_| "the shadow broke")?.offered.len()
    );
    println!("truly lost                {truly_lost}");
    println!(
        "estimated loss            {:.1} ± {deviation:.1}, {sigmas:+.1} standard deviations off",
        saturation.lost
    );
    if truly_lost == 0.0 || sigmas.abs() > 3.0 {
        return Err("the estimate is not within three standard deviations of a loss above zero".into());
    }
    Ok(())
}
