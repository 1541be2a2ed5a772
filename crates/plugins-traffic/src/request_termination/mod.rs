//! `request-termination`: answers calls itself, for maintenance, mocks and blocked consumers.
//!
//! ```yaml
//! status: 503
//! message: Back at noon.
//! ```
//!
//! Security: `echo` shows callers their own request as the gateway got it, also headers that a proxy in front of it
//! has added. It is for debugging only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{
    BuildContext, Exchange, Filter, NotOpen, Outcome, Phases, Plugin, Refusal, RefusalKind, Reply, Request,
    parse_config,
};

/// Configuration of `request-termination`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Status of the response, 200 to 599.
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// A sentence for the caller, sent as the `detail` of a problem document (RFC 9457). With a status from 400 on, the
    /// call counts as refused, and the document has its `request_id`. Not together with `body`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Why the caller may not pass, with a `message` and a status from 400 on: the `type` and the `title` of the problem
    /// document say it to programs, and metrics and analytics count the call by it. Publications set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<NotOpen>,
    /// The body of the response; without `message` and `body` it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// `Content-Type` of `body`; absent: none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Name of a request header or query argument: only calls that have one of them are answered, whatever its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// Name of a label of the consumer that holds a time, in seconds since 1970: only calls from then on are answered, and
    /// none of consumers without the label. Publications set it, for subscriptions that end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_label: Option<String>,
    /// Answers with an account of the request in JSON, with `message` in it, for debugging.
    pub echo: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            status: 503,
            message: None,
            reason: None,
            body: None,
            content_type: None,
            trigger: None,
            from_label: None,
            echo: false,
        }
    }
}

/// The most bytes of a body that an echo shows.
const MAX_ECHO_BYTES: usize = 1 << 20;

/// The plugin `request-termination`.
pub struct RequestTermination;

impl Plugin for RequestTermination {
    fn name(&self) -> &'static str {
        "request-termination"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = Vec::new();
        let mut fault = |field: &str, message: &str| {
            faults.push(Diagnostic::error(DocPath::root().field(field), message));
        };
        if !(200..=599).contains(&config.status) {
            fault(
                "status",
                "expected a status from 200 to 599, as 1xx does not end a call",
            );
        }
        if config.message.is_some() && config.body.is_some() {
            fault("message", "expected either 'message' or 'body', not both");
        }
        if config.reason.is_some() && (config.message.is_none() || config.echo || config.status < 400) {
            fault(
                "reason",
                "expected a 'message' and a status from 400 on beside it, and no 'echo'",
            );
        }
        if config.echo && config.body.is_some() {
            fault("body", "expected no body, as 'echo' makes one");
        }
        if config
            .content_type
            .as_ref()
            .is_some_and(|it| !is_value(it.as_bytes()))
        {
            fault("content_type", "expected a media type");
        }
        if config.trigger.as_ref().is_some_and(|it| !is_name(it.as_bytes())) {
            fault("trigger", "expected a name of a header or an argument");
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Arc::new(TerminationFilter {
            trigger: config.trigger.clone(),
            from_label: config.from_label.clone(),
            answer: answer_of(config),
        }))
    }
}

/// What calls are answered with.
enum Answer {
    /// The same for each call.
    Fixed(Reply),
    /// A refusal, which counts as one and has the call's id in it.
    Refusal(Refusal),
    /// An account of the call.
    Echo { status: u16, message: Option<String> },
}

fn answer_of(config: Config) -> Answer {
    let Config { status, message, .. } = config;
    if config.echo {
        return Answer::Echo { status, message };
    }
    let Some(message) = message else {
        return Answer::Fixed(Reply::new(
            status,
            config.content_type.unwrap_or_default(),
            config.body.unwrap_or_default(),
        ));
    };
    if status >= 400 {
        let plugin = RequestTermination.name();
        let kind = match config.reason {
            Some(reason) => RefusalKind::NotOpen { plugin, reason },
            None => RefusalKind::Answered { plugin },
        };
        return Answer::Refusal(Refusal {
            message: Some(message),
            ..Refusal::with_status(kind, status)
        });
    }
    let problem = json!({"type": "about:blank", "status": status, "detail": message});
    Answer::Fixed(Reply::new(
        status,
        "application/problem+json",
        problem.to_string(),
    ))
}

/// An instance of `request-termination`.
struct TerminationFilter {
    answer: Answer,
    trigger: Option<String>,
    from_label: Option<String>,
}

impl TerminationFilter {
    fn is_triggered(&self, request: &Request) -> bool {
        let Some(name) = self.trigger.as_deref() else {
            return true;
        };
        let query = request.query.as_deref().unwrap_or_default();
        request.headers.contains(name.as_bytes())
            || query_pairs(query).any(|(key, _)| decode_form(key) == name.as_bytes())
    }
}

/// Whether the time in a label of the caller has come. One that cannot be read has: what was to end is not to go on.
fn has_come(label: &str, exchange: &Exchange) -> bool {
    let labels = exchange.identity.iter().flat_map(|it| &it.consumer.labels);
    let from = labels.into_iter().find(|(name, _)| name == label);
    from.is_some_and(|(_, text)| {
        let from = text.parse::<u64>();
        from.map_or(true, |from| exchange.now_ms() / 1_000 >= from)
    })
}

impl Filter for TerminationFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let is_early = |label: &String| !has_come(label, exchange);
        if !self.is_triggered(&exchange.request) || self.from_label.as_ref().is_some_and(is_early) {
            return Outcome::Continue;
        }
        let (status, message) = match &self.answer {
            Answer::Fixed(reply) => return Outcome::Reply(Box::new(reply.clone())),
            Answer::Refusal(refusal) => return Outcome::Refuse(Box::new(refusal.clone())),
            Answer::Echo { status, message } => (*status, message),
        };
        if exchange.request.has_body && exchange.request.body.is_none() {
            return Outcome::NeedBody {
                max_bytes: MAX_ECHO_BYTES,
            };
        }
        let account = account(exchange, message.as_deref());
        let reply = Reply::new(status, "application/json; charset=utf-8", account.to_string());
        Outcome::Reply(Box::new(reply))
    }
}

/// What the gateway knows of a call.
fn account(exchange: &Exchange, message: Option<&str>) -> Value {
    let request = &exchange.request;
    let mut headers = Map::new();
    for header in request.headers.iter() {
        add(
            &mut headers,
            text(&header.name.to_ascii_lowercase()),
            text(header.value).into(),
        );
    }
    let mut query = Map::new();
    for (key, value) in query_pairs(request.query.as_deref().unwrap_or_default()) {
        let value = value.map_or(Value::Bool(true), |value| text(&decode_form(value)).into());
        add(&mut query, text(&decode_form(key)), value);
    }
    let route = exchange.route.as_deref();
    let mut account = Map::new();
    if let Some(message) = message {
        account.insert("message".into(), message.into());
    }
    account.insert(
        "request".into(),
        json!({
            "scheme": request.scheme(),
            "host": text(&request.host),
            "port": request.host_port.unwrap_or(request.local.port()),
            "method": text(&request.method),
            "path": text(&request.raw_path),
            "query": query,
            "headers": headers,
            "raw_body": request.body.as_deref().map(text),
        }),
    );
    account.insert(
        "matched_route".into(),
        json!({"name": route.map(|route| &route.name)}),
    );
    account.insert(
        "matched_service".into(),
        json!({"name": route.map(|route| &route.service)}),
    );
    Value::Object(account)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Adds a value; several of one name make a list.
fn add(map: &mut Map<String, Value>, name: String, value: Value) {
    match map.get_mut(&name) {
        None => {
            map.insert(name, value);
        }
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

#[cfg(test)]
mod tests;
