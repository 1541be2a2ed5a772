//! Nodes `call`: the request to another server, made of a node's inputs, and what its answer gives. What it is not: the order
//! in which servers are called.

use super::CallNode;
use super::data::{Datum, EncodedBody, HeaderChanges, headers_object, read_body};
use super::servers::{Servers, place};
use std::sync::Arc;
use std::time::Duration;
use weir_model::UpstreamTls;
use weir_plugin::headers::is_value;
use weir_plugin::{Connector, Headers, HttpProxy, Subrequest, SubrequestResponse, WorkBudget};
use weir_plugins_shared::http_request::{HttpServer, ServerCallRules, http_proxy, is_of_call};

/// A node made ready for many calls.
pub(super) struct CompiledCall {
    server: Option<HttpServer>,
    /// Those that addresses of calls may name.
    servers: Servers,
    method: String,
    rules: ServerCallRules,
    /// Further rules for connections to addresses that begin with `https://`.
    https: Option<Arc<Connector>>,
    /// Whether a node gets the body as it came.
    wants_raw: bool,
}

/// What a request is made of.
pub(super) struct RequestParts {
    pub(super) url: Option<String>,
    pub(super) headers: HeaderChanges,
    pub(super) query: Option<String>,
    pub(super) body: Option<EncodedBody>,
}

/// What an answer gives.
pub(super) struct CallResponse {
    pub(super) status: u16,
    pub(super) headers: Datum,
    pub(super) body: Datum,
    /// `None`: it is not wanted.
    pub(super) raw_body: Option<Datum>,
}

fn server(url: &str) -> Option<HttpServer> {
    let is_clean = url.bytes().all(|byte| byte.is_ascii_graphic());
    HttpServer::parse(url).filter(|_| is_clean)
}

impl CompiledCall {
    /// # Errors
    /// The field that is wrong, and what was expected.
    pub(super) fn new(
        of: &CallNode,
        (has_url, wants_raw): (bool, bool),
        max_answer_bytes: usize,
    ) -> Result<Self, (&'static str, String)> {
        let expected = || {
            (
                "url",
                "expected an address that begins with http:// or https://".to_owned(),
            )
        };
        let address = match &of.url {
            Some(url) => Some(server(url).ok_or_else(expected)?),
            None if has_url => None,
            None => return Err(("url", "expected an address, or an input `url`".to_owned())),
        };
        let is_method = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase());
        if !is_method(&of.method) {
            return Err(("method", "expected a method in capital letters".to_owned()));
        }
        if !(1..=60_000).contains(&of.timeout_ms) {
            return Err(("timeout_ms", "expected 1 to 60000 milliseconds".to_owned()));
        }
        let own = address.iter().map(place).collect();
        let servers = Servers::read(&of.servers, own).map_err(|message| ("servers", message))?;
        let proxy = proxy(of.proxy.as_deref(), of, "proxy")?;
        let https = match of.https_proxy.as_deref() {
            None => proxy.clone(),
            Some("") => None,
            https => self::proxy(https, of, "https_proxy")?,
        };
        Ok(Self {
            server: address,
            servers,
            method: of.method.clone(),
            rules: ServerCallRules {
                verify_tls: of.verify_tls,
                timeout: Duration::from_millis(of.timeout_ms),
                pool_size: 16,
                pool_idle_timeout: Duration::from_secs(60),
                max_answer_bytes,
                connector: connector(of, proxy),
            },
            https: connector(of, https),
            wants_raw,
        })
    }

    /// The request for these parts, which may take no longer than so.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn request(&self, parts: &RequestParts, left: Duration) -> Result<Subrequest, &'static str> {
        let given = match &parts.url {
            Some(url) => Some(server(url).ok_or("the address is none of http:// or https://")?),
            None => None,
        };
        if given
            .as_ref()
            .is_some_and(|given| !self.servers.allow(&place(given)))
        {
            return Err("the address names a server that `servers` does not allow");
        }
        let server = given
            .as_ref()
            .or(self.server.as_ref())
            .ok_or("there is no address")?;
        let mut target = server.target.clone();
        if let Some(query) = parts.query.as_ref().filter(|query| !query.is_empty()) {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str(query);
        }
        let mut headers = Headers::default();
        for (name, values) in &parts.headers {
            if !is_of_call(name.as_bytes()) {
                values
                    .iter()
                    .for_each(|value| headers.append(name.as_bytes(), value.as_bytes()));
            }
        }
        let body = parts.body.as_ref();
        if let Some(content_type) = body.and_then(|body| body.content_type)
            && !headers.contains(b"content-type")
        {
            headers.append(b"Content-Type", content_type.as_bytes());
        }
        let body = body.map_or(&[][..], |body| &body.bytes);
        let rules = ServerCallRules {
            timeout: self.rules.timeout.min(left),
            connector: match server.is_https {
                true => self.https.clone(),
                false => self.rules.connector.clone(),
            },
            ..self.rules.clone()
        };
        Ok(server.request_with((&self.method, &target), &headers, body, &rules))
    }

    /// What an answer gives.
    ///
    /// # Errors
    /// Why the node has failed.
    pub(super) fn response(
        &self,
        answer: Option<SubrequestResponse>,
        work: &WorkBudget,
    ) -> Result<CallResponse, String> {
        let answer = answer.ok_or("there is no response in time, or it is too large")?;
        // No call asks for a part, which would be kept and used as the whole.
        if !(200..300).contains(&answer.status) || answer.status == 206 {
            return Err(format!("the status of the response is {}", answer.status));
        }
        let content_type = answer.headers.get(b"content-type");
        let body =
            read_body(content_type, &answer.body, work).map_err(|_| "the response is not valid JSON")?;
        Ok(CallResponse {
            status: answer.status,
            headers: headers_object(&answer.headers),
            body,
            raw_body: self.wants_raw.then(|| Datum::of_bytes(answer.body)),
        })
    }
}

fn proxy(
    address: Option<&str>,
    of: &CallNode,
    field: &'static str,
) -> Result<Option<HttpProxy>, (&'static str, String)> {
    let authorization = of.proxy_authorization.as_deref();
    if authorization.is_some_and(|it| !is_value(it.as_bytes())) {
        return Err((
            "proxy_authorization",
            "expected a value that a header can hold".to_owned(),
        ));
    }
    match address {
        None => Ok(None),
        Some(address) => match http_proxy(address, authorization) {
            Some(proxy) => Ok(Some(proxy)),
            None => Err((field, "expected an address that begins with http://".to_owned())),
        },
    }
}

fn connector(of: &CallNode, proxy: Option<HttpProxy>) -> Option<Arc<Connector>> {
    if proxy.is_none() && of.server_name.is_none() {
        return None;
    }
    let tls = UpstreamTls {
        verify: of.verify_tls,
        server_name: of.server_name.clone(),
        ..UpstreamTls::default()
    };
    Some(Arc::new(Connector::new(tls, proxy)))
}
