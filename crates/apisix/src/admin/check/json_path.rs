//! Whether the part of a variable after `post_arg.` is a path into a document.

use serde_json::Value;

/// Checks the paths of all variables in a condition.
///
/// # Errors
/// In APISIX's words.
pub fn check(rule: &Value) -> Result<(), String> {
    let Value::Array(items) = rule else {
        return Ok(());
    };
    if let [Value::String(variable), _, _, ..] = items.as_slice()
        && let Some(path) = variable.strip_prefix("post_arg.")
    {
        return match is_path(path) {
            true => Ok(()),
            false => Err(format!("invalid expression \"$.{path}\"")),
        };
    }
    items.iter().try_for_each(check)
}

/// Whether a text is names, `*` and brackets, separated by dots.
fn is_path(path: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-');
    let mut rest = path;
    loop {
        let name = rest.find(|it| !is_part(it)).unwrap_or(rest.len());
        let is_star = rest.starts_with('*');
        rest = &rest[if is_star { 1 } else { name }..];
        let is_named = is_star || name > 0;
        let mut has_brackets = false;
        while let Some(inside) = rest.strip_prefix('[') {
            let Some(end) = closing(inside) else {
                return false;
            };
            if !is_selector(&inside[..end]) {
                return false;
            }
            has_brackets = true;
            rest = &inside[end + 1..];
        }
        if !(is_named || has_brackets) {
            return false;
        }
        match rest.strip_prefix("..").or_else(|| rest.strip_prefix('.')) {
            Some(more) => rest = more,
            None => return rest.is_empty(),
        }
    }
}

/// The position of the bracket that closes the open one.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[' | '(') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']' | ')') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    None
}

/// `*`, positions, slices, names in quotes, several of them, a filter or an expression.
fn is_selector(text: &str) -> bool {
    let text = text.trim();
    if (text.starts_with("?(") || text.starts_with('(')) && text.ends_with(')') {
        return true;
    }
    let is_quoted = |part: &str| {
        part.len() >= 2
            && ['"', '\'']
                .iter()
                .any(|quote| part.starts_with(*quote) && part.ends_with(*quote))
    };
    let is_number = |part: &str| part.is_empty() || part.parse::<i64>().is_ok();
    !text.is_empty()
        && text.split(',').map(str::trim).all(|part| {
            part == "*" || is_quoted(part) || (!part.is_empty() && part.split(':').all(is_number))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_checked() {
        for (path, wanted) in [
            ("model", true),
            ("messages[*].content[0]['type']", true),
            ("a..b", true),
            ("a[?(@.b > 1)].c", true),
            ("a[1:2,-1]", true),
            ("messages[.content[*].type", false),
            ("a[", false),
            ("a.", false),
            ("", false),
            ("a b", false),
        ] {
            assert_eq!(is_path(path), wanted, "{path}");
        }
    }
}
