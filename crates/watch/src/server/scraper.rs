//! Who asks for the metrics again and again, such as Prometheus.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// The longest interval between two requests that is waited for.
const LONGEST_INTERVAL: Duration = Duration::from_secs(15);
/// How much later than after the last interval a request may come.
const JITTER: Duration = Duration::from_secs(1);

/// When the metrics were asked for.
#[derive(Debug, Default)]
pub(super) struct Scraper(watch::Sender<Asked>);

#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    last: Option<Instant>,
    interval: Option<Duration>,
    /// When the last numbers that were sent were true.
    as_of: f64,
}

impl Scraper {
    /// Notes that metrics were sent that were true at a time.
    pub(super) fn note(&self, as_of: f64) {
        let now = Instant::now();
        self.0.send_modify(|asked| {
            asked.interval = asked.last.map(|last| now - last);
            asked.last = Some(now);
            asked.as_of = as_of;
        });
    }

    /// Waits until metrics of this time or a later one were sent, if they are likely to be asked for soon.
    pub(super) async fn has(&self, as_of: f64) {
        let asked = *self.0.borrow();
        let interval = asked.interval.filter(|interval| *interval <= LONGEST_INTERVAL);
        if let (Some(last), Some(interval)) = (asked.last, interval) {
            let mut receiver = self.0.subscribe();
            let sent = receiver.wait_for(|asked| asked.as_of >= as_of);
            let _ = timeout_at(last + interval + JITTER, sent).await;
        }
    }
}
