//! The front doors, side by side: which one a text is for, and how it is read.

use crate::args::RouterArgs;
use serde_json::Value;
use weir_model::{Diagnostic, Model, Severity, document};

/// The door that a document comes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// `weir.yaml`.
    Native,
    /// `kong.yml`.
    Kong,
    /// `apisix.yaml`.
    Apisix,
}

/// A text as its door reads it.
pub struct Reading {
    /// The door.
    pub door: Door,
    /// The document; `Null` where the text is no YAML.
    pub document: Value,
    /// What it says, unless it is refused.
    pub model: Option<Model>,
    /// What is to be said about it.
    pub findings: Vec<Diagnostic>,
}

/// Reads a text through the door that it is for.
pub fn read(text: &str, routers: RouterArgs) -> Reading {
    let parsed = document::parse(text);
    let door = match &parsed {
        Ok(document) => door_of_document(document),
        Err(_) => door_of_broken(text),
    };
    let parsed = match door {
        Door::Native | Door::Kong => parsed,
        // Its own layer of variables comes before YAML.
        Door::Apisix => parsed,
    };
    let document = match parsed {
        Ok(document) => document,
        Err(found) => {
            return Reading {
                door,
                document: Value::Null,
                model: None,
                findings: vec![found],
            };
        }
    };
    let translated = translate(door, &document, routers);
    let (model, findings) = match translated {
        Ok((model, findings)) => {
            let is_refused = findings.iter().any(|found| found.severity == Severity::Error);
            ((!is_refused).then_some(model), findings)
        }
        Err(findings) => (None, findings),
    };
    Reading {
        door,
        document,
        model,
        findings,
    }
}

fn translate(
    door: Door,
    document: &Value,
    routers: RouterArgs,
) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let _ = routers;
    match door {
        Door::Native => weir_native::translate(document),
        Door::Kong | Door::Apisix => Err(Vec::new()),
    }
}

fn door_of_document(document: &Value) -> Door {
    if weir_native::recognises(document) {
        Door::Native
    } else if document.get("_format_version").is_some() {
        Door::Kong
    } else {
        Door::Apisix
    }
}

/// For a text that is no YAML (yet): by the keys at its left margin, so that its mistake is told in the right
/// terms.
fn door_of_broken(text: &str) -> Door {
    let has_key = |name: &str| {
        text.lines().any(|line| {
            let key = line.trim_start_matches(['{', '"', '\'']);
            key.strip_prefix(name)
                .is_some_and(|rest| rest.trim_start_matches(['"', '\'', ' ']).starts_with(':'))
        })
    };
    if has_key("weir") {
        Door::Native
    } else if has_key("_format_version") {
        Door::Kong
    } else {
        Door::Apisix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_recognised_by_their_content() {
        for (text, door) in [
            ("weir: 1\n", Door::Native),
            ("# comment\n\"weir\": 1\n", Door::Native),
            ("weir: 1\nroutes: [\n", Door::Native),
            ("_format_version: '3.0'\n", Door::Kong),
            ("{\"_format_version\": \"3.0\", \"services\": []}", Door::Kong),
            ("_format_version : '3.0'\nservices: ]\n", Door::Kong),
            ("routes:\n- uri: /\n#END\n", Door::Apisix),
            ("routes:\n- uri: ${{X}}]\n  weir: 1\n#END\n", Door::Apisix),
            ("", Door::Apisix),
        ] {
            let routers = RouterArgs {
                kong_router: crate::args::KongRouter::TraditionalCompatible,
                apisix_router: crate::args::ApisixRouter::RadixtreeHostUri,
            };
            assert_eq!(read(text, routers).door, door, "{text}");
        }
    }
}
