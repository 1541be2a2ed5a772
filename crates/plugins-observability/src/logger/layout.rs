//! The entries of loggers whose configuration names no fields.

use super::mask::Masks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_plugin::{CallRecord, Exchange, Variable};
use weir_telemetry::json;

/// The fields of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// Request, response, `latencies` in whole milliseconds, route, service, consumer, `client_ip`, `started_at`.
    #[default]
    Full,
    /// Request, response, server, upstream, `latency` and its parts in milliseconds with decimals, ids, `client_ip`.
    Plain,
    /// One flat object: `request_url`, `request_method`, `response_status`, … and `latency`.
    Event,
}

/// The sources of an entry.
pub struct LogRecord<'a> {
    /// The call.
    pub exchange: &'a Exchange,
    /// The engine's facts about it.
    pub record: &'a CallRecord<'a>,
    /// The names whose values must not be reported.
    pub masks: &'a Masks,
    /// What layouts call the gateway itself.
    pub own_name: &'a str,
    /// The request's body, if it is to be reported.
    pub request_body: Option<&'a [u8]>,
    /// The response's.
    pub response_body: Option<&'a [u8]>,
}

impl Layout {
    /// Appends the entry's fields, without the braces around them.
    pub fn write(self, out: &mut Vec<u8>, account: &LogRecord<'_>) {
        match self {
            Self::Full | Self::Event if account.record.session.is_some() => account.session(out),
            Self::Plain if account.record.session.is_some() => account.plain_session(out),
            Self::Full => account.full(out),
            Self::Plain => account.plain(out),
            Self::Event => account.event(out),
        }
    }
}

impl LogRecord<'_> {
    fn full(&self, out: &mut Vec<u8>) {
        let (exchange, record) = (self.exchange, self.record);
        json::name(out, "request");
        self.request(out);
        if !exchange.request_id().is_empty() {
            out.pop();
            text_field(out, "id", exchange.request_id().as_bytes());
            out.push(b'}');
        }
        json::name(out, "response");
        self.response(out);
        if let Some(status) = record.upstream_status {
            text_field(
                out,
                "upstream_status",
                itoa::Buffer::new().format(status).as_bytes(),
            );
        }
        let upstream_us = record.upstream_us.unwrap_or(0).min(record.total_us);
        json::name(out, "latencies");
        out.push(b'{');
        number_field(out, "request", record.total_us / 1000);
        json::key(out, self.own_name);
        json::number(out, (record.total_us - upstream_us) / 1000);
        number_field(out, "proxy", upstream_us / 1000);
        number_field(out, "receive", 0);
        out.push(b'}');
        self.tries(out);
        self.names(out);
        json::name(out, "client_ip");
        json::address(out, exchange.request.client);
        number_field(out, "started_at", record.started_ms);
        let source = match exchange.response.is_gateway {
            true => self.own_name,
            false => "upstream",
        };
        text_field(out, "source", source.as_bytes());
    }

    fn tries(&self, out: &mut Vec<u8>) {
        json::name(out, "tries");
        out.push(b'[');
        if let Some(upstream) = self.record.upstream {
            out.push(b'{');
            json::name(out, "ip");
            json::address(out, upstream.ip());
            number_field(out, "port", upstream.port().into());
            out.push(b'}');
        }
        out.push(b']');
    }

    /// A session of a stream route: no request, no response, and no time of an upstream.
    fn session(&self, out: &mut Vec<u8>) {
        let (request, record) = (&self.exchange.request, self.record);
        json::name(out, "session");
        self.session_facts(out);
        json::name(out, "latencies");
        out.push(b'{');
        number_field(out, "session", record.total_us / 1000);
        json::key(out, self.own_name);
        json::number(out, 0);
        out.push(b'}');
        self.tries(out);
        self.names(out);
        json::name(out, "client_ip");
        json::address(out, request.client);
        number_field(out, "started_at", record.started_ms);
    }

    fn session_facts(&self, out: &mut Vec<u8>) {
        let (request, record) = (&self.exchange.request, self.record);
        out.push(b'{');
        text_field(out, "protocol", record.session.unwrap_or_default().as_bytes());
        number_field(out, "status", record.status.into());
        number_field(out, "received", record.bytes_in);
        number_field(out, "sent", record.bytes_out);
        number_field(out, "server_port", request.local.port().into());
        if let Some(name) = &request.sni {
            text_field(out, "server_name", name.as_bytes());
        }
        out.push(b'}');
    }

    fn plain_session(&self, out: &mut Vec<u8>) {
        let (exchange, record) = (self.exchange, self.record);
        json::name(out, "session");
        self.session_facts(out);
        self.server(out);
        if let Some(upstream) = record.upstream {
            text_field(out, "upstream", upstream.to_string().as_bytes());
        }
        let service = Variable::ServiceId.read(exchange).unwrap_or_default();
        text_field(out, "service_id", &service);
        let route = exchange.route.as_ref().map_or("", |facts| &facts.name);
        text_field(out, "route_id", route.as_bytes());
        json::name(out, "client_ip");
        json::address(out, exchange.request.client);
        number_field(out, "start_time", record.started_ms);
        json::name(out, "latency");
        json::millis(out, record.total_us);
    }

    fn server(&self, out: &mut Vec<u8>) {
        json::name(out, "server");
        out.push(b'{');
        text_field(out, "hostname", self.record.hostname.as_bytes());
        text_field(out, "version", env!("CARGO_PKG_VERSION").as_bytes());
        out.push(b'}');
    }

    /// Route, service, consumer and credential, each as an object.
    fn names(&self, out: &mut Vec<u8>) {
        if let Some(facts) = &self.exchange.route {
            for (object, name) in [("route", &facts.name), ("service", &facts.service)] {
                json::name(out, object);
                out.push(b'{');
                text_field(out, "name", name.as_bytes());
                out.push(b'}');
            }
        }
        if let Some(identity) = &self.exchange.identity {
            json::name(out, "consumer");
            out.push(b'{');
            text_field(out, "id", identity.consumer.id.as_bytes());
            for (name, value) in [
                ("username", &identity.consumer.username),
                ("custom_id", &identity.consumer.custom_id),
            ] {
                if let Some(value) = value {
                    text_field(out, name, value.as_bytes());
                }
            }
            out.push(b'}');
            if let Some(credential) = &identity.credential_id {
                json::name(out, "authenticated_entity");
                out.push(b'{');
                text_field(out, "id", credential.as_bytes());
                out.push(b'}');
            }
        }
    }

    fn plain(&self, out: &mut Vec<u8>) {
        let (exchange, record) = (self.exchange, self.record);
        json::name(out, "request");
        self.request(out);
        json::name(out, "response");
        self.response(out);
        self.server(out);
        if let Some(upstream) = record.upstream {
            text_field(out, "upstream", upstream.to_string().as_bytes());
        }
        match &exchange.route {
            Some(facts) => {
                let service = Variable::ServiceId.read(exchange).unwrap_or_default();
                text_field(out, "service_id", &service);
                text_field(out, "route_id", facts.name.as_bytes());
            }
            None => {
                text_field(out, "service_id", &exchange.request.host);
                text_field(out, "route_id", b"no-matched");
            }
        }
        if let Some(identity) = &exchange.identity {
            let consumer = &identity.consumer;
            json::name(out, "consumer");
            out.push(b'{');
            let name = consumer.username.as_deref().unwrap_or(&consumer.id);
            text_field(out, "username", name.as_bytes());
            out.push(b'}');
        }
        json::name(out, "client_ip");
        json::address(out, exchange.request.client);
        number_field(out, "start_time", record.started_ms);
        json::name(out, "latency");
        json::millis(out, record.total_us);
        if let Some(upstream_us) = record.upstream_us {
            json::name(out, "upstream_latency");
            json::millis(out, upstream_us);
        }
        json::comma(out);
        out.push(b'"');
        json::part(out, self.own_name.as_bytes());
        out.extend_from_slice(b"_latency\":");
        json::millis(
            out,
            record.total_us.saturating_sub(record.upstream_us.unwrap_or(0)),
        );
    }

    fn event(&self, out: &mut Vec<u8>) {
        let (exchange, record) = (self.exchange, self.record);
        json::name(out, "request_url");
        Masks::write_url(out, &exchange.request, &self.masks.uri(&exchange.request));
        text_field(out, "request_method", &exchange.request.method);
        json::name(out, "request_headers");
        self.masks.write_request_headers(out, &exchange.request);
        json::name(out, "request_query");
        let query = exchange.request.query.as_deref().unwrap_or_default();
        self.masks.write_arguments(out, query);
        number_field(out, "request_size", record.bytes_in);
        json::name(out, "response_headers");
        self.masks.write_headers(out, &exchange.response.headers);
        number_field(out, "response_status", record.status.into());
        number_field(out, "response_size", record.bytes_out);
        json::name(out, "latency");
        json::millis(out, record.total_us);
        if let Some(upstream) = record.upstream {
            text_field(out, "upstream", upstream.to_string().as_bytes());
        }
    }

    fn request(&self, out: &mut Vec<u8>) {
        let request = &self.exchange.request;
        out.push(b'{');
        text_field(out, "method", &request.method);
        let uri = self.masks.uri(request);
        text_field(out, "uri", &uri);
        json::name(out, "url");
        Masks::write_url(out, request, &uri);
        number_field(out, "size", self.record.bytes_in);
        json::name(out, "querystring");
        self.masks
            .write_arguments(out, request.query.as_deref().unwrap_or_default());
        json::name(out, "headers");
        self.masks.write_request_headers(out, request);
        if let Some(body) = self.request_body {
            text_field(out, "body", body);
        }
        out.push(b'}');
    }

    fn response(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        number_field(out, "status", self.record.status.into());
        number_field(out, "size", self.record.bytes_out);
        json::name(out, "headers");
        self.masks.write_headers(out, &self.exchange.response.headers);
        if let Some(body) = self.response_body {
            text_field(out, "body", body);
        }
        out.push(b'}');
    }
}

fn text_field(out: &mut Vec<u8>, name: &'static str, text: &[u8]) {
    json::name(out, name);
    json::text(out, text);
}

fn number_field(out: &mut Vec<u8>, name: &'static str, number: u64) {
    json::name(out, name);
    json::number(out, number);
}
