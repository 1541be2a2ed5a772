//! `websocket-validation`: closes WebSockets whose messages are too long, or do not match a JSON Schema.
//!
//! ```yaml
//! client: {max_bytes: 65536, text: {type: object, required: [id]}}
//! upstream: {max_bytes: 1048576}
//! ```
//!
//! The sender of a message that is too long gets the close code 1009, the sender of one that does not match 1007; the
//! other side gets 1001. Messages are held until they are complete: at most 16 MiB each, unless a limit is lower.
//! WebSocket extensions, such as compression, are not negotiated. Calls that do not become WebSockets are not checked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, MessageFilter, MessageKind, MessageViolation, Outcome, Phases, Plugin,
    WebSocketSide, WorkBudget, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::json_schema::Schema;

/// The most that a limit can be.
const MOST_BYTES: usize = 32 << 20;

/// Configuration of `websocket-validation`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Messages of clients.
    pub client: MessageRules,
    /// Messages of upstreams.
    pub upstream: MessageRules,
}

/// What messages must be like.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MessageRules {
    /// The most bytes of a message, 1 to 33554432.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 33_554_432))]
    pub max_bytes: Option<usize>,
    /// JSON Schema of messages of text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Value>,
    /// JSON Schema of messages of bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<Value>,
}

/// The plugin `websocket-validation`.
pub struct WebsocketValidation;

impl Plugin for WebsocketValidation {
    fn name(&self) -> &'static str {
        "websocket-validation"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let is_empty = |rules: &MessageRules| *rules == MessageRules::default();
        if is_empty(&config.client) && is_empty(&config.upstream) {
            faults.add(
                "client",
                "expected a rule for messages of the client or of the upstream",
            );
        }
        let client = compile("client", &config.client, &mut faults);
        let upstream = compile("upstream", &config.upstream, &mut faults);
        faults.done()?;
        Ok(Arc::new(SocketFilter(Arc::new(Rules { client, upstream }))))
    }
}

fn compile(side: &str, rules: &MessageRules, faults: &mut ConfigErrors) -> SideRules {
    if rules
        .max_bytes
        .is_some_and(|most| !(1..=MOST_BYTES).contains(&most))
    {
        faults.add_at(&[side, "max_bytes"], format!("expected 1 to {MOST_BYTES} bytes"));
    }
    let mut schema = |field: &str, schema: &Option<Value>| {
        let read = Schema::read(schema.as_ref()?, false);
        read.map_err(|message| {
            let place = DocPath::root().field(side).field(field);
            faults.extend(vec![Diagnostic::error(place, message)]);
        })
        .ok()
    };
    SideRules {
        max_bytes: rules.max_bytes,
        text: schema("text", &rules.text),
        binary: schema("binary", &rules.binary),
    }
}

/// The rules of one side.
struct SideRules {
    max_bytes: Option<usize>,
    text: Option<Schema>,
    binary: Option<Schema>,
}

/// The rules of both.
struct Rules {
    client: SideRules,
    upstream: SideRules,
}

impl Rules {
    fn of(&self, side: WebSocketSide) -> &SideRules {
        match side {
            WebSocketSide::Client => &self.client,
            WebSocketSide::Upstream => &self.upstream,
        }
    }

    fn schema(&self, side: WebSocketSide, kind: MessageKind) -> Option<&Schema> {
        let rules = self.of(side);
        match kind {
            MessageKind::Text => rules.text.as_ref(),
            MessageKind::Binary => rules.binary.as_ref(),
        }
    }
}

impl MessageFilter for Rules {
    fn max_bytes(&self, side: WebSocketSide) -> Option<usize> {
        self.of(side).max_bytes
    }

    fn reads(&self, side: WebSocketSide, kind: MessageKind) -> bool {
        self.schema(side, kind).is_some()
    }

    fn check(&self, side: WebSocketSide, kind: MessageKind, message: &[u8]) -> Result<(), MessageViolation> {
        let Some(schema) = self.schema(side, kind) else {
            return Ok(());
        };
        let work = WorkBudget::default();
        work.allow_pass(message.len());
        schema.check_text(message, &work).map_err(|fault| {
            tracing::info!(
                plugin = "websocket-validation",
                "a message is refused: {}",
                fault.message()
            );
            MessageViolation {
                code: 1007,
                reason: Cow::Borrowed("Invalid frame payload data"),
            }
        })
    }
}

/// An instance of `websocket-validation`.
struct SocketFilter(Arc<Rules>);

impl Filter for SocketFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        // What an extension makes of a message could not be read.
        exchange.request.headers.remove(b"sec-websocket-extensions");
        exchange
            .message_filters
            .push(Arc::clone(&self.0) as Arc<dyn MessageFilter>);
        Outcome::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn messages_are_looked_at() {
        let config = json!({
            "client": {"max_bytes": 100, "text": {"type": "object", "required": ["id"]}},
            "upstream": {"binary": {"type": "array"}},
        });
        let filter = build(&WebsocketValidation, &config).expect("valid");
        let mut exchange = exchange();
        prepare(
            &mut exchange,
            "GET /",
            &[("Sec-WebSocket-Extensions", "permessage-deflate")],
        );
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        assert!(!exchange.request.headers.contains(b"sec-websocket-extensions"));
        let rules = &exchange.message_filters[0];
        let (client, upstream) = (WebSocketSide::Client, WebSocketSide::Upstream);
        assert_eq!(
            (rules.max_bytes(client), rules.max_bytes(upstream)),
            (Some(100), None)
        );
        for (side, kind, message, code) in [
            (client, MessageKind::Text, r#"{"id": 1}"#, 0),
            (client, MessageKind::Text, "{}", 1007),
            (client, MessageKind::Text, "no JSON", 1007),
            (client, MessageKind::Binary, "no JSON", 0),
            (upstream, MessageKind::Text, "no JSON", 0),
            (upstream, MessageKind::Binary, "[1]", 0),
            (upstream, MessageKind::Binary, "{}", 1007),
        ] {
            let fault = rules.check(side, kind, message.as_bytes()).err();
            assert_eq!(
                fault.map_or(0, |fault| fault.code),
                code,
                "{side:?} {kind:?} {message}"
            );
            assert!(code == 0 || rules.reads(side, kind));
        }
    }

    #[test]
    fn configurations_are_checked() {
        assert!(
            build(
                &WebsocketValidation,
                &example(include_str!("websocket_validation.rs"))
            )
            .is_ok()
        );
        for (config, places) in [
            (json!({}), vec!["client"]),
            (json!({"client": {"max_bytes": 0}}), vec!["client.max_bytes"]),
            (
                json!({"client": {"text": {"type": "x"}}, "upstream": {"binary": 1}}),
                vec!["client.text", "upstream.binary"],
            ),
        ] {
            assert_eq!(refused_at(&WebsocketValidation, &config), places, "{config}");
        }
    }
}
