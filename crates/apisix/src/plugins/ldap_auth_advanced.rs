//! `ldap-auth-advanced`: users that are searched for in a directory, as `ldap-auth` of the catalogue.

use super::ldap_auth::{address, credential};
use super::printed_schemas::PrintedSchemas;
use super::{CredentialAdapter, Phases, PluginAdapter, PluginContext, Warnings, headers, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::{Map, Value};
use weir_plugins::identity::GROUPS_HEADER;
use weir_plugins::ldap_auth::{Config, DirectoryTls, Search};

/// The plugin `ldap-auth-advanced`.
pub struct LdapAuthAdvanced;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/ldap-auth-advanced.json"));

#[derive(Deserialize)]
struct Options {
    ldap_uri: String,
    base_dn: String,
    bind_dn: Option<String>,
    ldap_password: Option<String>,
    attribute: String,
    header_type: String,
    realm: String,
    use_ldaps: bool,
    use_starttls: bool,
    ssl_verify: bool,
    timeout: u64,
    keepalive: bool,
    keepalive_timeout: u64,
    keepalive_pool_size: u32,
    size_limit: u32,
    time_limit: u32,
    consumer_required: bool,
}

impl PluginAdapter for LdapAuthAdvanced {
    fn name(&self) -> &'static str {
        "ldap-auth-advanced"
    }

    fn priority(&self) -> i64 {
        2541
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        SCHEMAS.request()
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let is_set =
            |field: &str| !matches!(config.get(field), None | Some(Value::Null | Value::Bool(false)));
        if is_set("use_ldaps") && is_set("use_starttls") {
            return Err("use_ldaps and use_starttls are mutually exclusive".to_owned());
        }
        match is_set("bind_dn") && !is_set("ldap_password") {
            true => Err("ldap_password is required when bind_dn is set".to_owned()),
            false => Ok(()),
        }
    }

    fn credentials(&self) -> Option<&dyn CredentialAdapter> {
        Some(self)
    }

    fn plugin(&self) -> &'static str {
        "ldap-auth"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let (host, port) = address(&options.ldap_uri);
        let scheme = if options.header_type == "ldap" {
            "ldap"
        } else {
            "Basic"
        };
        serde_json::to_value(Config {
            port,
            tls: match (options.use_ldaps, options.use_starttls) {
                (true, _) => DirectoryTls::Ldaps,
                (false, true) => DirectoryTls::StartTls,
                (false, false) => DirectoryTls::None,
            },
            verify_tls: options.ssl_verify,
            search: Some(Search {
                bind_dn: options.bind_dn,
                password: options.ldap_password,
                size_limit: options.size_limit,
                time_limit_seconds: options.time_limit,
            }),
            schemes: vec![options.header_type],
            cache_seconds: 0,
            timeout_ms: options.timeout,
            pool_size: if options.keepalive {
                options.keepalive_pool_size
            } else {
                0
            },
            pool_idle_timeout_ms: options.keepalive_timeout,
            consumer_required: options.consumer_required,
            cleared_headers: vec![GROUPS_HEADER.to_owned()],
            message: Some("Authorization required".into()),
            challenge: Some(format!("{scheme} realm=\"{}\"", options.realm)),
            identity: headers::identity(None),
            ..Config::new(host, options.base_dn, options.attribute)
        })
    }
}

impl CredentialAdapter for LdapAuthAdvanced {
    fn shape(&self) -> &'static Schema {
        SCHEMAS.consumer()
    }

    fn translate(&self, config: &Value) -> Result<Value, serde_json::Error> {
        credential(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_belongs_together_is_checked() {
        for (config, words) in [
            (
                json!({"bind_dn": "c"}),
                Err("ldap_password is required when bind_dn is set"),
            ),
            (
                json!({"use_ldaps": true, "use_starttls": true}),
                Err("use_ldaps and use_starttls are mutually exclusive"),
            ),
            (
                json!({"bind_dn": "c", "ldap_password": "p", "use_ldaps": true}),
                Ok(()),
            ),
        ] {
            let found = PluginAdapter::check(&LdapAuthAdvanced, config.as_object().expect("a map"));
            assert_eq!(found, words.map_err(str::to_owned), "{config}");
        }
    }
}
