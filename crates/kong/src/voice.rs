//! Kong's voice: its words, and the form in which it puts them.
//!
//! There are three kinds of answers. What its router and its plugins refuse, and what its web server does, has the
//! form that `Accept` asks for; without `Accept` the former is JSON and the latter plain text. Some plugins answer
//! with JSON of their own, whatever the caller accepts.

mod accept;
mod words;

use accept::{Form, preferred};
use weir_plugin::uri::NormalForm;
use weir_plugin::voice::Voice;
use weir_plugin::{Exchange, Refusal, RefusalKind, Reply};
use words::Words;

/// How Kong names itself in `Server` and `Via`.
pub const PSEUDONYM: &str = "kong/3.9.3";

/// Answers refusals as Kong does.
#[derive(Debug, Clone, Copy, Default)]
pub struct KongVoice;

impl Voice for KongVoice {
    fn render(&self, refusal: &Refusal, exchange: &Exchange) -> Reply {
        let words = words::of(refusal, exchange);
        let status = words.status.unwrap_or(refusal.status);
        let accept = exchange.request.headers.get(b"accept");
        let id = exchange.request_id();
        let mut reply = match &words.text {
            Words::Own(body) => form(Form::Json, status, body.clone().into_bytes()),
            Words::Negotiated { message, by } => {
                let message = refusal.message.as_deref().unwrap_or(message);
                let is_grpc = accept.is_some_and(|accept| accept.starts_with(b"application/grpc"));
                match (by, accept) {
                    (words::Speaker::Server, None) => write(Form::Plain, status, message, id),
                    (words::Speaker::Server, Some(_)) if is_grpc => {
                        form(Form::Json, status, json(message, None).into_bytes())
                    }
                    (words::Speaker::Router, Some(_)) if is_grpc => Reply::new(status, "", Vec::new())
                        .with_header("grpc-status", grpc_status(status))
                        .with_header("grpc-message", message.as_bytes()),
                    (_, accept) => write(preferred(accept), status, message, id),
                }
            }
        };
        for (name, value) in &words.headers {
            reply = reply.with_header(*name, *value);
        }
        if let Some(challenge) = &refusal.challenge {
            reply = reply.with_header("WWW-Authenticate", challenge.as_bytes());
        }
        for (name, value) in &refusal.headers {
            reply = reply.with_header(name.as_ref(), value.as_bytes());
        }
        reply = reply.with_header("Server", PSEUDONYM);
        if matches!(refusal.kind, RefusalKind::NoRoute) {
            // Calls without a route have no stamps of one, and take well under a millisecond.
            reply = reply
                .with_header("X-Kong-Response-Latency", "0")
                .with_header("X-Kong-Request-Id", id);
        }
        reply
    }

    fn normal_form(&self) -> NormalForm {
        NormalForm::Encoded
    }
}

fn form(form: Form, status: u16, body: Vec<u8>) -> Reply {
    Reply::new(status, form.content_type(), body)
}

fn write(wanted: Form, status: u16, message: &str, id: &str) -> Reply {
    let body = match wanted {
        Form::Json => json(message, Some(id)),
        Form::Plain => format!("{message}\nrequest_id: {id}\n"),
        Form::Html => format!(
            "<!doctype html>\n<html>\n  <head>\n    <meta charset=\"utf-8\">\n    <title>Error</title>\n  </head>\n  \
             <body>\n    <h1>Error</h1>\n    <p>{}.</p>\n    <p>request_id: {id}</p>\n  </body>\n</html>\n",
            escape(message)
        ),
        Form::Xml => format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<error>\n  <message>{}</message>\n  \
             <requestid>{id}</requestid>\n</error>\n",
            escape(message)
        ),
    };
    form(wanted, status, body.into_bytes())
}

fn json(message: &str, id: Option<&str>) -> String {
    let message = serde_json::Value::from(message);
    match id {
        Some(id) => format!("{{\n  \"message\":{message},\n  \"request_id\":\"{id}\"\n}}"),
        None => format!("{{\"message\":{message}}}"),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The gRPC status for an HTTP status, by gRPC's own mapping.
fn grpc_status(status: u16) -> &'static str {
    match status {
        400 => "13",
        401 => "16",
        403 => "7",
        404 => "12",
        429 | 502..=504 => "14",
        _ => "2",
    }
}
