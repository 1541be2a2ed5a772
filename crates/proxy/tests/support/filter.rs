//! A plugin that does what its configuration says, to reach the engine's work for filters.

use serde_json::Value;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;
use weir_model::Diagnostic;
use weir_model::{UpstreamHost, UpstreamTls};
use weir_plugin::{
    BackgroundRequest, BodyFilter, BufferResponse, BuildContext, CallRecord, Connector, Conversation,
    ConversationTls, DestinationId, Exchange, Filter, Headers, HttpProxy, KafkaAnswer, KafkaSource,
    LogDelivery, LogEntry, LogTarget, MessageFilter, MessageKind, MessageViolation, Outcome, Phases, Plugin,
    ProtocolDriver, Received, RefusalKind, Reply, Step, Subrequest, Suspend, TargetOverride, WebSocketSide,
    log_receipt,
};

/// `host`: the upstream gets this one; with `host_yields` it gives way to the route's own. `reply_headers` (name,
/// value) stand in the answer of `reply`. `need_body` (bytes): asks for the body, sets its size in a request header;
/// with `need_start`, a longer one's first bytes are seen.
/// `reply`: answers with this body. `replace`: puts this body in place of the response's. `status`: the response's
/// status. `set`: sets these headers (name, value) on the request and on the response. `double`: doubles every byte of
/// the response's body, with a `.` at its end. `settle`: takes the trailer `x-status`, appends it to the body and, if
/// the head is held for so many bytes (0: it is not), makes it the status; with `lets_go` a larger body goes on.
/// `wait_ms`: waits before it goes on. `to`: sends the call to this service. `copy_to`: sends a background message to
/// this port. `ask`: asks the server at this port for half a second at most, sets the answer in a request header; with
/// `ask_proxy` through the HTTP proxy at that port. `talk`: says a line to the server at this port and sets the line
/// that comes back in a request header. `log`: logs calls (see `log_target`). `panic`: panics on calls of this path, in
/// `panic_in` (`request`, `response` or `body`). `ask_certificate`: asks clients for a certificate; sets in a request
/// header how many they have shown. `response_wait` (`time`, `ask`, `talk`, `reply`, `refuse`, `body`, `empty`): what is waited for
/// before the response goes on, or that its status becomes 204 then; the port of `ask` and `talk` is in the same object. `repeat_on` (statuses): the call is
/// sent once more after these, with a header that says so; with `gives_up` it is refused then. `publish`: sends the path
/// as an entry to this target (see `log_target`), waits until it is taken, and answers `taken` or `lost`. `read_kafka`:
/// answers with records (see `kafka`), with `events` as a stream.
pub struct Puppet;

struct PuppetFilter {
    need_body: Option<usize>,
    need_start: bool,
    reply: Option<String>,
    reply_headers: Vec<(String, String)>,
    host: Option<String>,
    host_yields: bool,
    replace: Option<String>,
    status: Option<u16>,
    set: Vec<(String, String)>,
    double: bool,
    settle: Option<usize>,
    lets_go: bool,
    wait_ms: Option<u64>,
    to: Option<DestinationId>,
    elsewhere: Option<Box<TargetOverride>>,
    max_message: Option<usize>,
    copy_to: Option<u16>,
    ask: Option<u16>,
    connector: Option<Arc<Connector>>,
    talk: Option<u16>,
    log: Option<(Arc<LogTarget>, usize)>,
    publish: Option<Arc<LogTarget>>,
    read_kafka: Option<Arc<KafkaSource>>,
    events: bool,
    panic: Option<(String, String)>,
    ask_certificate: bool,
    response_wait: Option<(String, u16)>,
    repeat_on: Option<Arc<[u16]>>,
    gives_up: bool,
}

/// Bounds messages of WebSockets, and refuses those with a `!`.
struct MaxMessage(usize);

impl MessageFilter for MaxMessage {
    fn max_bytes(&self, _: WebSocketSide) -> Option<usize> {
        Some(self.0)
    }

    fn reads(&self, _: WebSocketSide, kind: MessageKind) -> bool {
        kind == MessageKind::Text
    }

    fn check(&self, _: WebSocketSide, _: MessageKind, message: &[u8]) -> Result<(), MessageViolation> {
        match message.contains(&b'!') {
            false => Ok(()),
            true => Err(MessageViolation {
                code: 1007,
                reason: "!".into(),
            }),
        }
    }
}

/// That a call has waited.
struct WaitMarker;

/// Doubles every byte.
struct Double;

impl BodyFilter for Double {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        out.extend(data.iter().flat_map(|byte| [*byte, *byte]));
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.push(b'.');
    }
}

/// Panics.
struct Panic;

impl BodyFilter for Panic {
    fn piece(&mut self, _: &[u8], _: &mut Vec<u8>) {
        panic!("{}", super::ON_PURPOSE);
    }

    fn end(&mut self, _: &mut Vec<u8>) {}
}

/// Looks for a status in the trailers.
#[derive(Default)]
struct Settle(Vec<u8>);

impl BodyFilter for Settle {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(data);
    }

    fn trailers(&mut self, trailers: &mut Headers) {
        self.0 = trailers.get(b"x-status").unwrap_or_default().to_vec();
        trailers.remove(b"x-status");
    }

    fn head(&mut self, status: &mut u16, headers: &mut Headers) {
        headers.append(b"X-Settled", b"1");
        let text = std::str::from_utf8(&self.0).ok();
        *status = text.and_then(|text| text.parse().ok()).unwrap_or(*status);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        out.push(b' ');
        out.extend_from_slice(&self.0);
    }
}

impl Plugin for Puppet {
    fn name(&self) -> &'static str {
        "puppet"
    }

    fn works_on_streams(&self) -> bool {
        true
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::Schema::default()
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let text = |name: &str| config[name].as_str().map(str::to_owned);
        let need_body = config["need_body"].as_u64().map(|bytes| bytes as usize);
        Ok(Arc::new(PuppetFilter {
            need_body,
            need_start: config["need_start"].as_bool().unwrap_or(false),
            reply: text("reply"),
            reply_headers: serde_json::from_value(config["reply_headers"].clone()).unwrap_or_default(),
            host: text("host"),
            host_yields: config["host_yields"].as_bool().unwrap_or(false),
            replace: text("replace"),
            status: config["status"].as_u64().map(|status| status as u16),
            set: serde_json::from_value(config["set"].clone()).unwrap_or_default(),
            double: config["double"].as_bool().unwrap_or(false),
            settle: config["settle"].as_u64().map(|bytes| bytes as usize),
            lets_go: config["lets_go"].as_bool().unwrap_or(false),
            wait_ms: config["wait_ms"].as_u64(),
            to: text("to").map(|service| context.destination(&service, &UpstreamHost::Client)),
            elsewhere: config["elsewhere"].is_object().then(|| {
                let place = &config["elsewhere"];
                Box::new(TargetOverride {
                    upstream: place["upstream"].as_str().map(str::to_owned),
                    host: place["host"].as_str().map(str::to_owned),
                    port: place["port"].as_u64().map(|port| port as u16),
                    only_if_healthy: place["only_if_healthy"].as_bool().unwrap_or(false),
                })
            }),
            max_message: config["max_message"].as_u64().map(|bytes| bytes as usize),
            copy_to: config["copy_to"].as_u64().map(|port| port as u16),
            ask: config["ask"].as_u64().map(|port| port as u16),
            connector: config["ask_proxy"].as_u64().map(|port| {
                let proxy = HttpProxy {
                    host: "127.0.0.1".to_owned(),
                    port: port as u16,
                    authorization: Some("Basic eA==".to_owned()),
                };
                Arc::new(Connector::new(UpstreamTls::default(), Some(proxy)))
            }),
            talk: config["talk"].as_u64().map(|port| port as u16),
            log: super::log_target(&config["log"]),
            publish: super::log_target(&config["publish"]).map(|(target, _)| target),
            read_kafka: super::kafka::source(&config["read_kafka"]),
            events: config["events"].as_bool().unwrap_or(false),
            panic: text("panic").map(|path| (path, text("panic_in").unwrap_or_default())),
            ask_certificate: config["ask_certificate"].as_bool().unwrap_or(false),
            response_wait: serde_json::from_value(config["response_wait"].clone()).unwrap_or_default(),
            repeat_on: serde_json::from_value(config["repeat_on"].clone()).unwrap_or_default(),
            gives_up: config["gives_up"].as_bool().unwrap_or(false),
        }))
    }
}

impl PuppetFilter {
    fn is_to_panic(&self, phase: &str, exchange: &Exchange) -> bool {
        let on = |(path, at): &(String, String)| at == phase && exchange.request.raw_path == path.as_bytes();
        self.panic.as_ref().is_some_and(on)
    }

    fn published(&self, target: &Arc<LogTarget>, exchange: &mut Exchange) -> Outcome {
        let Some(delivery) = exchange.filter_state.get_mut::<_, LogDelivery>(self) else {
            let (receipt, delivery) = log_receipt();
            exchange.filter_state.put(self, delivery);
            return Outcome::Publish(Box::new(LogEntry {
                target: Arc::clone(target),
                bytes: exchange.request.raw_path.clone(),
                origin: None,
                receipt: Some(receipt),
            }));
        };
        match delivery.is_taken() {
            None => Outcome::Suspend(Suspend::event(delivery.known(), super::TIMEOUT)),
            Some(is_taken) => {
                let outcome = if is_taken { "taken" } else { "lost" };
                Outcome::Reply(Box::new(Reply::new(200, "text/plain", outcome)))
            }
        }
    }

    fn panic_in(&self, phase: &str, exchange: &Exchange) {
        assert!(!self.is_to_panic(phase, exchange), "{}", super::ON_PURPOSE);
    }
}

/// Says `new` or `again`, and reads one line. After a line that begins with `bye` the connection is not used again.
#[derive(Default)]
struct Talk(String);

impl ProtocolDriver for Talk {
    fn begin(&mut self, is_new: bool) -> Step {
        let line: &[u8] = if is_new { b"new\n" } else { b"again\n" };
        Step::Write(line.to_vec())
    }

    fn next(&mut self, received: &mut Received<'_>) -> Step {
        let Some(end) = received.bytes().iter().position(|byte| *byte == b'\n') else {
            return Step::Read;
        };
        self.0 = String::from_utf8_lossy(&received.bytes()[..end]).into_owned();
        received.consume(end + 1);
        match self.0.as_str() {
            "fail" => Step::Fail,
            "bye" => Step::Close(b"bye\n".to_vec()),
            _ => Step::Done,
        }
    }

    fn finish(self: Box<Self>) -> Box<dyn Any> {
        Box::new(self.0)
    }
}

fn conversation(port: u16) -> Conversation {
    Conversation {
        host: "127.0.0.1".to_owned(),
        port,
        tls: ConversationTls::None,
        connector: None,
        tag: "talk".to_owned(),
        timeout: Duration::from_millis(500),
        keep: Some((1, Duration::from_secs(60))),
        dialogue: Box::new(Talk::default()),
    }
}

fn subrequest(port: u16, connector: Option<&Arc<Connector>>) -> Subrequest {
    Subrequest {
        host: "127.0.0.1".to_owned(),
        port,
        tls: None,
        message: b"GET /question HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
        timeout: Duration::from_millis(500),
        keep: Some((1, Duration::from_secs(60))),
        max_body_bytes: 8,
        connector: connector.map(Arc::clone),
    }
}

impl Filter for PuppetFilter {
    fn phases(&self) -> Phases {
        Phases {
            log: self.log.is_some(),
            ..Phases::BOTH
        }
    }

    fn requests_client_certificate(&self) -> bool {
        self.ask_certificate
    }

    fn on_log(&self, exchange: &mut Exchange, record: &CallRecord<'_>, out: &mut Vec<LogEntry>) {
        if let Some((target, size)) = &self.log {
            let path = String::from_utf8_lossy(&exchange.request.raw_path).into_owned();
            let mut bytes = format!("{path} {} {};", record.status, record.bytes_out > 0).into_bytes();
            bytes.resize(bytes.len().max(*size), b'.');
            let target = Arc::clone(target);
            let origin = None;
            out.push(LogEntry {
                target,
                bytes,
                origin,
                receipt: None,
            });
        }
    }

    fn on_waiting_response(&self, exchange: &mut Exchange) -> Outcome {
        let Some((what, port)) = &self.response_wait else {
            return Outcome::Continue;
        };
        let has_waited = exchange.filter_state.take::<_, WaitMarker>(self).is_some();
        exchange.filter_state.put(self, WaitMarker);
        let text = match (what.as_str(), has_waited) {
            ("time", false) => return Outcome::Suspend(Suspend::time(Duration::from_millis(1))),
            ("delay", false) => return Outcome::Delay(Duration::from_millis(1)),
            ("ask", false) => return Outcome::Subrequest(Box::new(subrequest(*port, None))),
            ("talk", false) => return Outcome::Converse(Box::new(conversation(*port))),
            ("reply", false) if !exchange.response.is_gateway => {
                return Outcome::Reply(Box::new(Reply::new(299, "text/plain", "instead")));
            }
            ("refuse", false) if !exchange.response.is_gateway => {
                return Outcome::refuse(RefusalKind::UpstreamFailed);
            }
            ("ask", true) => match exchange.subrequest_response.take().flatten() {
                Some(answer) => answer.body,
                None => b"none".to_vec(),
            },
            ("talk", true) => match exchange.filter_state.take_answer::<String>().flatten() {
                Some(line) => line.into_bytes(),
                None => b"none".to_vec(),
            },
            ("empty", _) => {
                exchange.response.status = 204;
                b"waited".to_vec()
            }
            ("body", _) => exchange.response.replaced_body.clone().unwrap_or_default(),
            _ => b"waited".to_vec(),
        };
        exchange.response.headers.append(b"X-Waited", &text);
        Outcome::Continue
    }

    fn on_refused(&self, exchange: &mut Exchange) -> Outcome {
        if self.gives_up {
            return Outcome::refuse(RefusalKind::UpstreamFailed);
        }
        if exchange.filter_state.take::<_, WaitMarker>(self).is_none() {
            exchange.filter_state.put(self, WaitMarker);
            return Outcome::Suspend(Suspend::time(Duration::from_millis(1)));
        }
        exchange.request.headers.append(b"X-Again", b"1");
        Outcome::Continue
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        self.panic_in("request", exchange);
        exchange.repeat_on.clone_from(&self.repeat_on);
        if self.ask_certificate {
            let shown = exchange.request.client_certificates.as_ref();
            let count = shown.map_or(0, |shown| shown.chain.len()).to_string();
            exchange.request.headers.set(b"X-Shown", count.as_bytes());
        }
        for (name, value) in &self.set {
            exchange.request.headers.set(name.as_bytes(), value.as_bytes());
        }
        if let Some(time) = self.wait_ms
            && exchange.filter_state.take::<_, WaitMarker>(self).is_none()
        {
            exchange.filter_state.put(self, WaitMarker);
            return Outcome::Suspend(Suspend::time(Duration::from_millis(time)));
        }
        if let Some(target) = &self.publish {
            return self.published(target, exchange);
        }
        if let Some(source) = &self.read_kafka {
            return match exchange.filter_state.take_answer::<KafkaAnswer>().flatten() {
                None => super::kafka::read(source, self.events),
                Some(answer) => Outcome::Reply(Box::new(super::kafka::to_reply(&answer))),
            };
        }
        if let Some(port) = self.ask {
            match exchange.subrequest_response.take() {
                None => return Outcome::Subrequest(Box::new(subrequest(port, self.connector.as_ref()))),
                Some(None) => exchange.request.headers.append(b"X-Answer", b"none"),
                Some(Some(answer)) => {
                    let summary = [answer.status.to_string().as_bytes(), b" ", &answer.body].concat();
                    exchange.request.headers.append(b"X-Answer", &summary);
                }
            }
        }
        if let Some(port) = self.talk {
            match exchange.filter_state.take_answer::<String>() {
                None => return Outcome::Converse(Box::new(conversation(port))),
                Some(None) => exchange.request.headers.append(b"X-Answer", b"none"),
                Some(Some(line)) => exchange.request.headers.append(b"X-Answer", line.as_bytes()),
            }
        }
        if let Some(host) = &self.host {
            exchange.upstream_host = Some(host.clone().into_bytes());
            exchange.upstream_host_yields = self.host_yields;
        }
        exchange.destination = self.to;
        exchange.target_override = self.elsewhere.clone();
        let bound = self
            .max_message
            .map(|bytes| Arc::new(MaxMessage(bytes)) as Arc<dyn MessageFilter>);
        exchange.message_filters.extend(bound);
        exchange
            .background_requests
            .extend(self.copy_to.map(|port| BackgroundRequest {
                host: "127.0.0.1".to_owned(),
                port,
                message: b"GET /copy HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".to_vec(),
                timeout: Duration::from_secs(5),
            }));
        if let Some(body) = &self.reply {
            let mut reply = Reply::new(200, "text/plain", body.as_str());
            for (name, value) in &self.reply_headers {
                reply = reply.with_header(name.as_str(), value.as_str());
            }
            return Outcome::Reply(Box::new(reply));
        }
        let Some(max_bytes) = self.need_body else {
            return Outcome::Continue;
        };
        // A header of its own remembers that the engine was asked once.
        if !exchange.request.headers.contains(b"x-asked") {
            exchange.request.headers.append(b"X-Asked", b"1");
            return match self.need_start {
                true => Outcome::NeedBodyStart { max_bytes },
                false => Outcome::NeedBody { max_bytes },
            };
        }
        let request = &exchange.request;
        let seen = match (&request.body, &request.body_start) {
            (Some(body), _) => body.len().to_string(),
            (None, Some(start)) => format!("{} and more", start.escape_ascii()),
            (None, None) => "none".to_owned(),
        };
        exchange.request.headers.append(b"X-Body-Seen", seen.as_bytes());
        Outcome::Continue
    }

    fn on_response(&self, exchange: &mut Exchange) {
        self.panic_in("response", exchange);
        if self.is_to_panic("body", exchange) {
            exchange.response.body_filters.push(Panic);
        }
        for (name, value) in &self.set {
            exchange.response.headers.set(name.as_bytes(), value.as_bytes());
        }
        if let Some(status) = self.status {
            exchange.response.status = status;
        }
        if let Some(body) = &self.replace {
            exchange.response.replaced_body = Some(body.clone().into_bytes());
        }
        if let Some(bytes) = self.settle {
            let hold = if self.lets_go {
                BufferResponse::Prefix
            } else {
                BufferResponse::Whole
            };
            exchange.response.hold = (bytes > 0).then(|| hold(bytes));
            exchange.response.body_filters.push(Settle::default());
        }
        if self.double {
            exchange.response.body_filters.push(Double);
        }
        if let Some((what, _)) = &self.response_wait {
            exchange.response.waits = true;
            exchange.response.hold = (what == "body").then_some(BufferResponse::Whole(64));
        }
    }
}
