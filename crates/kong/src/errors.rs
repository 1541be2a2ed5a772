//! `KongErrorRenderer`: refusals with Kong's messages, in Kong's formats.
//!
//! There are three kinds of answers. What its router and its plugins refuse, and what its web server does, has the
//! form that `Accept` asks for; without `Accept` the former is JSON and the latter plain text. Some plugins answer
//! with JSON of their own, whatever the caller accepts.

mod messages;
mod negotiate;

use messages::MessageText;
use negotiate::{Form, preferred};
use weir_plugin::error_renderer::ErrorRenderer;
use weir_plugin::uri::NormalForm;
use weir_plugin::{Exchange, Refusal, RefusalKind, Reply};

/// How Kong names itself in `Server` and `Via`.
pub const PSEUDONYM: &str = "kong/3.9.3";

/// The entry that `aws-lambda` and `azure-functions` add to `Via`. The original writes 2, whatever HTTP the call came
/// by.
pub const FUNCTION_VIA: &str = "2 kong/3.9.3";

/// Answers refusals as Kong does.
#[derive(Debug, Clone, Copy, Default)]
pub struct KongErrorRenderer;

impl ErrorRenderer for KongErrorRenderer {
    fn render(&self, refusal: &Refusal, exchange: &Exchange) -> Reply {
        let words = messages::of(refusal, exchange);
        let status = words.status.unwrap_or(refusal.status);
        let accept = exchange.request.headers.get(b"accept");
        let id = exchange.request_id();
        let mut reply = match &words.text {
            MessageText::Own(body) => form(Form::Json, status, body.clone().into_bytes()),
            MessageText::Negotiated { message, by } => {
                let message = refusal.message.as_deref().unwrap_or(message);
                let is_grpc = accept.is_some_and(|accept| accept.starts_with(b"application/grpc"));
                match (by, accept) {
                    (messages::MessageSource::Server, None) => write(Form::Plain, status, message, id),
                    (messages::MessageSource::Server, Some(_)) if is_grpc => {
                        form(Form::Json, status, json(message, None).into_bytes())
                    }
                    (messages::MessageSource::Router, Some(_)) if is_grpc => {
                        Reply::new(status, "", Vec::new())
                            .with_header("Content-Type", "")
                            .with_header("grpc-status", grpc_status(status))
                            .with_header("grpc-message", message.as_bytes())
                    }
                    (_, accept) => write(preferred(accept), status, message, id),
                }
            }
        };
        for (name, value) in &words.headers {
            reply = reply.with_header(*name, *value);
        }
        // A missing anonymous consumer is a fault of the configuration, which no credential mends.
        let is_callers = refusal.kind != RefusalKind::AnonymousConsumerMissing;
        if let Some(challenge) = refusal.challenge.as_ref().filter(|_| is_callers) {
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

    fn takes_asterisk(&self) -> bool {
        false
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugin::{AuthFailure, ClaimDefect, TokenDefect, system_clock};

    fn unauthenticated(plugin: &'static str, failure: AuthFailure) -> RefusalKind {
        RefusalKind::Unauthenticated { plugin, failure }
    }

    fn render(kind: RefusalKind, status: Option<u16>, headers: &[(&str, &str)]) -> (Reply, String) {
        let mut exchange = Exchange::new(system_clock, 1);
        exchange.ensure_request_id();
        for (name, value) in headers {
            exchange.request.headers.append(name.as_bytes(), value.as_bytes());
        }
        let status = status.unwrap_or(kind.status());
        let reply = KongErrorRenderer.render(&Refusal::with_status(kind, status), &exchange);
        let body = String::from_utf8_lossy(&reply.body).replace(exchange.request_id(), "ID");
        (reply, body)
    }

    #[test]
    fn refusals_are_put_in_kongs_words() {
        let json = |message: &str| format!("{{\n  \"message\":\"{message}\",\n  \"request_id\":\"ID\"\n}}");
        let plain = |message: &str| format!("{message}\nrequest_id: ID\n");
        let bad_gateway = "An invalid response was received from the upstream server";
        let anything = [("accept", "*/*")];
        let grpc = [("accept", "application/grpc")];
        for (kind, status, headers, expected_status, body) in [
            (
                RefusalKind::NoRoute,
                None,
                &[][..],
                404,
                json("no Route matched with those values"),
            ),
            (RefusalKind::NoRoute, None, &grpc, 404, String::new()),
            (
                RefusalKind::NoService,
                None,
                &[],
                503,
                json("no Service found with those values"),
            ),
            (
                RefusalKind::NoService,
                Some(415),
                &[],
                415,
                json("Non-gRPC request matched gRPC route"),
            ),
            (
                RefusalKind::NoService,
                Some(415),
                &[("content-type", "application/grpc")],
                426,
                json("Please use HTTP2 protocol"),
            ),
            (
                RefusalKind::HttpsRequired,
                None,
                &[],
                426,
                json("Please use HTTPS protocol"),
            ),
            (RefusalKind::BadRequest("x"), None, &[], 400, plain("Bad request")),
            (RefusalKind::ConnectFailed, None, &[], 502, plain(bad_gateway)),
            (
                RefusalKind::UpstreamFailed,
                None,
                &anything,
                502,
                json(bad_gateway),
            ),
            (
                RefusalKind::UpstreamFailed,
                None,
                &grpc,
                502,
                format!("{{\"message\":\"{bad_gateway}\"}}"),
            ),
        ] {
            let (reply, text) = render(kind.clone(), status, headers);
            assert_eq!(
                (reply.status, text),
                (expected_status, body),
                "{kind:?} {headers:?}"
            );
        }
    }

    #[test]
    fn refusals_of_plugins_are_put_in_kongs_words() {
        let json = |message: &str| format!("{{\n  \"message\":\"{message}\",\n  \"request_id\":\"ID\"\n}}");
        let plain = |message: &str| format!("{message}\nrequest_id: ID\n");
        for (kind, status, headers, expected_status, body) in [
            (
                RefusalKind::Answered {
                    plugin: "openid-connect",
                },
                Some(401),
                &[][..],
                401,
                json("Unauthorized"),
            ),
            (
                RefusalKind::Answered {
                    plugin: "openid-connect",
                },
                Some(403),
                &[("accept", "text/plain")],
                403,
                plain("Forbidden"),
            ),
            (
                RefusalKind::Forbidden { plugin: "opa" },
                None,
                &[],
                403,
                "{\"message\":\"unauthorized\"}".to_owned(),
            ),
            (
                unauthenticated("key-auth", AuthFailure::Missing),
                None,
                &[("accept", "text/plain")],
                401,
                plain("No API key found in request"),
            ),
            (
                unauthenticated("key-auth", AuthFailure::Invalid),
                None,
                &[("accept", "application/xml")],
                401,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<error>\n  <message>Unauthorized</message>\n  \
                 <requestid>ID</requestid>\n</error>\n"
                    .to_owned(),
            ),
        ] {
            let (reply, text) = render(kind.clone(), status, headers);
            assert_eq!(
                (reply.status, text),
                (expected_status, body),
                "{kind:?} {headers:?}"
            );
        }
    }

    #[test]
    fn tokens_are_refused_in_json_whatever_is_accepted() {
        let claims = vec![("nbf".to_owned(), ClaimDefect::NotYetValid)];
        for (failure, body) in [
            (AuthFailure::Missing, r#"{"message":"Unauthorized"}"#),
            (
                AuthFailure::Token(TokenDefect::Malformed("JSON")),
                r#"{"message":"Bad token; invalid JSON"}"#,
            ),
            (
                AuthFailure::Token(TokenDefect::NoKeyClaim("iss".to_owned())),
                r#"{"message":"No mandatory 'iss' in claims"}"#,
            ),
            (
                AuthFailure::Token(TokenDefect::Claims(claims)),
                r#"{"nbf":"token not valid yet"}"#,
            ),
        ] {
            let kind = unauthenticated("jwt", failure);
            assert_eq!(render(kind, None, &[("accept", "text/html")]).1, body);
        }
    }

    #[test]
    fn a_plugins_limit_of_bodies_has_words_of_its_own() {
        for (limit, waits, status, words) in [
            (None, false, 413, "Payload too large"),
            (Some(10), false, 413, "Request size limit exceeded"),
            (Some(10), true, 417, "Request size limit exceeded"),
        ] {
            let mut exchange = Exchange::new(system_clock, 1);
            exchange.request.max_body_bytes = limit;
            exchange.request.expects_continue = waits;
            let reply = KongErrorRenderer.render(&Refusal::new(RefusalKind::BodyTooLarge), &exchange);
            let body = String::from_utf8_lossy(&reply.body);
            assert_eq!((reply.status, body.contains(words)), (status, true), "{body}");
        }
    }

    #[test]
    fn configured_words_and_headers_are_used() {
        let refusal = Refusal {
            challenge: Some("Key".to_owned()),
            message: Some("slow \"down\" <now>".to_owned()),
            headers: vec![("Retry-After".into(), "7".to_owned())],
            ..Refusal::with_status(RefusalKind::RateLimited, 418)
        };
        let mut exchange = Exchange::new(system_clock, 1);
        let reply = KongErrorRenderer.render(&refusal, &exchange);
        assert!(String::from_utf8_lossy(&reply.body).contains(r#""message":"slow \"down\" <now>""#));
        for (name, value) in [
            ("WWW-Authenticate", "Key"),
            ("Retry-After", "7"),
            ("Server", PSEUDONYM),
        ] {
            assert!(reply.headers.contains(&(name.to_owned(), value.into())), "{name}");
        }
        exchange.request.headers.append(b"accept", b"text/html");
        let reply = KongErrorRenderer.render(&refusal, &exchange);
        assert!(String::from_utf8_lossy(&reply.body).contains("&lt;now&gt;"));
    }
}
