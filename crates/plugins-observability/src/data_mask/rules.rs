//! The rules of an instance, made ready: what is masked in queries, headers, forms and JSON. Who logs it is no business of this file.

use super::{Config, MaskTarget, MaskedNames, Masking};
use regex::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;
use std::cmp::Ordering;
use weir_model::json_path_cost::{DocumentShape, PathCost};
use weir_plugin::Request;
use weir_plugin::uri::{decode_form, encode_component, query_pairs};

/// Rules, by the part on which they work.
#[derive(Debug, Default)]
pub(super) struct Rules {
    query: Vec<(String, Action)>,
    headers: Vec<(String, Action)>,
    form: Vec<(String, Action)>,
    json: Vec<JsonRule>,
    max_body_bytes: usize,
    max_form_fields: usize,
}

/// A rule for places in JSON.
#[derive(Debug)]
struct JsonRule {
    path: JsonPath,
    cost: PathCost,
    action: Action,
}

/// The most steps that the paths of all rules take in a body. `$..a..a..a` finds a deep value once for each choice of the
/// maps around it: without a bound, a body of 660 bytes took seconds and gigabytes.
const MAX_STEPS: u64 = 100_000;

#[derive(Debug)]
enum Action {
    Remove,
    Replace(String),
    Regex(Regex, String),
}

impl Action {
    fn compile(masking: &Masking) -> Result<Self, String> {
        Ok(match masking {
            Masking::Remove => Self::Remove,
            Masking::Replace(text) => Self::Replace(text.clone()),
            Masking::Regex { pattern, replacement } => {
                let regex =
                    Regex::new(pattern).map_err(|error| format!("not a regular expression: {error}"))?;
                Self::Regex(regex, delimited(replacement))
            }
        })
    }

    /// Whether it changes a text.
    fn changes(&self, text: &str) -> bool {
        match self {
            Self::Remove | Self::Replace(_) => true,
            Self::Regex(regex, _) => regex.is_match(text),
        }
    }

    /// The replacement for a text; `None` if the text is removed.
    fn of(&self, text: &str) -> Option<String> {
        match self {
            Self::Remove => None,
            Self::Replace(with) => Some(with.clone()),
            Self::Regex(regex, with) => Some(regex.replace(text, with.as_str()).into_owned()),
        }
    }
}

/// `$1x` is the first group and an `x`.
fn delimited(replacement: &str) -> String {
    let mut out = String::with_capacity(replacement.len() + 4);
    let mut characters = replacement.chars().peekable();
    while let Some(character) = characters.next() {
        out.push(character);
        let mut digits = String::new();
        while character == '$' && characters.peek().is_some_and(char::is_ascii_digit) {
            digits.extend(characters.next());
        }
        if !digits.is_empty() {
            out.push_str(&format!("{{{digits}}}"));
        }
    }
    out
}

impl Rules {
    pub(super) fn compile(config: &Config) -> Result<Self, String> {
        let mut rules = Self {
            max_body_bytes: config.max_body_bytes,
            max_form_fields: config.max_form_fields,
            ..Self::default()
        };
        for rule in &config.rules {
            let action = Action::compile(&rule.action)?;
            match rule.part {
                MaskTarget::Query => rules.query.push((rule.name.clone(), action)),
                MaskTarget::Header => rules.headers.push((rule.name.clone(), action)),
                MaskTarget::BodyForm => rules.form.push((rule.name.clone(), action)),
                MaskTarget::BodyJson => {
                    let path = JsonPath::parse(&rule.name);
                    let path = path.map_err(|error| format!("{}: not a path: {error}", rule.name))?;
                    let cost = PathCost::of(&rule.name);
                    rules.json.push(JsonRule { path, cost, action });
                }
            }
        }
        Ok(rules)
    }

    pub(super) fn has_body_rules(&self) -> bool {
        !self.form.is_empty() || !self.json.is_empty()
    }

    /// Changes query and headers; gives the names of those of which all values are changed.
    pub(super) fn mask_head(&self, request: &mut Request) -> MaskedNames {
        let mut names = MaskedNames::default();
        if let (false, Some(query)) = (self.query.is_empty(), &request.query) {
            let masked = mask_pairs(&self.query, query, usize::MAX);
            names.arguments = masked.names;
            match masked.text {
                Some(text) if text.is_empty() => request.query = None,
                Some(text) => request.set_query(&text),
                None => {}
            }
        }
        for (header, action) in &self.headers {
            let name = header.as_bytes();
            let mut is_masked = true;
            let values: Vec<Option<String>> = request
                .headers
                .get_all(name)
                .map(|value| {
                    let text = String::from_utf8_lossy(value);
                    is_masked &= action.changes(&text);
                    action.of(&text)
                })
                .collect();
            if !values.is_empty() {
                if is_masked {
                    names.headers.push(header.clone());
                }
                request.headers.remove(name);
                for value in values.into_iter().flatten() {
                    request.headers.append(name, value.as_bytes());
                }
            }
        }
        names
    }

    /// The body with its fields changed; `None` if it cannot be parsed, or takes too many steps, and so is
    /// not logged.
    pub(super) fn mask_body(&self, body: Vec<u8>, content_type: Option<&[u8]>) -> Option<Vec<u8>> {
        let kind = content_type.unwrap_or_default().to_ascii_lowercase();
        let is = |text: &str| String::from_utf8_lossy(&kind).contains(text);
        // A caller must not get JSON logged unmasked by giving it another type.
        let begins_as_json = matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
        let is_json = begins_as_json && !self.json.is_empty();
        if !self.form.is_empty() && is("application/x-www-form-urlencoded") && !is_json {
            let masked = mask_pairs(&self.form, &body, self.max_form_fields);
            return Some(masked.text.unwrap_or(body));
        }
        let is_other = is("urlencoded") || is("multipart/") || is("text/") || is("image/");
        if self.json.is_empty() || body.is_empty() || is_other && !is_json {
            return Some(body);
        }
        if body.len() > self.max_body_bytes {
            return None;
        }
        let mut value: Value = serde_json::from_slice(&body).ok()?;
        let shape = DocumentShape::of(&value);
        let steps = self.json.iter().map(|rule| rule.cost.steps(&shape));
        if steps.fold(0, u64::saturating_add) > MAX_STEPS {
            return None;
        }
        for rule in &self.json {
            mask_json(&mut value, &rule.path, &rule.action);
        }
        Some(value.to_string().into_bytes())
    }
}

/// What has become of pairs.
struct MaskedPairs {
    /// `None`: they are as they were.
    text: Option<Vec<u8>>,
    /// The names of which all values are changed.
    names: Vec<String>,
}

/// The first `most` pairs, with values changed.
fn mask_pairs(rules: &[(String, Action)], pairs: &[u8], most: usize) -> MaskedPairs {
    let mut is_changed = false;
    let mut names: Vec<(String, bool)> = Vec::new();
    let mut out = Vec::with_capacity(pairs.len());
    for (count, (name, value)) in query_pairs(pairs).enumerate() {
        if count >= most {
            is_changed = true;
            break;
        }
        let decoded = decode_form(name);
        let mut text = String::from_utf8_lossy(&decode_form(value.unwrap_or_default())).into_owned();
        let (mut own, mut is_kept, mut is_masked) = (false, true, false);
        for (_, action) in rules
            .iter()
            .filter(|(wanted, _)| wanted.as_bytes() == decoded.as_ref())
        {
            own = true;
            is_masked |= action.changes(&text);
            match action.of(&text) {
                Some(masked) => text = masked,
                None => is_kept = false,
            }
        }
        is_changed |= own;
        if own {
            let name = String::from_utf8_lossy(&decoded).into_owned();
            match names.iter_mut().find(|(known, _)| *known == name) {
                Some((_, all)) => *all &= is_masked,
                None => names.push((name, is_masked)),
            }
        }
        if !is_kept {
            continue;
        }
        if !out.is_empty() {
            out.push(b'&');
        }
        out.extend_from_slice(name);
        if own {
            out.push(b'=');
            encode_component(text.as_bytes(), &mut out);
        } else if let Some(value) = value {
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }
    let masked = names.into_iter().filter(|(_, is_masked)| *is_masked);
    MaskedPairs {
        text: is_changed.then_some(out),
        names: masked.map(|(name, _)| name).collect(),
    }
}

fn mask_json(value: &mut Value, path: &JsonPath, action: &Action) {
    let mut places: Vec<String> = path
        .query_located(value)
        .locations()
        .map(|location| location.to_json_pointer())
        .collect();
    // From the end, so that what is taken out of a list moves nothing that is still to be changed.
    places.sort_by(|one, other| in_document_order(one, other));
    places.dedup();
    for place in places.into_iter().rev() {
        let masked = match (action, value.pointer(&place)) {
            (Action::Remove, _) => None,
            (Action::Replace(text), _) => Some(Value::from(text.as_str())),
            (Action::Regex(..), Some(Value::String(text))) => action.of(text).map(Value::from),
            _ => continue,
        };
        match masked {
            Some(masked) => {
                if let Some(found) = value.pointer_mut(&place) {
                    *found = masked;
                }
            }
            None => remove(value, &place),
        }
    }
}

/// Compares JSON pointers by their parts: the place 10 of a list comes after the place 9.
fn in_document_order(one: &str, other: &str) -> Ordering {
    let parts = |pointer| str::split(pointer, '/').map(|part| (part.parse::<usize>().ok(), part));
    parts(one).cmp(parts(other))
}

fn remove(value: &mut Value, place: &str) {
    let Some((parent, last)) = place.rsplit_once('/') else {
        *value = Value::Null;
        return;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => drop(map.shift_remove(&last.replace("~1", "/").replace("~0", "~"))),
        Some(Value::Array(items)) => match last.parse::<usize>() {
            Ok(place) if place < items.len() => drop(items.remove(place)),
            _ => {}
        },
        _ => {}
    }
}
