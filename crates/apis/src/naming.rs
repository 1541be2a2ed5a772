//! Names: which ones entities may have, and which ones the documents of a publication get.

use serde_json::{Map, Value};
pub use weir_openapi::{MAX_LENGTH, slug};

/// Whether a text can name an environment, an API, a component, a plan or an application: lower-case letters,
/// digits and hyphens, with a letter or a digit at both ends. There is no dot in it, so derived names are unambiguous.
pub fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_LENGTH).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Whether a text can name a version: letters, digits, `.`, `-`, `_` and `+`, beginning with a letter or a digit.
pub fn is_version(text: &str) -> bool {
    (1..=MAX_LENGTH).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+'))
        && text.starts_with(|it: char| it.is_ascii_alphanumeric())
}

/// The version that a document gives itself in `info.version`. A number with a fraction says too little: `1.10` is
/// `1.1`.
///
/// # Errors
/// What is there is no version; the message says what to write.
pub fn version_of(document: &Value) -> Result<Option<String>, String> {
    match &document["info"]["version"] {
        Value::Null => Ok(None),
        Value::String(version) => Ok(Some(version.clone())),
        Value::Number(version) if version.is_u64() => Ok(Some(version.to_string())),
        other => Err(format!(
            "expected a text in info.version, found {other}: put it in quotes"
        )),
    }
}

/// The rule for names, for messages.
pub const EXPECTED_NAME: &str =
    "1 to 63 lower-case letters, digits and hyphens, with a letter or a digit at both ends";
/// The rule for versions, for messages.
pub const EXPECTED_VERSION: &str =
    "1 to 63 letters, digits, dots, hyphens, underscores and plus signs, beginning with a letter or a digit";

/// The name of the documents of a publication: `ENV.API.VERSION`.
pub fn publication(environment: &str, api: &str, version: &str) -> String {
    format!("{environment}.{api}.{version}")
}

/// The plugin whose configuration a field of a step may hold. Steps are written as `{NAME: CONFIG}` or as `{name: NAME, config:
/// CONFIG}`.
pub fn plugin_of<'f>(fields: &'f Map<String, Value>, field: &'f str) -> &'f str {
    match field {
        "config" => fields.get("name").and_then(Value::as_str).unwrap_or(field),
        _ => field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_say_their_version() {
        for (own, expected) in [
            (json!("1.10"), Some("1.10")),
            (json!(2), Some("2")),
            (Value::Null, None),
        ] {
            let found = version_of(&json!({"info": {"version": own}}));
            assert_eq!(found.as_ref().map(Option::as_deref), Ok(expected), "{own}");
        }
        assert_eq!(version_of(&json!("a text")), Ok(None));
        for own in [json!(1.1), json!(-1), json!(true), json!({"major": 1})] {
            let message = version_of(&json!({"info": {"version": own}})).expect_err("no version");
            assert!(message.contains("put it in quotes"), "{message}");
        }
    }

    #[test]
    fn names_are_checked() {
        for (text, name, version) in [
            ("orders", true, true),
            ("a-1", true, true),
            ("", false, false),
            ("-a", false, false),
            ("a-", false, true),
            ("Orders", false, true),
            ("1.2.0", false, true),
            ("1.2.0-rc.1+b_7", false, true),
            ("a/b", false, false),
            ("ä", false, false),
        ] {
            assert_eq!((is_name(text), is_version(text)), (name, version), "{text}");
        }
        assert!(!is_name(&"a".repeat(64)));
    }

    #[test]
    fn slugs_are_names() {
        for (text, expected) in [
            ("Pet Shop!", "pet-shop"),
            ("GET /pets/{id}", "get-pets-id"),
            ("--x--", "x"),
            ("!", ""),
        ] {
            assert_eq!(slug(text), expected);
        }
    }
}
