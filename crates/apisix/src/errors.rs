//! APISIX's dialect: refusals as APISIX, and the NGINX in it, word them.
//!
//! If APISIX itself answers, there is a short JSON text under a plain text's content type; if it only names a
//! status, NGINX's page for it stands. The pages here are Weir's own markup around the same headings.

use crate::settings::Settings;
use weir_plugin::error_renderer::ErrorRenderer;
use weir_plugin::uri::NormalForm;
use weir_plugin::{AuthFailure, Exchange, Refusal, RefusalKind, Reply, TokenDefect};

/// `Content-Type` of texts, JSON too.
pub const TEXT: &str = "text/plain; charset=utf-8";
/// `Content-Type` of pages.
pub const HTML: &str = "text/html; charset=utf-8";
/// APISIX's name for itself; clients of its Admin API read the version.
pub const SERVER: &str = "APISIX/3.18.0";

/// Its name by its `config.yaml`.
pub fn server(settings: &Settings) -> &'static str {
    match settings.enable_server_tokens {
        true => SERVER,
        false => "APISIX",
    }
}

/// Answers as Apache APISIX does.
#[derive(Debug, Clone, Copy)]
pub struct ApisixErrorRenderer {
    server: &'static str,
}

impl ApisixErrorRenderer {
    /// As `config.yaml` has it.
    pub fn new(settings: &Settings) -> Self {
        Self {
            server: server(settings),
        }
    }
}

impl Default for ApisixErrorRenderer {
    fn default() -> Self {
        Self::new(Settings::stock())
    }
}

impl ErrorRenderer for ApisixErrorRenderer {
    fn render(&self, refusal: &Refusal, _: &Exchange) -> Reply {
        let status = status(refusal);
        let mut reply = match words(refusal) {
            Some(("", message)) => Reply::new(status, TEXT, message),
            Some((field, message)) => {
                let mut body = serde_json::json!({ field: message }).to_string();
                body.push('\n');
                Reply::new(status, TEXT, body)
            }
            // NGINX names no charset for these two.
            None if matches!(status, 301 | 302) => Reply::new(status, "text/html", page(status)),
            None if reason(status).is_some() => Reply::new(status, HTML, page(status)),
            None => Reply::new(status, "", ""),
        };
        reply = reply.with_header("Server", self.server);
        if let Some(challenge) = &refusal.challenge {
            reply = reply.with_header("WWW-Authenticate", challenge.as_str());
        }
        for (name, value) in &refusal.headers {
            reply = reply.with_header(name.as_ref(), value.as_str());
        }
        reply
    }

    fn takes_asterisk(&self) -> bool {
        false
    }

    fn misdirected_status(&self) -> u16 {
        400
    }

    fn normal_form(&self) -> NormalForm {
        NormalForm::Decoded
    }
}

fn status(refusal: &Refusal) -> u16 {
    match refusal.kind {
        // NGINX has no page of its own for it.
        RefusalKind::HeadTooLarge => 400,
        RefusalKind::AnonymousConsumerMissing => 401,
        RefusalKind::Unauthenticated { plugin: "saml", .. } => 500,
        _ => refusal.status,
    }
}

/// The field and the text of a JSON body; without a field the text alone. `None`: the page of the status stands.
fn words(refusal: &Refusal) -> Option<(&'static str, &str)> {
    let message = refusal.message.as_deref();
    match &refusal.kind {
        RefusalKind::NoRoute => Some(("error_msg", message.unwrap_or("404 Route Not Found"))),
        RefusalKind::AnonymousConsumerMissing => {
            Some(("message", message.unwrap_or("Invalid user authorization")))
        }
        RefusalKind::Unauthenticated { plugin, failure } => Some((
            "message",
            message.unwrap_or_else(|| authentication(plugin, failure)),
        )),
        RefusalKind::PluginFailed { plugin, .. } if LOGINS.contains(plugin) => {
            message.map(|message| ("message", message))
        }
        RefusalKind::RateLimited | RefusalKind::QuotaSpent | RefusalKind::PluginFailed { .. } => {
            message.map(|message| ("error_msg", message))
        }
        RefusalKind::Forbidden { plugin } => message.map(|message| (field(plugin), message)),
        RefusalKind::Unacceptable {
            plugin: "openapi-validation",
        } => message.map(|message| ("message", message)),
        RefusalKind::Unacceptable { .. } => message.map(|message| ("", message)),
        _ => None,
    }
}

/// Plugins that put their failures into `message`.
const LOGINS: [&str; 4] = ["app-login", "authz-keycloak", "cas-login", "wolf-rbac"];

/// The field with a plugin's message.
fn field(plugin: &str) -> &'static str {
    match plugin {
        "csrf" | "uri-restriction" | "workflow" => "error_msg",
        _ => "message",
    }
}

fn authentication(plugin: &str, failure: &AuthFailure) -> &'static str {
    match (plugin, failure) {
        ("acl", _) => "Missing authentication.",
        ("multi-auth", _) => "Authorization Failed",
        ("saml", _) => "saml authentication failed",
        (_, AuthFailure::ConsumerMissing) => "Invalid user authorization",
        ("basic-auth" | "ldap-auth", AuthFailure::Missing) => "Missing authorization in request",
        ("basic-auth" | "ldap-auth", AuthFailure::Malformed) => "Invalid authorization in request",
        ("basic-auth" | "ldap-auth", _) => "Invalid user authorization",
        ("hmac-auth", AuthFailure::Missing) => {
            "client request can't be validated: missing Authorization header"
        }
        ("hmac-auth", AuthFailure::Malformed) => {
            "client request can't be validated: Authorization header does not start with 'Signature'"
        }
        ("hmac-auth", _) => "client request can't be validated",
        ("jwe-decrypt", AuthFailure::Missing) => "missing JWE token in request",
        ("jwe-decrypt", AuthFailure::Malformed) => "JWE token invalid",
        ("jwe-decrypt", AuthFailure::Token(TokenDefect::NoKeyClaim(_))) => "missing kid in JWE token",
        ("jwe-decrypt", AuthFailure::Token(TokenDefect::UnknownKey { .. })) => "invalid kid in JWE token",
        ("jwe-decrypt", _) => "failed to decrypt JWE token",
        ("jwt", AuthFailure::Missing) => "Missing JWT token in request",
        ("jwt", AuthFailure::Token(fault)) => match fault {
            // The original looks at these once it has found the consumer.
            TokenDefect::Malformed("alg" | "crit" | "signature") => "failed to verify jwt",
            TokenDefect::Malformed(_) => "JWT token invalid",
            TokenDefect::NoKeyClaim(_) => "missing user key in JWT token",
            TokenDefect::BadKeyClaim(_) | TokenDefect::UnknownKey { .. } => "Invalid user key in JWT token",
            _ => "failed to verify jwt",
        },
        ("jwt", _) => "failed to verify jwt",
        (_, AuthFailure::Missing) => "Missing API key in request",
        _ => "Invalid API key in request",
    }
}

/// The page of a status; empty where NGINX has none.
pub fn page(status: u16) -> String {
    let Some(reason) = reason(status) else {
        return String::new();
    };
    format!(
        "<!doctype html>\n<html>\n<head><title>{status} {reason}</title></head>\n\
         <body>\n<h1>{status} {reason}</h1>\n</body>\n</html>\n"
    )
}

/// NGINX's words for a status for which it has a page.
fn reason(status: u16) -> Option<&'static str> {
    Some(match status {
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Authorization Required",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Time-out",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Large",
        415 => "Unsupported Media Type",
        416 => "Requested Range Not Satisfiable",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Temporarily Unavailable",
        504 => "Gateway Time-out",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugin::{ClaimDefect, system_clock};

    /// As the original, which answers any mismatch of server name, host and client certificate so.
    #[test]
    fn calls_on_a_connection_for_another_host_are_bad_requests() {
        let status = ApisixErrorRenderer::default().misdirected_status();
        let refusal = Refusal::with_status(RefusalKind::BadRequest("the Host"), status);
        assert_eq!((status, rendered(&refusal).status), (400, 400));
    }

    fn unauthenticated(plugin: &'static str, failure: AuthFailure) -> RefusalKind {
        RefusalKind::Unauthenticated { plugin, failure }
    }

    fn rendered(refusal: &Refusal) -> Reply {
        ApisixErrorRenderer::default().render(refusal, &Exchange::new(system_clock, 1))
    }

    fn words(kind: RefusalKind) -> (u16, String) {
        let reply = rendered(&Refusal::new(kind));
        assert_eq!(reply.content_type, TEXT);
        let body: serde_json::Value = serde_json::from_slice(&reply.body).expect("JSON");
        let (field, text) = body
            .as_object()
            .and_then(|map| map.iter().next())
            .expect("a field");
        (
            reply.status,
            format!("{field}: {}", text.as_str().unwrap_or_default()),
        )
    }

    #[test]
    fn refusals_are_worded_as_recorded() {
        let token = |fault| unauthenticated("jwt", AuthFailure::Token(fault));
        let claims = TokenDefect::Claims(vec![("exp".to_owned(), ClaimDefect::Expired)]);
        let unknown = TokenDefect::UnknownKey {
            claim: "key".to_owned(),
            value: "x".to_owned(),
        };
        let key_auth = |failure| unauthenticated("key-auth", failure);
        for (kind, status, text) in [
            (RefusalKind::NoRoute, 404, "error_msg: 404 Route Not Found"),
            (
                key_auth(AuthFailure::Missing),
                401,
                "message: Missing API key in request",
            ),
            (
                key_auth(AuthFailure::Invalid),
                401,
                "message: Invalid API key in request",
            ),
            (
                unauthenticated("jwt", AuthFailure::Missing),
                401,
                "message: Missing JWT token in request",
            ),
            (
                token(TokenDefect::Malformed("header")),
                401,
                "message: JWT token invalid",
            ),
            (
                token(TokenDefect::NoKeyClaim("key".to_owned())),
                401,
                "message: missing user key in JWT token",
            ),
            (token(unknown), 401, "message: Invalid user key in JWT token"),
            (
                token(TokenDefect::BadSignature),
                401,
                "message: failed to verify jwt",
            ),
            (token(claims), 401, "message: failed to verify jwt"),
            (
                RefusalKind::AnonymousConsumerMissing,
                401,
                "message: Invalid user authorization",
            ),
        ] {
            assert_eq!(words(kind.clone()), (status, text.to_owned()), "{kind:?}");
        }
    }

    #[test]
    fn statuses_without_words_have_pages() {
        for (kind, status, heading) in [
            (RefusalKind::RateLimited, 429, "429 Too Many Requests"),
            (RefusalKind::MethodNotAllowed, 405, "405 Not Allowed"),
            (RefusalKind::HeadTooLarge, 400, "400 Bad Request"),
            (RefusalKind::UriTooLong, 414, "414 Request-URI Too Large"),
            (RefusalKind::UpstreamTimeout, 504, "504 Gateway Time-out"),
            (RefusalKind::NoService, 503, "503 Service Temporarily Unavailable"),
        ] {
            let reply = rendered(&Refusal::new(kind.clone()));
            assert_eq!(
                (reply.status, reply.content_type.as_ref()),
                (status, HTML),
                "{kind:?}"
            );
            let body = String::from_utf8(reply.body).expect("a text");
            assert!(body.contains(&format!("<h1>{heading}</h1>")), "{kind:?}: {body}");
        }
    }

    #[test]
    fn whoever_finds_no_anonymous_consumer_is_challenged() {
        let refusal = Refusal {
            challenge: Some("Basic realm=\"basic\"".to_owned()),
            ..Refusal::new(RefusalKind::AnonymousConsumerMissing)
        };
        let challenge = ("WWW-Authenticate".to_owned(), b"Basic realm=\"basic\"".into());
        assert!(rendered(&refusal).headers.contains(&challenge));
    }

    #[test]
    fn messages_challenges_and_headers_are_sent_along() {
        let refusal = Refusal {
            status: 430,
            challenge: Some("apikey realm=\"key\"".to_owned()),
            headers: vec![("X-A".into(), "1".to_owned())],
            ..Refusal::new(RefusalKind::RateLimited)
        };
        let reply = rendered(&refusal);
        assert_eq!((reply.status, reply.body.len()), (430, 0));
        let names: Vec<&str> = reply.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Server", "WWW-Authenticate", "X-A"]);
        let refusal = Refusal {
            message: Some("slow down".to_owned()),
            ..refusal
        };
        let reply = rendered(&refusal);
        assert_eq!(reply.body, b"{\"error_msg\":\"slow down\"}\n");
    }
}
