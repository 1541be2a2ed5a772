//! The warning in the answer to a write about plugins and certificates that are stored and not served as they are written:
//! in a header, so that no one has to look at the gateway's status to learn it.

use super::render_entity::definition;
use super::response::ApiResponse;
use crate::document::entity_type::EntityType;
use crate::plugins::{Consumers, unserved};
use crate::translate::chain::is_served;
use axum::http::header::WARNING;
use serde_json::{Map, Value};
use weir_dialect::PluginCheck;
use weir_model::{Severity, x509};

/// The warnings about an entity that is stored. `check` says what is wrong with a plugin; what is wrong enough has been
/// refused before.
pub fn warnings(
    entity_type: &EntityType,
    fields: &Map<String, Value>,
    check: Option<&PluginCheck>,
) -> Vec<String> {
    if entity_type.is("certificates") {
        let certificate = |field: &str| x509::unserved_key(fields.get(field)?.as_str()?);
        let found = ["cert", "cert_alt"].map(|field| Some(format!("{field}: {}", certificate(field)?)));
        return found.into_iter().flatten().collect();
    }
    let Some(definition) = definition(entity_type, fields) else {
        return Vec::new();
    };
    let is_enabled = fields.get("enabled") != Some(&Value::Bool(false));
    if !is_enabled {
        return Vec::new();
    }
    let config = fields.get("config").cloned().unwrap_or_default();
    let made = definition.translated(&config, &Consumers::NONE);
    if !is_served(definition) {
        let passes = made.map_or(true, |made| made.is_null());
        return vec![unserved::warning(definition.name, passes)];
    }
    match (check, made) {
        (Some(check), Ok(made)) if !made.is_null() => {
            let found = check.findings(definition.catalogue_name, &made, crate::NAME);
            let found = found.into_iter().filter(|it| it.severity == Severity::Warning);
            found
                .map(|it| format!("plugin '{}': {}", definition.name, it.message))
                .collect()
        }
        _ => Vec::new(),
    }
}

impl ApiResponse {
    /// The same answer, with what is to be said of the entities that were stored.
    pub fn with_warnings(self, warnings: impl IntoIterator<Item = String>) -> Self {
        match weir_dialect::warning(warnings) {
            Some(value) => self.with(WARNING, value),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::entity_type::entity_type;

    /// The defect: a certificate was stored without a word, and no client was shown it.
    #[test]
    fn certificates_with_short_rsa_keys_are_named() {
        let short = include_str!("../../../saml/tests/data/short.crt.pem");
        let long = include_str!("../../../saml/tests/data/idp.crt.pem");
        let entity_type = entity_type("certificates").expect("known");
        for (cert, cert_alt, expected) in [
            (short, None, &["cert: "][..]),
            (long, None, &[]),
            (long, Some(short), &["cert_alt: "]),
            (short, Some(short), &["cert: ", "cert_alt: "]),
            ("{vault://env/cert}", None, &[]),
        ] {
            let mut fields = Map::from_iter([("cert".to_owned(), Value::from(cert))]);
            fields.extend(cert_alt.map(|it| ("cert_alt".to_owned(), Value::from(it))));
            let found = warnings(entity_type, &fields, None);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    found.starts_with(expected) && found.contains("2048 bits"),
                    "{found}"
                );
            }
        }
    }
}
