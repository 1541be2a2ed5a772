//! What APISIX checks in plugins that Weir lacks, and their schemas do not say.

use super::openid;
use crate::schema::is_secret_reference;
use crate::translate::vars;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// A plugin's configuration.
pub(super) type Config = Map<String, Value>;

/// What is checked before the schema is.
pub(super) fn before_schema(name: &str, config: &Config) -> Result<(), String> {
    match name {
        "openid-connect" => openid::before_schema(config),
        "ai-request-rewrite" => rewriting_endpoint(config),
        _ => Ok(()),
    }
}

/// What is checked once the schema has been, with defaults filled in.
pub(super) fn after_schema(name: &str, config: &Config) -> Result<(), String> {
    match name {
        "openid-connect" => openid::after_schema(config),
        "ai-proxy" => provider(config),
        "ai-proxy-multi" => instances(config),
        "ai-prompt-guard" => prompt_patterns(config),
        "ai-rate-limiting" => cost(config),
        "cas-auth" => cookie(config),
        "ldap-auth-advanced" => directory(config),
        "oas-validator" => specification(config),
        "loggly" => tags(config).and_then(|()| logged_bodies(config)),
        "rocketmq-logger" | "tencent-cloud-cls" => logged_bodies(config),
        _ => Ok(()),
    }
}

/// Whether a field is there and neither `null` nor `false`.
pub(super) fn is_set(config: &Config, field: &str) -> bool {
    !matches!(config.get(field), None | Some(Value::Null | Value::Bool(false)))
}

pub(super) fn text<'c>(config: &'c Config, field: &str) -> Option<&'c str> {
    config.get(field).and_then(Value::as_str)
}

fn at<'c>(config: &'c Config, place: &[&str]) -> Option<&'c Value> {
    let (first, rest) = place.split_first()?;
    rest.iter()
        .try_fold(config.get(*first)?, |value, field| value.get(field))
}

fn rewriting_endpoint(config: &Config) -> Result<(), String> {
    let needs = text(config, "provider") == Some("openai-compatible");
    match needs && at(config, &["override", "endpoint"]).is_none() {
        true => Err("override.endpoint is required for openai-compatible provider".to_owned()),
        false => Ok(()),
    }
}

/// What a provider of models needs.
fn provider(config: &Config) -> Result<(), String> {
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
fn instances(config: &Config) -> Result<(), String> {
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

fn prompt_patterns(config: &Config) -> Result<(), String> {
    for (field, what) in [
        ("allow_patterns", "allow_pattern"),
        ("deny_patterns", "deny_pattern"),
    ] {
        let patterns = config.get(field).and_then(Value::as_array);
        for pattern in patterns.into_iter().flatten().filter_map(Value::as_str) {
            if super::super::check_regex(pattern) == Err(None) {
                return Err(format!("invalid {what}: {pattern}"));
            }
        }
    }
    Ok(())
}

fn cost(config: &Config) -> Result<(), String> {
    let is_told = text(config, "limit_strategy") == Some("expression");
    match is_told && text(config, "cost_expr").unwrap_or_default().is_empty() {
        true => Err("cost_expr is required when limit_strategy is 'expression'".to_owned()),
        false => Ok(()),
    }
}

fn cookie(config: &Config) -> Result<(), String> {
    let part = |field| at(config, &["cookie", field]);
    let is_open =
        part("samesite") == Some(&Value::from("None")) && part("secure") == Some(&Value::from(false));
    match is_open {
        true => Err("cookie.secure must be true when cookie.samesite is \"None\"".to_owned()),
        false => Ok(()),
    }
}

fn directory(config: &Config) -> Result<(), String> {
    if is_set(config, "use_ldaps") && is_set(config, "use_starttls") {
        return Err("use_ldaps and use_starttls are mutually exclusive".to_owned());
    }
    match is_set(config, "bind_dn") && !is_set(config, "ldap_password") {
        true => Err("ldap_password is required when bind_dn is set".to_owned()),
        false => Ok(()),
    }
}

fn specification(config: &Config) -> Result<(), String> {
    let spec = text(config, "spec").filter(|spec| !is_secret_reference(spec));
    match spec.map(serde_json::from_str::<Value>) {
        Some(Err(error)) => Err(format!("invalid JSON string provided, err: {error}")),
        _ => Ok(()),
    }
}

/// The pattern of tags looks ahead.
fn tags(config: &Config) -> Result<(), String> {
    let tags = config.get("tags").and_then(Value::as_array);
    let mut tags = tags.into_iter().flatten().filter_map(Value::as_str).enumerate();
    match tags.find(|(_, tag)| tag.starts_with("tag=")) {
        Some((index, tag)) => Err(format!(
            "property \"tags\" validation failed: failed to validate item {}: failed to match pattern \
             \"^(?!tag=)[ -~]*\" with \"{tag}\"",
            index + 1
        )),
        None => Ok(()),
    }
}

fn logged_bodies(config: &Config) -> Result<(), String> {
    for field in ["include_req_body_expr", "include_resp_body_expr"] {
        if let Some(Err(error)) = config
            .get(field)
            .and_then(Value::as_array)
            .map(|it| vars::check(it))
        {
            return Err(format!("failed to validate the '{field}' expression: {error}"));
        }
    }
    Ok(())
}
