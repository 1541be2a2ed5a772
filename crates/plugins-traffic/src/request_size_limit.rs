//! `request-size-limit`: refuses calls whose body is too large.
//!
//! ```yaml
//! max_bytes: 1048576
//! require_length: true
//! ```
//!
//! The announced length of a call is checked before its body is sent. Up to 1 MiB of a body without a length is read to
//! check it; if more is allowed, the call is broken off as soon as the body gets too long.
//!
//! Security: only the body counts; headers have their own limit. A compressed body counts as it is received, so a
//! server that decompresses it needs its own limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{
    BuildContext, Exchange, Filter, MAX_VARIABLE_BODY, Outcome, Phases, Plugin, Refusal, RefusalKind,
    parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `request-size-limit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The maximum number of bytes in a body; `null`: unlimited, even if another limit would apply.
    pub max_bytes: Option<u64>,
    /// Whether calls are refused that neither say how long their body is nor send it in chunks.
    #[serde(default)]
    pub require_length: bool,
    /// Status of the response to calls that wait for `100 Continue`, 200 to 599.
    #[serde(default = "expectation_failed")]
    #[schemars(range(min = 200, max = 599))]
    pub expect_status: u16,
}

impl Default for Config {
    /// The defaults of all options, without a limit.
    fn default() -> Self {
        Self {
            max_bytes: None,
            require_length: false,
            expect_status: expectation_failed(),
        }
    }
}

fn expectation_failed() -> u16 {
    417
}

/// The plugin `request-size-limit`.
pub struct RequestSizeLimit;

impl Plugin for RequestSizeLimit {
    fn name(&self) -> &'static str {
        "request-size-limit"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        faults.check_status("expect_status", config.expect_status);
        faults.done()?;
        Ok(Arc::new(SizeFilter(config)))
    }
}

/// An instance of `request-size-limit`.
struct SizeFilter(Config);

fn refuse(status: u16) -> Outcome {
    let kind = RefusalKind::Unacceptable {
        plugin: "request-size-limit",
    };
    Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
}

impl Filter for SizeFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let request = &mut exchange.request;
        let Some(most) = self.0.max_bytes else {
            request.max_body_bytes = Some(u64::MAX);
            return Outcome::Continue;
        };
        let too_large = match request.expects_continue {
            true => self.0.expect_status,
            false => 413,
        };
        if let Some(length) = request.content_length {
            return match length > most {
                false => Outcome::Continue,
                true => refuse(too_large),
            };
        }
        if !request.has_body {
            return match self.0.require_length {
                true => refuse(411),
                false => Outcome::Continue,
            };
        }
        request.max_body_bytes = Some(most);
        match &request.body {
            Some(body) if body.len() as u64 > most => refuse(too_large),
            None if most <= MAX_VARIABLE_BODY as u64 => Outcome::NeedBody {
                // One byte more distinguishes a body that is too long from one at the limit.
                max_bytes: most as usize + 1,
            },
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
    fn bodies_may_be_so_long() {
        let ten = json!({"max_bytes": 10});
        let strict = json!({"max_bytes": 10, "require_length": true});
        let large = json!({"max_bytes": 1 << 30});
        let any = json!({"max_bytes": null});
        // The length that the call names, what has been read of a body in chunks, whether it waits.
        for (config, length, body, waits, expected) in [
            (&ten, Some(10), None, false, "continue"),
            (&ten, Some(11), None, false, "unacceptable 413"),
            (&ten, Some(11), None, true, "unacceptable 417"),
            (&ten, None, None, false, "continue"),
            (&ten, None, Some(None), false, "body"),
            (&ten, None, Some(Some(10)), false, "continue"),
            (&ten, None, Some(Some(11)), false, "unacceptable 413"),
            (&strict, None, None, false, "unacceptable 411"),
            (&strict, Some(0), None, false, "continue"),
            (&strict, None, Some(Some(2)), false, "continue"),
            (&large, None, Some(None), false, "continue"),
            (&any, Some(1 << 40), None, false, "continue"),
            (
                &example(include_str!("request_size_limit.rs")),
                Some(1),
                None,
                false,
                "continue",
            ),
        ] {
            let mut exchange = exchange();
            exchange.request.content_length = length;
            exchange.request.has_body = length.is_some_and(|length| length > 0) || body.is_some();
            exchange.request.body = body.flatten().map(|length| vec![b'x'; length]);
            exchange.request.expects_continue = waits;
            let filter = build(&RequestSizeLimit, config).expect("valid");
            assert_eq!(
                word(&filter.on_request(&mut exchange)),
                expected,
                "{config} {length:?} {body:?}"
            );
        }
    }

    #[test]
    fn longer_bodies_are_cut_off_on_their_way() {
        for (config, limit) in [
            (json!({"max_bytes": 1 << 30}), 1 << 30),
            (json!({"max_bytes": null}), u64::MAX),
        ] {
            let mut exchange = exchange();
            exchange.request.has_body = true;
            let filter = build(&RequestSizeLimit, &config).expect("valid");
            assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
            assert_eq!(exchange.request.max_body_bytes, Some(limit));
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        let config = json!({"max_bytes": 1, "expect_status": 99});
        assert_eq!(refused_at(&RequestSizeLimit, &config), ["expect_status"]);
    }
}
