//! Changes bodies of responses while they pass, or as a whole within a limit, if that is necessary.

use super::Replacement;
use crate::buffered_body::{BufferedBody, OversizePolicy};
use crate::buffered_rewrite::{BufferedRewrite, Rewrite, remove_validators};
use regex::bytes::{Captures, Regex};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BodyFilter, Exchange, Response, system_clock};
use weir_plugins_shared::field_edits::{FieldEdit, FieldEdits};
use weir_plugins_shared::path_captures::{CaptureTemplate, RegexMatch};
use weir_plugins_shared::text_template::TemplateSyntax;

/// What is put around a body.
pub(super) struct BodyWrapper {
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
}

impl BodyWrapper {
    /// For one body.
    pub(super) fn passing(self: &Arc<Self>) -> impl BodyFilter + use<> {
        Passing {
            around: Arc::clone(self),
            has_begun: false,
        }
    }
}

struct Passing {
    around: Arc<BodyWrapper>,
    has_begun: bool,
}

impl Passing {
    fn begin(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            out.extend_from_slice(&self.around.before);
        }
    }
}

impl BodyFilter for Passing {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.begin(out);
        out.extend_from_slice(data);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        out.extend_from_slice(&self.around.after);
    }
}

/// Changes that need a body whole.
pub(super) struct Change {
    replacements: Vec<(Regex, CaptureTemplate, bool)>,
    json: FieldEdits,
    max_bytes: usize,
    excess: OversizePolicy,
}

impl Change {
    /// Returns `None` if there is nothing to change.
    ///
    /// # Errors
    /// Patterns that cannot be compiled.
    pub(super) fn compile(
        replacements: &[Replacement],
        json: &[FieldEdit],
        (max_bytes, excess): (usize, OversizePolicy),
    ) -> Result<Option<Self>, Vec<Diagnostic>> {
        let root = DocPath::root();
        let mut compiled = Vec::with_capacity(replacements.len());
        for (index, replacement) in replacements.iter().enumerate() {
            let place = root.field("filters").index(index).field("pattern");
            let regex = weir_plugins_shared::regex_list::compile(&replacement.pattern, place)
                .map_err(|fault| vec![fault])?;
            compiled.push((
                regex,
                CaptureTemplate::parse(&replacement.replacement),
                replacement.all,
            ));
        }
        let json = FieldEdits::compile(json, TemplateSyntax::Plain, &root.field("json"))?;
        let is_needed = !compiled.is_empty() || !json.is_empty();
        Ok(is_needed.then_some(Self {
            replacements: compiled,
            json,
            max_bytes,
            excess,
        }))
    }

    fn replace(&self, mut body: Vec<u8>) -> Vec<u8> {
        // Replacements have no variables of calls; an empty call gives them none.
        let unknown = Exchange::new(system_clock, 1);
        for (regex, template, all) in &self.replacements {
            let fill = |captures: &Captures<'_>| {
                let text = captures.get(0).map_or(&[][..], |whole| whole.as_bytes());
                let offset = captures.get(0).map_or(0, |whole| whole.start());
                let found = RegexMatch {
                    text: text.to_vec(),
                    groups: (captures.iter())
                        .map(|group| group.map(|group| group.start() - offset..group.end() - offset))
                        .collect(),
                };
                let mut out = Vec::new();
                template.render(&unknown, &found, &mut out);
                out
            };
            let limit = if *all { 0 } else { 1 };
            body = regex.replacen(&body, limit, fill).into_owned();
        }
        body
    }

    /// The object with its members changed; anything else stays as it is.
    fn change_json(&self, body: Vec<u8>) -> Vec<u8> {
        let Ok(Value::Object(mut map)) = serde_json::from_slice(&body) else {
            return body;
        };
        let unknown = Exchange::new(system_clock, 1);
        match self.json.apply(&mut map, &unknown) {
            Ok(true) => Value::Object(map).to_string().into_bytes(),
            _ => body,
        }
    }
}

/// The changes of one response's body.
pub(super) struct BodyRewrite {
    change: Arc<Change>,
    is_json: bool,
}

impl BodyRewrite {
    /// Lets the response's body be changed, if it can be.
    pub(super) fn begin(change: &Arc<Change>, response: &mut Response) {
        let is_json = !change.json.is_empty() && response.headers.get(b"content-type").is_some_and(is_json);
        if change.replacements.is_empty() && !is_json {
            return;
        }
        let change = Arc::clone(change);
        if let Some(buffered) = BufferedBody::begin(response, change.max_bytes, change.excess) {
            if !change.replacements.is_empty() {
                remove_validators(&mut response.headers);
            }
            BufferedRewrite::attach(response, buffered, Self { change, is_json });
        }
    }
}

impl Rewrite for BodyRewrite {
    const MAY_FAIL: bool = false;

    fn rewrite(&mut self, mut body: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
        if self.is_json {
            body = self.change.change_json(body);
        }
        if !self.change.replacements.is_empty() {
            body = self.change.replace(body);
        }
        Ok(body)
    }
}

/// Whether a media type is JSON's, or another one written in it (RFC 6839, 3.1).
fn is_json(content_type: &[u8]) -> bool {
    let media_type = content_type
        .split(|byte| *byte == b';')
        .next()
        .unwrap_or_default();
    let media_type = media_type.trim_ascii().to_ascii_lowercase();
    let subtype = media_type.strip_prefix(b"application/").unwrap_or_default();
    subtype == b"json" || subtype.ends_with(b"+json")
}
