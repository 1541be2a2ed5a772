//! `tencent-cloud-cls`: sends entries to Tencent's Cloud Log Service.

use super::{BatchOptions, base, common};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use serde::Deserialize;
use serde_json::{Map, Value};
use weir_plugins::logger::Config;
use weir_plugins::logger::authorization::{Authorization, TencentCls};
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::{HttpTarget, Target};

/// The plugin `tencent-cloud-cls`.
pub struct TencentCloudCls;

#[derive(Deserialize)]
struct Options {
    cls_host: String,
    cls_topic: String,
    scheme: String,
    ssl_verify: bool,
    secret_id: String,
    secret_key: String,
    sample_ratio: f64,
    global_tag: Option<Map<String, Value>>,
}

impl PluginAdapter for TencentCloudCls {
    common!("tencent-cloud-cls", 397, printed);

    fn translate(
        &self,
        config: &Value,
        context: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            target: Target::Http(HttpTarget {
                url: format!(
                    "{}://{}/structuredlog?topic_id={}",
                    options.scheme, options.cls_host, options.cls_topic
                ),
                content_type: "application/x-protobuf".to_owned(),
                verify_tls: options.ssl_verify,
                authorization: Some(Authorization::TencentCls(TencentCls {
                    secret_id: options.secret_id,
                    secret_key: options.secret_key,
                })),
                ..HttpTarget::default()
            }),
            form: Form::TencentCls(options.global_tag.unwrap_or_default()),
            sample_ratio: (options.sample_ratio < 1.0).then_some(options.sample_ratio),
            batch: read::<BatchOptions>(config)?.batch(),
            ..base(self.name(), config, context, notes)?
        })
    }
}
