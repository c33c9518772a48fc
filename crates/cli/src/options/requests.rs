//! The options for requests: headers, logins, cookies and proxy.

use std::path::PathBuf;

use clap::Args;
use crawler::HttpOptions;
use crawler::fetch::{CookieFile, CookieFileError, Secret};

#[derive(Debug, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct Requests {
    /// Send this header, such as "Accept-Language: de"; repeatable.
    ///
    /// Only the origins of the seeds receive it.
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Log in with HTTP basic authentication; repeatable.
    ///
    /// USER:PASSWORD is for the origin of the first seed. ORIGIN=USER:PASSWORD names another origin, such as
    /// https://example.com=me:secret. No other origin receives the login. Users of this machine can see the command line; a
    /// configuration file hides the login from them.
    #[arg(long, value_name = "LOGIN")]
    basic_auth: Vec<String>,
    /// Keep cookies and send them back to their origin.
    #[arg(long)]
    cookies: bool,
    /// Start with the cookies of this file, and keep cookies.
    ///
    /// The file has the Netscape format, as curl and browser extensions write it. Each cookie goes to its host only. A bad line is an
    /// error. The crawler does not write the file.
    ///
    /// With the cookies of a login, links that log out are followed as all others: leave them out, such as by --exclude "log-?out".
    ///
    /// With --state, cookies of earlier runs are kept. If the file has other cookies for a host than before, as after a new login, those of
    /// the file win. If it has the same ones, what the site has set since wins.
    #[arg(long, value_name = "FILE")]
    pub(crate) cookie_file: Option<PathBuf>,
    /// Accept any certificate: expired, of another host, or unsigned.
    ///
    /// An attacker on the network can then read and change all data, as without https. Logins and cookies are still sent: do not
    /// give secret ones.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Send all requests through this proxy.
    ///
    /// The URL starts with http://, https://, socks5:// or socks5h://. The crawler cannot see which addresses the proxy
    /// connects to. It refuses private addresses only if a URL has them.
    ///
    /// Without this option, http_proxy, https_proxy, all_proxy (where these are not set) and no_proxy are obeyed, each also in upper case if
    /// it is not set in lower case; not for loopback, and not with --untrusted-seeds. --set environment-proxies=false ignores them.
    #[arg(long, value_name = "URL")]
    pub(crate) proxy: Option<String>,
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
    }

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

    /// Reads the cookie file, if the option is set.
    pub(crate) fn cookies_of_file(&self) -> Result<Option<CookieFile>, CookieFileError> {
        self.cookie_file.as_deref().map(CookieFile::open).transpose()
    }
}
