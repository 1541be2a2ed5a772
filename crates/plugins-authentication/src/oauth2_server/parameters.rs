//! Parameters of OAuth 2.0: arguments of the query, and fields of the body over them.

use crate::body_fields::Form;
use serde_json::Value;
use weir_plugin::Request;
use weir_plugin::multipart::parts;
use weir_plugin::uri::{decode_form, query_pairs};

/// A parameter that a call has.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Parameter {
    Text(String),
    /// It has no value, several, or one that is not a text.
    Other,
}

/// The parameters that mean something; others are not kept, however many a call has.
const NAMES: [&str; 15] = [
    "access_token",
    "authenticated_userid",
    "client_id",
    "client_secret",
    "code",
    "code_challenge",
    "code_challenge_method",
    "code_verifier",
    "grant_type",
    "provision_key",
    "redirect_uri",
    "refresh_token",
    "response_type",
    "scope",
    "state",
];

/// The parameters of a call.
#[derive(Default)]
pub(super) struct Parameters(Vec<(&'static str, Parameter)>);

/// Whether the body has to be read before the parameters are known.
pub(super) fn need_body(request: &Request) -> bool {
    request.body.is_none() && form(request).is_some()
}

/// The form of a body with parameters.
fn form(request: &Request) -> Option<Form> {
    let has_parameters = matches!(request.method.as_slice(), b"POST" | b"PUT" | b"PATCH");
    match request.has_body && has_parameters {
        true => Form::of(request.headers.get(b"content-type")?),
        false => None,
    }
}

impl Parameters {
    /// Reads those of a call.
    pub(super) fn read(request: &Request) -> Self {
        let mut all = Self::default();
        all.pairs(request.query.as_deref().unwrap_or_default());
        let Some((form, body)) = form(request).zip(request.body.as_ref()) else {
            return all;
        };
        let mut own = Self::default();
        match form {
            Form::UrlEncoded => own.pairs(body),
            Form::Json => {
                if let Ok(Value::Object(members)) = serde_json::from_slice(body) {
                    for (name, value) in members {
                        own.add(name.as_bytes(), || match value {
                            Value::String(text) => Parameter::Text(text),
                            _ => Parameter::Other,
                        });
                    }
                }
            }
            Form::Multipart(boundary) => {
                for part in parts(body, &boundary) {
                    if let Some(name) = part.name() {
                        own.add(name, || Parameter::Text(text(part.content)));
                    }
                }
            }
        }
        all.0.retain(|(name, _)| !own.has(name));
        all.0.append(&mut own.0);
        all
    }

    fn pairs(&mut self, pairs: &[u8]) {
        for (name, value) in query_pairs(pairs) {
            self.add(&decode_form(name), || match value {
                Some(value) => Parameter::Text(text(&decode_form(value))),
                None => Parameter::Other,
            });
        }
    }

    fn add(&mut self, name: &[u8], value: impl FnOnce() -> Parameter) {
        let Some(name) = NAMES.into_iter().find(|known| known.as_bytes() == name) else {
            return;
        };
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = Parameter::Other,
            None => self.0.push((name, value())),
        }
    }

    /// Whether the call has this one, whatever its value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == name)
    }

    /// The text of this one.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| *known == name)?;
        match &found.1 {
            Parameter::Text(text) => Some(text),
            Parameter::Other => None,
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugins_testkit::{exchange, prepare};

    /// A body of many names costs as much as its bytes, and nothing of it is kept.
    #[test]
    fn only_known_parameters_are_kept() {
        let many: String = (0..50_000).map(|number| format!("x{number}=1&")).collect();
        for (kind, body, state) in [
            (
                "application/x-www-form-urlencoded",
                format!("{many}state=a"),
                Some("a"),
            ),
            (
                "application/x-www-form-urlencoded",
                format!("state=a&{many}state=b"),
                None,
            ),
            (
                "application/json",
                "{\"state\":\"a\",\"x\":{}}".to_owned(),
                Some("a"),
            ),
            ("application/json", "{\"state\":1}".to_owned(), None),
        ] {
            let mut call = exchange();
            prepare(
                &mut call,
                "POST /oauth2/token?y=1&state=q",
                &[("Content-Type", kind)],
            );
            call.request.has_body = true;
            call.request.body = Some(body.into_bytes());
            let found = Parameters::read(&call.request);
            assert_eq!(found.text("state"), state, "{kind}");
            assert_eq!(found.0.len(), 1, "{kind}");
        }
    }
}
