//! The error renderer of the native dialect: refusals as problem documents (RFC 9457).

use serde_json::{Map, Value, json};
use std::borrow::Cow;
use weir_plugin::error_renderer::ErrorRenderer;
use weir_plugin::uri::NormalForm;
use weir_plugin::{AuthFailure, ClaimDefect, Exchange, NotOpen, Refusal, RefusalKind, Reply, TokenDefect};

/// Answers with `application/problem+json`. `type` names the kind of problem and is what programs should look
/// at; `title` belongs to it; `detail` is for people; `request_id` leads to the call's log line.
#[derive(Debug, Clone, Copy, Default)]
pub struct NativeErrorRenderer;

/// The problem types are this with the kind's word behind.
const TYPES: &str = "urn:weir:problem:";

impl ErrorRenderer for NativeErrorRenderer {
    fn render(&self, refusal: &Refusal, exchange: &Exchange) -> Reply {
        let title = title(refusal);
        let detail = match &refusal.message {
            Some(message) => Cow::Borrowed(message.as_str()),
            None => detail(refusal),
        };
        let mut problem = Map::new();
        let kind = refusal.kind.as_str().replace('_', "-");
        problem.insert("type".to_owned(), Value::from(format!("{TYPES}{kind}")));
        problem.insert("title".to_owned(), Value::from(title));
        problem.insert("status".to_owned(), json!(refusal.status));
        problem.insert("detail".to_owned(), Value::from(detail));
        if !exchange.request_id().is_empty() {
            problem.insert("request_id".to_owned(), Value::from(exchange.request_id()));
        }
        let mut reply = Reply::new(
            refusal.status,
            "application/problem+json",
            Value::Object(problem).to_string(),
        );
        // A missing anonymous consumer is a fault of the configuration, which no credential mends.
        let is_callers = refusal.kind != RefusalKind::AnonymousConsumerMissing;
        if let Some(challenge) = refusal.challenge.as_ref().filter(|_| is_callers) {
            reply = reply.with_header("WWW-Authenticate", challenge.as_str());
        }
        for (name, value) in &refusal.headers {
            reply = reply.with_header(name.as_ref(), value.as_str());
        }
        with_protocol_headers(reply, refusal)
    }

    fn normal_form(&self) -> NormalForm {
        NormalForm::Unambiguous
    }
}

/// Headers that the status itself calls for (RFC 9110, 15.5.22).
fn with_protocol_headers(reply: Reply, refusal: &Refusal) -> Reply {
    match (&refusal.kind, refusal.status) {
        (RefusalKind::HttpsRequired, 426) => reply
            .with_header("Upgrade", "TLS/1.2, HTTP/1.1")
            .with_header("Connection", "Upgrade"),
        _ => reply,
    }
}

/// Whether a server that a plugin needs has failed, and not its configuration.
fn is_servers_fault(refusal: &Refusal) -> bool {
    matches!(refusal.kind, RefusalKind::PluginFailed { .. }) && matches!(refusal.status, 502..=504)
}

fn title(refusal: &Refusal) -> &'static str {
    if is_servers_fault(refusal) {
        return "Required service failed";
    }
    match &refusal.kind {
        RefusalKind::BadRequest(_) => "Bad request",
        RefusalKind::MethodNotAllowed => "Method not allowed",
        RefusalKind::RequestTimeout => "Request timed out",
        RefusalKind::BodyTooLarge => "Body too large",
        RefusalKind::UriTooLong => "Request target too long",
        RefusalKind::ExpectationFailed => "Expectation failed",
        RefusalKind::HeadTooLarge => "Header fields too large",
        RefusalKind::NotImplemented => "Not implemented",
        RefusalKind::VersionNotSupported => "HTTP version not supported",
        RefusalKind::NoRoute => "No route",
        RefusalKind::NoService => "No service",
        RefusalKind::HttpsRequired => "HTTPS required",
        RefusalKind::NoTarget => "No target available",
        RefusalKind::NameResolution => "Name resolution failed",
        RefusalKind::ConnectFailed => "Connection to the upstream failed",
        RefusalKind::UpstreamFailed => "Upstream failed",
        RefusalKind::UpstreamTimeout => "Upstream timed out",
        RefusalKind::Overloaded => "Upstream overloaded",
        RefusalKind::Unauthenticated { .. } => "Unauthenticated",
        RefusalKind::AnonymousConsumerMissing | RefusalKind::PluginFailed { .. } => "Gateway misconfigured",
        RefusalKind::RateLimited => "Rate limit exceeded",
        RefusalKind::QuotaSpent => "Quota spent",
        RefusalKind::NotOpen { reason, .. } => match reason {
            NotOpen::NoSubscription => "No subscription",
            NotOpen::SubscriptionPaused => "Subscription paused",
            NotOpen::SubscriptionStopped => "Subscription stopped",
            NotOpen::SubscriptionEnded => "Subscription ended",
            NotOpen::SubscriptionNotBegun => "Subscription not begun",
            NotOpen::NotInPlan => "Operation not in the plan",
            NotOpen::Retired => "Retired",
        },
        RefusalKind::Forbidden { .. } => "Forbidden",
        RefusalKind::Unacceptable { .. } => "Request not acceptable",
        RefusalKind::WorkLimit => "Request too complex",
        _ => "Refused",
    }
}

fn detail(refusal: &Refusal) -> Cow<'static, str> {
    if is_servers_fault(refusal) {
        return Cow::Borrowed(
            "A service that this request needs gave an unexpected answer; try again later.",
        );
    }
    Cow::Borrowed(match &refusal.kind {
        RefusalKind::BadRequest(reason) => {
            return Cow::Owned(format!("The request is not well-formed: {reason}."));
        }
        RefusalKind::MethodNotAllowed => "This method is not allowed here.",
        RefusalKind::RequestTimeout => "The request did not arrive in time.",
        RefusalKind::BodyTooLarge => "The request body is larger than allowed here.",
        RefusalKind::UriTooLong => "The request target is longer than allowed.",
        RefusalKind::ExpectationFailed => "Only the expectation 100-continue can be met.",
        RefusalKind::HeadTooLarge => "The request's header fields are larger or more than allowed.",
        RefusalKind::NotImplemented => "The request uses a transfer coding that is not supported.",
        RefusalKind::VersionNotSupported => "This version of HTTP is not supported.",
        RefusalKind::NoRoute => "No route matches this request.",
        RefusalKind::NoService => "The route of this request leads to no service.",
        RefusalKind::HttpsRequired => "This request must be made over HTTPS.",
        RefusalKind::NoTarget => "No server of this API can take the request at the moment.",
        RefusalKind::NameResolution => "The name of the API's server cannot be resolved.",
        RefusalKind::ConnectFailed => "The gateway could not connect to the API's server.",
        RefusalKind::UpstreamFailed => "The API's server did not give a valid response.",
        RefusalKind::UpstreamTimeout => "The API's server did not answer in time.",
        RefusalKind::Overloaded => {
            "The API's servers have as many requests as they can bear; try again later."
        }
        RefusalKind::Unauthenticated { failure, .. } => return authentication_detail(failure),
        RefusalKind::AnonymousConsumerMissing => {
            "The consumer for unauthenticated calls, which the configuration names, does not exist."
        }
        RefusalKind::RateLimited => "The limit of calls is reached; try again later.",
        RefusalKind::QuotaSpent => "The quota of calls is used up until its next period begins.",
        RefusalKind::Forbidden { .. } | RefusalKind::NotOpen { .. } => "This request is not allowed.",
        RefusalKind::Unacceptable { .. } => "This request is not accepted here.",
        RefusalKind::WorkLimit => "Checking this request takes more work than is allowed for one request.",
        RefusalKind::PluginFailed { .. } => "The configuration does not fit this request.",
        _ => "The request was refused.",
    })
}

fn authentication_detail(failure: &AuthFailure) -> Cow<'static, str> {
    Cow::Borrowed(match failure {
        AuthFailure::Missing => "The request carries no credential.",
        AuthFailure::Duplicate => "The request carries more than one credential.",
        AuthFailure::Token(fault) => return token_detail(fault),
        AuthFailure::Malformed => "The credential cannot be read.",
        AuthFailure::Stale => "The request has no time, or its time is too far from the current time.",
        // Whether a credential is unknown or lacks its consumer is no one's business outside.
        _ => "The credential is not valid.",
    })
}

fn token_detail(fault: &TokenDefect) -> Cow<'static, str> {
    Cow::Borrowed(match fault {
        TokenDefect::Malformed(part) => return Cow::Owned(format!("The token cannot be read: {part}.")),
        TokenDefect::NoKeyClaim(claim) => {
            return Cow::Owned(format!("The token has no '{claim}', which names its credential."));
        }
        TokenDefect::BadKeyClaim(claim) => {
            return Cow::Owned(format!(
                "The token's '{claim}', which names its credential, is not a text."
            ));
        }
        TokenDefect::UnknownKey { .. } => "The token names a credential that does not exist.",
        TokenDefect::AlgorithmMismatch => "The token is signed with another algorithm than agreed.",
        TokenDefect::BadSignature => "The token's signature is wrong.",
        TokenDefect::Claims(faults) => {
            let faults: Vec<String> = faults
                .iter()
                .map(|(claim, fault)| format!("'{claim}' {}", claim_detail(*fault)))
                .collect();
            return Cow::Owned(format!("The token's claims do not hold: {}.", faults.join(", ")));
        }
        _ => "The token cannot be verified.",
    })
}

fn claim_detail(fault: ClaimDefect) -> &'static str {
    match fault {
        ClaimDefect::Missing => "is missing",
        ClaimDefect::NotANumber => "is not a number",
        ClaimDefect::Expired => "lies in the past",
        ClaimDefect::NotYetValid => "lies in the future",
        ClaimDefect::TooFarAhead => "lies too far ahead",
        _ => "has another value than it must",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugin::system_clock;

    fn rendered(refusal: &Refusal) -> (Reply, Value) {
        let reply = NativeErrorRenderer.render(refusal, &Exchange::new(system_clock, 1));
        let body = serde_json::from_slice(&reply.body).expect("JSON");
        (reply, body)
    }

    #[test]
    fn refusals_are_problem_documents() {
        let unauthenticated = |failure| RefusalKind::Unauthenticated {
            plugin: "jwt",
            failure,
        };
        for (kind, word, status, detail) in [
            (
                RefusalKind::NoRoute,
                "no-route",
                404,
                "No route matches this request.",
            ),
            (
                RefusalKind::QuotaSpent,
                "quota-spent",
                429,
                "The quota of calls is used up until its next period begins.",
            ),
            (
                RefusalKind::NotOpen {
                    plugin: "request-termination",
                    reason: NotOpen::NotInPlan,
                },
                "not-in-plan",
                403,
                "This request is not allowed.",
            ),
            (
                RefusalKind::BadRequest("a bare line feed"),
                "bad-request",
                400,
                "The request is not well-formed: a bare line feed.",
            ),
            (
                unauthenticated(AuthFailure::Missing),
                "unauthenticated",
                401,
                "The request carries no credential.",
            ),
            (
                unauthenticated(AuthFailure::ConsumerMissing),
                "unauthenticated",
                401,
                "The credential is not valid.",
            ),
            (
                unauthenticated(AuthFailure::Token(TokenDefect::Claims(vec![
                    ("exp".to_owned(), ClaimDefect::Expired),
                    ("nbf".to_owned(), ClaimDefect::Missing),
                ]))),
                "unauthenticated",
                401,
                "The token's claims do not hold: 'exp' lies in the past, 'nbf' is missing.",
            ),
        ] {
            let (reply, body) = rendered(&Refusal::new(kind));
            assert_eq!(reply.status, status);
            assert_eq!(reply.content_type, "application/problem+json");
            assert_eq!(body["type"], format!("{TYPES}{word}"));
            assert_eq!(body["status"], status);
            assert_eq!(body["detail"], detail);
            assert_eq!(body.get("request_id"), None);
        }
    }

    #[test]
    fn a_server_that_failed_is_told_from_a_wrong_configuration() {
        let reason = "the provider's answers lead nowhere";
        for (status, title) in [
            (500, "Gateway misconfigured"),
            (502, "Required service failed"),
            (503, "Required service failed"),
        ] {
            let plugin = "openid-connect";
            let refusal = Refusal::with_status(RefusalKind::PluginFailed { plugin, reason }, status);
            let (_, body) = rendered(&refusal);
            assert_eq!(body["title"], title);
            assert!(!body.to_string().contains(reason), "{body}");
        }
    }

    #[test]
    fn what_the_refusal_brings_is_passed_on() {
        let refusal = Refusal {
            challenge: Some("Key realm=\"x\"".to_owned()),
            message: Some("my words".to_owned()),
            headers: vec![(Cow::Borrowed("Retry-After"), "7".to_owned())],
            ..Refusal::with_status(RefusalKind::RateLimited, 503)
        };
        let mut exchange = Exchange::new(system_clock, 1);
        let id = exchange.ensure_request_id().to_owned();
        let reply = NativeErrorRenderer.render(&refusal, &exchange);
        let body: Value = serde_json::from_slice(&reply.body).expect("JSON");
        assert_eq!((reply.status, &body["status"]), (503, &json!(503)));
        assert_eq!(body["detail"], "my words");
        assert_eq!(body["request_id"], id);
        assert_eq!(
            reply.headers,
            [
                ("WWW-Authenticate".to_owned(), b"Key realm=\"x\"".to_vec()),
                ("Retry-After".to_owned(), b"7".to_vec()),
            ]
        );
    }
}
