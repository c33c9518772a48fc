//! Who asks for the metrics again and again, such as Prometheus.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// The longest interval between two requests that the end of the crawl waits for.
const LONGEST_INTERVAL: Duration = Duration::from_secs(15);
/// How much later than after the last interval a request may come.
const JITTER: Duration = Duration::from_secs(1);

/// When the metrics were asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Scraper(watch::Sender<Asked>);

#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    last: Option<Instant>,
    interval: Option<Duration>,
    has_end: bool,
}

impl Scraper {
    /// Notes that metrics were sent, those of the end or earlier ones.
    pub(super) fn note(&self, is_end: bool) {
        let now = Instant::now();
        self.0.send_modify(|asked| {
            asked.interval = asked.last.map(|last| now - last);
            asked.last = Some(now);
            asked.has_end |= is_end;
        });
    }

    /// Waits until the metrics of the end were sent, if they are likely to be asked for soon.
    pub(super) async fn has_end(&self) {
        let asked = *self.0.borrow();
        let interval = asked.interval.filter(|interval| *interval <= LONGEST_INTERVAL);
        if let (Some(last), Some(interval)) = (asked.last, interval) {
            let mut receiver = self.0.subscribe();
            let end = receiver.wait_for(|asked| asked.has_end);
            let _ = timeout_at(last + interval + JITTER, end).await;
        }
    }
}
