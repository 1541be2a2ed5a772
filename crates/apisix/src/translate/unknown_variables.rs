//! Variables that a document names and no call has a value for, as the original has many more from its modules. They are
//! served without a value, of which the author should know.

use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use weir_model::{Diagnostic, DocPath, Predicate};
use weir_plugin::Variable;

/// The plugins in whose texts variables are filled in, and those fields.
const TEMPLATES: [(&str, &[&str]); 3] = [
    ("proxy-rewrite", &["uri", "headers"]),
    ("redirect", &["uri"]),
    ("response-rewrite", &["headers"]),
];

static NAMES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(^|[^\\])\$(\{\s*)?(?<name>[A-Za-z_][A-Za-z0-9_]*)").expect("invariant: a constant pattern")
});

/// Warns of those in a condition.
pub fn warn_of_condition(condition: &Predicate, place: &DocPath, diagnostics: &mut Vec<Diagnostic>) {
    let mut names = BTreeSet::new();
    in_condition(condition, &mut names);
    warn(names, place, diagnostics);
}

/// Warns of those in the texts of a plugin's configuration.
pub fn warn_of_plugin(name: &str, config: &Value, place: &DocPath, diagnostics: &mut Vec<Diagnostic>) {
    let Some((_, fields)) = TEMPLATES.iter().find(|(known, _)| *known == name) else {
        return;
    };
    let mut names = BTreeSet::new();
    for field in fields.iter().filter_map(|field| config.get(field)) {
        in_texts(field, &mut names);
    }
    warn(names, place, diagnostics);
}

fn warn(names: BTreeSet<&str>, place: &DocPath, diagnostics: &mut Vec<Diagnostic>) {
    for name in names {
        let message = format!("Weir knows no variable \"{name}\": it has no value in any call");
        diagnostics.push(Diagnostic::warning(place.clone(), message));
    }
}

fn in_condition<'p>(condition: &'p Predicate, names: &mut BTreeSet<&'p str>) {
    match condition {
        Predicate::All(list) | Predicate::Any(list) => list.iter().for_each(|it| in_condition(it, names)),
        Predicate::Not(inner) => in_condition(inner, names),
        Predicate::Compare(it) => {
            if is_unknown(&it.variable) {
                names.insert(&it.variable);
            }
        }
    }
}

fn in_texts<'v>(value: &'v Value, names: &mut BTreeSet<&'v str>) {
    match value {
        Value::String(text) if text.contains('$') => {
            let found = NAMES.captures_iter(text).filter_map(|found| found.name("name"));
            names.extend(found.map(|name| name.as_str()).filter(|name| is_unknown(name)));
        }
        Value::Array(items) => items.iter().for_each(|item| in_texts(item, names)),
        Value::Object(map) => map.values().for_each(|value| in_texts(value, names)),
        _ => {}
    }
}

fn is_unknown(name: &str) -> bool {
    Variable::parse(name) == Variable::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translate::vars;
    use serde_json::json;

    #[test]
    fn names_that_nothing_is_known_of_are_told() {
        let place = DocPath::root().field("x");
        let names_in = |diagnostics: Vec<Diagnostic>| -> Vec<String> {
            let words = diagnostics.into_iter().map(|it| it.message);
            words
                .map(|text| text.split('"').nth(1).unwrap_or_default().to_owned())
                .collect()
        };
        let rules = json!([
            "OR",
            ["uri", "==", "/"],
            ["AND", ["mystery", "==", "1"], ["arg_x", "in", ["1"]]]
        ]);
        let condition = vars::compile(rules.as_array().expect("a list"))
            .expect("valid")
            .expect("some");
        let mut found = Vec::new();
        warn_of_condition(&condition, &place, &mut found);
        assert_eq!(names_in(found), ["mystery"]);
        for (plugin, config, wanted) in [
            (
                "proxy-rewrite",
                json!({"uri": "/$uri/$nothing", "headers": {"set": {"a": "${more} $1 \\$kept $more", "b": "$ssl_client_s_dn"}}}),
                vec!["more", "nothing"],
            ),
            (
                "response-rewrite",
                json!({"body": "$nothing", "headers": {"a": "$msec"}}),
                vec![],
            ),
            ("key-auth", json!({"header": "$nothing"}), vec![]),
        ] {
            let mut found = Vec::new();
            warn_of_plugin(plugin, &config, &place, &mut found);
            assert_eq!(names_in(found), wanted, "{config}");
        }
    }
}
