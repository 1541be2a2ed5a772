//! `openapi-mock`: answers calls with the examples of an OpenAPI document, instead of the upstream.
//!
//! ```yaml
//! spec: |
//!   openapi: 3.1.0
//!   info: {title: Pets, version: "1"}
//!   paths:
//!     /pets:
//!       get:
//!         responses: {"200": {description: pets, content: {application/json: {example: [{name: Rex}]}}}}
//! ```
//!
//! Without an example, a value is generated from the schema: from its own example, its default, its first allowed
//! value, or its type.

mod example;

use crate::openapi::{Api, Base, OperationMatch};
use crate::openapi_validation::BasePath;
use crate::refuse::refuse;
use example::ExampleResponse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Reply, Suspend, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

const PLUGIN: &str = "openapi-mock";
const NO_PATH: &str = "Corresponding path and method spec does not exist in API Specification";
const NO_EXAMPLE: &str = "No examples exist in API specification for this resource with Accept Header";
const BAD_DELAY: &str = "Invalid value for the delay: expected 0 to 10000 milliseconds";
/// The longest delay that a caller can choose.
const MAX_CHOSEN_DELAY_MS: u64 = 10_000;
/// The longest answer that waits.
const MAX_DELAY_MS: u64 = 3_600_000;

/// Configuration of `openapi-mock`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The document, in JSON or YAML: Swagger 2.0, or OpenAPI 3.0 to 3.2.
    pub spec: String,
    /// Which base path is put before the document's paths: `none`, `servers` (the paths of its servers), or the
    /// given `path`.
    pub base_path: BasePath,
    /// Statuses that are answered; empty: all that the document has.
    pub statuses: Vec<u16>,
    /// Whether any status is answered, rather than the lowest one.
    pub random_status: bool,
    /// Whether any of several examples is answered, rather than the first one.
    pub random_example: bool,
    /// The range of a random delay before the response, in milliseconds; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<(u64, u64)>,
    /// The prefix of the request headers by which callers choose: `Status-Code`, `Example-Id` (the name of an example) and
    /// `Delay` (milliseconds, up to 10,000). Absent: they choose nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice_headers: Option<String>,
    /// A header that marks responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            spec: String::new(),
            base_path: BasePath::None,
            statuses: Vec::new(),
            random_status: false,
            random_example: false,
            delay_ms: None,
            choice_headers: None,
            mark: None,
        }
    }
}

/// The plugin `openapi-mock`.
pub struct OpenapiMock;

impl Plugin for OpenapiMock {
    fn name(&self) -> &'static str {
        "openapi-mock"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if config
            .delay_ms
            .is_some_and(|(least, most)| least > most || most > MAX_DELAY_MS)
        {
            faults.add(
                "delay_ms",
                format!("expected two numbers up to {MAX_DELAY_MS}, the smaller one first"),
            );
        }
        if let Some(prefix) = &config.choice_headers {
            faults.check_name("choice_headers", prefix);
        }
        if let Some(mark) = &config.mark {
            faults.check_name("mark", mark);
        }
        let base = match &config.base_path {
            BasePath::None => Base::None,
            BasePath::Servers => Base::Servers,
            BasePath::Path(path) => Base::Own(path.clone()),
        };
        let made = Api::compile(&config.spec, &base, true);
        let made = made.map(|api| {
            let answers = (0..api.len()).map(|number| {
                let described = &api.operation(number).described;
                example::answers(described, api.components(), &config.statuses)
            });
            let answers = answers.collect();
            MockFilter {
                answers,
                api,
                random_status: config.random_status,
                random_example: config.random_example,
                delay_ms: config.delay_ms,
                choices: config.choice_headers.as_deref().map(ChoiceHeaders::new),
                mark: config.mark.clone(),
            }
        });
        match made {
            Ok(filter) => {
                faults.done()?;
                Ok(Arc::new(filter))
            }
            Err(message) => {
                faults.add("spec", message);
                faults.done()?;
                Err(Vec::new())
            }
        }
    }
}

/// An instance of `openapi-mock`.
struct MockFilter {
    api: Api,
    /// By operation, its responses in the order of their statuses.
    answers: Vec<Vec<ExampleResponse>>,
    random_status: bool,
    random_example: bool,
    delay_ms: Option<(u64, u64)>,
    choices: Option<ChoiceHeaders>,
    mark: Option<String>,
}

/// The names of the headers by which callers choose.
struct ChoiceHeaders {
    status: String,
    example: String,
    delay: String,
}

impl ChoiceHeaders {
    fn new(prefix: &str) -> Self {
        Self {
            status: format!("{prefix}Status-Code"),
            example: format!("{prefix}Example-Id"),
            delay: format!("{prefix}Delay"),
        }
    }
}

/// The answer has waited.
struct DelayDone;

impl MockFilter {
    /// The delay that the caller chooses, in milliseconds.
    fn chosen_delay(&self, exchange: &Exchange) -> Result<Option<u64>, &'static str> {
        let Some(choices) = &self.choices else {
            return Ok(None);
        };
        let Some(value) = exchange.request.headers.get(choices.delay.as_bytes()) else {
            return Ok(None);
        };
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        let is_short = |time: &u64| *time <= MAX_CHOSEN_DELAY_MS;
        number.filter(is_short).map(Some).ok_or(BAD_DELAY)
    }

    fn reply(&self, exchange: &mut Exchange) -> Result<Reply, &'static str> {
        let request = &exchange.request;
        let path = match request.path_is_decoded {
            true => &request.raw_path,
            false => &request.path,
        };
        let number = match self.api.find(&request.method, path, &request.work) {
            Ok(OperationMatch::Operation(number, _)) => number,
            _ => return Err(NO_PATH),
        };
        let answers = self.answers.get(number).ok_or(NO_PATH)?;
        let accept = request.headers.get(b"accept").map(<[u8]>::to_vec);
        let chosen = |name: fn(&ChoiceHeaders) -> &str| {
            let value = request.headers.get(name(self.choices.as_ref()?).as_bytes())?;
            String::from_utf8(value.to_vec()).ok()
        };
        let (wanted, example) = (chosen(|it| &it.status), chosen(|it| &it.example));
        let mut pick = |count: usize, is_random: bool| match (is_random, count) {
            (true, 2..) => (exchange.random_u64() % count as u64) as usize,
            _ => 0,
        };
        let fitting: Vec<&ExampleResponse> = answers.iter().filter(|it| it.fits(accept.as_deref())).collect();
        let mut statuses: Vec<u16> = fitting.iter().map(|it| it.status).collect();
        statuses.dedup();
        let status = match &wanted {
            Some(wanted) => statuses.iter().find(|it| it.to_string() == *wanted),
            None => statuses.get(pick(statuses.len(), self.random_status)),
        };
        let status = *status.ok_or(NO_EXAMPLE)?;
        let of_status: Vec<&&ExampleResponse> = fitting.iter().filter(|it| it.status == status).collect();
        let answer = of_status.first().ok_or(NO_EXAMPLE)?;
        let body = match &example {
            Some(name) => Some(
                answer
                    .bodies
                    .iter()
                    .find(|it| it.name == *name)
                    .ok_or(NO_EXAMPLE)?,
            ),
            None => answer.bodies.get(pick(answer.bodies.len(), self.random_example)),
        };
        let body = body.map(|it| it.bytes.clone()).unwrap_or_default();
        let mut reply = Reply::new(status, answer.media.clone(), body);
        if let Some(mark) = &self.mark {
            reply = reply.with_header(mark.as_str(), "true");
        }
        Ok(reply)
    }
}

impl Filter for MockFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if exchange.filter_state.take::<_, DelayDone>(self).is_none() {
            let time = match self.chosen_delay(exchange) {
                Ok(chosen) => chosen,
                Err(message) => return refuse(PLUGIN, 400, message, message),
            };
            let random = |(least, most): (u64, u64)| least + exchange.random_u64() % (most - least + 1);
            if let Some(time) = time.or_else(|| self.delay_ms.map(random)) {
                exchange.filter_state.put(self, DelayDone);
                return Outcome::Suspend(Suspend::time(Duration::from_millis(time)));
            }
        }
        match self.reply(exchange) {
            Ok(reply) => Outcome::Reply(Box::new(reply)),
            Err(message) => refuse(PLUGIN, 404, message, message),
        }
    }
}

#[cfg(test)]
mod tests;
