//! The rules of an instance, made ready: what is masked in queries, headers, forms and JSON. Who logs it is no business of this file.

use super::{Config, MaskTarget, Masking};
use regex::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;
use weir_plugin::Request;
use weir_plugin::uri::{decode_form, encode_form, query_pairs};

/// Rules, by the part on which they work.
#[derive(Debug, Default)]
pub(super) struct Rules {
    query: Vec<(String, Action)>,
    headers: Vec<(String, Action)>,
    form: Vec<(String, Action)>,
    json: Vec<(JsonPath, Action)>,
    max_body_bytes: usize,
    max_form_fields: usize,
}

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

    /// What stands in place of a text; `None`: nothing.
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
    let mut letters = replacement.chars().peekable();
    while let Some(letter) = letters.next() {
        out.push(letter);
        let mut digits = String::new();
        while letter == '$' && letters.peek().is_some_and(char::is_ascii_digit) {
            digits.extend(letters.next());
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
                    rules.json.push((path, action));
                }
            }
        }
        Ok(rules)
    }

    pub(super) fn has_body_rules(&self) -> bool {
        !self.form.is_empty() || !self.json.is_empty()
    }

    /// Changes query and headers.
    pub(super) fn mask_head(&self, request: &mut Request) {
        if let (false, Some(query)) = (self.query.is_empty(), &request.query)
            && let Some(masked) = mask_pairs(&self.query, query)
        {
            match masked.is_empty() {
                true => request.query = None,
                false => request.set_query(&masked),
            }
        }
        for (name, action) in &self.headers {
            let name = name.as_bytes();
            let values: Vec<Option<String>> = request
                .headers
                .get_all(name)
                .map(|value| action.of(&String::from_utf8_lossy(value)))
                .collect();
            if !values.is_empty() {
                request.headers.remove(name);
                for value in values.into_iter().flatten() {
                    request.headers.append(name, value.as_bytes());
                }
            }
        }
    }

    /// The body with its fields changed; `None`: it cannot be read, and is not told.
    pub(super) fn mask_body(&self, body: Vec<u8>, content_type: Option<&[u8]>) -> Option<Vec<u8>> {
        let kind = content_type.unwrap_or_default().to_ascii_lowercase();
        let is = |text: &str| String::from_utf8_lossy(&kind).contains(text);
        if !self.form.is_empty() && is("application/x-www-form-urlencoded") {
            if query_pairs(&body).count() > self.max_form_fields {
                return None;
            }
            let masked = mask_pairs(&self.form, &body);
            return Some(masked.unwrap_or(body));
        }
        let is_other = is("urlencoded") || is("multipart/") || is("text/") || is("image/");
        if self.json.is_empty() || body.is_empty() || is_other {
            return Some(body);
        }
        if body.len() > self.max_body_bytes {
            return None;
        }
        let mut value: Value = serde_json::from_slice(&body).ok()?;
        for (path, action) in &self.json {
            mask_json(&mut value, path, action);
        }
        Some(value.to_string().into_bytes())
    }
}

/// The pairs with values changed; `None`: none is.
fn mask_pairs(rules: &[(String, Action)], pairs: &[u8]) -> Option<Vec<u8>> {
    let mut is_changed = false;
    let mut out = Vec::with_capacity(pairs.len());
    for (name, value) in query_pairs(pairs) {
        let decoded = decode_form(name);
        let mut text = String::from_utf8_lossy(&decode_form(value.unwrap_or_default())).into_owned();
        let (mut own, mut is_kept) = (false, true);
        for (_, action) in rules
            .iter()
            .filter(|(wanted, _)| wanted.as_bytes() == decoded.as_ref())
        {
            own = true;
            match action.of(&text) {
                Some(masked) => text = masked,
                None => is_kept = false,
            }
        }
        is_changed |= own;
        if !is_kept {
            continue;
        }
        if !out.is_empty() {
            out.push(b'&');
        }
        out.extend_from_slice(name);
        if own {
            out.push(b'=');
            encode_form(text.as_bytes(), &mut out);
        } else if let Some(value) = value {
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }
    is_changed.then_some(out)
}

fn mask_json(value: &mut Value, path: &JsonPath, action: &Action) {
    let mut places: Vec<String> = path
        .query_located(value)
        .locations()
        .map(|location| location.to_json_pointer())
        .collect();
    // From the end, so that what is taken out of a list moves nothing that is still to be changed.
    places.sort();
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
