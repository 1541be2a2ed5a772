//! `google-cloud-logging`: writes entries to Google's Cloud Logging with the account of a service.

use super::{BatchOptions, base, common};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_plugins::logger::Config;
use weir_plugins::logger::authorization::{Authorization, ServiceAccount};
use weir_plugins::logger::form::{Form, GoogleForm};
use weir_plugins::logger::target::{HttpTarget, Target};

/// The plugin.
pub struct GoogleCloudLogging;

/// Where entries are written, where the configuration says nothing else.
const ENTRIES: &str = "https://logging.googleapis.com/v2/entries:write";

#[derive(Deserialize)]
struct Options {
    auth_config: Option<Account>,
    ssl_verify: bool,
    resource: Map<String, Value>,
    log_id: String,
}

#[derive(Deserialize)]
struct Account {
    client_email: String,
    private_key: String,
    project_id: String,
    token_uri: String,
    scope: Option<Vec<String>>,
    scopes: Option<Vec<String>>,
    entries_uri: Option<String>,
}

impl PluginAdapter for GoogleCloudLogging {
    common!("google-cloud-logging", 407, printed);

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let base = base(self.name(), config, context, notes)?;
        let Some(account) = options.auth_config else {
            notes.not_available("auth_file", "an account in a file (give it in 'auth_config')");
            return serde_json::to_value(base);
        };
        let own = ["route_id", "service_id"].map(str::to_owned);
        let payload = own.into_iter().chain(base.extra_fields.keys().cloned()).collect();
        serde_json::to_value(Config {
            target: Target::Http(HttpTarget {
                url: account.entries_uri.unwrap_or_else(|| ENTRIES.to_owned()),
                verify_tls: options.ssl_verify,
                authorization: Some(Authorization::ServiceAccount(ServiceAccount {
                    email: account.client_email,
                    private_key: account.private_key,
                    token_url: account.token_uri,
                    scopes: account.scopes.or(account.scope).unwrap_or_default(),
                })),
                ..HttpTarget::default()
            }),
            form: Form::Google(GoogleForm {
                log_name: format!("projects/{}/logs/{}", account.project_id, options.log_id),
                resource: options.resource,
                labels: BTreeMap::from([(
                    "source".to_owned(),
                    "apache-apisix-google-cloud-logging".to_owned(),
                )]),
                describes_call: base.fields.is_none(),
                payload,
            }),
            batch: read::<BatchOptions>(config)?.batch(),
            ..base
        })
    }
}
