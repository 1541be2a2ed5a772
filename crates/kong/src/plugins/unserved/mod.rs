//! Plugins of the original that are described here, but not served yet: their instances are checked, kept and
//! given back as those of others are, so that no one has to take them out of their documents.
//!
//! The warning about them makes `weir check` fail. A chain runs as if such a plugin was not there. But one
//! that decides who gets in, or who answers, must not be missed: on its routes, calls are refused.

mod ai_prompt_decorator;
mod ai_prompt_guard;
mod ai_prompt_template;
mod ai_proxy;
mod ai_request_transformer;
mod ai_response_transformer;
mod llm;
mod post_function;
mod pre_function;
pub(super) mod shared;

use super::{CataloguePlugin, Consumers, Definition, UnsupportedOption, untyped};
use crate::schema::{EntityCheck, Record};
use serde_json::{Value, json};
use weir_plugins::request_termination;

/// All of them.
pub static DESCRIBED: &[Definition] = &[
    ai_prompt_decorator::DEFINITION,
    ai_prompt_guard::DEFINITION,
    ai_prompt_template::DEFINITION,
    ai_proxy::DEFINITION,
    ai_request_transformer::DEFINITION,
    ai_response_transformer::DEFINITION,
    post_function::DEFINITION,
    pre_function::DEFINITION,
];

/// The plugin of the catalogue that refuses calls.
const REFUSING: &str = "request-termination";
/// The fate of calls that need a plugin which cannot be served.
pub const REFUSED: &str = "calls that come to it are refused";

/// The warning about an instance: whether calls pass it by, or are refused.
pub fn warning(name: &str, passes: bool) -> String {
    let consequence = if passes {
        "calls pass as if it was not there"
    } else {
        REFUSED
    };
    format!("plugin \"{name}\" is not served by this version of Weir: {consequence}")
}

/// A plugin that decides who gets in, who answers, or what a model is asked.
const fn blocking(name: &'static str, priority: i32, config: Record) -> Definition {
    described(name, priority, config, refuse)
}

/// Code of the administrator. What it does before the upstream is asked may be to refuse calls.
const fn blocking_if_code(name: &'static str, priority: i32, config: Record) -> Definition {
    described(name, priority, config, refuse_before_upstream)
}

const fn described(
    name: &'static str,
    priority: i32,
    config: Record,
    translate: fn(&Value, &Consumers<'_>) -> Result<Value, UnsupportedOption>,
) -> Definition {
    Definition {
        name,
        priority,
        config,
        checks: &[],
        shorthands: &[],
        on_consumers: true,
        catalogue_name: REFUSING,
        translate,
    }
}

impl Definition {
    const fn with_checks(mut self, checks: &'static [EntityCheck]) -> Self {
        self.checks = checks;
        self
    }

    const fn never_on_consumers(mut self) -> Self {
        self.on_consumers = false;
        self
    }
}

fn pass(_: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    Err(UnsupportedOption {
        field: "",
        what: "this plugin".to_owned(),
    })
}

fn refuse(_: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    Ok(refusal().config)
}

/// The stand-in for a plugin that must not be missed: it refuses all calls that come to it.
pub fn refusal() -> CataloguePlugin {
    CataloguePlugin {
        name: REFUSING,
        config: untyped(request_termination::Config {
            status: 503,
            body: Some(json!({ "message": "Service unavailable" }).to_string()),
            content_type: Some("application/json; charset=utf-8".to_owned()),
            ..request_termination::Config::default()
        }),
    }
}

fn refuse_before_upstream(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let is_used = |phase: &str| config[phase].as_array().is_some_and(|it| !it.is_empty());
    if ["certificate", "rewrite", "access"].into_iter().any(is_used) {
        refuse(config, consumers)
    } else {
        pass(config, consumers)
    }
}
