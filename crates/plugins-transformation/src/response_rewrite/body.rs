//! Changes bodies of responses while they pass, or as a whole within a limit, if that is necessary.

use super::{MAX_BODY, Replacement};
use crate::buffered_body::{BufferedBody, OversizePolicy};
use crate::buffered_rewrite::{BufferedRewrite, Rewrite, remove_validators};
use regex::bytes::Regex;
use serde_json::Value;
use std::borrow::Cow;
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
    /// The bytes of each replacement, how often it names a group at most, and whether it is made everywhere.
    growth: Vec<(usize, usize, bool)>,
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
        let growth = replacements.iter().map(|it| {
            let text = it.replacement.as_str();
            (text.len(), text.matches('$').count(), it.all)
        });
        let json = FieldEdits::compile(json, TemplateSyntax::Plain, &root.field("json"))?;
        let is_needed = !compiled.is_empty() || !json.is_empty();
        Ok(is_needed.then_some(Self {
            replacements: compiled,
            growth: growth.collect(),
            json,
            max_bytes,
            excess,
        }))
    }

    /// The body with its replacements. `None`: it is too large; with `cut`, what is too much of it is left out instead.
    fn replace(&self, body: &[u8]) -> Option<Vec<u8>> {
        // Replacements have no variables of calls; an empty call gives them none.
        let unknown = Exchange::new(system_clock, 1);
        let mut body = Cow::Borrowed(body);
        for (regex, template, all) in &self.replacements {
            let limit = if *all { usize::MAX } else { 1 };
            let mut out = Vec::with_capacity(body.len());
            let mut copied = 0;
            let mut is_too_large = false;
            for captures in regex.captures_iter(&body).take(limit) {
                let Some(whole) = captures.get(0) else { continue };
                let groups = captures.iter().map(|group| {
                    let group = group?;
                    Some(group.start() - whole.start()..group.end() - whole.start())
                });
                let found = RegexMatch {
                    text: whole.as_bytes().to_vec(),
                    groups: groups.collect(),
                };
                out.extend_from_slice(&body[copied..whole.start()]);
                copied = whole.end();
                is_too_large = out.len().saturating_add(template.group_bytes(&found)) > MAX_BODY;
                if is_too_large {
                    break;
                }
                template.render(&unknown, &found, &mut out);
            }
            if !is_too_large {
                out.extend_from_slice(&body[copied..]);
            }
            if is_too_large || out.len() > MAX_BODY {
                tracing::info!(plugin = "response-rewrite", "replacements make a body too large");
                if self.excess == OversizePolicy::Refuse {
                    return None;
                }
                out.truncate(MAX_BODY);
            }
            body = Cow::Owned(out);
        }
        Some(body.into_owned())
    }

    /// The most that replacements make of so many bytes.
    fn most(&self, bytes: usize) -> usize {
        let grown = |bytes: usize, (most, groups, all): &(usize, usize, bool)| {
            let matches = if *all { bytes.saturating_add(1) } else { 1 };
            let text = matches.saturating_mul(*most);
            // Matches do not overlap: together, a group of all of them is no longer than the body.
            let groups = groups.saturating_mul(bytes);
            bytes.saturating_add(text).saturating_add(groups)
        };
        self.growth.iter().fold(bytes, grown)
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
    /// Whether replacements may make it too large.
    may_grow: bool,
}

impl BodyRewrite {
    /// Lets the response's body be changed, if it can be.
    pub(super) fn begin(change: &Arc<Change>, response: &mut Response) {
        let is_json = !change.json.is_empty() && response.headers.get(b"content-type").is_some_and(is_json);
        if change.replacements.is_empty() && !is_json {
            return;
        }
        let change = Arc::clone(change);
        // The bytes of a packed body say little of what it contains. Members in JSON add little.
        let length = response.content_length.and_then(|it| usize::try_from(it).ok());
        let length = length.filter(|_| response.headers.get(b"content-encoding").is_none() && !is_json);
        let may_grow = change.most(length.unwrap_or(MAX_BODY).min(change.max_bytes)) > MAX_BODY;
        if let Some(buffered) = BufferedBody::begin(response, change.max_bytes, change.excess) {
            if !change.replacements.is_empty() {
                remove_validators(&mut response.headers);
            }
            BufferedRewrite::attach(
                response,
                buffered,
                Self {
                    change,
                    is_json,
                    may_grow,
                },
            );
        }
    }
}

impl Rewrite for BodyRewrite {
    fn may_fail(&self) -> bool {
        self.may_grow
    }

    fn rewrite(&mut self, mut body: Vec<u8>) -> Result<Vec<u8>, Vec<u8>> {
        if self.is_json {
            body = self.change.change_json(body);
        }
        match self.change.replacements.is_empty() {
            true => Ok(body),
            false => self.change.replace(&body).ok_or(body),
        }
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
