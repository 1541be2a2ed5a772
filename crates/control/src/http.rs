//! A small HTTP client, for what management asks of others: control planes, vaults. One connection a call.

use crate::webhook_addresses::WebhookAddressPolicy;
pub use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
pub use hyper::{Method, Response, StatusCode};
use hyper::{Request, Uri, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Until the head of the answer is there, and then until its end, unless the call says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest body of an answer that is read whole, unless the call says otherwise, in bytes.
const MAX_BODY: usize = 256 << 20;

/// The transport of calls.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Whom calls over TLS trust: the system's authorities.
static TRUST: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    let (_, unusable) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if unusable > 0 {
        tracing::debug!(
            unusable,
            "some certificate authorities of the system cannot be used"
        );
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("invariant: the provider has the default versions");
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
});

/// A call that came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// It cannot be made: the URL or a header is invalid.
    #[error("{0}")]
    Call(String),
    /// There is no connection, or it broke.
    #[error("{host}: {reason}")]
    Connection {
        /// With whom.
        host: String,
        /// Why.
        reason: String,
    },
    /// It took too long.
    #[error("{0}: no answer in time")]
    Late(String),
    /// There was an answer, but none that helps.
    #[error("{host}: {status}{detail}")]
    Status {
        /// The host that said so.
        host: String,
        /// The status.
        status: StatusCode,
        /// Further words, after a colon.
        detail: String,
    },
}

/// A call.
#[derive(Clone)]
pub struct ClientRequest {
    /// The method.
    pub method: Method,
    /// `http://HOST[:PORT]/PATH`, or with `https`.
    pub url: String,
    /// Headers in addition to `Content-Length`. `Host` is that of the URL, unless it is among them.
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Until the head of the answer is there, and then until its end.
    pub timeout: Duration,
    /// The largest body of an answer that is read whole, in bytes.
    pub max_body: usize,
    /// Whom a call over TLS trusts; `None`: the system's authorities.
    pub trust: Option<Arc<ClientConfig>>,
    /// The addresses that it may go to; `None`: all.
    pub reach: Option<Arc<WebhookAddressPolicy>>,
}

impl ClientRequest {
    /// A call without a body.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout: TIMEOUT,
            max_body: MAX_BODY,
            trust: None,
            reach: None,
        }
    }

    /// A call with a JSON body.
    pub fn json(method: Method, url: impl Into<String>, body: &serde_json::Value) -> Self {
        Self {
            method,
            body: body.to_string().into_bytes(),
            ..Self::get(url)
        }
        .header("content-type", "application/json")
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With a token, if there is one.
    #[must_use]
    pub fn token(self, token: Option<&str>) -> Self {
        match token {
            Some(token) => self.header("authorization", format!("Bearer {token}")),
            None => self,
        }
    }

    /// Makes it, and waits for the head of the answer. Its body is read as it comes.
    ///
    /// # Errors
    /// Without an answer.
    pub async fn open(self) -> Result<Response<Incoming>, HttpError> {
        let host = host_of(&self.url)?;
        match tokio::time::timeout(self.timeout, self.send(&host)).await {
            Ok(answer) => answer,
            Err(_) => Err(HttpError::Late(host)),
        }
    }

    /// Makes it, and reads the whole answer.
    ///
    /// # Errors
    /// Without an answer, or when it is too long or breaks off.
    pub async fn make(self) -> Result<(StatusCode, Bytes), HttpError> {
        let answer = self.make_with_headers().await?;
        Ok((answer.status(), answer.into_body()))
    }

    /// Makes it, and reads the whole answer, of which the caller needs headers, too.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub async fn make_with_headers(self) -> Result<Response<Bytes>, HttpError> {
        let (host, timeout, max_body) = (host_of(&self.url)?, self.timeout, self.max_body);
        let (head, body) = self.open().await?.into_parts();
        let body = whole(body, host, timeout, max_body).await?;
        Ok(Response::from_parts(head, body))
    }

    async fn connect(&self, host: &str) -> Result<Sender, HttpError> {
        let broken = |error: &dyn std::fmt::Display| HttpError::Connection {
            host: host.to_owned(),
            reason: error.to_string(),
        };
        let wrong = |error: &dyn std::fmt::Display| HttpError::Call(error.to_string());
        let url: Uri = self
            .url
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| wrong(&error))?;
        let is_tls = url.scheme_str() == Some("https");
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let name = url.host().unwrap_or_default().trim_matches(['[', ']']);
        let stream = match &self.reach {
            None => TcpStream::connect((name, port)).await.map_err(|it| broken(&it))?,
            Some(reach) => {
                // What was judged is what is connected to: a second look-up might give another address.
                let found = tokio::net::lookup_host((name, port))
                    .await
                    .map_err(|it| broken(&it))?;
                let allowed: Vec<_> = found.filter(|it| reach.permits(it.ip())).collect();
                if allowed.is_empty() {
                    return Err(broken(
                        &"its address is not public, and no flag of the gateway allows it (--webhook-allow; for webhooks of developers --portal-webhook-allow; for documents --document-allow)",
                    ));
                }
                TcpStream::connect(&*allowed).await.map_err(|it| broken(&it))?
            }
        };
        // If it cannot be set, calls only take longer.
        let _slower = stream.set_nodelay(true);
        let stream: Box<dyn Stream> = match is_tls {
            false => Box::new(stream),
            true => {
                let name = ServerName::try_from(name.to_owned()).map_err(|it| wrong(&it))?;
                let trust = self.trust.as_ref().unwrap_or(&*TRUST);
                let tls = TlsConnector::from(Arc::clone(trust));
                Box::new(tls.connect(name, stream).await.map_err(|it| broken(&it))?)
            }
        };
        let connection = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = connection.map_err(|it| broken(&it))?;
        // It ends with the last that is read, or with what reads.
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn send(self, host: &str) -> Result<Response<Incoming>, HttpError> {
        let mut sender = self.connect(host).await?;
        self.send_over(&mut sender, host).await
    }

    async fn send_over(self, sender: &mut Sender, host: &str) -> Result<Response<Incoming>, HttpError> {
        let wrong = |error: &dyn std::fmt::Display| HttpError::Call(error.to_string());
        let url: Uri = self
            .url
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| wrong(&error))?;
        let target = url.path_and_query().map_or("/", |it| it.as_str());
        let mut request = Request::builder().method(self.method).uri(target);
        if !(self.headers.iter()).any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            request = request.header(header::HOST, host);
        }
        for (name, value) in &self.headers {
            request = request.header(name.as_ref(), value);
        }
        let request = request
            .body(Full::new(Bytes::from(self.body)))
            .map_err(|it| wrong(&it))?;
        let sent = sender.send_request(request).await;
        sent.map_err(|error| HttpError::Connection {
            host: host.to_owned(),
            reason: error.to_string(),
        })
    }
}

/// The longest answer that an Admin API waits for, in bytes.
const MAX_OF_ADMIN_API: usize = 1 << 20;

/// Makes calls for Admin APIs. Who writes documents names the addresses, and may be no operator: they go where webhooks may.
pub struct ForAdminApis {
    /// The addresses that they may go to.
    pub reach: Arc<WebhookAddressPolicy>,
}

impl weir_dialect::HttpClient for ForAdminApis {
    fn make(&self, call: weir_dialect::HttpCall) -> weir_dialect::HttpAnswer {
        let mut made = ClientRequest {
            method: call.method,
            max_body: MAX_OF_ADMIN_API,
            reach: Some(Arc::clone(&self.reach)),
            ..ClientRequest::get(call.url)
        };
        if let Some(json) = call.json {
            made.body = json;
            made = made.header("content-type", "application/json");
        }
        for (name, value) in call.headers {
            made = made.header(name, value);
        }
        Box::pin(async { made.make().await.map_err(|error| error.to_string()) })
    }
}

/// The sender of requests.
type Sender = hyper::client::conn::http1::SendRequest<Full<Bytes>>;

/// The sentence of a refusal (RFC 9457), to be put behind its status; empty: it has none.
pub(crate) async fn detail_of(answer: Response<Incoming>) -> String {
    let (host, timeout) = (String::new(), Duration::from_secs(5));
    let Ok(body) = whole(answer.into_body(), host, timeout, MAX_REFUSAL).await else {
        return String::new();
    };
    let problem: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    let detail = problem["detail"].as_str().map(|it| format!(": {it}"));
    detail.unwrap_or_default()
}

/// The longest refusal that is read, in bytes.
const MAX_REFUSAL: usize = 16 << 10;

/// Reads the whole body of an answer.
async fn whole(body: Incoming, host: String, timeout: Duration, max_body: usize) -> Result<Bytes, HttpError> {
    let body = http_body_util::Limited::new(body, max_body);
    match tokio::time::timeout(timeout, body.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) => Err(HttpError::Connection {
            host,
            reason: error.to_string(),
        }),
        Err(_) => Err(HttpError::Late(host)),
    }
}

/// A connection that goes on from call to call.
#[derive(Default)]
pub struct KeepAliveConnection(Option<Sender>);

impl KeepAliveConnection {
    /// Makes a call, and reads the whole answer. A connection that is known to have ended is replaced. What was sent is not
    /// sent again.
    ///
    /// # Errors
    /// As for [`ClientRequest::make`], and when the connection ends only then.
    pub async fn make_once(&mut self, call: ClientRequest) -> Result<(StatusCode, Bytes), HttpError> {
        let (host, timeout, max_body) = (host_of(&call.url)?, call.timeout, call.max_body);
        let made = tokio::time::timeout(timeout, self.send(call, &host)).await;
        let answer = made.unwrap_or_else(|_| Err(HttpError::Late(host.clone())))?;
        let (sender, answer) = answer;
        let (status, answer) = (answer.status(), answer.into_body());
        let body = whole(answer, host, timeout, max_body).await?;
        self.0 = Some(sender);
        Ok((status, body))
    }

    async fn send(
        &mut self,
        call: ClientRequest,
        host: &str,
    ) -> Result<(Sender, Response<Incoming>), HttpError> {
        if let Some(mut kept) = self.0.take()
            && kept.ready().await.is_ok()
        {
            let answer = call.send_over(&mut kept, host).await?;
            return Ok((kept, answer));
        }
        let mut sender = call.connect(host).await?;
        let answer = call.send_over(&mut sender, host).await?;
        Ok((sender, answer))
    }
}

/// The host that a URL names, in the form of `Host`, errors and logs.
///
/// # Errors
/// If it is no URL that can be called. The part before an `@` is a secret that is never sent: it would only leak.
pub(crate) fn host_of(url: &str) -> Result<String, HttpError> {
    let url = url.parse::<Uri>().unwrap_or_default();
    match (url.scheme_str(), url.authority()) {
        (Some("http" | "https"), Some(authority)) if authority.as_str().contains('@') => Err(
            HttpError::Call("expected a URL without user and password".to_owned()),
        ),
        (Some("http" | "https"), Some(authority)) => Ok(authority.to_string()),
        _ => Err(HttpError::Call(
            "expected a URL http://HOST:PORT/ or https://HOST/".to_owned(),
        )),
    }
}

/// Checks the address of a server that is to be called later.
///
/// # Errors
/// If it cannot be called: what was expected.
pub fn check_url(url: &str) -> Result<(), String> {
    host_of(url).map(|_| ()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_shown_without_secrets() {
        for (url, expected) in [
            ("http://h/a@b", Ok("h")),
            ("https://h:1?a@b", Ok("h:1")),
            ("http://[::1]:80/", Ok("[::1]:80")),
            (
                "http://jack:secret@h/",
                Err("expected a URL without user and password"),
            ),
            (
                "http://jack@h:1/",
                Err("expected a URL without user and password"),
            ),
            (
                "ftp://jack:secret@h/",
                Err("expected a URL http://HOST:PORT/ or https://HOST/"),
            ),
            (
                "http://jack:sec ret@h/",
                Err("expected a URL http://HOST:PORT/ or https://HOST/"),
            ),
            (
                "127.0.0.1:8002",
                Err("expected a URL http://HOST:PORT/ or https://HOST/"),
            ),
        ] {
            let host = host_of(url).map_err(|error| error.to_string());
            assert_eq!(host.as_deref().map_err(String::as_str), expected, "{url}");
        }
    }
}
