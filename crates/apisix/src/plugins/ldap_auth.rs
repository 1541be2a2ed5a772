//! `ldap-auth`: users of a directory, as `ldap-auth` of the catalogue.

use super::printed_schemas::PrintedSchemas;
use super::{CredentialAdapter, Phases, PluginAdapter, PluginContext, Warnings, headers, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::ldap_auth::{Config, Credential, DirectoryTls};

/// The plugin `ldap-auth`.
pub struct LdapAuth;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/ldap-auth.json"));

#[derive(Deserialize)]
struct Options {
    base_dn: String,
    ldap_uri: String,
    uid: String,
    use_tls: bool,
    tls_verify: bool,
    hide_credentials: bool,
    realm: String,
}

/// The host and the port of `host:port`. A scheme may stand before them; whether TLS is spoken is another option's choice.
pub(super) fn address(uri: &str) -> (String, Option<u16>) {
    let uri = uri
        .strip_prefix("ldap://")
        .or_else(|| uri.strip_prefix("ldaps://"))
        .unwrap_or(uri);
    let split = uri
        .rsplit_once(':')
        .filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let parsed = split.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    let (host, port) = match parsed {
        Some((host, port)) => (host, Some(port)),
        None => (uri, None),
    };
    (
        host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port,
    )
}

impl PluginAdapter for LdapAuth {
    fn name(&self) -> &'static str {
        "ldap-auth"
    }

    fn priority(&self) -> i64 {
        2540
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
        serde_json::to_value(Config {
            port: port.or(Some(389)),
            tls: if options.use_tls {
                DirectoryTls::Ldaps
            } else {
                DirectoryTls::None
            },
            verify_tls: options.tls_verify,
            schemes: vec!["basic".into()],
            proxy_authorization: false,
            strip: options.hide_credentials,
            cache_seconds: 0,
            consumer_required: true,
            challenge: Some(format!("Basic realm=\"{}\"", options.realm)),
            identity: headers::identity(None),
            ..Config::new(host, options.base_dn, options.uid)
        })
    }
}

#[derive(Deserialize)]
struct CredentialOptions {
    user_dn: String,
}

/// The credential of a consumer.
pub(super) fn credential(config: &Value) -> Result<Value, serde_json::Error> {
    let options: CredentialOptions = read(config)?;
    serde_json::to_value(Credential {
        user_dn: options.user_dn,
    })
}

impl CredentialAdapter for LdapAuth {
    fn shape(&self) -> &'static Schema {
        SCHEMAS.consumer()
    }

    fn translate(&self, config: &Value) -> Result<Value, serde_json::Error> {
        credential(config)
    }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_are_read() {
        for (uri, expected) in [
            ("ldap.example:1389", ("ldap.example", Some(1389))),
            ("ldap.example", ("ldap.example", None)),
            ("[::1]:389", ("::1", Some(389))),
            ("[::1]", ("::1", None)),
            ("ldap://127.0.0.1:1389", ("127.0.0.1", Some(1389))),
            ("ldaps://[::1]:636", ("::1", Some(636))),
        ] {
            let (host, port) = address(uri);
            assert_eq!((host.as_str(), port), expected, "{uri}");
        }
    }
}
