//! The address of a crawl in Redis.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

/// The port of Redis if the address names none.
const DEFAULT_PORT: u16 = 6379;

/// The address of a crawl: `redis://[user:password@]host[:port][,host2[:port2]…]/NAME`, where NAME is the name of the crawl.
///
/// Several hosts are nodes of one Redis Cluster, or a master and its replicas. They are tried in this order, and a cluster tells of its other
/// nodes. In the user and the password, bytes such as `/` and `@` are written as `%2F` and `%40`.
///
/// `rediss://` encrypts the connection (TLS), and the certificates of the system say whom to trust. Options are `?db=N`, the number of the
/// database, and `ssl_ca_certs=FILE`, certificates in PEM format that are trusted instead, as in the addresses of redis-py.
///
/// Without a user and a password, the password is that of the environment variable `REDISCLI_AUTH`, if it is set, as for redis-cli.
///
/// As text, the address has neither the password nor the options.
///
/// ```
/// let address: cluster::Address = "redis://crawler:secret@10.0.0.5/web?db=1".parse().unwrap();
/// assert_eq!(address.name(), "web");
/// assert_eq!(address.to_string(), "redis://crawler:***@10.0.0.5:6379/web");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(crate) has_tls: bool,
    /// The user, who may be empty for the default one, and the password.
    pub(crate) login: Option<(String, String)>,
    /// At least one.
    pub(crate) nodes: Vec<Node>,
    pub(crate) database: u32,
    pub(crate) ca_file: Option<PathBuf>,
    name: String,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    /// Without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}: write redis://[user:password@]host[:port]/NAME, or rediss:// for TLS")]
pub struct AddressError(&'static str);

impl Address {
    /// Returns the name of the crawl.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (has_tls, rest) = match text.split_once("://") {
            Some(("redis", rest)) => (false, rest),
            Some(("rediss", rest)) => (true, rest),
            _ => return Err(AddressError("the address does not begin with redis:// or rediss://")),
        };
        let (place, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if path.contains('@') {
            return Err(AddressError(
                "a '/', '?' or '#' in the user or the password is written as %2F, %3F or %23",
            ));
        }
        let (login, hosts) = match place.rsplit_once('@') {
            None => (None, place),
            Some((login, hosts)) => {
                let login = login.split_once(':').ok_or(AddressError("the user has no password"))?;
                (Some((decoded(login.0)?, decoded(login.1)?)), hosts)
            }
        };
        let (name, options) = path.split_once('?').unwrap_or((path, ""));
        let name = name.strip_prefix('/').unwrap_or_default().to_owned();
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_allowed) {
            return Err(AddressError(
                "the address has to end with the name of the crawl, of letters, digits, '_', '.' and '-'",
            ));
        }
        let nodes = hosts.split(',').map(node).collect::<Result<_, _>>()?;
        let (mut database, mut ca_file) = (0, None);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("db", number)) => database = number.parse().map_err(|_| AddressError("db is not a number"))?,
                Some(("ssl_ca_certs", file)) if has_tls => ca_file = Some(decoded(file)?.into()),
                _ => {
                    return Err(AddressError(
                        "the only options are db and, with rediss://, ssl_ca_certs",
                    ));
                }
            }
        }
        Ok(Self {
            has_tls,
            login,
            nodes,
            database,
            ca_file,
            name,
        })
    }
}

fn decoded(text: &str) -> Result<String, AddressError> {
    let text = percent_decode_str(text).decode_utf8();
    text.map(Into::into)
        .map_err(|_| AddressError("a percent-encoded text is not UTF-8"))
}

fn node(text: &str) -> Result<Node, AddressError> {
    let (host, port) = match text.rsplit_once(':') {
        // Not a colon within the brackets of an IPv6 address.
        Some((host, port)) if !port.ends_with(']') => (
            host,
            port.parse()
                .map_err(|_| AddressError("a port is not a number below 65536"))?,
        ),
        _ => (text, DEFAULT_PORT),
    };
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
        .to_owned();
    if host.is_empty() {
        Err(AddressError("a host is missing"))
    } else {
        Ok(Node { host, port })
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}:{}", self.host, self.port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.has_tls { "rediss://" } else { "redis://" })?;
        if let Some((user, _)) = &self.login {
            write!(f, "{user}:***@")?;
        }
        let nodes: Vec<_> = self.nodes.iter().map(ToString::to_string).collect();
        write!(f, "{}/{}", nodes.join(","), self.name)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
