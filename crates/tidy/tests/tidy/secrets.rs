//! Secrets do not show in `Debug` output: a type that holds one writes its own, or has none.

use crate::assert_none;
use crate::repository::sources;
use crate::source::Source;

/// What fields are called that hold a secret.
const SECRETS: [&str; 6] = [
    "token",
    "password",
    "passphrase",
    "secret",
    "private_key",
    "hmac_key",
];

/// Types that can hold one.
const TEXTS: [&str; 4] = ["String", "str", "u8", "Bytes"];

#[test]
fn secrets_are_not_derived_into_debug() {
    let breaches: Vec<String> = sources().iter().flat_map(breaches).collect();
    assert_none(
        &breaches,
        "a type that derives `Debug` has no field with a secret: write `Debug` without it",
    );
}

/// Structs that derive `Debug`, with a field that is called like a secret and holds text.
fn breaches(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut derives = false;
    let mut is_inside = false;
    for (number, line) in source.shipped.lines().enumerate() {
        let bare = line.trim();
        if is_inside {
            is_inside = !line.starts_with('}');
            if let Some((name, kind)) = bare.split_once(": ") {
                let name = name.rsplit(' ').next().unwrap_or_default();
                let mut words = kind.split(|it: char| !it.is_alphanumeric());
                if SECRETS.contains(&name) && words.any(|word| TEXTS.contains(&word)) {
                    found.push(format!("{}:{}: {name}", source.path, number + 1));
                }
            }
        } else if bare.starts_with("#[derive(") {
            derives = bare.contains("Debug");
        } else if !(bare.is_empty() || bare.starts_with('#') || bare.starts_with(')')) {
            let is_struct = bare.contains("struct ") && bare.ends_with('{');
            is_inside = derives && is_struct;
            // A derive of several lines goes on.
            derives = derives && !is_struct && !bare.contains(['{', ';']);
            derives |= bare.contains("Debug,");
        }
    }
    found
}

#[test]
fn what_would_show_a_secret_is_found() {
    let shown = "#[derive(Clone, Debug)]\n#[serde(x)]\npub struct A {\n    pub name: String,\n    pub token: Option<String>,\n}\n";
    let several = "#[derive(\n    Clone, Debug, PartialEq,\n)]\nstruct A {\n    secret: Vec<u8>,\n}\n";
    let hidden = "#[derive(Clone)]\npub struct A {\n    token: String,\n}\n#[derive(Debug)]\nstruct B {\n    token: bool,\n}\n";
    for (text, count) in [(shown, 1), (several, 1), (hidden, 0)] {
        let source = Source::new("crates/x/src/x.rs".to_owned(), text.to_owned());
        assert_eq!(breaches(&source).len(), count, "{text}");
    }
}
