//! HTTP to a ClickHouse server: its address, the user, and one call for each statement.

use crate::http::ClientRequest;
use hyper::{Method, StatusCode, Uri};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::Duration;
use weir_analytics::clickhouse::Transport;

/// Until the head of an answer is there, and then until its end.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The most characters of the server's words in an error.
const MAX_DETAIL: usize = 300;
const EXPECTED: &str = "expected clickhouse://[USER@]HOST[:PORT]/DATABASE, with ?tls=required for TLS";

/// A server, a database in it, and in whose name it is asked.
#[derive(Clone)]
pub struct ClickhouseServer {
    /// `http://HOST:PORT/?database=NAME`, or with `https`.
    url: String,
    user: String,
    password: Option<String>,
}

/// Passwords are not shown.
impl std::fmt::Debug for ClickhouseServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut output = formatter.debug_struct("ClickhouseServer");
        output
            .field("url", &self.url)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl ClickhouseServer {
    /// Reads `clickhouse://[USER@]HOST[:PORT]/DATABASE[?tls=required]`.
    ///
    /// # Errors
    /// If it is no such URL, or holds a password.
    pub fn read(url: &str) -> Result<Self, String> {
        // What stands behind `?` may be a password, and is not repeated.
        let wrong = || {
            format!(
                "{EXPECTED}; found '{}'",
                url.split('?').next().unwrap_or_default()
            )
        };
        let uri: Uri = url.parse().map_err(|_| EXPECTED.to_owned())?;
        let authority = uri.authority().map_or("", |it| it.as_str());
        let (user, host) = authority.rsplit_once('@').unwrap_or(("default", authority));
        if user.contains(':') {
            // What holds a password is not repeated.
            return Err("the URL holds a password; give it by --analytics-store-password-file".to_owned());
        }
        let database = uri.path().trim_matches('/');
        let is_tls = match uri.query() {
            None => false,
            Some("tls=required") => true,
            Some(_) => return Err(wrong()),
        };
        if uri.scheme_str() != Some("clickhouse")
            || host.is_empty()
            || user.is_empty()
            || database.contains('/')
        {
            return Err(wrong());
        }
        let database = if database.is_empty() { "default" } else { database };
        let (scheme, port) = if is_tls { ("https", 8443) } else { ("http", 8123) };
        let port = match uri.port_u16() {
            Some(_) => String::new(),
            None => format!(":{port}"),
        };
        Ok(Self {
            url: format!(
                "{scheme}://{host}{port}/?database={}",
                utf8_percent_encode(database, NON_ALPHANUMERIC)
            ),
            user: user.to_owned(),
            password: None,
        })
    }

    /// With a password.
    #[must_use]
    pub fn with_password(self, password: Option<String>) -> Self {
        Self { password, ..self }
    }

    fn call(&self, sql: &str, rows: Option<Vec<u8>>) -> ClientRequest {
        let (url, body) = match rows {
            Some(rows) => {
                let sql = utf8_percent_encode(sql, NON_ALPHANUMERIC);
                (format!("{}&query={sql}", self.url), rows)
            }
            None => (self.url.clone(), sql.as_bytes().to_vec()),
        };
        let call = ClientRequest {
            method: Method::POST,
            body,
            timeout: TIMEOUT,
            ..ClientRequest::get(url)
        };
        let call = call.header("x-clickhouse-user", self.user.clone());
        match &self.password {
            Some(password) => call.header("x-clickhouse-key", password.clone()),
            None => call,
        }
    }
}

/// To be used on a thread of a tokio runtime that may block.
impl Transport for ClickhouseServer {
    fn send(&self, sql: &str, rows: Option<Vec<u8>>) -> Result<Vec<u8>, String> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| error.to_string())?;
        let (status, body) = runtime
            .block_on(self.call(sql, rows).make())
            .map_err(|error| error.to_string())?;
        match status {
            StatusCode::OK => Ok(body.to_vec()),
            status => {
                let detail: String = String::from_utf8_lossy(&body).chars().take(MAX_DETAIL).collect();
                Err(format!("{status}: {}", detail.trim()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_those_with_passwords_refused() {
        for (url, expected) in [
            (
                "clickhouse://ch.example/weir",
                Some("default http://ch.example:8123/?database=weir"),
            ),
            (
                "clickhouse://ann@ch.example:9000/we%20ir?tls=required",
                Some("ann https://ch.example:9000/?database=we%2520ir"),
            ),
            (
                "clickhouse://[::1]/?tls=required",
                Some("default https://[::1]:8443/?database=default"),
            ),
            ("clickhouse://ann:secret@ch.example/weir", None),
            ("http://ch.example/weir", None),
            ("clickhouse://ch.example/weir?tls=no", None),
            ("clickhouse://ch.example/weir?password=secret", None),
            ("clickhouse:///weir", None),
            ("weir", None),
        ] {
            let read = ClickhouseServer::read(url);
            let credentials = read.as_ref().ok().map(|it| format!("{} {}", it.user, it.url));
            assert_eq!(credentials.as_deref(), expected, "{url}: {read:?}");
            if let Err(reason) = read {
                assert!(!reason.contains("secret"), "{reason}");
            }
        }
        let server = ClickhouseServer::read("clickhouse://ch.example/weir").expect("good");
        let server = server.with_password(Some("s3cret".to_owned()));
        assert!(!format!("{server:?}").contains("s3cret"));
        let call = server.call("SELECT 1", None);
        assert!(!call.url.contains("s3cret") && call.headers.iter().any(|(_, value)| value == "s3cret"));
    }
}
