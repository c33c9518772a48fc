//! The options for requests: headers, logins, cookies, proxy, and limits of a connection.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use crawler::HttpOptions;
use crawler::fetch::{CookieFile, CookieFileError, Secret};

use super::values::{parse_count, parse_duration_above_zero, parse_size, show_count, show_duration, show_size};

#[derive(Debug, Args)]
pub(crate) struct Requests {
    /// Send this header, such as "Accept-Language: de"; repeatable.
    ///
    /// Only the origins of the seeds receive it.
    #[arg(short = 'H', long, value_name = "NAME: VALUE", help_heading = "Requests")]
    header: Vec<String>,
    /// Log in with HTTP basic authentication; repeatable.
    ///
    /// USER:PASSWORD is for the origin of the first seed. ORIGIN=USER:PASSWORD names another origin, such as
    /// https://example.com=me:secret. No other origin receives the login. Users of this machine can see the command line; put
    /// the login into a --config file to hide it from them.
    #[arg(long, value_name = "LOGIN", help_heading = "Requests")]
    basic_auth: Vec<String>,
    /// Keep cookies and send them back to their origin.
    #[arg(long, help_heading = "Requests")]
    cookies: bool,
    /// Start with the cookies of this file, and keep cookies.
    ///
    /// The file has the Netscape format, as curl and browser extensions write it. Each cookie goes to its host only. A bad line is an
    /// error. The crawler does not write the file.
    ///
    /// With --state, cookies of earlier runs are kept. If the file has other cookies for a host than before, as after a new login, those of
    /// the file win. If it has the same ones, what the site has set since wins.
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    pub(crate) cookie_file: Option<PathBuf>,
    /// Accept any certificate: expired, of another host, or unsigned.
    ///
    /// An attacker on the network can then read and change all data, as without https. Logins and cookies are still sent: do not
    /// give secret ones.
    #[arg(long, help_heading = "Requests")]
    insecure: bool,
    /// Send all requests through this proxy.
    ///
    /// The URL starts with http://, https://, socks5:// or socks5h://. The crawler cannot see which addresses the proxy
    /// connects to. It refuses private addresses only if a URL has them.
    #[arg(long, value_name = "URL", help_heading = "Requests")]
    proxy: Option<String>,
    /// Maximum time to connect.
    #[arg(
        long,
        value_name = "DURATION",
        default_value = show_duration(crawler::fetch::DEFAULT_CONNECT_TIMEOUT),
        value_parser = parse_duration_above_zero,
        allow_negative_numbers = true,
        help_heading = "Limits"
    )]
    connect_timeout: Duration,
    /// Maximum headers of one response.
    ///
    /// It is never more than 16 384.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(crawler::fetch::DEFAULT_MAX_HEADERS),
        value_parser = parse_count::<NonZeroUsize>,
        help_heading = "Limits"
    )]
    max_headers: NonZeroUsize,
    /// Maximum size of the headers of one response.
    ///
    /// HTTP/1 also has a limit of 400KiB.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = show_size(crawler::fetch::DEFAULT_MAX_HEADER_BYTES),
        value_parser = parse_size::<usize>,
        help_heading = "Limits"
    )]
    max_header_bytes: usize,
    /// Maximum connections to keep open for later requests.
    ///
    /// The number is lower where the system limits open files.
    #[arg(
        long,
        value_name = "N",
        default_value = show_count(crawler::fetch::DEFAULT_MAX_IDLE_CONNECTIONS),
        value_parser = parse_count::<NonZeroUsize>,
        help_heading = "Limits"
    )]
    max_idle_connections: NonZeroUsize,
}

impl Requests {
    /// Writes the options into those of the HTTP fetcher.
    pub(super) fn write_to(&self, http: &mut HttpOptions) {
        let secrets = |texts: &[String]| texts.iter().map(|text| Secret::from(text.as_str())).collect();
        http.headers = secrets(&self.header);
        http.logins = secrets(&self.basic_auth);
        http.cookies = self.cookies;
        http.accept_any_certificate = self.insecure;
        http.proxy = self.proxy.as_deref().map(Secret::from);
        http.connect_timeout = self.connect_timeout;
        http.max_headers = self.max_headers;
        http.max_header_bytes = self.max_header_bytes;
        http.max_idle_connections = self.max_idle_connections;
    }

    /// Returns the texts that must not be written to a file, each with its option.
    pub(super) fn secrets(&self) -> impl Iterator<Item = (&str, &'static str)> {
        // A proxy may have a login.
        let texts = [
            (self.header.as_slice(), "--header"),
            (&self.basic_auth, "--basic-auth"),
            (self.proxy.as_slice(), "--proxy"),
        ];
        texts
            .into_iter()
            .flat_map(|(texts, option)| texts.iter().map(move |text| (text.as_str(), option)))
    }

    pub(crate) fn has_proxy(&self) -> bool {
        self.proxy.is_some()
    }

    pub(crate) fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// Reads the cookie file, if the option is set.
    pub(crate) fn cookies_of_file(&self) -> Result<Option<CookieFile>, CookieFileError> {
        self.cookie_file.as_deref().map(CookieFile::open).transpose()
    }
}
