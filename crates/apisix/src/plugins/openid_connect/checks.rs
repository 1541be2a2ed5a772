//! APISIX's checks of `openid-connect` that its schema does not have.

use crate::schema::is_secret_reference;
use serde_json::{Map, Value};
use weir_plugins::jose::private_key_kind;
use weir_plugins::request_validation::check_schema;

/// A plugin's configuration.
type Config = Map<String, Value>;

/// Whether a field is there and neither `null` nor `false`.
fn is_set(config: &Config, field: &str) -> bool {
    !matches!(config.get(field), None | Some(Value::Null | Value::Bool(false)))
}

fn text<'c>(config: &'c Config, field: &str) -> Option<&'c str> {
    config.get(field).and_then(Value::as_str)
}

/// Options of the library underneath, and what says the same.
const FLAT: [(&str, &str); 7] = [
    ("use_par", "par.enabled"),
    ("pushed_authorization_request_endpoint", "par.endpoint"),
    (
        "pushed_authorization_request_endpoint_auth_method",
        "par.endpoint_auth_method",
    ),
    ("use_dpop", "dpop.enabled"),
    ("dpop_signing_alg", "dpop.signing_alg"),
    ("dpop_private_key", "dpop.private_key"),
    ("dpop_public_jwk", "dpop.public_jwk"),
];

/// Whether a client can do without a secret depends on how it proves who it is.
pub(super) fn before_schema(config: &Config) -> Result<(), String> {
    let is_bearer = is_set(config, "bearer_only");
    if !is_bearer && !is_set(config, "session") {
        return Err("property \"session.secret\" is required when \"bearer_only\" is false".to_owned());
    }
    let signs = |field| text(config, field) == Some("private_key_jwt");
    let is_optional = match is_bearer {
        true => {
            is_set(config, "public_key")
                || is_set(config, "use_jwks")
                || signs("introspection_endpoint_auth_method")
        }
        false => signs("token_endpoint_auth_method") || is_set(config, "use_pkce"),
    };
    match is_optional || is_set(config, "client_secret") {
        true => Ok(()),
        false => Err("property \"client_secret\" is required".to_owned()),
    }
}

pub(super) fn after_schema(config: &Config) -> Result<(), String> {
    if let Some(schema) = config.get("claim_schema").filter(|schema| schema.is_object()) {
        check_schema(schema).map_err(|fault| format!("check claim_schema failed: {fault}"))?;
    }
    if let Some((name, owner)) = FLAT.iter().find(|(name, _)| config.contains_key(*name)) {
        return Err(format!(
            "property \"{name}\" is not allowed, use \"{owner}\" instead"
        ));
    }
    match config.get("dpop").and_then(Value::as_object) {
        Some(dpop) if is_set(dpop, "enabled") => proof_key(dpop)?,
        _ => {}
    }
    assertion(config)?;
    pushed(config)
}

/// The key by which a client proves that a token is its own.
fn proof_key(dpop: &Map<String, Value>) -> Result<(), String> {
    let Some(key) = dpop.get("public_jwk").and_then(Value::as_object) else {
        return Ok(());
    };
    let what = "property \"dpop.public_jwk\" validation failed:";
    let kind = text(key, "kty").unwrap_or("nil");
    let needed: &[&str] = match kind {
        "EC" => &["crv", "x", "y"],
        "RSA" => &["e", "n"],
        _ => return Err(format!("{what} kty \"{kind}\" is not supported")),
    };
    for member in needed {
        match key.get(*member) {
            None => {
                return Err(format!("{what} kty \"{kind}\" requires {}", needed.join(", ")));
            }
            Some(Value::String(text)) if !text.is_empty() => {}
            Some(_) => return Err(format!("{what} \"{member}\" must be a non-empty string")),
        }
    }
    let Some(algorithm) = text(dpop, "signing_alg") else {
        return Ok(());
    };
    let (wanted, curve) = match algorithm {
        "ES256" => ("EC", Some("P-256")),
        "RS256" | "PS256" => ("RSA", None),
        _ => return Ok(()),
    };
    let what = format!("property \"dpop.signing_alg\" \"{algorithm}\" requires");
    if wanted != kind {
        return Err(format!("{what} an {wanted} \"dpop.public_jwk\""));
    }
    match (curve, text(key, "crv").unwrap_or_default()) {
        (Some(wanted), found) if wanted != found => Err(format!(
            "{what} \"dpop.public_jwk\" crv \"{wanted}\", got \"{found}\""
        )),
        _ => Ok(()),
    }
}

/// The field that a way of client authentication needs.
fn credential(method: &str) -> Option<&'static str> {
    match method {
        "private_key_jwt" => Some("client_rsa_private_key"),
        "client_secret_jwt" => Some("client_secret"),
        _ => None,
    }
}

/// The ways of the endpoints that calls can reach: which field says so, and what.
fn reachable(config: &Config) -> Vec<(&'static str, &str)> {
    let mut found = Vec::new();
    let is_bearer = is_set(config, "bearer_only");
    let is_local = is_set(config, "public_key") || is_set(config, "use_jwks");
    if !is_local && (is_bearer || is_set(config, "introspection_endpoint")) {
        let name = "introspection_endpoint_auth_method";
        found.extend(text(config, name).map(|method| (name, method)));
    }
    if !is_bearer {
        let name = "token_endpoint_auth_method";
        let method = text(config, name);
        let method = method.filter(|method| credential(method).is_none_or(|field| is_set(config, field)));
        found.extend(method.map(|method| (name, method)));
        found.extend(pushed_method(config).map(|method| ("par.endpoint_auth_method", method)));
    }
    found
}

fn pushed_method(config: &Config) -> Option<&str> {
    let pushed = config.get("par").and_then(Value::as_object)?;
    text(pushed, "endpoint_auth_method").filter(|_| is_set(pushed, "enabled"))
}

/// The algorithm by which the client signs who it is.
fn assertion(config: &Config) -> Result<(), String> {
    let Some(algorithm) = text(config, "client_jwt_assertion_alg") else {
        return Ok(());
    };
    let reachable = reachable(config);
    let by = |wanted| {
        reachable
            .iter()
            .find(|(_, method)| *method == wanted)
            .map(|(name, _)| *name)
    };
    let is_symmetric = algorithm.starts_with("HS");
    let what = "property \"client_jwt_assertion_alg\"";
    match (by("private_key_jwt"), by("client_secret_jwt")) {
        (Some(key), Some(secret)) => Err(format!(
            "{what} is a single algorithm, but \"{key}\" selects private_key_jwt and \"{secret}\" selects \
             client_secret_jwt"
        )),
        (Some(key), None) if is_symmetric => Err(format!(
            "{what} \"{algorithm}\" is symmetric and cannot be used with the private_key_jwt selected by \"{key}\""
        )),
        (None, Some(secret)) if !is_symmetric => Err(format!(
            "{what} \"{algorithm}\" is asymmetric and cannot be used with the client_secret_jwt selected by \
             \"{secret}\""
        )),
        (Some(_), None) => assertion_key(config, algorithm),
        _ => Ok(()),
    }
}

/// The key by which the client signs who it is: the algorithm must be one for such keys.
fn assertion_key(config: &Config, algorithm: &str) -> Result<(), String> {
    let field = "client_rsa_private_key";
    let (wanted, wanted_curve) = match algorithm {
        "RS256" | "RS512" => ("RSA", None),
        "ES256" => ("EC", Some("P-256")),
        "ES512" => ("EC", Some("P-521")),
        _ => return Ok(()),
    };
    let Some(key) = text(config, field).filter(|key| !is_secret_reference(key)) else {
        return Ok(());
    };
    let Some((kind, curve)) = private_key_kind(key) else {
        return Err(match key.contains("-----BEGIN PUBLIC KEY-----") {
            true => format!("property \"{field}\" has no private key in it"),
            false => format!(
                "property \"{field}\" is not a valid key: expected a private key in PEM, not encrypted, of RSA with at \
                 least 2048 bits or of EC"
            ),
        });
    };
    let what = format!("property \"client_jwt_assertion_alg\" \"{algorithm}\" requires");
    if kind != wanted {
        return Err(format!("{what} an {wanted} \"{field}\""));
    }
    match (wanted_curve, curve.unwrap_or_default()) {
        (Some(wanted), found) if wanted != found => Err(format!(
            "{what} a \"{field}\" on curve \"{wanted}\", got \"{found}\""
        )),
        _ => Ok(()),
    }
}

/// How the client authenticates when it pushes its request.
fn pushed(config: &Config) -> Result<(), String> {
    let method = pushed_method(config).filter(|_| !is_set(config, "bearer_only"));
    let needed = method.and_then(|method| Some((method, credential(method)?)));
    match needed {
        Some((method, field)) if !is_set(config, field) => Err(format!(
            "property \"par.endpoint_auth_method\" \"{method}\" requires \"{field}\" when \"par.enabled\" is true"
        )),
        _ => Ok(()),
    }
}
