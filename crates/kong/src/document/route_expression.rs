//! The expression that the original's router makes of a route, as far as its messages quote it.

use crate::schema::Fields;
use serde_json::Value;

/// The original reads the expression of a route before it takes the route. A header without a value makes one that
/// cannot be read.
pub fn check_expression(route: &Fields) -> Result<(), String> {
    let headers = route.get("headers").and_then(Value::as_object);
    let is_empty = |values: &Value| values.as_array().is_some_and(Vec::is_empty);
    if !headers.is_some_and(|headers| headers.values().any(is_empty)) {
        return Ok(());
    }
    let expression = of(route);
    let column = expression.find("()").map_or(1, |at| at + 2);
    let indent = " ".repeat(column - 1);
    Err(format!(
        "Router Expression failed validation:  --> 1:{column}\n  |\n1 | {expression}\n  | {indent}^---\n  |\n  = expected term"
    ))
}

fn of(route: &Fields) -> String {
    let alternatives = |field: &str, one: &dyn Fn(&str) -> String| {
        let values = route.get(field).and_then(Value::as_array)?;
        let values: Vec<String> = values.iter().filter_map(Value::as_str).map(one).collect();
        (!values.is_empty()).then(|| format!("({})", values.join(" || ")))
    };
    let equal = |name: &'static str| move |value: &str| format!("{name} == {}", quoted(value));
    let server_names = alternatives("snis", &|name| wildcard("tls.sni", name))
        .map(|names| format!("(net.protocol != {} || {names})", quoted("https")));
    let headers = route.get("headers").and_then(Value::as_object);
    let headers = headers.into_iter().flatten().map(|(name, values)| {
        let field = format!(
            "any(lower(http.headers.{}))",
            name.replace('-', "_").to_lowercase()
        );
        let values = values.as_array().map_or(&[][..], Vec::as_slice);
        let values = values
            .iter()
            .filter_map(Value::as_str)
            .map(|value| match value.strip_prefix("~*") {
                Some(regex) => format!("{field} ~ {}", quoted(&regex.to_lowercase())),
                None => format!("{field} == {}", quoted(&value.to_lowercase())),
            });
        format!("({})", values.collect::<Vec<_>>().join(" || "))
    });
    let others = [
        server_names,
        alternatives("methods", &equal("http.method")),
        alternatives("hosts", &host),
        alternatives("paths", &path),
    ];
    let parts: Vec<String> = others.into_iter().flatten().chain(headers).collect();
    parts.join(" && ")
}

fn quoted(text: &str) -> String {
    if text.contains("\"#") {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        format!("r#\"{text}\"#")
    }
}

fn wildcard(field: &str, name: &str) -> String {
    match (name.strip_prefix('*'), name.strip_suffix('*')) {
        (Some(end), _) => format!("{field} =^ {}", quoted(end)),
        (None, Some(start)) => format!("{field} ^= {}", quoted(start)),
        (None, None) => format!("{field} == {}", quoted(name)),
    }
}

fn host(host: &str) -> String {
    match host.split_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("({} && net.dst.port == {port})", wildcard("http.host", name))
        }
        _ => wildcard("http.host", host),
    }
}

fn path(path: &str) -> String {
    match path.strip_prefix('~') {
        Some(regex) => format!(
            "http.path ~ {}",
            quoted(&format!("^{}", regex.replace("?<", "?P<")))
        ),
        None => format!("http.path ^= {}", quoted(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn headers_without_values_are_refused_as_an_expression() {
        for (paths, headers, message) in [
            (json!([]), json!({"x-a": ["1"]}), None),
            (json!([]), json!({"x-a": []}), Some(("()", 2))),
            (
                json!(["/a"]),
                json!({"x-a": []}),
                Some(("(http.path ^= r#\"/a\"#) && ()", 28)),
            ),
            (
                json!(["~/a"]),
                json!({"x-a": ["V", "~*W"], "x-b": []}),
                Some((
                    "(http.path ~ r#\"^/a\"#) && (any(lower(http.headers.x_a)) == r#\"v\"# || \
                     any(lower(http.headers.x_a)) ~ r#\"w\"#) && ()",
                    113,
                )),
            ),
        ] {
            let mut route = Fields::with_capacity(2);
            route.add("paths", paths);
            route.add("headers", headers.clone());
            let expected = message.map(|(expression, column)| {
                let indent = " ".repeat(column - 1);
                format!(
                    "Router Expression failed validation:  --> 1:{column}\n  |\n1 | {expression}\n  | {indent}^---\n  \
                     |\n  = expected term"
                )
            });
            assert_eq!(check_expression(&route).err(), expected, "{headers}");
        }
    }
}
