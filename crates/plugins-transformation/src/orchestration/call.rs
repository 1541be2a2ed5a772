//! Nodes `call`: the request to another server, made of a node's inputs, and what its answer gives. What it is not: the order
//! in which servers are called.

use super::CallNode;
use super::data::{Datum, EncodedBody, HeaderChanges, headers_object, read_body};
use std::sync::Arc;
use std::time::Duration;
use weir_model::UpstreamTls;
use weir_plugin::headers::is_value;
use weir_plugin::{Connector, Headers, Subrequest, SubrequestResponse};
use weir_plugins_shared::http_request::{HttpServer, ServerCallRules, http_proxy};

/// Headers that belong to the caller's own connection and call.
const OWN: [&str; 2] = ["host", "accept-encoding"];

/// A node made ready for many calls.
pub(super) struct CompiledCall {
    server: Option<HttpServer>,
    /// The servers that addresses of calls may name; `None`: any.
    servers: Option<Vec<String>>,
    method: String,
    rules: ServerCallRules,
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
    pub(super) raw_body: Datum,
}

fn server(url: &str) -> Option<HttpServer> {
    let is_clean = url.bytes().all(|byte| byte.is_ascii_graphic());
    HttpServer::parse(url).filter(|_| is_clean)
}

/// How a server is named in the list of those that may be called.
fn place(server: &HttpServer) -> String {
    format!("{}:{}", server.host.to_ascii_lowercase(), server.port)
}

impl CompiledCall {
    /// # Errors
    /// The field that is wrong, and what was expected.
    pub(super) fn new(
        of: &CallNode,
        has_url: bool,
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
        let servers = match of.servers.iter().any(|name| name == "*") {
            true => None,
            false => {
                let mut servers: Vec<String> = address.iter().map(place).collect();
                for name in &of.servers {
                    let is_place = name.rsplit_once(':').is_some_and(|(host, port)| {
                        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
                    });
                    if !is_place {
                        let message =
                            format!("expected servers as `host:port`, or `*` for any, found {name:?}");
                        return Err(("servers", message));
                    }
                    servers.push(name.to_ascii_lowercase());
                }
                Some(servers)
            }
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
                connector: connector(of)?,
            },
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
        if let (Some(given), Some(servers)) = (&given, &self.servers)
            && !servers.contains(&place(given))
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
            if !OWN.iter().any(|own| name.eq_ignore_ascii_case(own)) {
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
            ..self.rules.clone()
        };
        Ok(server.request_with((&self.method, &target), &headers, body, &rules))
    }
}

/// What an answer gives; an error if the node has failed.
pub(super) fn response(answer: Option<SubrequestResponse>) -> Result<CallResponse, String> {
    let answer = answer.ok_or("there is no response in time, or it is too large")?;
    if !(200..300).contains(&answer.status) {
        return Err(format!("the status of the response is {}", answer.status));
    }
    let content_type = answer.headers.get(b"content-type");
    let body = read_body(content_type, &answer.body).map_err(|_| "the response is not valid JSON")?;
    Ok(CallResponse {
        status: answer.status,
        headers: headers_object(&answer.headers),
        body,
        raw_body: Datum::of_bytes(answer.body),
    })
}

fn connector(of: &CallNode) -> Result<Option<Arc<Connector>>, (&'static str, String)> {
    let proxy = match &of.proxy {
        None => None,
        Some(proxy) => {
            let proxy = http_proxy(proxy, of.proxy_authorization.as_deref());
            let expected = || ("proxy", "expected an address that begins with http://".to_owned());
            Some(proxy.ok_or_else(expected)?)
        }
    };
    if of
        .proxy_authorization
        .as_ref()
        .is_some_and(|it| !is_value(it.as_bytes()))
    {
        return Err((
            "proxy_authorization",
            "expected a value that a header can hold".to_owned(),
        ));
    }
    if proxy.is_none() && of.server_name.is_none() {
        return Ok(None);
    }
    let tls = UpstreamTls {
        verify: of.verify_tls,
        server_name: of.server_name.clone(),
        ..UpstreamTls::default()
    };
    Ok(Some(Arc::new(Connector::new(tls, proxy))))
}
