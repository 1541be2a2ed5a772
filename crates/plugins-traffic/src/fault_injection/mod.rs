//! `fault-injection`: delays calls and answers them with faults, to see how callers and services bear it.
//!
//! ```yaml
//! delay: {seconds: 0.2, percentage: 10}
//! abort: {status: 503, body: try again, percentage: 1}
//! ```
//!
//! Security: it is for tests. An abort with a status below 400 answers in the service's place.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use weir_model::{Diagnostic, DocPath, Predicate};
use weir_plugin::{
    BuildContext, Condition, Exchange, Filter, Headers, Indeterminate, Outcome, Phases, Plugin, Refusal,
    RefusalKind, Reply, Suspend, Template, parse_config,
};
use weir_plugins_shared::header_edits::{HeaderEdit, HeaderEdits, HeaderTarget};
use weir_plugins_shared::path_captures::RegexMatch;

/// Configuration of `fault-injection`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Makes calls wait; before `abort`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// Answers calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort: Option<Abort>,
}

/// A delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// Seconds to wait, at most 3600.
    #[schemars(range(min = 0, max = 3600))]
    pub seconds: f64,
    /// The percentage of calls that are delayed; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percentage: Option<u8>,
    /// Only calls wait for which this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Predicate>,
}

/// A response that replaces the service's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Abort {
    /// Status of the response, 200 to 599.
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The body, with variables; absent: the usual one of the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// `Content-Type` of `body`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Headers of the response, with variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<HeaderEdit>,
    /// The percentage of calls that get this response; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percentage: Option<u8>,
    /// Only calls are answered for which this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Predicate>,
}

/// The plugin `fault-injection`.
pub struct FaultInjection;

/// The most seconds of a delay.
const MAX_SECONDS: f64 = 3600.0;

impl Plugin for FaultInjection {
    fn name(&self) -> &'static str {
        "fault-injection"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let root = DocPath::root();
        let mut faults = Vec::new();
        if config.delay.is_none() && config.abort.is_none() {
            faults.push(Diagnostic::error(
                root.clone(),
                "expected 'delay', 'abort' or both",
            ));
        }
        let delay = config.delay.map(|delay| {
            let path = root.field("delay");
            if !(0.0..=MAX_SECONDS).contains(&delay.seconds) {
                let message = format!("expected from 0 to {MAX_SECONDS} seconds");
                faults.push(Diagnostic::error(path.field("seconds"), message));
            }
            let odds = CallSelector::compile(delay.percentage, delay.when.as_ref(), &path, &mut faults);
            (
                Duration::from_secs_f64(delay.seconds.clamp(0.0, MAX_SECONDS)),
                odds,
            )
        });
        let abort = config.abort.map(|abort| {
            let path = root.field("abort");
            if !(200..=599).contains(&abort.status) {
                faults.push(Diagnostic::error(
                    path.field("status"),
                    "expected a status from 200 to 599",
                ));
            }
            let odds = CallSelector::compile(abort.percentage, abort.when.as_ref(), &path, &mut faults);
            let headers = HeaderEdits::compile(&abort.headers, true, &path.field("headers"));
            let headers = headers.map_err(|more| faults.extend(more)).ok();
            (abort.status, abort.body, abort.content_type, headers, odds)
        });
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Arc::new(FaultFilter {
            delay,
            abort: abort.map(|(status, body, content_type, headers, odds)| AbortWork {
                status,
                body: body.map(|body| Template::parse(&body)),
                content_type: content_type.unwrap_or_default(),
                headers: headers.filter(|headers| !headers.is_empty()),
                odds,
            }),
        }))
    }
}

/// Which calls are meant.
struct CallSelector {
    percentage: Option<u8>,
    when: Option<Condition>,
}

impl CallSelector {
    fn compile(
        percentage: Option<u8>,
        when: Option<&Predicate>,
        path: &DocPath,
        faults: &mut Vec<Diagnostic>,
    ) -> Self {
        if percentage.is_some_and(|percentage| percentage > 100) {
            faults.push(Diagnostic::error(
                path.field("percentage"),
                "expected from 0 to 100",
            ));
        }
        let when = when.map(Condition::compile).transpose();
        let when = when.unwrap_or_else(|message| {
            faults.push(Diagnostic::error(path.field("when"), message));
            None
        });
        Self { percentage, when }
    }

    fn hit(&self, exchange: &mut Exchange) -> bool {
        self.when.as_ref().is_none_or(|when| when.holds(exchange))
            && self
                .percentage
                .is_none_or(|percentage| exchange.random_u64() % 100 < u64::from(percentage))
    }

    fn needs_body(&self) -> bool {
        self.when.as_ref().is_some_and(Condition::needs_body)
    }
}

/// An instance of `fault-injection`.
struct FaultFilter {
    delay: Option<(Duration, CallSelector)>,
    abort: Option<AbortWork>,
}

struct AbortWork {
    status: u16,
    body: Option<Template>,
    content_type: String,
    headers: Option<HeaderEdits>,
    odds: CallSelector,
}

/// That a call has waited.
struct DelayDone;

impl AbortWork {
    fn outcome(&self, exchange: &mut Exchange) -> Outcome {
        let mut answer = Headers::default();
        if let Some(steps) = &self.headers {
            std::mem::swap(&mut exchange.response.headers, &mut answer);
            steps.apply(exchange, HeaderTarget::Response, &RegexMatch::default());
            std::mem::swap(&mut exchange.response.headers, &mut answer);
        }
        match &self.body {
            Some(template) => {
                let mut body = Vec::new();
                template.render(exchange, &mut body);
                let mut reply = Reply::new(self.status, self.content_type.clone(), body);
                for header in answer.iter() {
                    let name = String::from_utf8_lossy(header.name);
                    reply = reply.with_header(name, header.value);
                }
                Outcome::Reply(Box::new(reply))
            }
            None => {
                let plugin = "fault-injection";
                let mut refusal = Refusal::with_status(RefusalKind::Answered { plugin }, self.status);
                for header in answer.iter() {
                    let [name, value] = [header.name, header.value].map(String::from_utf8_lossy);
                    refusal
                        .headers
                        .push((name.into_owned().into(), value.into_owned()));
                }
                Outcome::Refuse(Box::new(refusal))
            }
        }
    }
}

impl Filter for FaultFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        let when = self.abort.as_ref()?.odds.when.as_ref()?;
        when.evaluate_strict(exchange).err()
    }

    fn needs_body(&self) -> bool {
        self.delay.as_ref().is_some_and(|(_, odds)| odds.needs_body())
            || self.abort.as_ref().is_some_and(|abort| {
                abort.odds.needs_body()
                    || abort.body.as_ref().is_some_and(Template::needs_body)
                    || abort.headers.as_ref().is_some_and(HeaderEdits::need_body)
            })
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some((time, odds)) = &self.delay
            && exchange.filter_state.take::<_, DelayDone>(self).is_none()
            && odds.hit(exchange)
        {
            if self.abort.is_none() {
                return Outcome::Delay(*time);
            }
            exchange.filter_state.put(self, DelayDone);
            return Outcome::Suspend(Suspend::time(*time));
        }
        match &self.abort {
            Some(abort) if abort.odds.hit(exchange) => abort.outcome(exchange),
            _ => Outcome::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn faults_are_injected() {
        for (config, call, expected) in [
            (json!({"delay": {"seconds": 0.5}}), "GET /", vec!["delay 500"]),
            (
                json!({"delay": {"seconds": 0.5, "percentage": 0}}),
                "GET /",
                vec!["continue"],
            ),
            (
                json!({"abort": {"status": 418, "body": "t $arg_a"}}),
                "GET /?a=1",
                vec!["reply 418"],
            ),
            (json!({"abort": {"status": 503}}), "GET /", vec!["answered 503"]),
            (
                json!({"abort": {"status": 503, "when": ["arg_a", "==", "1"]}}),
                "GET /?a=2",
                vec!["continue"],
            ),
            (
                json!({"delay": {"seconds": 0.1}, "abort": {"status": 500}}),
                "GET /",
                vec!["wait", "answered 500"],
            ),
        ] {
            let filter = build(&FaultInjection, &config).expect("valid");
            let mut exchange = exchange();
            prepare(&mut exchange, call, &[]);
            for expected in expected {
                assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{config}");
            }
        }
    }

    #[test]
    fn about_as_many_as_wanted() {
        let filter = build(
            &FaultInjection,
            &json!({"abort": {"status": 500, "percentage": 30}}),
        )
        .expect("valid");
        let mut exchange = exchange();
        let hits = (0..1000).filter(|_| word(&filter.on_request(&mut exchange)) != "continue");
        assert!((240..360).contains(&hits.count()));
    }

    #[test]
    fn answers_have_headers() {
        let config = json!({"abort": {
            "status": 403, "body": "b", "content_type": "text/plain", "headers": [{"set": {"X-V": "$uri"}}],
        }});
        let filter = build(&FaultInjection, &config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /u", &[]);
        let Outcome::Reply(reply) = filter.on_request(&mut exchange) else {
            panic!("a reply");
        };
        assert_eq!(reply.headers, [("X-V".to_owned(), b"/u".to_vec())]);
        assert_eq!(
            (reply.content_type.as_ref(), reply.body.as_slice()),
            ("text/plain", &b"b"[..])
        );
    }

    #[test]
    fn configurations_are_checked() {
        assert!(build(&FaultInjection, &example(include_str!("mod.rs"))).is_ok());
        for (config, places) in [
            (json!({}), vec![""]),
            (json!({"delay": {"seconds": -1}}), vec!["delay.seconds"]),
            (
                json!({"abort": {"status": 99, "percentage": 101}}),
                vec!["abort.status", "abort.percentage"],
            ),
        ] {
            assert_eq!(refused_at(&FaultInjection, &config), places, "{config}");
        }
    }
}
