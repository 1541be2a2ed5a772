//! `jwe-decrypt` of the paid edition: `jwe-decrypt` of the catalogue, with the keys of key sets.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::jwe_decrypt::Config;

/// The definition of `jwe-decrypt`.
pub const DEFINITION: Definition = Definition {
    name: "jwe-decrypt",
    priority: 1_999,
    config: Record::of(&[
        Field::new("lookup_header_name", Kind::String)
            .required()
            .or(Default::Text("Authorization")),
        Field::new("forward_header_name", Kind::String)
            .required()
            .or(Default::Text("Authorization")),
        Field::new("key_sets", Kind::Array(&Field::element(Kind::String))).required(),
        Field::new("strict", Kind::Boolean).or(Default::Boolean(true)),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "jwe-decrypt",
    translate,
};

#[derive(Deserialize)]
struct Options {
    lookup_header_name: String,
    forward_header_name: String,
    key_sets: Vec<String>,
    strict: Option<bool>,
}

fn translate(config: &Value, known: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    // With none that exists, no token is good.
    let keys = options.key_sets.iter().filter_map(|name| (known.key_set)(name));
    Ok(untyped(Config {
        header: options.lookup_header_name,
        forward_header: options.forward_header_name,
        required: options.strict.unwrap_or(true),
        missing_status: 403,
        invalid_status: 400,
        decryption_failed_status: Some(403),
        keys: Some(keys.flatten().collect()),
        ..Config::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins::private_key::PrivateKey;

    #[test]
    fn keys_are_those_of_the_named_sets() {
        let config = json!({
            "lookup_header_name": "X-A", "forward_header_name": "X-B", "key_sets": ["none", "one", "two"], "strict": false,
        });
        let known = Consumers {
            key_set: &|name| {
                let key = PrivateKey {
                    id: Some(format!("of {name}")),
                    ..PrivateKey::default()
                };
                (name != "none").then(|| vec![key])
            },
            ..Consumers::NONE
        };
        let made = translate(&config, &known).expect("it is served");
        assert_eq!(made["keys"], json!([{"id": "of one"}, {"id": "of two"}]));
        assert_eq!(
            (&made["header"], &made["forward_header"], &made["required"]),
            (&json!("X-A"), &json!("X-B"), &json!(false))
        );
        let none = translate(&config, &Consumers::NONE).expect("it is served");
        assert_eq!(none["keys"], json!([]));
    }
}
