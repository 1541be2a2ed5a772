//! The preparation of the text of `apisix.yaml`, or of `apisix.json`, before it is read: the `#END` marker and
//! environment variables.

use regex::{Captures, Regex};
use std::sync::LazyLock;
use weir_model::{Diagnostic, DocPath};

/// The marker has to stand in the last so many bytes.
const MARKER_REACH: usize = 10;

/// `${{NAME}}` and `${{NAME:=default}}`. They are filled in before the YAML is read, so quotes around them decide
/// what type the value has.
static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)\$\{\{\s*([A-Za-z0-9_]+[:=]?.*?)\s*\}\}").expect("invariant: a constant pattern")
});

/// Checks the `#END` marker and fills environment variables in.
///
/// # Errors
/// A missing marker (the file may be half written), or a variable that has neither a value nor a default.
pub fn prepare(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, Diagnostic> {
    check_marker(text)?;
    fill(text, environment)
}

/// The same for a look at a file: variables without a value get `placeholder`, with a warning each.
///
/// # Errors
/// A missing marker.
pub fn prepare_for_look(
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
    placeholder: &str,
) -> Result<(String, Vec<Diagnostic>), Diagnostic> {
    check_marker(text)?;
    let (filled, missing) = fill_known(text, environment, placeholder);
    let to_warning = |it: UnsetVariable| Diagnostic {
        line: Some(it.line),
        ..Diagnostic::warning(
            DocPath::root(),
            format!("the environment variable {} is not set", it.name),
        )
    };
    Ok((filled, missing.into_iter().map(to_warning).collect()))
}

fn check_marker(text: &str) -> Result<(), Diagnostic> {
    let reach = text.len().saturating_sub(MARKER_REACH);
    if is_json(text) || text.as_bytes()[reach..].trim_ascii_end().ends_with(b"#END") {
        return Ok(());
    }
    Err(Diagnostic {
        line: Some(text.lines().count().max(1)),
        ..Diagnostic::error(
            DocPath::root(),
            "missing valid end flag: expected the last line to be '#END'",
        )
    })
}

/// Whether it is an `apisix.json`, which has no marker: what is half written is no JSON.
fn is_json(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('{') && text.ends_with('}')
}

/// Fills environment variables in.
///
/// # Errors
/// A variable that has neither a value nor a default.
pub fn fill(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, Diagnostic> {
    let (filled, missing) = fill_known(text, environment, "");
    match missing.into_iter().next() {
        None => Ok(filled),
        Some(UnsetVariable { name, line }) => Err(Diagnostic {
            line: Some(line),
            ..Diagnostic::error(
                DocPath::root(),
                format!("failed to handle configuration: can't find environment variable {name}"),
            )
        }),
    }
}

/// A variable that has neither a value nor a default.
struct UnsetVariable {
    name: String,
    line: usize,
}

/// Fills variables in; those that have neither a value nor a default get `placeholder`.
fn fill_known(
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
    placeholder: &str,
) -> (String, Vec<UnsetVariable>) {
    let mut missing = Vec::new();
    let filled = PLACEHOLDER.replace_all(text, |found: &Captures<'_>| {
        let (name, default) = match found[1].split_once(":=") {
            Some((name, default)) => (name.trim(), Some(default.trim().to_owned())),
            None => (&found[1], None),
        };
        environment(name).or(default).unwrap_or_else(|| {
            let place = found.get(0).map_or(0, |whole| whole.start());
            missing.push(UnsetVariable {
                name: name.to_owned(),
                line: text[..place].matches('\n').count() + 1,
            });
            placeholder.to_owned()
        })
    });
    (filled.into_owned(), missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        (name == "PORT").then(|| "1980".to_owned())
    }

    #[test]
    fn the_marker_ends_the_file() {
        for (text, good) in [
            ("a: 1\n#END", true),
            ("a: 1\n#END\n", true),
            ("a: 1 #END \n\n", true),
            ("a: 1\n", false),
            ("#END\na: 1\n", false),
            ("#END\n\n\n\n\n\n\n\n\n\n", false),
            ("{\"routes\": []}\n", true),
            ("{\"routes\": [", false),
            ("", false),
            ("日本語日本語", false),
        ] {
            assert_eq!(prepare(text, &environment).is_ok(), good, "{text:?}");
        }
    }

    #[test]
    fn variables_are_filled_in() {
        for (text, filled) in [
            ("a: ${{PORT}}\n#END", Some("a: 1980\n#END")),
            (
                "a: \"${{ PORT := 1 }}\" # ${{X:=y z}}\n#END",
                Some("a: \"1980\" # y z\n#END"),
            ),
            ("a: ${{X:=}}\n#END", Some("a: \n#END")),
            ("a: $PORT ${PORT}\n#END", Some("a: $PORT ${PORT}\n#END")),
            ("a: 1\nb: ${{X}}\n#END", None),
        ] {
            let result = prepare(text, &environment);
            assert_eq!(result.as_deref().ok(), filled, "{text:?}");
            if let Err(diagnostic) = result {
                assert_eq!(diagnostic.line, Some(2));
            }
        }
    }

    #[test]
    fn variables_without_a_value_have_a_stand_in_for_a_look() {
        let text = "a: ${{PORT}}\nb: ${{X}}\nc: ${{Y:=1}}\n#END";
        let (filled, warnings) = prepare_for_look(text, &environment, "unset").expect("with its marker");
        assert_eq!(filled, "a: 1980\nb: unset\nc: 1\n#END");
        let warnings: Vec<_> = warnings.iter().map(|it| (it.line, it.message.as_str())).collect();
        assert_eq!(warnings, [(Some(2), "the environment variable X is not set")]);
        assert!(prepare_for_look("a: 1", &environment, "").is_err());
    }
}
