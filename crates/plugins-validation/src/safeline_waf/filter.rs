//! An instance of `safeline-waf` at work: asks a detector about a call, and does what the answer and the mode say.

use super::t1k::{Detection, DetectorResponse, Verdict, question};
use super::{Config, Mode, NAME};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use weir_plugin::{
    Condition, Conversation, ConversationTls, Exchange, Filter, Outcome, Phases, RefusalKind, Reply, Request,
};

/// Facts about a call, as the protocol numbers them.
const NEW_VERSION: u8 = 0x01;
const REMOTE_PORT: u8 = 0x11;
const LOCAL_PORT: u8 = 0x12;
const REMOTE_ADDRESS: u8 = 0x13;
const LOCAL_ADDRESS: u8 = 0x14;
const SERVER_NAME: u8 = 0x15;
const SCHEME: u8 = 0x16;
const PROXY_NAME: u8 = 0x17;
const UUID: u8 = 0x18;
const RESPONSE_IF_PASSED: u8 = 0x19;
const RESPONSE_IF_BLOCKED: u8 = 0x1a;
const BEGIN_TIME: u8 = 0x1b;

/// An instance of `safeline-waf`.
pub(super) struct DetectorFilter {
    config: Config,
    conditions: Vec<Condition>,
    turn: AtomicUsize,
}

/// A question that is being answered.
struct DetectionRequest {
    node: usize,
    since: Instant,
}

impl DetectorFilter {
    pub(super) fn new(config: Config, conditions: Vec<Condition>) -> Self {
        Self {
            config,
            conditions,
            turn: AtomicUsize::new(0),
        }
    }

    /// Puts a header on the response that says something of the check.
    fn set_header(&self, exchange: &mut Exchange, what: &str, value: &str) {
        if let Some(header) = &self.config.header {
            let name = format!("{header}{what}");
            exchange.response_headers.set(name.as_bytes(), value.as_bytes());
        }
    }

    fn set_error_header(&self, exchange: &mut Exchange, error: &str) {
        if self.config.debug_headers {
            self.set_header(exchange, "-ERROR", error);
        }
    }

    fn set_server_header(&self, exchange: &mut Exchange, node: usize) {
        if let Some(node) = self.config.nodes.get(node).filter(|_| self.config.debug_headers) {
            self.set_header(exchange, "-SERVER", &node.host);
        }
    }

    /// Whether a call is checked. One of whose body it cannot be said is.
    fn is_checked(&self, exchange: &Exchange) -> bool {
        let mut conditions = self.conditions.iter();
        self.conditions.is_empty()
            || conditions.any(|condition| condition.evaluate_strict(exchange).unwrap_or(true))
    }

    fn ask(&self, exchange: &mut Exchange, index: usize) -> Outcome {
        let (config, node) = (&self.config, &self.config.nodes[index]);
        let started_us = exchange.unix_ms().saturating_mul(1_000).to_string();
        let id = exchange.ensure_request_id().to_owned();
        let request = &mut exchange.request;
        let start = request.body_start.take();
        let body = request.body.as_deref().or(start.as_deref());
        let body = body.map(|body| &body[..body.len().min(config.max_body_bytes)]);
        let body = body.filter(|body| !body.is_empty());
        let address = match config.real_client_ip {
            true => request.client,
            false => request.peer.ip(),
        };
        let port = match config.real_client_ip {
            true => request.client_port.unwrap_or(request.peer.port()),
            false => request.peer.port(),
        };
        let texts = [
            address.to_string(),
            port.to_string(),
            request.local.ip().to_string(),
            request.local.port().to_string(),
        ];
        let [address, port, local_address, local_port] = texts.each_ref().map(|text| text.as_bytes());
        let facts = [
            (NEW_VERSION, &b""[..]),
            (REMOTE_PORT, port),
            (LOCAL_PORT, local_port),
            (REMOTE_ADDRESS, address),
            (LOCAL_ADDRESS, local_address),
            (SERVER_NAME, &request.host),
            (SCHEME, request.scheme().as_bytes()),
            (PROXY_NAME, b"weir"),
            (UUID, id.as_bytes()),
            // Responses are not reported.
            (RESPONSE_IF_PASSED, b"n"),
            (RESPONSE_IF_BLOCKED, b"n"),
            (BEGIN_TIME, started_us.as_bytes()),
        ];
        let question = question(&head(request), body, &facts);
        let since = Instant::now();
        exchange
            .filter_state
            .put(self, DetectionRequest { node: index, since });
        Outcome::Converse(Box::new(Conversation {
            host: node.host.clone(),
            port: node.port,
            tls: ConversationTls::None,
            connector: None,
            tag: "t1k".to_owned(),
            timeout: Duration::from_millis(config.timeout_ms),
            keep: (config.pool_size > 0).then(|| {
                (
                    config.pool_size,
                    Duration::from_millis(config.pool_idle_timeout_ms),
                )
            }),
            dialogue: Box::new(Detection::new(question)),
        }))
    }

    /// What becomes of a call about which the detector was asked.
    fn evaluate(&self, exchange: &mut Exchange, asked: &DetectionRequest) -> Outcome {
        let took = asked.since.elapsed();
        self.set_server_header(exchange, asked.node);
        self.set_header(exchange, "-TIME", &took.as_millis().to_string());
        let answer = exchange.filter_state.take_answer::<Option<DetectorResponse>>();
        let Some(answer) = answer.flatten().and_then(|answer| *answer) else {
            return self.failed(exchange, took);
        };
        self.set_header(exchange, "", "yes");
        if self.config.mode == Mode::Block {
            for (name, value) in &answer.headers {
                exchange.response_headers.append(name, value);
            }
        }
        match answer.verdict {
            Verdict::Passed => {
                self.set_header(exchange, "-STATUS", "200");
                self.set_header(exchange, "-ACTION", "pass");
                Outcome::Continue
            }
            Verdict::Blocked { status, event_id } => {
                self.set_header(exchange, "-STATUS", &status.to_string());
                self.set_header(exchange, "-ACTION", "reject");
                if self.config.mode == Mode::Monitor {
                    tracing::warn!(plugin = NAME, event_id, "a call would have been refused");
                    return Outcome::Continue;
                }
                tracing::info!(plugin = NAME, event_id, "a call is refused");
                let body = format!(
                    "{{\"code\": {status}, \"success\":false, \"message\": \"blocked by Chaitin SafeLine Web \
                     Application Firewall\", \"event_id\": \"{event_id}\"}}\n"
                );
                Outcome::Reply(Box::new(Reply::new(status, "application/json", body)))
            }
        }
    }

    /// What becomes of a call that the detector says nothing of.
    fn failed(&self, exchange: &mut Exchange, took: Duration) -> Outcome {
        let is_late = took >= Duration::from_millis(self.config.timeout_ms);
        let (word, reason) = match is_late {
            true => ("timeout", "the detector does not answer in time"),
            false => ("waf-err", "the detector gives no answer that can be used"),
        };
        self.set_header(exchange, "", word);
        self.set_error_header(exchange, reason);
        if self.config.mode == Mode::Monitor {
            tracing::warn!(plugin = NAME, "a call is not checked: {reason}");
            return Outcome::Continue;
        }
        Outcome::refuse(RefusalKind::PluginFailed { plugin: NAME, reason })
    }
}

/// The head of a call as in HTTP/1.1, as the caller has written it.
fn head(request: &Request) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(&request.method);
    out.push(b' ');
    out.extend_from_slice(&request.raw_path);
    if let Some(query) = &request.query {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    let (major, minor) = request.version;
    out.extend_from_slice(format!(" HTTP/{major}.{minor}\r\n").as_bytes());
    if !request.headers.contains(b"host") {
        out.extend_from_slice(b"Host: ");
        out.extend_from_slice(&request.host);
        out.extend_from_slice(b"\r\n");
    }
    request.headers.write_lines(&mut out);
    match request.content_length {
        Some(length) => out.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes()),
        None if request.has_body && major == 1 => {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        None => {}
    }
    out.extend_from_slice(b"\r\n");
    out
}

impl Filter for DetectorFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.conditions.iter().any(Condition::needs_body)
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(asked) = exchange.filter_state.take::<_, DetectionRequest>(self) {
            return self.evaluate(exchange, &asked);
        }
        let nodes = self.config.nodes.len();
        if nodes == 0 {
            self.set_header(exchange, "", "err");
            self.set_error_header(exchange, "missing metadata");
            let reason = "there is no detector";
            return Outcome::refuse(RefusalKind::PluginFailed { plugin: NAME, reason });
        }
        let unchecked = match self.config.mode {
            Mode::Off => Some("off"),
            _ => (!self.is_checked(exchange)).then_some("no"),
        };
        let request = &exchange.request;
        let wants_body = request.has_body && request.body.is_none() && self.config.max_body_bytes > 0;
        if unchecked.is_none() && wants_body && exchange.filter_state.mark_body_requested(self) {
            return Outcome::NeedBodyStart {
                max_bytes: self.config.max_body_bytes,
            };
        }
        let node = self.turn.fetch_add(1, Ordering::Relaxed) % nodes;
        match unchecked {
            Some(word) => {
                self.set_server_header(exchange, node);
                self.set_header(exchange, "", word);
                Outcome::Continue
            }
            None => self.ask(exchange, node),
        }
    }
}
