//! The options of requests: what is sent to whom, by which way, and how much of a head is taken.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;
use crawler::CrawlOptions;
use crawler::fetch::Secret;

use super::values::parse_seconds_above_zero;

#[derive(Debug, Args)]
pub(crate) struct Requests {
    /// Send this header, such as "Accept-Language: de", to the origins of the seeds and to no other; may be given more than
    /// once.
    #[arg(long, value_name = "NAME: VALUE", help_heading = "Requests")]
    header: Vec<String>,
    /// Log in by HTTP's basic authentication: USER:PASSWORD at the origin of the first seed, or ORIGIN=USER:PASSWORD, such as
    /// https://example.com=me:secret; may be given more than once. Other origins never see it. Users of this machine can see
    /// the command line; a --config file keeps it from them.
    #[arg(long, value_name = "LOGIN", help_heading = "Requests")]
    basic_auth: Vec<String>,
    /// Keep cookies, for each origin apart, and send them back. None are kept unless given.
    #[arg(long, help_heading = "Requests")]
    cookies: bool,
    /// Send all requests through this proxy: http://, https://, socks5:// or socks5h://, host and port. Which addresses it
    /// dials cannot be seen from here: only private addresses that stand in URLs are still refused.
    #[arg(long, value_name = "URL", help_heading = "Requests")]
    proxy: Option<String>,
    /// Give up on a connection that takes longer than this [seconds].
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "10",
        value_parser = parse_seconds_above_zero,
        allow_negative_numbers = true,
        help_heading = "Limits"
    )]
    connect_timeout: Duration,
    /// Take answers of at most so many headers.
    #[arg(
        long,
        value_name = "N",
        default_value_t = NonZeroUsize::MIN.saturating_add(crawler::config::DEFAULT_MAX_HEADERS - 1),
        help_heading = "Limits"
    )]
    max_headers: NonZeroUsize,
    /// Take answers with headers of at most so many bytes in all; HTTP/1 has a limit of 400 KiB besides [bytes].
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = crawler::config::DEFAULT_MAX_HEADER_BYTES,
        help_heading = "Limits"
    )]
    max_header_bytes: usize,
    /// Keep at most so many connections open for later requests; fewer, if the limit of open files leaves no room for
    /// them.
    #[arg(
        long,
        value_name = "N",
        default_value_t = NonZeroUsize::MIN.saturating_add(crawler::config::DEFAULT_MAX_IDLE_CONNECTIONS - 1),
        help_heading = "Limits"
    )]
    max_idle_connections: NonZeroUsize,
}

impl Requests {
    /// Sets what the options say.
    pub(super) fn ask(&self, crawl: &mut CrawlOptions) {
        let secrets = |texts: &[String]| texts.iter().map(|text| Secret::from(text.as_str())).collect();
        crawl.headers = secrets(&self.header);
        crawl.logins = secrets(&self.basic_auth);
        crawl.cookies = self.cookies;
        crawl.proxy = self.proxy.as_deref().map(Secret::from);
        crawl.connect_timeout = self.connect_timeout;
        crawl.max_headers = self.max_headers;
        crawl.max_header_bytes = self.max_header_bytes;
        crawl.max_idle_connections = self.max_idle_connections;
    }

    pub(crate) fn has_proxy(&self) -> bool {
        self.proxy.is_some()
    }
}
