//! Writes of single resources, as plans: what is to change, and what is answered once it has.

use super::call::{ApiCall, Target};
use super::check::{CheckContext, check, is_given};
use super::encrypted_fields::Keyring;
use super::kind::Kind;
use super::response::{ApiResponse, Outcome};
use super::state::{AdminState, DocumentEntry};
use super::{configs, cost_decoration, delete_checks, patch};
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::time::Duration;
use weir_store::Revision;

/// The outcome of a write.
#[derive(Debug)]
pub struct ChangePlan {
    /// The documents to write (`None`: to remove) by key, without the dialect's prefix.
    pub changes: Vec<(String, Option<Value>)>,
    /// How long the written documents stay.
    pub time_to_live: Option<Duration>,
    pub answer: ApiResponse,
}

/// Plans a write.
///
/// # Errors
/// The answer that refuses it.
pub fn plan(state: &AdminState, call: &ApiCall, target: &Target, keyring: &Keyring) -> Outcome<ChangePlan> {
    let body = call.json()?;
    let time_to_live = time_to_live(call)?;
    let write = WriteContext {
        state,
        call,
        target,
        keyring,
    };
    let mut plan = match call.method {
        Method::PUT => write.put(body)?,
        Method::POST => write.post(body)?,
        Method::PATCH => write.patch(body)?,
        _ => write.delete()?,
    };
    plan.time_to_live = time_to_live;
    // Who put the whole configuration last must learn that it is another one now.
    plan.changes.extend(configs::touched(state, &plan.changes));
    plan.answer = plan.answer.versioned();
    Ok(plan)
}

/// `ttl` in seconds.
fn time_to_live(call: &ApiCall) -> Outcome<Option<Duration>> {
    let Some(text) = call.arg("ttl") else {
        return Ok(None);
    };
    text.trim()
        .parse::<f64>()
        .ok()
        .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .map(Some)
        .ok_or_else(|| ApiResponse::bad("invalid argument ttl: should be a number"))
}

struct WriteContext<'c> {
    state: &'c AdminState,
    call: &'c ApiCall,
    target: &'c Target,
    keyring: &'c Keyring,
}

impl WriteContext<'_> {
    fn put(&self, body: Option<Value>) -> Outcome<ChangePlan> {
        let kind = self.target.kind;
        cost_decoration::check(self.state, self.target, body.as_ref())?;
        let (id, mut value) = self.identified(body)?;
        self.keyring.open(kind, &mut value);
        self.check(Some(&id), &value)?;
        let id = match kind {
            Kind::Consumer => text_of(&value, "username"),
            _ => id,
        };
        let key = self.target.key(&id);
        let old = self.state.get(&key);
        self.precondition(old.map(|entry| &**entry))?;
        if kind == Kind::Credential {
            self.find_consumer()?;
        }
        match kind {
            Kind::PluginMetadata => put_field(&mut value, "id", json!(id)),
            _ => self.stamp(&mut value, old.map(|entry| &entry.value)),
        }
        if kind == Kind::CostDecoration {
            put_field(&mut value, "service_id", json!(self.target.owner));
        }
        let status = match old {
            Some(_) => StatusCode::OK,
            None => StatusCode::CREATED,
        };
        Ok(self.written(status, key, value))
    }

    fn post(&self, body: Option<Value>) -> Outcome<ChangePlan> {
        let kind = self.target.kind;
        if !kind.takes_post() {
            return Err(not_supported("POST", kind));
        }
        cost_decoration::check(self.state, self.target, body.as_ref())?;
        let mut value = body.ok_or_else(|| ApiResponse::bad("missing configurations"))?;
        if self.target.id.is_some() || is_given(value.get("id")) {
            return Err(ApiResponse::bad(format!(
                "wrong {} id, do not need it",
                kind.word()
            )));
        }
        forbid_times(&value)?;
        self.keyring.open(kind, &mut value);
        self.check(None, &value)?;
        let id = self.new_id();
        put_field(&mut value, "id", json!(id));
        self.stamp(&mut value, None);
        if kind == Kind::CostDecoration {
            put_field(&mut value, "service_id", json!(self.target.owner));
        }
        Ok(self.written(StatusCode::CREATED, self.target.key(&id), value))
    }

    fn patch(&self, body: Option<Value>) -> Outcome<ChangePlan> {
        let kind = self.target.kind;
        if !kind.takes_patch() {
            return Err(not_supported("PATCH", kind));
        }
        let id = match (&self.target.id, kind) {
            (Some(id), _) => id,
            (None, Kind::Secret) => return Err(ApiResponse::bad("no secret id")),
            (None, _) => return Err(ApiResponse::bad(format!("missing {} id", kind.word()))),
        };
        let new = body.ok_or_else(|| ApiResponse::bad("missing new configuration"))?;
        let inside = match kind {
            Kind::CostDecoration => "",
            _ => self.target.inside.as_str(),
        };
        if inside.is_empty() && !(new.is_object() || new.is_array()) {
            return Err(ApiResponse::bad("invalid configuration"));
        }
        if kind == Kind::CostDecoration {
            if is_given(new.get("service_id")) {
                return Err(ApiResponse::bad("service_id can not be patched"));
            }
            cost_decoration::check_field_path(self.state, self.target, &new)?;
        }
        let key = self.target.key(id);
        let old = self.state.get(&key).ok_or_else(ApiResponse::no_key)?;
        self.precondition(Some(old))?;
        let mut value = self.patched(&old.value, inside, new)?;
        let full_id = self.full_id(id);
        if value
            .get("id")
            .and_then(crate::document::id_text)
            .is_some_and(|own| own != full_id)
        {
            return Err(ApiResponse::bad(format!("wrong {} id", kind.word())));
        }
        put_field(&mut value, "id", json!(full_id));
        self.keyring.open(kind, &mut value);
        self.check(Some(&full_id), &value)?;
        Ok(self.written(StatusCode::OK, key, value))
    }

    /// The old document with the patch applied and the time of it.
    fn patched(&self, old: &Value, inside: &str, new: Value) -> Outcome<Value> {
        let mut value = old.clone();
        let mut keeps_time = false;
        if inside.is_empty() {
            if let (Value::Object(value), Value::Object(new)) = (&mut value, new) {
                keeps_time = new.get("update_time").is_some_and(|time| !time.is_null());
                patch::merge(value, new);
            }
        } else {
            patch::replace(&mut value, inside, new).map_err(ApiResponse::bad)?;
        }
        if !keeps_time {
            put_field(&mut value, "update_time", json!(self.call.seconds()));
        }
        if value.get("create_time").is_none() {
            put_field(&mut value, "create_time", json!(self.call.seconds()));
        }
        Ok(value)
    }

    fn delete(&self) -> Outcome<ChangePlan> {
        let kind = self.target.kind;
        let Some(id) = &self.target.id else {
            return Err(ApiResponse::bad(format!("missing {} id", kind.word())));
        };
        let key = self.target.key(id);
        if self.call.arg("force") != Some("true") {
            delete_checks::check(self.state, kind, &key).map_err(ApiResponse::bad)?;
        }
        let old = self.state.get(&key).ok_or_else(ApiResponse::no_key)?;
        self.precondition(Some(old))?;
        let mut changes = vec![(key.clone(), None)];
        // What belongs to a document goes with it.
        let own = format!("{key}/");
        changes.extend(self.state.below(&own).map(|entry| (entry.key.to_string(), None)));
        let answer = json!({"deleted": "1", "key": format!("/apisix/{key}")});
        Ok(ChangePlan {
            changes,
            time_to_live: None,
            answer: ApiResponse::json(StatusCode::OK, &answer),
        })
    }

    /// The id that a document is put under, and the document with it.
    fn identified(&self, body: Option<Value>) -> Outcome<(String, Value)> {
        let kind = self.target.kind;
        let mut value = body.ok_or_else(|| ApiResponse::bad("missing configurations"))?;
        if matches!(&value, Value::Array(items) if items.is_empty()) {
            value = Value::Object(Map::new());
        }
        if kind == Kind::Secret && self.target.id.is_none() {
            return Err(ApiResponse::bad("missing secret id"));
        }
        let id = match (kind, &self.target.id) {
            (Kind::Consumer, id) => {
                forbid_times(&value)?;
                let id = id.clone().unwrap_or_else(|| text_of(&value, "username"));
                return Ok((id, value));
            }
            (Kind::PluginMetadata, None) => return Err(ApiResponse::bad("missing plugin name")),
            (Kind::PluginMetadata, Some(id)) => {
                forbid_times(&value)?;
                return Ok((id.clone(), value));
            }
            (_, Some(id)) => self.full_id(id),
            (_, None) => value
                .get("id")
                .and_then(crate::document::id_text)
                .ok_or_else(|| ApiResponse::bad(format!("missing {} id", kind.word())))?,
        };
        if value
            .get("id")
            .is_some_and(|own| crate::document::id_text(own).as_ref() != Some(&id))
        {
            return Err(ApiResponse::bad(format!("wrong {} id", kind.word())));
        }
        if self.target.id.is_some() {
            put_field(&mut value, "id", json!(id));
        }
        forbid_times(&value)?;
        let short = match kind {
            Kind::Secret => self.target.id.clone().unwrap_or_default(),
            _ => id,
        };
        Ok((short, value))
    }

    /// The id as it stands in the document: of a vault's, with its kind.
    fn full_id(&self, id: &str) -> String {
        match (self.target.kind, &self.target.owner) {
            (Kind::Secret, Some(manager)) => format!("{manager}/{id}"),
            _ => id.to_owned(),
        }
    }

    fn check(&self, id: Option<&str>, value: &Value) -> Outcome<()> {
        let id = match (self.target.kind, &self.target.id) {
            // A consumer's name in the body is compared with one in the path only.
            (Kind::Consumer, None) => None,
            _ => id,
        };
        let around = CheckContext {
            state: Some(self.state),
            owner: self.target.owner.as_deref(),
            settings: self.call.settings,
        };
        check(self.target.kind, id, value, around).map_err(ApiResponse::bad)
    }

    /// Creation and last change, in seconds since the Unix epoch.
    fn stamp(&self, value: &mut Value, old: Option<&Value>) {
        let now = json!(self.call.seconds());
        let created = old.and_then(|old| old.get("create_time"));
        put_field(value, "create_time", created.unwrap_or(&now).clone());
        put_field(value, "update_time", now);
    }

    /// An id that no document has had: the coming revision, with zeros so that ids sort by age.
    fn new_id(&self) -> String {
        let mut number = self.state.revision.0 + 1;
        loop {
            let id = format!("{number:020}");
            if self.state.get(&self.target.key(&id)).is_none() {
                return id;
            }
            number += 1;
        }
    }

    fn find_consumer(&self) -> Outcome<()> {
        let consumer = self.target.owner.as_deref().unwrap_or_default();
        match self.state.get(&format!("consumers/{consumer}")) {
            Some(_) => Ok(()),
            None => Err(ApiResponse::error(StatusCode::NOT_FOUND, "consumer not found")),
        }
    }

    /// `If-Match`: the revision that the document is at, or `*` for any that is there.
    fn precondition(&self, old: Option<&DocumentEntry>) -> Outcome<()> {
        let Some(wanted) = self.call.if_match() else {
            return Ok(());
        };
        let current = old.map(|entry| etag(entry.modified));
        let is_met = current.as_ref().is_some_and(|current| {
            wanted
                .split(',')
                .map(str::trim)
                .any(|tag| tag == "*" || tag == current)
        });
        match is_met {
            true => Ok(()),
            false => Err(ApiResponse::error(
                StatusCode::PRECONDITION_FAILED,
                match current {
                    Some(current) => format!("value changed before overwritten: it is at revision {current}"),
                    None => "value changed before overwritten: it is not there".to_owned(),
                },
            )),
        }
    }

    fn written(&self, status: StatusCode, key: String, value: Value) -> ChangePlan {
        let encrypted = self.keyring.encrypt_fields(self.target.kind, value.clone());
        let answer = json!({"key": format!("/apisix/{key}"), "value": encrypted});
        ChangePlan {
            changes: vec![(key, Some(value))],
            time_to_live: None,
            answer: ApiResponse::json(status, &answer),
        }
    }
}

/// A revision as an entity tag.
pub fn etag(revision: Revision) -> String {
    format!("\"{revision}\"")
}

fn not_supported(method: &str, kind: Kind) -> ApiResponse {
    ApiResponse::error(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("not supported `{method}` method for {}", kind.word()),
    )
}

fn text_of(value: &Value, field: &str) -> String {
    value
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn put_field(value: &mut Value, field: &str, content: Value) {
    if let Value::Object(map) = value {
        map.insert(field.to_owned(), content);
    }
}

/// Times are the API's to set.
fn forbid_times(value: &Value) -> Outcome<()> {
    for (place, part) in [
        ("", Some(value)),
        ("upstream.", value.get("upstream")),
        ("plugins.", value.get("plugins")),
    ] {
        for field in ["create_time", "update_time"] {
            if part.is_some_and(|part| is_given(part.get(field))) {
                return Err(ApiResponse::bad(format!(
                    "the property is forbidden:  {place}{field}"
                )));
            }
        }
    }
    Ok(())
}
