//! The plugins that APISIX 3.18 has and Weir lacks, with their schemas.
//!
//! A configuration of one is checked as APISIX checks it, so that a mistake is found when it is written. Using one is
//! an error of its own, so that a call is never served without something (an access check, a limit) that its owner
//! counts on.

mod checks;
mod models;

use super::PluginLocation;
use crate::schema::Schema;
use serde_json::{Map, Value};
use std::sync::{LazyLock, OnceLock};

const SCHEMAS: &[(&str, &str)] = &[
    ("ai", include_str!("unserved/ai.json")),
    (
        "ai-aliyun-content-moderation",
        include_str!("unserved/ai-aliyun-content-moderation.json"),
    ),
    (
        "ai-aws-content-moderation",
        include_str!("unserved/ai-aws-content-moderation.json"),
    ),
    ("ai-cache", include_str!("unserved/ai-cache.json")),
    ("ai-lakera-guard", include_str!("unserved/ai-lakera-guard.json")),
    (
        "ai-prompt-decorator",
        include_str!("unserved/ai-prompt-decorator.json"),
    ),
    ("ai-prompt-guard", include_str!("unserved/ai-prompt-guard.json")),
    (
        "ai-prompt-template",
        include_str!("unserved/ai-prompt-template.json"),
    ),
    ("ai-proxy", include_str!("unserved/ai-proxy.json")),
    ("ai-proxy-multi", include_str!("unserved/ai-proxy-multi.json")),
    ("ai-rag", include_str!("unserved/ai-rag.json")),
    ("ai-rate-limiting", include_str!("unserved/ai-rate-limiting.json")),
    (
        "ai-request-rewrite",
        include_str!("unserved/ai-request-rewrite.json"),
    ),
    ("dubbo-proxy", include_str!("unserved/dubbo-proxy.json")),
    ("example-plugin", include_str!("unserved/example-plugin.json")),
    ("exit-transformer", include_str!("unserved/exit-transformer.json")),
    (
        "ext-plugin-post-req",
        include_str!("unserved/ext-plugin-post-req.json"),
    ),
    (
        "ext-plugin-post-resp",
        include_str!("unserved/ext-plugin-post-resp.json"),
    ),
    (
        "ext-plugin-pre-req",
        include_str!("unserved/ext-plugin-pre-req.json"),
    ),
    ("gm", include_str!("unserved/gm.json")),
    ("inspect", include_str!("unserved/inspect.json")),
    ("kafka-proxy", include_str!("unserved/kafka-proxy.json")),
    ("mcp-bridge", include_str!("unserved/mcp-bridge.json")),
    (
        "serverless-post-function",
        include_str!("unserved/serverless-post-function.json"),
    ),
    (
        "serverless-pre-function",
        include_str!("unserved/serverless-pre-function.json"),
    ),
];

/// A plugin that Weir lacks.
#[derive(Debug)]
pub struct UnservedPlugin {
    name: &'static str,
    text: &'static str,
    schemas: OnceLock<Value>,
    shapes: OnceLock<Shapes>,
}

#[derive(Debug)]
struct Shapes {
    request: Schema,
    consumer: Option<Schema>,
    metadata: Option<Schema>,
}

/// The plugin of this name, if Weir lacks it.
pub fn unserved(name: &str) -> Option<&'static UnservedPlugin> {
    static ALL: LazyLock<Vec<UnservedPlugin>> = LazyLock::new(|| {
        SCHEMAS
            .iter()
            .map(|(name, text)| UnservedPlugin {
                name,
                text,
                schemas: OnceLock::new(),
                shapes: OnceLock::new(),
            })
            .collect()
    });
    ALL.iter().find(|plugin| plugin.name == name)
}

impl UnservedPlugin {
    /// Its schemas as APISIX prints them: `schema`, and if it has them `consumer_schema` and `metadata_schema`.
    pub fn schemas(&'static self) -> &'static Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        let schemas = self.schemas.get_or_init(|| {
            serde_json::from_str(self.text).expect("invariant: the schemas are JSON, which a test holds")
        });
        schemas.as_object().unwrap_or(&NONE)
    }

    fn shapes(&'static self) -> &'static Shapes {
        self.shapes.get_or_init(|| {
            let shape = |which: &str| self.schemas().get(which).map(Schema::from_json_schema);
            Shapes {
                request: shape("schema").unwrap_or_default(),
                consumer: shape("consumer_schema"),
                metadata: shape("metadata_schema"),
            }
        })
    }

    /// Checks a configuration and fills in its defaults.
    ///
    /// # Errors
    /// In APISIX's words.
    pub fn check(&'static self, config: &mut Value, side: PluginLocation) -> Result<(), String> {
        let shapes = self.shapes();
        if let (PluginLocation::Consumer, Some(shape)) = (side, &shapes.consumer) {
            return shape.check(config);
        }
        if let Value::Object(config) = config {
            checks::before_schema(self.name, config)?;
        }
        shapes.request.check(config)?;
        match config {
            Value::Object(config) => checks::after_schema(self.name, config),
            _ => Ok(()),
        }
    }

    /// The shape of its metadata.
    pub fn metadata_shape(&'static self) -> Option<&'static Schema> {
        self.shapes().metadata.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::{SCHEMAS, unserved};
    use crate::plugins::{PluginLocation, mapping};
    use crate::schema::Schema;
    use serde_json::{Value, json};

    /// Every pattern in a schema.
    fn patterns<'s>(schema: &'s Value, found: &mut Vec<&'s str>) {
        match schema {
            Value::Object(map) => {
                found.extend(map.get("pattern").and_then(Value::as_str));
                if let Some(Value::Object(by_pattern)) = map.get("patternProperties") {
                    found.extend(by_pattern.keys().map(String::as_str));
                }
                map.values().for_each(|value| patterns(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| patterns(item, found)),
            _ => {}
        }
    }

    #[test]
    fn schemas_can_be_used() {
        for (name, _) in SCHEMAS {
            assert!(mapping(name).is_none(), "{name}");
            let plugin = unserved(name).expect("it is in the list");
            assert!(plugin.schemas().contains_key("schema"), "{name}");
            for schema in plugin.schemas().values() {
                let mut found = Vec::new();
                patterns(schema, &mut found);
                let is_known = |pattern: &&str| regex::Regex::new(pattern).is_ok();
                found.retain(|pattern| !is_known(pattern));
                assert!(found.is_empty(), "{name}: {found:?}");
                Schema::from_json_schema(schema);
            }
        }
    }

    fn refused<const N: usize>(cases: [(&str, PluginLocation, Value, &str); N]) {
        for (name, side, config, message) in cases {
            let plugin = unserved(name).expect("Weir lacks it");
            assert_eq!(
                plugin.check(&mut config.clone(), side),
                Err(message.to_owned()),
                "{name} {config}"
            );
        }
    }

    #[test]
    fn configurations_are_checked_as_in_the_original() {
        refused([
            (
                "ai-prompt-guard",
                PluginLocation::Request,
                json!({"deny_patterns": ["("]}),
                "invalid deny_pattern: (",
            ),
            (
                "ai-proxy",
                PluginLocation::Request,
                json!({"provider": "vertex-ai", "auth": {"header": {"a": "b"}}}),
                "vertex-ai requires either provider_conf (project_id + region) or override.endpoint",
            ),
            (
                "serverless-pre-function",
                PluginLocation::Request,
                json!({"functions": ["a"]}),
                "failed to loadstring: [string \"a\"]:1: '=' expected near '<eof>'",
            ),
            (
                "serverless-post-function",
                PluginLocation::Request,
                json!({"functions": ["local a = 123;"]}),
                "only accept Lua function, the input code type is nil",
            ),
            (
                "ai-proxy-multi",
                PluginLocation::Request,
                json!({
                    "balancer": {"algorithm": "semantic"},
                    "semantic_opts": {
                        "embeddings": {"provider": "openai", "model": "m", "auth": {"header": {"a": "b"}}},
                        "fallback": "no"
                    },
                    "instances": [{"name": "a", "provider": "openai", "weight": 1, "auth": {"header": {"a": "b"}}, "examples": ["x"]}]
                }),
                "`semantic_opts.fallback` names unknown instance 'no'",
            ),
        ]);
    }
}
