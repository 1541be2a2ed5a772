//! `aws-lambda`, `azure-functions`, `openfunction` and `openwhisk`: `remote-function` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, printed_shape, read};
use crate::schema::Schema;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_plugins::remote_function::{AwsSignature, Config, FunctionAnswer, RequestForm};

/// `aws-lambda`: a function with Amazon's API Gateway in front.
pub struct AwsLambda;

/// `azure-functions`: a function of Azure.
pub struct AzureFunctions;

/// `openfunction`: a function of OpenFunction.
pub struct Openfunction;

/// `openwhisk`: an action of OpenWhisk.
pub struct Openwhisk;

/// The options that all of them have.
#[derive(Deserialize)]
struct Common {
    max_req_body_size: usize,
    timeout: u64,
    ssl_verify: bool,
    keepalive: bool,
    keepalive_timeout: u64,
    keepalive_pool: u32,
}

#[derive(Deserialize)]
struct Function {
    function_uri: String,
    authorization: Option<Authorization>,
}

#[derive(Deserialize)]
struct Authorization {
    apikey: Option<String>,
    clientid: Option<String>,
    service_token: Option<String>,
    iam: Option<Iam>,
}

#[derive(Deserialize)]
struct Iam {
    accesskey: String,
    secretkey: String,
    aws_region: String,
    service: String,
}

#[derive(Deserialize)]
struct Action {
    api_host: String,
    service_token: String,
    namespace: String,
    package: Option<String>,
    action: String,
    result: bool,
    timeout: u64,
}

/// The configuration that all of them begin with.
fn base(config: &Value, url: String) -> Result<Config, serde_json::Error> {
    let common: Common = read(config)?;
    Ok(Config {
        verify_tls: common.ssl_verify,
        timeout_ms: common.timeout,
        pool_size: match common.keepalive {
            true => common.keepalive_pool,
            false => 0,
        },
        pool_idle_timeout_ms: common.keepalive_timeout,
        max_body_bytes: common.max_req_body_size,
        max_answer_bytes: 64 << 20,
        failure_status: 503,
        ..Config::new(url)
    })
}

/// Appends the part of the path that the route's wildcard stands for to the function's path.
fn forwarded(config: &Value, url: String) -> Result<Config, serde_json::Error> {
    Ok(Config {
        request: RequestForm::Forward { append_rest: true },
        ..base(config, url)?
    })
}

fn basic(token: &str) -> (String, String) {
    (
        "Authorization".to_owned(),
        format!("Basic {}", STANDARD.encode(token)),
    )
}

/// The keys of the configuration or, without any, of the metadata.
fn azure_keys(
    authorization: Option<Authorization>,
    metadata: Option<&Value>,
) -> impl Iterator<Item = (String, String)> {
    let of_metadata = |field: &str| Some(metadata?.get(field)?.as_str()?.to_owned());
    let (key, client) = match authorization {
        Some(authorization) => (authorization.apikey, authorization.clientid),
        None => (of_metadata("master_apikey"), of_metadata("master_clientid")),
    };
    [("x-functions-key", key), ("x-functions-clientid", client)]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value.filter(|value| !value.is_empty())?)))
}

fn aws(config: &Value, _: Option<&Value>) -> Result<Config, serde_json::Error> {
    let function: Function = read(config)?;
    let authorization = function.authorization;
    let (key, iam) = authorization.map_or((None, None), |it| (it.apikey, it.iam));
    Ok(Config {
        headers: key.into_iter().map(|key| ("x-api-key".to_owned(), key)).collect(),
        headers_yield_to: vec!["x-api-key".to_owned()],
        sign: iam.map(|iam| AwsSignature {
            access_key: iam.accesskey,
            secret_key: iam.secretkey,
            session_token: None,
            region: iam.aws_region,
            service: iam.service,
        }),
        ..forwarded(config, function.function_uri)?
    })
}

fn azure(config: &Value, metadata: Option<&Value>) -> Result<Config, serde_json::Error> {
    let function: Function = read(config)?;
    Ok(Config {
        headers: azure_keys(function.authorization, metadata).collect(),
        headers_yield_to: vec!["x-functions-key".to_owned(), "x-functions-clientid".to_owned()],
        ..forwarded(config, function.function_uri)?
    })
}

fn openfunction(config: &Value, _: Option<&Value>) -> Result<Config, serde_json::Error> {
    let function: Function = read(config)?;
    let token = function.authorization.and_then(|it| it.service_token);
    Ok(Config {
        headers: token.iter().map(|token| basic(token)).collect(),
        ..forwarded(config, function.function_uri)?
    })
}

fn openwhisk(config: &Value, _: Option<&Value>) -> Result<Config, serde_json::Error> {
    let action: Action = read(config)?;
    let package = action
        .package
        .map_or_else(String::new, |package| format!("{package}/"));
    let escape = |text: &str| text.replace(' ', "%20");
    let url = format!(
        "{}/api/v1/namespaces/{}/actions/{}{}?blocking=true&result={}&timeout={}",
        action.api_host.trim_end_matches('/'),
        escape(&action.namespace),
        escape(&package),
        escape(&action.action),
        action.result,
        action.timeout,
    );
    Ok(Config {
        request: RequestForm::Action,
        headers: BTreeMap::from([basic(&action.service_token)]),
        answer: FunctionAnswer::Described,
        ..base(config, url)?
    })
}

/// The parts of an adapter that are the same for all of them.
macro_rules! function {
    ($type:ident, $name:literal, $priority:literal, $translate:ident) => {
        impl PluginAdapter for $type {
            fn name(&self) -> &'static str {
                $name
            }

            fn priority(&self) -> i64 {
                $priority
            }

            fn phases(&self) -> Phases {
                Phases {
                    access: true,
                    ..Phases::default()
                }
            }

            fn shape(&self) -> &'static Schema {
                static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
                    printed_shape(include_str!(concat!("schemas/", $name, ".json")), "schema")
                });
                &SHAPE
            }

            fn metadata_shape(&self) -> Option<&'static Schema> {
                static SHAPE: LazyLock<Option<Schema>> = LazyLock::new(|| {
                    let text = include_str!(concat!("schemas/", $name, ".json"));
                    text.contains("metadata_schema")
                        .then(|| printed_shape(text, "metadata_schema"))
                });
                SHAPE.as_ref()
            }

            fn plugin(&self) -> &'static str {
                "remote-function"
            }

            fn translate(
                &self,
                config: &Value,
                context: &PluginContext<'_>,
                _: &mut Warnings,
            ) -> Result<Value, serde_json::Error> {
                serde_json::to_value($translate(config, context.metadata.get($name))?)
            }
        }
    };
}

function!(AwsLambda, "aws-lambda", -1899, aws);
function!(AzureFunctions, "azure-functions", -1900, azure);
function!(Openfunction, "openfunction", -1902, openfunction);
function!(Openwhisk, "openwhisk", -1901, openwhisk);
