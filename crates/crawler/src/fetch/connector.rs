//! Makes connections: TCP, through a proxy if there is one, then TLS for `https`, under the limit on what precedes a head.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::Scheme;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::client::Resumption;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

use super::guard::Guarded;
use super::head_limit::{HeadLimit, Limited};
use super::proxy::UsableProxy;

/// The time after which the system asks whether a silent connection is still there, and between its questions.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often it asks.
const KEEP_ALIVE_PROBES: u32 = 3;
/// How long sent data may stay unacknowledged.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

type BoxError = Box<dyn Error + Send + Sync>;
type Connecting<S> = Pin<Box<dyn Future<Output = Result<S, BoxError>> + Send>>;

/// A connection to a server or to a proxy, the TLS of an `https` proxy included.
type Transported = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A connection that carries HTTP.
pub(super) type HttpStream = TokioIo<Limited<TokioIo<MaybeHttpsStream<Transported>>>>;

/// Connects to the server of a URL.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<Transport>,
    resolver: Guarded,
    forwards_http: bool,
    timeout: Duration,
    max_header_bytes: usize,
}

impl Connector {
    /// `timeout` bounds all of it: look-up, TCP, proxy and TLS.
    pub(super) fn new(
        resolver: Guarded,
        proxy: Option<UsableProxy>,
        tls: ClientConfig,
        timeout: Duration,
        max_header_bytes: usize,
    ) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(resolver.clone());
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(timeout));
        tcp.set_keepalive(Some(KEEP_ALIVE));
        tcp.set_keepalive_interval(Some(KEEP_ALIVE));
        tcp.set_keepalive_retries(Some(KEEP_ALIVE_PROBES));
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        let mut proxy_tls = tls.clone();
        proxy_tls.alpn_protocols.clear();
        // All connections go to one server, many of them at once.
        proxy_tls.resumption = Resumption::default();
        Self {
            forwards_http: proxy.as_ref().is_some_and(|proxy| !proxy.is_socks()),
            https: HttpsConnector::from((
                Transport {
                    tcp,
                    resolver: resolver.clone(),
                    proxy,
                    proxy_tls: Arc::new(proxy_tls),
                },
                tls,
            )),
            resolver,
            timeout,
            max_header_bytes,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = HttpStream;
    type Error = BoxError;
    type Future = Connecting<HttpStream>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, destination: Uri) -> Self::Future {
        // An HTTP proxy gets requests for `http` with their whole URL.
        let is_forwarded = self.forwards_http && destination.scheme() == Some(&Scheme::HTTP);
        let (resolver, host) = (self.resolver.clone(), destination.host().unwrap_or_default().to_owned());
        let connecting = timeout(self.timeout, self.https.call(destination));
        let limit = HeadLimit::new(self.max_header_bytes);
        Box::pin(async move {
            let connected = connecting.await;
            if !matches!(connected, Ok(Ok(_))) {
                resolver.not_connected(&host);
            }
            let stream = connected.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "connecting timed out"))??;
            Ok(TokioIo::new(Limited::new(TokioIo::new(stream), is_forwarded, limit)))
        })
    }
}

/// Connects to a server as far as its TLS, through a proxy if there is one.
#[derive(Clone)]
struct Transport {
    tcp: HttpConnector<Guarded>,
    resolver: Guarded,
    proxy: Option<UsableProxy>,
    /// For `https` proxies.
    proxy_tls: Arc<ClientConfig>,
}

impl Transport {
    async fn connect(mut self, destination: Uri) -> Result<Transported, BoxError> {
        let Some(proxy) = self.proxy else {
            return Ok(MaybeHttpsStream::Http(self.tcp.call(destination).await?));
        };
        if proxy.is_socks() {
            let target = socks_target(destination, &proxy, &self.resolver).await?;
            let mut socks = SocksV5::new(proxy.uri().clone(), self.tcp);
            if let Some((user, password)) = proxy.raw_auth() {
                socks = socks.with_auth(user.to_owned(), password.to_owned());
            }
            return Ok(MaybeHttpsStream::Http(socks.call(target).await?));
        }
        let mut to_proxy = HttpsConnector::from((self.tcp, self.proxy_tls));
        if destination.scheme() == Some(&Scheme::HTTP) {
            return to_proxy.call(proxy.uri().clone()).await;
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
        if let Some(login) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(login.clone());
        }
        Ok(tunnel.call(destination).await?)
    }
}

/// Returns where a SOCKS proxy is to connect: with the port, for which [`SocksV5`] has one default whatever the scheme, and with an
/// address instead of a name that the proxy does not look up.
async fn socks_target(destination: Uri, proxy: &UsableProxy, resolver: &Guarded) -> Result<Uri, BoxError> {
    let host = destination.host().ok_or("the URL has no host")?;
    let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
    let default_port = if destination.scheme() == Some(&Scheme::HTTPS) {
        443
    } else {
        80
    };
    let port = destination.port_u16().unwrap_or(default_port);
    let authority = if is_address || proxy.leaves_names() {
        format!("{host}:{port}")
    } else {
        SocketAddr::new(resolver.first_address(host).await?, port).to_string()
    };
    let mut parts = destination.into_parts();
    parts.authority = Some(authority.parse()?);
    Ok(Uri::from_parts(parts)?)
}

impl Service<Uri> for Transport {
    type Response = Transported;
    type Error = BoxError;
    type Future = Connecting<Transported>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, destination: Uri) -> Self::Future {
        Box::pin(self.clone().connect(destination))
    }
}
