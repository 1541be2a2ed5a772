//! Putting what serde says about a document into the words of a diagnostic, with a guess at what was meant.
//!
//! Values of the document are left out of the words: any of them may be a secret.

use weir_model::Diagnostic;
use weir_model::diagnostic::PathStep;

/// `unknown field 'pahts': did you mean 'paths'? Expected one of name, paths, …`
pub(crate) fn unknown_field(name: &str, expected: &[&str]) -> String {
    unknown_name("field", name, expected)
}

/// Words a diagnostic that may come from serde.
pub(crate) fn reword(diagnostic: Diagnostic) -> Diagnostic {
    let missing = quoted_after(&diagnostic.message, "missing field `");
    let mut path = diagnostic.path;
    let message = match missing {
        Some(name) => format!("'{name}' is missing"),
        None => {
            // The place of an unknown field is the field itself.
            if let Some(name) = quoted_after(&diagnostic.message, "unknown field `")
                && path.0.last() != Some(&PathStep::Field(name.to_owned()))
            {
                path = path.field(name);
            }
            reword_text(&diagnostic.message)
        }
    };
    Diagnostic {
        path,
        message,
        ..diagnostic
    }
}

fn reword_text(message: &str) -> String {
    for (start, kind) in [("unknown field `", "field"), ("unknown variant `", "value")] {
        if let Some(name) = quoted_after(message, start) {
            let rest = &message[start.len() + name.len() + 1..];
            let expected: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
            return unknown_name(kind, name, &expected);
        }
    }
    if let Some(rest) = message.strip_prefix("invalid type: ")
        && let Some((found, expected)) = rest.rsplit_once(", expected ")
    {
        return format!("expected {}, found {}", type_name(expected), type_name(found));
    }
    if let Some(rest) = message.strip_prefix("invalid value: ")
        && let Some((found, expected)) = rest.rsplit_once(", expected ")
    {
        let found = type_name(found);
        return format!("expected {}, found {found} out of its range", type_name(expected));
    }
    message.to_owned()
}

fn quoted_after<'t>(message: &'t str, start: &str) -> Option<&'t str> {
    let rest = message.strip_prefix(start)?;
    rest.split_once('`').map(|(name, _)| name)
}

/// A type in the words of a document. What serde found comes with its value (`string "abc"`), which is
/// left out.
fn type_name(serde: &str) -> &str {
    let first_word = serde.split([' ', '`']).next().unwrap_or(serde);
    match (first_word, serde) {
        ("string", _) | (_, "a string" | "a borrowed string") => "a text",
        ("boolean", _) | (_, "a boolean") => "true or false",
        ("null" | "unit", _) => "nothing",
        ("sequence", _) | (_, "a sequence") => "a list",
        ("map" | "struct", _) | (_, "a map") => "a map",
        ("u8" | "u16" | "u32" | "u64" | "usize", _) => "a whole number of 0 or more",
        ("i8" | "i16" | "i32" | "i64" | "isize", _) => "a whole number",
        ("integer", _) => "a whole number",
        ("floating", _) => "a number with a fraction",
        ("f32" | "f64", _) => "a number",
        ("enum" | "variant", _) => "a name or a map with one",
        _ => serde,
    }
}

/// What is wrong with a name that is none of those expected, with a guess at what was meant: `unknown field 'pahts':
/// …`.
pub fn unknown_name(kind: &str, name: &str, expected: &[&str]) -> String {
    let mut message = format!("unknown {kind} '{name}'");
    if let Some(meant) = closest(name, expected) {
        message.push_str(&format!(": did you mean '{meant}'?"));
    } else if !expected.is_empty() {
        message.push(':');
    }
    match expected {
        [] => {}
        [only] => message.push_str(&format!(" Expected '{only}'")),
        names => message.push_str(&format!(" Expected one of {}", names.join(", "))),
    }
    message
}

/// The expected name that is closest to a mistyped one, if it is close enough.
pub(crate) fn closest<'n>(name: &str, expected: &[&'n str]) -> Option<&'n str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '.', ' '], "_");
    let name = plain(name);
    expected
        .iter()
        .map(|candidate| (distance(&name, &plain(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().min(name.len()).div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits between two names: a character put in, left out, changed, or swapped with its neighbour.
fn distance(left: &str, right: &str) -> usize {
    /// Longer names are not compared: they are not typing errors.
    const MAX_LENGTH: usize = 64;
    let (left, right) = (left.as_bytes(), right.as_bytes());
    if left.len().max(right.len()) > MAX_LENGTH {
        return usize::MAX;
    }
    let mut rows = [[0; MAX_LENGTH + 1]; MAX_LENGTH + 1];
    for (row, cells) in rows.iter_mut().enumerate() {
        cells[0] = row;
    }
    rows[0] = std::array::from_fn(|column| column);
    for row in 1..=left.len() {
        for column in 1..=right.len() {
            let differs = usize::from(left[row - 1] != right[column - 1]);
            let mut best = (rows[row - 1][column - 1] + differs)
                .min(rows[row - 1][column] + 1)
                .min(rows[row][column - 1] + 1);
            if row > 1
                && column > 1
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1]
            {
                best = best.min(rows[row - 2][column - 2] + 1);
            }
            rows[row][column] = best;
        }
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::DocPath;

    #[test]
    fn slips_are_recognised() {
        let expected = ["paths", "path", "hosts", "strip_prefix", "rate-limit", "key-auth"];
        for (name, meant) in [
            ("pahts", Some("paths")),
            ("Paths", Some("paths")),
            ("host", Some("hosts")),
            ("strip-prefix", Some("strip_prefix")),
            ("rate_limits", Some("rate-limit")),
            ("keyauth", Some("key-auth")),
            ("upstream", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(closest(name, &expected), meant, "{name}");
        }
    }

    #[test]
    fn serde_is_put_into_words() {
        for (serde_text, path, message) in [
            (
                "unknown field `conect_ms`, expected one of `connect_ms`, `write_ms`",
                "timeouts.conect_ms",
                "unknown field 'conect_ms': did you mean 'connect_ms'? Expected one of connect_ms, write_ms",
            ),
            (
                "unknown field `zzz`, expected `only`",
                "timeouts.zzz",
                "unknown field 'zzz': Expected 'only'",
            ),
            (
                "unknown variant `htp`, expected `http` or `https`",
                "timeouts",
                "unknown value 'htp': did you mean 'http'? Expected one of http, https",
            ),
            ("missing field `name`", "timeouts", "'name' is missing"),
            (
                "invalid type: string \"s3cret, expected x\", expected u32",
                "timeouts",
                "expected a whole number of 0 or more, found a text",
            ),
            (
                "invalid type: integer `5`, expected struct Timeouts",
                "timeouts",
                "expected a map, found a whole number",
            ),
            (
                "invalid type: null, expected a sequence",
                "timeouts",
                "expected a list, found nothing",
            ),
            (
                "invalid value: integer `-1`, expected u16",
                "timeouts",
                "expected a whole number of 0 or more, found a whole number out of its range",
            ),
            (
                "expected a host name, found 'a b'",
                "timeouts",
                "expected a host name, found 'a b'",
            ),
        ] {
            let found = reword(Diagnostic::error(DocPath::root().field("timeouts"), serde_text));
            assert_eq!(
                (found.path.to_string().as_str(), found.message.as_str()),
                (path, message)
            );
        }
    }
}
