//! `batch-requests`: runs many calls for one, which the gateway makes to itself one after the other, and returns all
//! their responses.
//!
//! ```yaml
//! path: /batch
//! max_items: 100
//! ```
//!
//! The body is `{"pipeline": [{"path": "/a"}, {"method": "POST", "path": "/b", "body": "x"}]}`; `query`, `headers` and
//! `timeout` (milliseconds per call) beside it apply to all of them. The response is a list of `status`, `reason`,
//! `headers` and `body`.
//!
//! Security: each call is made with the headers of the caller, so all rules of its route apply. A batch cannot contain
//! a batch. **What it is not**: a transaction; failures are reported, and the calls that succeeded stay done.

mod items;

use items::{Batch, is_of_a_batch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Reply, SubrequestResponse, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

const JSON: &str = "application/json";
/// The most bytes that all answers together may have.
const MAX_ANSWERS: usize = 32 << 20;

/// Configuration of `batch-requests`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Only calls with the method `POST` of this path are batches; others pass. Absent: all paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The most bytes of a batch.
    pub max_body_bytes: usize,
    /// The most calls of a batch.
    #[schemars(range(min = 1))]
    pub max_items: usize,
    /// The header with the client's address in each call.
    pub client_header: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            path: None,
            max_body_bytes: 1 << 20,
            max_items: 1000,
            client_header: "X-Real-IP".into(),
        }
    }
}

/// The plugin `batch-requests`.
pub struct BatchRequests;

impl Plugin for BatchRequests {
    fn name(&self) -> &'static str {
        "batch-requests"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_name("client_header", &config.client_header);
        if config.max_items == 0 {
            faults.add("max_items", "expected at least 1 call");
        }
        if config.max_body_bytes > MAX_ANSWERS {
            faults.add("max_body_bytes", format!("expected at most {MAX_ANSWERS} bytes"));
        }
        faults.done()?;
        Ok(Arc::new(BatchFilter(config)))
    }
}

/// An instance of `batch-requests`.
pub(crate) struct BatchFilter(pub(crate) Config);

/// Calls under way.
struct Progress {
    batch: Batch,
    /// The place of the call that is under way.
    at: usize,
    answers: Vec<Value>,
    /// The bytes of all responses.
    size: usize,
}

fn refuse(status: u16, message: &str) -> Outcome {
    let body = format!("{}\n", json!({"error_msg": message}));
    Outcome::Reply(Box::new(Reply::new(status, JSON, body)))
}

/// The entry for a call without a response.
fn no_answer() -> Value {
    json!({"status": 504, "reason": "upstream timeout"})
}

/// What a status is called.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Request Entity Too Large",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Temporarily Unavailable",
        504 => "Gateway Time-out",
        _ => "",
    }
}

fn response_json(answer: SubrequestResponse) -> Value {
    let mut headers = serde_json::Map::new();
    for header in answer.headers.iter() {
        let name = String::from_utf8_lossy(header.name).into_owned();
        let value = Value::from(String::from_utf8_lossy(header.value));
        match headers.get_mut(&name) {
            None => {
                headers.insert(name, value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    let reason = reason(answer.status);
    let mut item = json!({"status": answer.status, "reason": reason, "headers": headers});
    if !answer.body.is_empty() {
        item["body"] = String::from_utf8_lossy(&answer.body).into();
    }
    item
}

impl BatchFilter {
    /// Whether a call is a batch.
    pub(crate) fn takes(&self, exchange: &Exchange) -> bool {
        let request = &exchange.request;
        let path = self.0.path.as_ref();
        request.method == b"POST" && path.is_none_or(|path| path.as_bytes() == request.path)
    }

    fn begin(&self, exchange: &mut Exchange) -> Result<Progress, Outcome> {
        let request = &exchange.request;
        if is_of_a_batch(request) {
            return Err(refuse(400, "a batch cannot contain a batch"));
        }
        if !request.has_body {
            let message = "no request body, you should give at least one pipeline setting";
            return Err(refuse(400, message));
        }
        let most = self.0.max_body_bytes;
        let Some(body) = request.body.as_deref() else {
            let length = request.content_length.unwrap_or_default();
            if length > most as u64 || !exchange.filter_state.mark_body_requested(self) {
                // Of a body without a length no more is read than shows that it is too large.
                let length = length.max(most as u64 + 1);
                let message =
                    format!("request size {length} is greater than the maximum size {most} allowed");
                return Err(refuse(413, &message));
            }
            return Err(Outcome::NeedBody { max_bytes: most });
        };
        let work = &exchange.request.work;
        work.allow_pass(body.len());
        let batch = Batch::read(body, work).map_err(|message| refuse(400, &message))?;
        if batch.items.len() > self.0.max_items {
            return Err(refuse(
                400,
                &format!(
                    "too many pipeline requests, {} exceeds the maximum of {}",
                    batch.items.len(),
                    self.0.max_items
                ),
            ));
        }
        Ok(Progress {
            answers: Vec::with_capacity(batch.items.len()),
            batch,
            at: 0,
            size: 0,
        })
    }

    /// Makes the next call, or answers with the results of all.
    fn go_on(&self, exchange: &mut Exchange, mut progress: Progress) -> Outcome {
        while let Some(item) = progress.batch.items.get(progress.at) {
            let left = MAX_ANSWERS.saturating_sub(progress.size);
            let asked = item.subrequest(&progress.batch, exchange, &self.0.client_header, left);
            match asked {
                Some(asked) => {
                    exchange.filter_state.put(self, progress);
                    return Outcome::Subrequest(Box::new(asked));
                }
                None => {
                    progress
                        .answers
                        .push(json!({"status": 400, "reason": "Bad Request"}));
                    progress.at += 1;
                }
            }
        }
        let body = Value::from(progress.answers).to_string();
        Outcome::Reply(Box::new(Reply::new(200, JSON, body)))
    }
}

impl Filter for BatchFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if !self.takes(exchange) {
            return Outcome::Continue;
        }
        if let Some(mut progress) = exchange.filter_state.take::<_, Progress>(self) {
            match exchange.subrequest_response.take().flatten() {
                Some(answer) => {
                    progress.size +=
                        answer.body.len() + answer.headers.iter().map(|it| it.value.len()).sum::<usize>();
                    progress.answers.push(response_json(answer));
                    progress.at += 1;
                }
                // The original has sent all of them on one connection, which is of no use any more.
                None => {
                    let missing = progress.batch.items.len() - progress.at;
                    progress
                        .answers
                        .extend(std::iter::repeat_with(no_answer).take(missing));
                    progress.at += missing;
                }
            }
            return self.go_on(exchange, progress);
        }
        match self.begin(exchange) {
            Ok(progress) => self.go_on(exchange, progress),
            Err(outcome) => outcome,
        }
    }
}

#[cfg(test)]
mod tests;
