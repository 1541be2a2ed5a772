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

/// The plugin `google-cloud-logging`.
pub struct GoogleCloudLogging;

/// The address for entries, if the configuration says nothing else.
const ENTRIES: &str = "https://logging.googleapis.com/v2/entries:write";

#[derive(Deserialize)]
struct Options {
    auth_config: Option<Account>,
    auth_file: Option<String>,
    ssl_verify: bool,
    resource: Map<String, Value>,
    log_id: String,
}

#[derive(Deserialize)]
struct Account {
    client_email: String,
    private_key: String,
    project_id: String,
    #[serde(default = "token_uri")]
    token_uri: String,
    scope: Option<Vec<String>>,
    scopes: Option<Vec<String>>,
    entries_uri: Option<String>,
}

/// The address for tokens, if a file says nothing else.
fn token_uri() -> String {
    "https://oauth2.googleapis.com/token".to_owned()
}

/// The scope of a token, if the configuration names no other.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// The account in a file; `None`: it cannot be used, which is noted.
fn in_file(name: &str, context: &PluginContext<'_>, notes: &mut Warnings) -> Option<Account> {
    let text = context.settings.files.text(name);
    let read = text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
    let account = read.map_err(|reason| {
        let message = format!("{name} cannot be used: {reason}: entries are not sent");
        notes.error("auth_file", message);
    });
    account.ok()
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
        let in_file = |name: &String| in_file(name, context, notes);
        let Some(account) = options
            .auth_config
            .or_else(|| options.auth_file.as_ref().and_then(in_file))
        else {
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
                    scopes: account
                        .scopes
                        .or(account.scope)
                        .unwrap_or_else(|| vec![SCOPE.to_owned()]),
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
