//! The fields about a language model in plugins that ask one: provider, model, credentials.

use super::shared::URL;
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record};
use serde_json::Value;

/// The fields of a model, for plugins whose configuration they are.
pub const FIELDS: &[Field] = &[
    Field::new("route_type", Kind::String)
        .required()
        .check(&[Check::OneOf(&["llm/v1/chat", "llm/v1/completions", "preserve"])]),
    Field::new("auth", Kind::Record(&AUTH)),
    Field::new("model", Kind::Record(&MODEL)).required(),
    Field::new("logging", Kind::Record(&LOGGING)).required(),
];

/// The checks over them.
pub const CHECKS: &[EntityCheck] = &[
    EntityCheck::MutuallyRequired(&["auth.header_name", "auth.header_value"]),
    EntityCheck::MutuallyRequired(&["auth.param_name", "auth.param_value", "auth.param_location"]),
    EntityCheck::Test(check_provider),
];

/// The same as a record of their own.
pub static LLM: Record = Record {
    fields: FIELDS,
    checks: CHECKS,
};

const fn flag(name: &'static str) -> Field {
    Field::new(name, Kind::Boolean)
}

static AUTH: Record = Record::of(&[
    Field::new("header_name", Kind::String),
    Field::new("header_value", Kind::String),
    Field::new("param_name", Kind::String),
    Field::new("param_value", Kind::String),
    Field::new("param_location", Kind::String).check(&[Check::OneOf(&["query", "body"])]),
    flag("gcp_use_service_account").or(Default::Boolean(false)),
    Field::new("gcp_service_account_json", Kind::String),
    Field::new("aws_access_key_id", Kind::String),
    Field::new("aws_secret_access_key", Kind::String),
    flag("allow_override").or(Default::Boolean(false)),
]);

static MODEL: Record = Record::of(&[
    Field::new("provider", Kind::String)
        .required()
        .check(&[Check::OneOf(&[
            "openai",
            "azure",
            "anthropic",
            "cohere",
            "mistral",
            "llama2",
            "gemini",
            "bedrock",
            "huggingface",
        ])]),
    Field::new("name", Kind::String),
    Field::new("options", Kind::Record(&OPTIONS)),
]);

static OPTIONS: Record = Record::of(&[
    Field::new("max_tokens", Kind::Integer),
    Field::new("input_cost", Kind::Number).check(&[Check::Above(0)]),
    Field::new("output_cost", Kind::Number).check(&[Check::Above(0)]),
    Field::new("temperature", Kind::Number).check(&[Check::Between(0, 5)]),
    Field::new("top_p", Kind::Number).check(&[Check::Between(0, 1)]),
    Field::new("top_k", Kind::Integer).check(&[Check::Between(0, 500)]),
    Field::new("anthropic_version", Kind::String),
    Field::new("azure_instance", Kind::String),
    Field::new("azure_api_version", Kind::String).or(Default::Text("2023-05-15")),
    Field::new("azure_deployment_id", Kind::String),
    Field::new("llama2_format", Kind::String).check(&[Check::OneOf(&["raw", "openai", "ollama"])]),
    Field::new("mistral_format", Kind::String).check(&[Check::OneOf(&["openai", "ollama"])]),
    Field::new("upstream_url", Kind::String).check(URL),
    Field::new("upstream_path", Kind::String),
    Field::new("gemini", Kind::Record(&GEMINI)),
    Field::new("bedrock", Kind::Record(&BEDROCK)),
    Field::new("huggingface", Kind::Record(&HUGGINGFACE)),
]);

static GEMINI: Record = Record {
    fields: &[
        Field::new("api_endpoint", Kind::String),
        Field::new("project_id", Kind::String),
        Field::new("location_id", Kind::String),
    ],
    checks: &[EntityCheck::MutuallyRequired(&[
        "api_endpoint",
        "project_id",
        "location_id",
    ])],
};

static BEDROCK: Record = Record::of(&[Field::new("aws_region", Kind::String)]);
static HUGGINGFACE: Record = Record::of(&[flag("use_cache"), flag("wait_for_model")]);
static LOGGING: Record = Record::of(&[
    flag("log_statistics").required().or(Default::Boolean(false)),
    flag("log_payloads").required().or(Default::Boolean(false)),
]);

/// The further fields that a provider needs.
fn check_provider(llm: &Fields) -> Result<(), String> {
    let nothing = Value::Null;
    let model = llm.get("model").unwrap_or(&nothing);
    let provider = model["provider"].as_str().unwrap_or_default();
    let override_is_on = llm
        .get("auth")
        .is_some_and(|auth| auth["allow_override"] == Value::Bool(true));
    if ["bedrock", "gemini"].contains(&provider) && override_is_on {
        return Err("bedrock and gemini only support auth.allow_override = false".to_owned());
    }
    let needed: &[&str] = match provider {
        "llama2" => &["llama2_format", "upstream_url"],
        "mistral" => &["mistral_format"],
        "anthropic" => &["anthropic_version"],
        "azure" => &["azure_instance", "azure_api_version", "azure_deployment_id"],
        _ => &[],
    };
    for field in needed {
        if model["options"][*field].is_null() {
            let purpose = match *field {
                "upstream_url" => "self-hosted providers/models".to_owned(),
                _ => format!("{provider} provider"),
            };
            return Err(format!("must set 'model.options.{field}' for {purpose}"));
        }
    }
    let logs = llm
        .get("logging")
        .is_some_and(|logging| logging["log_statistics"] == Value::Bool(true));
    let route_type = llm.get("route_type").and_then(Value::as_str).unwrap_or_default();
    match logs && provider == "anthropic" && route_type == "llm/v1/completions" {
        true => Err(format!(
            "{provider} does not support statistics when route_type is {route_type}"
        )),
        false => Ok(()),
    }
}

/// Plugins that transform ask a model in one way only.
pub fn check_chat(instance: &Fields) -> Result<(), String> {
    let route_type = instance.get("config").map(|config| &config["llm"]["route_type"]);
    match route_type.and_then(Value::as_str) {
        None | Some("llm/v1/chat") => Ok(()),
        Some(_) => Err("'config.llm.route_type' must be 'llm/v1/chat' for AI transformer plugins".to_owned()),
    }
}
