//! `webhook-signature`: lets webhooks pass that are signed as Standard Webhooks has it.
//!
//! ```yaml
//! secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
//! tolerance_seconds: 300
//! ```
//!
//! A call has the headers `webhook-id`, `webhook-timestamp` (seconds since the Unix epoch) and `webhook-signature`
//! (`v1,` and Base64), and a body.
//!
//! Security: a webhook can be repeated for as long as its time is good; the upstream must know the ids that it has seen.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, RefusalKind, Request, parse_config,
};

/// Configuration of `webhook-signature`. `Debug` does not show the secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The secret that both sides know, in Base64 (with or without `whsec_` before it).
    pub secret: String,
    /// Whether the secret is Base64. `false`: it is used as it is written.
    #[serde(default = "weir_plugins_shared::yes")]
    pub secret_is_base64: bool,
    /// How old a webhook may be, in seconds.
    #[serde(default = "five_minutes")]
    pub tolerance_seconds: u64,
    /// Whether a webhook may be of the future by more than that.
    #[serde(default)]
    pub allow_future: bool,
    /// Whether there may be several signatures, separated by spaces, of which one must be valid.
    #[serde(default = "weir_plugins_shared::yes")]
    pub allow_multiple: bool,
    /// The most bytes of a body that is read.
    #[serde(default = "standard_body_limit")]
    pub max_body_bytes: usize,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").finish_non_exhaustive()
    }
}

impl Config {
    /// The defaults of all options, with this secret.
    pub fn new(secret: String) -> Self {
        Self {
            secret,
            secret_is_base64: true,
            tolerance_seconds: five_minutes(),
            allow_future: false,
            allow_multiple: true,
            max_body_bytes: standard_body_limit(),
        }
    }

    fn key(&self) -> Option<Key> {
        let text = &self.secret;
        let bytes = match self.secret_is_base64 {
            true => STANDARD
                .decode(text.strip_prefix("whsec_").unwrap_or(text))
                .ok()?,
            false => text.as_bytes().to_vec(),
        };
        Some(Key::new(HMAC_SHA256, &bytes))
    }
}

fn five_minutes() -> u64 {
    300
}

fn standard_body_limit() -> usize {
    16 << 20
}

/// The plugin `webhook-signature`.
pub struct WebhookSignature;

impl Plugin for WebhookSignature {
    fn name(&self) -> &'static str {
        "webhook-signature"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let Some(key) = config.key() else {
            let path = DocPath::root().field("secret");
            return Err(vec![Diagnostic::error(path, "expected a secret in Base64")]);
        };
        Ok(Arc::new(SignatureFilter { config, key }))
    }
}

/// An instance of `webhook-signature`.
struct SignatureFilter {
    config: Config,
    key: Key,
}

impl SignatureFilter {
    /// The message's id, time and signatures, if they are there and the time is acceptable.
    fn head<'r>(&self, request: &'r Request, now: u64) -> Option<(&'r [u8], u64, &'r [u8])> {
        let id = request.headers.get(b"webhook-id")?;
        let time = request.headers.get(b"webhook-timestamp")?;
        let signatures = request.headers.get(b"webhook-signature")?;
        let time: u64 = std::str::from_utf8(time).ok()?.trim().parse().ok()?;
        let tolerance = self.config.tolerance_seconds;
        let is_timely = now.saturating_sub(time) <= tolerance
            && (self.config.allow_future || time.saturating_sub(now) <= tolerance);
        is_timely.then_some((id, time, signatures))
    }

    fn is_signed(&self, id: &[u8], time: u64, body: &[u8], signatures: &[u8]) -> bool {
        let mut context = Context::with_key(&self.key);
        context.update(id);
        context.update(b".");
        context.update(itoa::Buffer::new().format(time).as_bytes());
        context.update(b".");
        context.update(body);
        let mut wanted = *b"v1,............................................";
        if STANDARD.encode_slice(context.sign(), &mut wanted[3..]).is_err() {
            return false;
        }
        let is_it = |signature: &[u8]| verify_slices_are_equal(&wanted, signature).is_ok();
        match self.config.allow_multiple {
            true => signatures.split(|byte| *byte == b' ').any(is_it),
            false => is_it(signatures),
        }
    }
}

impl Filter for SignatureFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let now = exchange.unix_ms() / 1_000;
        let request = &exchange.request;
        let is_good = match (self.head(request, now), &request.body) {
            (None, _) => false,
            (Some(_), None) if request.has_body => {
                return Outcome::NeedBody {
                    max_bytes: self.config.max_body_bytes,
                };
            }
            (Some(_), None) => false,
            (Some((id, time, signatures)), Some(body)) => {
                !body.is_empty() && self.is_signed(id, time, body, signatures)
            }
        };
        match is_good {
            true => Outcome::Continue,
            false => Outcome::refuse(RefusalKind::Unacceptable {
                plugin: "webhook-signature",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    /// Over `msg_1.1700000000.hello`, made by others.
    const GOOD: &str = "v1,0vKEpAZiy2+fOfr1dkDucu/atXRkDAGDljrX0AOSE9c=";

    #[test]
    fn webhooks_pass_that_are_signed() {
        let secret = "YS1zZWNyZXQtb2Ytc29tZS1sZW5ndGgtMDAwMDAwMDA=";
        let config = |several| json!({"secret": secret, "tolerance_seconds": 4_000_000_000_u64, "allow_multiple": several});
        let (one, several) = (&config(false), &config(true));
        let tight = &json!({"secret": secret});
        let literal = &json!({
            "secret": secret,
            "secret_is_base64": false,
            "tolerance_seconds": 4_000_000_000_u64,
        });
        let by_text = "v1,l+xkUnjH8UBmBuGfjUOKjikw9vkwaxj9nflEMjdqr50=";
        let two = format!("v1,AAAA {GOOD}");
        let (id, time, bad) = ("msg_1", "1700000000", "unacceptable 400");
        for (config, id, time, signature, body, expected) in [
            (one, id, time, GOOD, Some("hello"), "continue"),
            (one, id, time, GOOD, None, "body"),
            (one, id, time, GOOD, Some(""), bad),
            (one, id, time, GOOD, Some("hellp"), bad),
            (one, "msg_2", time, GOOD, Some("hello"), bad),
            (one, id, "1700000001", GOOD, Some("hello"), bad),
            (one, id, "abc", GOOD, Some("hello"), bad),
            (one, "", time, GOOD, Some("hello"), bad),
            (one, id, time, &two, Some("hello"), bad),
            (several, id, time, &two, Some("hello"), "continue"),
            (literal, id, time, by_text, Some("hello"), "continue"),
            (literal, id, time, GOOD, Some("hello"), bad),
            (tight, id, time, GOOD, Some("hello"), bad),
        ] {
            let mut exchange = exchange();
            let headers = [
                ("webhook-id", id),
                ("webhook-timestamp", time),
                ("webhook-signature", signature),
            ];
            prepare(&mut exchange, "POST /", &headers);
            if id.is_empty() {
                exchange.request.headers.remove(b"webhook-id");
            }
            exchange.request.has_body = true;
            exchange.request.body = body.map(|body| body.as_bytes().to_vec());
            let filter = build(&WebhookSignature, config).expect("valid");
            assert_eq!(
                word(&filter.on_request(&mut exchange)),
                expected,
                "{config} {id} {time} {body:?}"
            );
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, places) in [(json!({}), [""]), (json!({"secret": "!"}), ["secret"])] {
            assert_eq!(refused_at(&WebhookSignature, &config), places, "{config}");
        }
        assert!(build(&WebhookSignature, &example(include_str!("webhook_signature.rs"))).is_ok());
    }
}
