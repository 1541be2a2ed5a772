//! The list of dialects, and how a text is read: which one it is for, and what it says.

use crate::args::{ManagementArgs, RouterArgs, RunArgs};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use weir_control::secrets::Policy;
use weir_dialect::{Dialect, DialectName, DialectSet, PreparedText, Purpose};
use weir_model::{Diagnostic, Model, Severity, document};
use weir_native::NativeDialect;

/// All dialects, in the order in which their routes are looked through. A further one is a line here.
fn all(routers: RouterArgs, management: Option<&ManagementArgs>) -> DialectSet {
    DialectSet::new(vec![
        Arc::new(routers.kong.dialect(management)),
        Arc::new(routers.apisix.dialect(management)),
        Arc::new(NativeDialect),
    ])
}

/// All dialects of a process that serves, with the settings of their Admin APIs.
pub fn of_run(args: &RunArgs) -> DialectSet {
    all(args.routers, Some(&args.management))
}

/// The same, to read files.
pub fn of_files(routers: RouterArgs) -> DialectSet {
    all(routers, None)
}

/// The same, without any settings.
pub fn stock() -> DialectSet {
    of_files(RouterArgs::default())
}

/// A text as its dialect reads it.
pub struct ParsedDocument<'t> {
    /// The dialect.
    pub dialect: DialectName,
    /// The text in which the findings' places are.
    pub text: Cow<'t, str>,
    /// The document; `Null` if the text is no YAML.
    pub document: Value,
    /// Its model, unless it is refused.
    pub model: Option<Model>,
    /// The findings about it.
    pub findings: Vec<Diagnostic>,
    /// Whether something stands for variables that are not set.
    has_stand_ins: bool,
}

impl ParsedDocument<'_> {
    fn refused(dialect: DialectName, text: &str, found: Diagnostic) -> ParsedDocument<'_> {
        ParsedDocument {
            dialect,
            text: Cow::Borrowed(text),
            document: Value::Null,
            model: None,
            findings: vec![found],
            has_stand_ins: false,
        }
    }
}

/// The values of variables that are not set: a number if one is needed, a name if a text is.
const STAND_INS: [&str; 2] = ["1", "unset"];

/// Reads a text through the dialect that it is for. For a look, what stands for variables that are not set is what less
/// is wrong with.
pub fn read<'t>(dialects: &DialectSet, text: &'t str, policy: Policy) -> ParsedDocument<'t> {
    let faults = |reading: &ParsedDocument<'_>| {
        let findings = reading.findings.iter();
        findings.filter(|it| it.severity > Severity::Warning).count()
    };
    let first = read_with(dialects, text, policy, STAND_INS[0]);
    if !first.has_stand_ins || faults(&first) == 0 {
        return first;
    }
    let second = read_with(dialects, text, policy, STAND_INS[1]);
    if faults(&second) < faults(&first) {
        second
    } else {
        first
    }
}

fn read_with<'t>(
    dialects: &DialectSet,
    text: &'t str,
    policy: Policy,
    placeholder: &str,
) -> ParsedDocument<'t> {
    let parsed = document::parse_noting_repeats(text);
    let dialect = match &parsed {
        Ok((document, _)) => dialects.of_document(document),
        Err(_) => dialects.of_text(text),
    };
    let Some(dialect) = dialect else {
        let name = DialectName::default();
        return ParsedDocument::refused(
            name,
            text,
            Diagnostic::error(weir_model::DocPath::root(), "no dialect has such files"),
        );
    };
    let purpose = Purpose {
        environment: &|name| std::env::var(name).ok(),
        placeholder: (policy == Policy::Look).then_some(placeholder),
    };
    let with_hint = |found: Diagnostic| Diagnostic {
        message: format!("{}{}", found.message, taken_for(dialects, &**dialect)),
        ..found
    };
    let prepared = dialect.prepare(text, &purpose).map_err(with_hint);
    let prepared = prepared.and_then(|prepared| {
        let parsed = match &prepared.text {
            Cow::Borrowed(_) => parsed?,
            Cow::Owned(text) => document::parse_noting_repeats(text)?,
        };
        Ok((prepared, parsed))
    });
    let (PreparedText { text, unset }, (document, mut findings)) = match prepared {
        Ok(prepared) => prepared,
        Err(found) => return ParsedDocument::refused(dialect.name(), text, found),
    };
    let has_stand_ins = !unset.is_empty();
    findings.extend(unset);
    if dialect.file_form().refuses_repeated_keys {
        for found in &mut findings {
            found.severity = Severity::Error;
        }
    }
    ParsedDocument {
        has_stand_ins,
        ..understand(dialects, &**dialect, text, document, findings)
    }
}

/// For those who meant another kind of file: why a text was taken for one of a dialect that has no marks.
fn taken_for(dialects: &DialectSet, dialect: &dyn Dialect) -> String {
    let form = dialect.file_form();
    if !form.marks.is_empty() {
        return String::new();
    }
    let mut marks: Vec<String> = dialects
        .iter()
        .flat_map(|it| it.file_form().marks)
        .map(|mark| format!("'{mark}'"))
        .collect();
    marks.reverse();
    format!(
        " (taken for an {}, because it has neither the key {})",
        form.name,
        marks.join(" nor ")
    )
}

/// Reads a text that an Admin API has put in the place of a file. Its original knows no variables in it.
pub fn read_replacement<'t>(dialects: &DialectSet, name: DialectName, text: &'t str) -> ParsedDocument<'t> {
    let parsed = document::parse_noting_repeats(text);
    match (parsed, dialects.get(name)) {
        (Ok((document, findings)), Some(dialect)) => {
            understand(dialects, &**dialect, Cow::Borrowed(text), document, findings)
        }
        (Err(found), _) => ParsedDocument::refused(name, text, found),
        (Ok(_), None) => {
            let message = format!("no dialect is named '{name}'");
            ParsedDocument::refused(
                name,
                text,
                Diagnostic::error(weir_model::DocPath::root(), message),
            )
        }
    }
}

fn understand<'t>(
    dialects: &DialectSet,
    dialect: &dyn Dialect,
    text: Cow<'t, str>,
    document: Value,
    mut findings: Vec<Diagnostic>,
) -> ParsedDocument<'t> {
    let model = match dialect.translate(&document) {
        Ok((model, found)) => {
            findings.extend(found);
            let unknown = dialects.unknown_names(&model).into_iter();
            findings.extend(unknown.map(|found| dialect.locate(&document, found).unwrap_or_else(|it| it)));
            let is_refused = findings.iter().any(|found| found.severity == Severity::Error);
            (!is_refused).then_some(model)
        }
        Err(found) => {
            findings.extend(found);
            None
        }
    };
    ParsedDocument {
        dialect: dialect.name(),
        text,
        document,
        model,
        findings,
        has_stand_ins: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_recognised_by_their_content() {
        for (text, dialect) in [
            ("weir: 1\n", DialectName::NATIVE),
            ("# comment\n\"weir\": 1\n", DialectName::NATIVE),
            ("weir: 1\nroutes: [\n", DialectName::NATIVE),
            ("_format_version: '3.0'\n", weir_kong::NAME),
            (
                "{\"_format_version\": \"3.0\", \"services\": []}",
                weir_kong::NAME,
            ),
            ("_format_version : '3.0'\nservices: ]\n", weir_kong::NAME),
            ("routes:\n- uri: /\n#END\n", weir_apisix::NAME),
            ("routes:\n- uri: ${{X}}]\n  weir: 1\n#END\n", weir_apisix::NAME),
            ("", weir_apisix::NAME),
        ] {
            let read = read(&stock(), text, Policy::Serve);
            assert_eq!(read.dialect, dialect, "{text}");
        }
    }
}
