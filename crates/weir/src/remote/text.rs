//! The answers of a running Weir, for people.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

fn items<'v>(answer: &'v Value, field: &str) -> &'v [Value] {
    answer[field].as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

/// What a `Warning` says (RFC 9111, 5.5), without its code and agent.
pub fn warning(header: &str) -> String {
    let quoted = header.split_once('"').and_then(|(_, it)| it.strip_suffix('"'));
    format!("weir: warning: {}\n", quoted.unwrap_or(header))
}

/// Users, one a line.
pub fn users(answer: &Value) -> String {
    let line = |user: &Value| {
        let rights = items(user, "rights")
            .iter()
            .map(|it| format!("{} in {}", text(it, "role"), scope(it)));
        format!(
            "{}: {}\n",
            text(user, "name"),
            rights.collect::<Vec<_>>().join(", ")
        )
    };
    items(answer, "items").iter().map(line).collect()
}

/// The scope of a right.
fn scope(right: &Value) -> String {
    let others = ["environment", "api", "portal"].into_iter();
    let mut named = others.filter_map(|kind| Some(format!("{kind}:{}", right[kind].as_str()?)));
    named
        .next()
        .unwrap_or_else(|| text(right, "workspace").to_owned())
}

/// Commits, the latest first, each with what it changed.
pub fn history(answer: &Value) -> String {
    let mut out = String::new();
    for commit in items(answer, "items") {
        out.push_str(&format!(
            "revision {} by {} ({})\n",
            commit["revision"],
            text(commit, "author"),
            text(commit, "note")
        ));
        for change in items(commit, "changes") {
            out.push_str(&format!(
                "  {} {}\n",
                text(change, "change"),
                text(change, "document")
            ));
        }
    }
    out
}

/// Differences of documents, field by field.
pub fn changes(changes: &Value) -> String {
    let mut out = String::new();
    for change in changes.as_array().map_or(&[][..], Vec::as_slice) {
        let document = text(change, "document");
        match (&change["before"], &change["after"]) {
            (Value::Null, after) => out.push_str(&format!("+ {document}\n    {after}\n")),
            (before, Value::Null) => out.push_str(&format!("- {document}\n    {before}\n")),
            (before, after) => {
                out.push_str(&format!("~ {document}\n"));
                fields(before, after, "", &mut out);
            }
        }
    }
    if out.is_empty() {
        out.push_str("no difference\n");
    }
    out
}

fn fields(before: &Value, after: &Value, place: &str, out: &mut String) {
    let (old, new) = match (before, after) {
        (Value::Object(old), Value::Object(new)) => (old, new),
        _ if before == after => return,
        _ => {
            out.push_str(&format!("    {place}: {before} -> {after}\n"));
            return;
        }
    };
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names {
        let place = match place {
            "" => name.clone(),
            place => format!("{place}.{name}"),
        };
        let known = |map: &Map<String, Value>| map.get(name.as_str()).cloned().unwrap_or_default();
        fields(&known(old), &known(new), &place, out);
    }
}

/// The changes of an import.
pub fn import(answer: &Value) -> String {
    let verb = match (answer["is_new"].as_bool(), answer["dry_run"].as_bool()) {
        (_, Some(true)) => "would change",
        (Some(true), _) => "created",
        _ => "changed",
    };
    let mut out = String::new();
    for (field, mark) in [("created", '+'), ("changed", '~'), ("removed", '-')] {
        for name in items(&answer["routes"], field) {
            out.push_str(&format!("{mark} route {}\n", name.as_str().unwrap_or_default()));
        }
    }
    let mut report = match out.is_empty() {
        true => format!("service {}: no difference\n", text(answer, "service")),
        false => format!("service {} {verb}\n{out}", text(answer, "service")),
    };
    for operation in items(answer, "skipped") {
        let operation = operation.as_str().unwrap_or_default();
        report.push_str(&format!(
            "no route for {operation}: the gateway answers this method itself\n"
        ));
    }
    report
}

/// Why a call was refused.
pub fn problem(status: u16, answer: &Value) -> String {
    let detail = match text(answer, "detail") {
        "" => format!("refused with status {status}"),
        detail => detail.to_owned(),
    };
    let mut out = format!("weir: {detail}\n");
    if status == 401 {
        out.push_str("  give a user's token with --token, --token-file or WEIR_TOKEN\n");
    }
    for error in items(answer, "errors") {
        out.push_str(&format!(
            "  {}: {}\n",
            text(error, "path"),
            text(error, "message")
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_printed_by_field() {
        let out = changes(&json!([
            { "document": "native/routes/a", "before": null, "after": { "name": "a" } },
            { "document": "native/routes/b", "before": { "n": 1, "o": { "x": 1 } }, "after": { "n": 1, "o": { "x": 2, "y": 3 } } },
            { "document": "native/routes/c", "before": { "name": "c" }, "after": null },
        ]));
        assert_eq!(
            out,
            "+ native/routes/a\n    {\"name\":\"a\"}\n~ native/routes/b\n    o.x: 1 -> 2\n    o.y: null -> 3\n\
             - native/routes/c\n    {\"name\":\"c\"}\n"
        );
        assert_eq!(changes(&json!([])), "no difference\n");
    }

    #[test]
    fn warnings_are_printed_without_their_code() {
        let out = warning("299 weir \"the API 'orders' does not exist yet\"");
        assert_eq!(out, "weir: warning: the API 'orders' does not exist yet\n");
        assert_eq!(warning("something else"), "weir: warning: something else\n");
    }

    #[test]
    fn imports_and_problems_are_printed() {
        let answer = json!({ "service": "s", "is_new": false, "dry_run": false, "routes": { "created": ["a"], "removed": ["b"] } });
        assert_eq!(import(&answer), "service s changed\n+ route a\n- route b\n");
        let answer = json!({ "service": "s", "skipped": ["TRACE /a"] });
        assert_eq!(
            import(&answer),
            "service s: no difference\nno route for TRACE /a: the gateway answers this method itself\n"
        );
        let answer = json!({ "detail": "no", "errors": [{ "path": "a.b", "message": "bad" }] });
        assert_eq!(problem(422, &answer), "weir: no\n  a.b: bad\n");
        assert_eq!(problem(500, &json!(null)), "weir: refused with status 500\n");
    }
}
