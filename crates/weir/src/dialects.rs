//! The dialects , side by side: which one a text is for, and how it is read.

use crate::args::RouterArgs;
use serde_json::Value;
use std::borrow::Cow;
use weir_control::secrets::Policy;
use weir_model::{Diagnostic, Dialect, Model, Severity, document};
use weir_native::NativeErrorRenderer;
use weir_plugin::error_renderer;

/// For those who meant another kind of file.
const TAKEN_FOR_APISIX: &str =
    "(taken for an apisix.yaml, because it has neither the key 'weir' nor '_format_version')";

/// The dialect that a document comes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `weir.yaml`.
    Native,
    /// `kong.yml`.
    Kong,
    /// `apisix.yaml`.
    Apisix,
}

/// A text as its dialect reads it.
pub struct Reading<'t> {
    /// The dialect.
    pub dialect: FileKind,
    /// The text in which the findings' places are.
    pub text: Cow<'t, str>,
    /// The document; `Null` where the text is no YAML.
    pub document: Value,
    /// What it says, unless it is refused.
    pub model: Option<Model>,
    /// What is to be said about it.
    pub findings: Vec<Diagnostic>,
    /// Whether something stands for variables that are not set.
    has_stand_ins: bool,
}

/// What stands in a text for variables that are not set: a number where one is wanted, a name where a text is.
const STAND_INS: [&str; 2] = ["1", "unset"];

/// Reads a text through the dialect that it is for. For a look, what stands for variables that are not set is what less is
/// wrong with.
pub fn read(text: &str, routers: RouterArgs, policy: Policy) -> Reading<'_> {
    let faults = |reading: &Reading<'_>| {
        let findings = reading.findings.iter();
        findings.filter(|it| it.severity > Severity::Warning).count()
    };
    let first = read_with(text, routers, policy, STAND_INS[0]);
    if !first.has_stand_ins || faults(&first) == 0 {
        return first;
    }
    let second = read_with(text, routers, policy, STAND_INS[1]);
    match faults(&second) < faults(&first) {
        true => second,
        false => first,
    }
}

fn read_with<'t>(text: &'t str, routers: RouterArgs, policy: Policy, stand_in: &str) -> Reading<'t> {
    let parsed = document::parse_noting_repeats(text);
    let dialect = match &parsed {
        Ok((document, _)) => kind_of_document(document),
        Err(_) => door_of_broken(text),
    };
    let mut unset = Vec::new();
    let parsed = match dialect {
        FileKind::Native | FileKind::Kong => parsed.map(|parsed| (Cow::Borrowed(text), parsed)),
        // Its own layer of variables comes before YAML.
        FileKind::Apisix => prepare(text, policy, stand_in, &mut unset)
            .map_err(|found| Diagnostic {
                message: format!("{} {TAKEN_FOR_APISIX}", found.message),
                ..found
            })
            .and_then(|prepared| {
                let parsed = document::parse_noting_repeats(&prepared)?;
                Ok((Cow::Owned(prepared), parsed))
            }),
    };
    let (text, (document, mut findings)) = match parsed {
        Ok(parsed) => parsed,
        Err(found) => {
            return Reading {
                dialect,
                text: Cow::Borrowed(text),
                document: Value::Null,
                model: None,
                findings: vec![found],
                has_stand_ins: !unset.is_empty(),
            };
        }
    };
    let has_stand_ins = !unset.is_empty();
    findings.extend(unset);
    if dialect == FileKind::Native {
        // The originals take the last of repeated keys, and so do their dialects. Here it is a mistake: a list of
        // plugins would be gone, and with it the access check in it.
        for found in &mut findings {
            found.severity = Severity::Error;
        }
    }
    Reading {
        has_stand_ins,
        ..understand(dialect, text, document, findings, routers)
    }
}

/// Reads a text that an Admin API has put in the place of a file. Its original knows no variables in it.
pub fn read_replacement(dialect: FileKind, text: &str, routers: RouterArgs) -> Reading<'_> {
    match document::parse_noting_repeats(text) {
        Ok((document, findings)) => understand(dialect, Cow::Borrowed(text), document, findings, routers),
        Err(found) => Reading {
            dialect,
            text: Cow::Borrowed(text),
            document: Value::Null,
            model: None,
            findings: vec![found],
            has_stand_ins: false,
        },
    }
}

fn understand(
    dialect: FileKind,
    text: Cow<'_, str>,
    document: Value,
    mut findings: Vec<Diagnostic>,
    routers: RouterArgs,
) -> Reading<'_> {
    let model = match translate(dialect, &document, routers) {
        Ok((model, found)) => {
            findings.extend(found);
            let is_refused = findings.iter().any(|found| found.severity == Severity::Error);
            (!is_refused).then_some(model)
        }
        Err(found) => {
            findings.extend(found);
            None
        }
    };
    Reading {
        dialect,
        text,
        document,
        model,
        findings,
        has_stand_ins: false,
    }
}

fn translate(
    dialect: FileKind,
    document: &Value,
    routers: RouterArgs,
) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    match dialect {
        FileKind::Native => weir_native::translate(document),
        FileKind::Kong => weir_kong::translate(document, &routers.kong()),
        FileKind::Apisix => weir_apisix::translate(document, &routers.apisix()),
    }
}

/// For a look, variables that are not set are told of, and nothing more.
fn prepare(
    text: &str,
    policy: Policy,
    stand_in: &str,
    unset: &mut Vec<Diagnostic>,
) -> Result<String, Diagnostic> {
    match policy {
        Policy::Serve => weir_apisix::prepare(text, &environment),
        Policy::Look => {
            let (filled, warnings) = weir_apisix::prepare_for_look(text, &environment, stand_in)?;
            *unset = warnings;
            Ok(filled)
        }
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The words in which routes of this dialect refuse calls.
pub fn renderer(dialect: Dialect) -> &'static dyn error_renderer::ErrorRenderer {
    match dialect {
        Dialect::Native => &NativeErrorRenderer,
        Dialect::Kong => &weir_kong::KongErrorRenderer,
        Dialect::Apisix => &weir_apisix::ApisixErrorRenderer,
    }
}

fn kind_of_document(document: &Value) -> FileKind {
    if weir_native::recognises(document) {
        FileKind::Native
    } else if weir_kong::recognises(document) {
        FileKind::Kong
    } else {
        FileKind::Apisix
    }
}

/// For a text that is no YAML (yet): by the keys at its left margin, so that its mistake is told in the right
/// terms.
fn door_of_broken(text: &str) -> FileKind {
    let has_key = |name: &str| {
        text.lines().any(|line| {
            let key = line.trim_start_matches(['{', '"', '\'']);
            key.strip_prefix(name)
                .is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
        })
    };
    if has_key("weir") {
        FileKind::Native
    } else if has_key("_format_version") {
        FileKind::Kong
    } else {
        FileKind::Apisix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_recognised_by_their_content() {
        for (text, dialect) in [
            ("weir: 1\n", FileKind::Native),
            ("# comment\n\"weir\": 1\n", FileKind::Native),
            ("weir: 1\nroutes: [\n", FileKind::Native),
            ("_format_version: '3.0'\n", FileKind::Kong),
            ("{\"_format_version\": \"3.0\", \"services\": []}", FileKind::Kong),
            ("_format_version : '3.0'\nservices: ]\n", FileKind::Kong),
            ("routes:\n- uri: /\n#END\n", FileKind::Apisix),
            ("routes:\n- uri: ${{X}}]\n  weir: 1\n#END\n", FileKind::Apisix),
            ("", FileKind::Apisix),
        ] {
            let routers = RouterArgs {
                kong_router: crate::args::KongRouter::TraditionalCompatible,
                apisix_router: None,
                apisix_config: None,
            };
            assert_eq!(read(text, routers, Policy::Serve).dialect, dialect, "{text}");
        }
    }
}
