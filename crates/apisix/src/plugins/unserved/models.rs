//! APISIX's checks of plugins that talk to models, which their schemas do not have.

use super::checks::{Config, at, text};
use crate::plugins::check_regex;
use crate::schema::is_secret_reference;
use serde_json::Value;
use std::collections::HashMap;

pub(super) fn rewriting_endpoint(config: &Config) -> Result<(), String> {
    let needs = text(config, "provider") == Some("openai-compatible");
    match needs && at(config, &["override", "endpoint"]).is_none() {
        true => Err("override.endpoint is required for openai-compatible provider".to_owned()),
        false => Ok(()),
    }
}

/// The checks of a provider of models.
pub(super) fn provider(config: &Config) -> Result<(), String> {
    let account = at(config, &["auth", "gcp", "service_account_json"]).and_then(Value::as_str);
    if let Some(account) = account.filter(|account| !is_secret_reference(account)) {
        serde_json::from_str::<Value>(account)
            .map_err(|error| format!("invalid gcp service_account_json: {error}"))?;
    }
    let has = |place: &[&str]| at(config, place).is_some();
    match text(config, "provider") {
        Some("vertex-ai") => {
            let is_placed = has(&["provider_conf", "project_id"]) && has(&["provider_conf", "region"]);
            match is_placed || has(&["override", "endpoint"]) {
                true => Ok(()),
                false => Err(
                    "vertex-ai requires either provider_conf (project_id + region) or override.endpoint"
                        .to_owned(),
                ),
            }
        }
        Some("bedrock") if !has(&["provider_conf", "region"]) => {
            Err("bedrock requires provider_conf.region".to_owned())
        }
        Some("bedrock") if !has(&["auth", "aws"]) => Err("bedrock requires auth.aws".to_owned()),
        _ => Ok(()),
    }
}

/// The instances between which `ai-proxy-multi` chooses.
pub(super) fn instances(config: &Config) -> Result<(), String> {
    let instances = config.get("instances").and_then(Value::as_array);
    let instances = || instances.into_iter().flatten().filter_map(Value::as_object);
    let mut seen = HashMap::new();
    for (index, instance) in instances().enumerate() {
        let name = text(instance, "name").unwrap_or("?");
        if let Some(earlier) = seen.insert(name, index + 1) {
            return Err(format!(
                "duplicate instance name '{name}' at instances[{earlier}] and instances[{}]",
                index + 1
            ));
        }
        let endpoint = at(instance, &["override", "endpoint"]).and_then(Value::as_str);
        if endpoint.is_some_and(|endpoint| !is_endpoint(endpoint)) {
            return Err("invalid endpoint".to_owned());
        }
        provider(instance).map_err(|error| match error.starts_with("invalid gcp") {
            true => error,
            false => format!("instance '{name}': {error}"),
        })?;
    }
    choice(config)?;
    if at(config, &["balancer", "algorithm"]).and_then(Value::as_str) != Some("semantic") {
        return Ok(());
    }
    meaning(config)?;
    for instance in instances() {
        let examples = instance.get("examples").and_then(Value::as_array);
        let mut examples = examples.into_iter().flatten().filter_map(Value::as_str);
        if !examples.any(|example| !example.is_empty()) {
            let name = text(instance, "name").unwrap_or("?");
            return Err(format!(
                "instance '{name}': must configure non-empty `examples` for the semantic algorithm"
            ));
        }
    }
    Ok(())
}

/// How prompts are compared with the examples of instances.
fn meaning(config: &Config) -> Result<(), String> {
    let Some(embeddings) = at(config, &["semantic_opts", "embeddings"]) else {
        return Err(
            "must configure `semantic_opts.embeddings` when balancer algorithm is semantic".to_owned(),
        );
    };
    let part = |field| embeddings.get(field).and_then(Value::as_str);
    let endpoint = part("endpoint");
    if endpoint.is_some_and(|endpoint| !is_endpoint(endpoint)) {
        return Err("invalid `semantic_opts.embeddings.endpoint`".to_owned());
    }
    if part("provider") != Some("azure-openai") {
        return fallback(config);
    }
    let Some((_, rest)) = endpoint.and_then(|endpoint| endpoint.split_once("://")) else {
        return Err(
            "must configure `semantic_opts.embeddings.endpoint` when embeddings provider is azure-openai"
                .to_owned(),
        );
    };
    match rest.split_once('/') {
        Some((_, path)) if !path.is_empty() => fallback(config),
        _ => Err(
            "`semantic_opts.embeddings.endpoint` for azure-openai must include the full deployment path, e.g. \
             https://{resource}.openai.azure.com/openai/deployments/{deployment}/embeddings?api-version=..."
                .to_owned(),
        ),
    }
}

/// The instance that is taken if none comes near.
fn fallback(config: &Config) -> Result<(), String> {
    let named = at(config, &["semantic_opts", "fallback"]).and_then(Value::as_str);
    let instances = config.get("instances").and_then(Value::as_array);
    let is_there = |name| {
        instances
            .into_iter()
            .flatten()
            .any(|it| it.get("name") == Some(&Value::from(name)))
    };
    match named {
        Some(name) if !is_there(name) => Err(format!(
            "`semantic_opts.fallback` names unknown instance '{name}'"
        )),
        _ => Ok(()),
    }
}

/// `SCHEME://HOST` and what follows.
fn is_endpoint(endpoint: &str) -> bool {
    endpoint.split_once("://").is_some_and(|(scheme, rest)| {
        matches!(scheme, "http" | "https") && !rest.is_empty() && !rest.starts_with(['/', ':'])
    })
}

/// By what an instance is chosen.
fn choice(config: &Config) -> Result<(), String> {
    let part = |field| at(config, &["balancer", field]).and_then(Value::as_str);
    if part("algorithm") != Some("chash") {
        return Ok(());
    }
    match (part("hash_on"), part("key")) {
        (None, _) => Err("must configure `hash_on` when balancer algorithm is chash".to_owned()),
        (Some("consumer"), _) | (_, Some(_)) => Ok(()),
        (Some(_), None) => {
            Err("must configure `hash_key` when balancer `hash_on` is not set to cookie".to_owned())
        }
    }
}

pub(super) fn prompt_patterns(config: &Config) -> Result<(), String> {
    for (field, what) in [
        ("allow_patterns", "allow_pattern"),
        ("deny_patterns", "deny_pattern"),
    ] {
        let patterns = config.get(field).and_then(Value::as_array);
        for pattern in patterns.into_iter().flatten().filter_map(Value::as_str) {
            if check_regex(pattern) == Err(None) {
                return Err(format!("invalid {what}: {pattern}"));
            }
        }
    }
    Ok(())
}

pub(super) fn cost(config: &Config) -> Result<(), String> {
    let is_expression = text(config, "limit_strategy") == Some("expression");
    match is_expression && text(config, "cost_expr").unwrap_or_default().is_empty() {
        true => Err("cost_expr is required when limit_strategy is 'expression'".to_owned()),
        false => Ok(()),
    }
}
