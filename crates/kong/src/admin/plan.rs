//! The changes of a call, worked out on the state in memory before anything is stored.

use super::call::ApiCall;
use super::failure::Failure;
use super::response::ApiResponse;
use super::state::{self, AdminState, Workspace};
use super::table::{TableRow, foreign_id};
use crate::document::entity_type::{ENTITY_TYPES, EntityType, entity_type};
use crate::incremental::{TTL, end};
use crate::schema::Kind;
use axum::http::StatusCode;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use uuid::Uuid;
use weir_dialect::{DEFAULT_WORKSPACE, ForeignRoutes, Rights};
use weir_model::secrets;
use weir_model::unix_time;
use weir_store::{Change, Key};

/// The changes that a call asks for, and its answer once they are made.
pub struct ChangePlan {
    /// The changes; at most one for a document. None: there is nothing to be stored.
    pub changes: Vec<Change>,
    /// The answer.
    pub answer: ApiResponse,
    /// Whether the answer holds a document that the changes bring in, whose revision is theirs.
    pub has_document: bool,
}

impl ChangePlan {
    /// Nothing is to be stored.
    pub fn nothing(answer: ApiResponse) -> Self {
        Self {
            changes: Vec::new(),
            answer,
            has_document: false,
        }
    }
}

/// The workspace for which a plan is worked out.
#[derive(Debug, Clone, Copy)]
pub struct WorkspaceView<'s> {
    /// All workspaces.
    pub state: &'s AdminState,
    /// The workspace's name.
    pub name: &'s str,
    /// The workspace.
    pub workspace: &'s Workspace,
    /// The time.
    pub now: SystemTime,
    /// The caller's rights.
    pub rights: &'s Rights,
    /// Routes of other dialects.
    pub others: Option<&'s dyn ForeignRoutes>,
}

impl<'s> WorkspaceView<'s> {
    /// The workspace of a call, for its caller.
    pub fn of(state: &'s AdminState, call: &'s ApiCall, now: SystemTime) -> Self {
        Self {
            rights: &call.rights,
            ..Self::new(state, &call.workspace, now)
        }
    }

    /// A workspace by its name, for a caller who may do everything.
    pub fn new(state: &'s AdminState, name: &'s str, now: SystemTime) -> Self {
        Self {
            state,
            name,
            workspace: state.workspace(name),
            now,
            rights: Rights::ALL,
            others: None,
        }
    }

    fn key(&self, entity_type: &EntityType, id: Uuid) -> Result<Key, Failure> {
        state::key(self.name, entity_type, id).ok_or_else(Failure::not_found)
    }

    /// The change that stores an entity.
    ///
    /// # Errors
    /// It has no name in the store, or cannot be written as a document.
    pub fn put(&self, entity_type: &EntityType, fields: &Map<String, Value>) -> Result<Change, Failure> {
        let id = id_of(fields);
        Ok(Change::Put {
            key: self.key(entity_type, id)?,
            value: document(fields)?,
            time_to_live: time_left(entity_type, fields, self.now),
        })
    }

    /// The change that takes an entity out.
    ///
    /// # Errors
    /// It has no name in the store.
    pub fn delete(&self, entity_type: &EntityType, id: Uuid) -> Result<Change, Failure> {
        Ok(Change::Delete {
            key: self.key(entity_type, id)?,
        })
    }

    /// Checks an entity against the others: what it refers to is there, and what is unique is so.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn check(
        &self,
        entity_type: &'static EntityType,
        fields: &Map<String, Value>,
    ) -> Result<(), Failure> {
        let table = self.workspace.table(entity_type);
        if let Some(taken) = table.conflict(entity_type, id_of(fields), fields) {
            let values = taken.into_iter().map(|field| {
                let value = fields.get(field).cloned().unwrap_or_default();
                (field.to_owned(), value)
            });
            return Err(Failure::unique_violation(Value::Object(values.collect())));
        }
        self.check_other_workspaces(entity_type, fields)?;
        self.check_file(entity_type, fields)?;
        for field in entity_type.record.fields {
            let Kind::Foreign(target) = field.kind else {
                continue;
            };
            let Some(id) = fields.get(field.name).and_then(foreign_id) else {
                continue;
            };
            let is_there = crate::document::entity_type::entity_type(target)
                .is_some_and(|target| self.workspace.table(target).get(id).is_some());
            if !is_there {
                return Err(Failure::dangling(field.name, &id.to_string(), target));
            }
        }
        Ok(())
    }

    /// Checks that a plugin of another workspace than `default` writes no file.
    ///
    /// # Errors
    /// It does.
    pub fn check_file(&self, entity_type: &EntityType, fields: &Map<String, Value>) -> Result<(), Failure> {
        if entity_type.is("plugins") && self.name != DEFAULT_WORKSPACE && writes_file(fields) {
            let message = "files are written for the workspace default only";
            let config = serde_json::json!({ "path": message });
            return Err(Failure::schema_violation(serde_json::json!({ "config": config })));
        }
        Ok(())
    }

    /// Checks an entity against those of other workspaces.
    ///
    /// # Errors
    /// It has what is theirs.
    pub fn check_other_workspaces(
        &self,
        entity_type: &'static EntityType,
        fields: &Map<String, Value>,
    ) -> Result<(), Failure> {
        if entity_type.is("snis") {
            self.check_everywhere(entity_type, fields)?;
        }
        self.check_takeover(entity_type, fields)
    }

    /// A server name leads to one certificate, whatever the workspace.
    fn check_everywhere(
        &self,
        snis: &'static EntityType,
        fields: &Map<String, Value>,
    ) -> Result<(), Failure> {
        let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
        let id = id_of(fields);
        let mut others = self
            .state
            .workspaces()
            .filter_map(|it| it.table(snis).find("name", name));
        match others.find(|other| other.id != id) {
            Some(_) => Err(Failure::unique_violation(serde_json::json!({ "name": name }))),
            None => Ok(()),
        }
    }

    /// The changes that take an entity out, with all that goes with it.
    ///
    /// # Errors
    /// Something stays that refers to it.
    pub fn remove(
        &self,
        of: &'static EntityType,
        id: Uuid,
        changes: &mut Vec<Change>,
    ) -> Result<(), Failure> {
        for referring in ENTITY_TYPES {
            for field in referring.record.fields {
                let is_reference = matches!(field.kind, Kind::Foreign(target) if target == of.name);
                let members = self.workspace.table(referring).referring(field.name, id);
                let (true, Some(members)) = (is_reference, members) else {
                    continue;
                };
                if !referring.cascades {
                    return Err(Failure::referenced(of.name, referring.name));
                }
                for member in members {
                    self.remove(referring, *member, changes)?;
                }
            }
        }
        if of.is("ca_certificates") {
            self.check_unused(id)?;
        }
        if of.is("workspaces") {
            self.check_empty(id)?;
        }
        let change = self.delete(of, id)?;
        // A plugin may go with its route and with its consumer.
        if !changes.iter().any(|known| known.key() == change.key()) {
            changes.push(change);
        }
        Ok(())
    }

    /// A workspace goes only when nothing is left in it, and the one of calls that name none never.
    fn check_empty(&self, id: Uuid) -> Result<(), Failure> {
        let refuse = |message: &str| Err(Failure::message(StatusCode::BAD_REQUEST, message));
        let name = entity_type("workspaces").and_then(|entity_type| {
            let fields = self.workspace.table(entity_type).get(id)?.fields();
            Some(fields.get("name")?.as_str()?.to_owned())
        });
        match name.as_deref() {
            Some(DEFAULT_WORKSPACE) => refuse("Cannot delete default workspace"),
            Some(name) if !self.state.workspace(name).is_empty() => refuse("Workspace is not empty"),
            _ => Ok(()),
        }
    }

    /// Certificates of authorities are named in lists, by services and by the configurations of plugins.
    fn check_unused(&self, certificate: Uuid) -> Result<(), Failure> {
        let text = certificate.to_string();
        for name in ["services", "plugins"] {
            let Some(referring) = entity_type(name) else {
                continue;
            };
            let names_it = |row: &&Arc<TableRow>| {
                let fields = row.fields();
                let holder = match name {
                    "plugins" => fields.get("config").and_then(Value::as_object),
                    _ => Some(&fields),
                };
                let list = holder.and_then(|it| it.get("ca_certificates")?.as_array());
                list.is_some_and(|list| list.iter().any(|id| id.as_str() == Some(&text)))
            };
            if let Some(row) = self.workspace.table(referring).all(Uuid::nil()).find(names_it) {
                return Err(Failure::still_referenced(&format!(
                    "ca certificate {text} is still referenced by {name} (id = {})",
                    row.id
                )));
            }
        }
        Ok(())
    }

    /// The fields of an entity as calls are answered with them.
    pub fn rendered(
        &self,
        entity_type: &'static EntityType,
        fields: Map<String, Value>,
    ) -> Map<String, Value> {
        let mut fields = super::render_entity::answer(entity_type, &fields).unwrap_or(fields);
        if entity_type.is("certificates") {
            let id = id_of(&fields);
            fields.insert("snis".to_owned(), self.server_names(id).into());
        }
        if let Some(left) = time_left(entity_type, &fields, self.now) {
            fields.insert(TTL.to_owned(), left.as_secs().into());
        }
        fields
    }

    /// An entity as calls are answered with it.
    pub fn render(&self, entity_type: &'static EntityType, kept: &TableRow) -> Vec<u8> {
        let shows_secrets = self.rights.may_write(self.name);
        if shows_secrets && !entity_type.is("certificates") && entity_type.record.field(TTL).is_none() {
            return kept.answer.to_vec();
        }
        let mut fields = self.rendered(entity_type, kept.answer_fields());
        if !shows_secrets {
            secrets::hide_fields(&mut fields);
        }
        serde_json::to_vec(&fields).unwrap_or_default()
    }

    /// The server names of a certificate, sorted.
    pub fn server_names(&self, certificate: Uuid) -> Vec<String> {
        let Some(snis) = entity_type("snis") else {
            return Vec::new();
        };
        let table = self.workspace.table(snis);
        let ids = table.referring("certificate", certificate);
        let mut names: Vec<String> = ids
            .into_iter()
            .flatten()
            .filter_map(|id| table.get(*id))
            .filter_map(|kept| Some(kept.fields().get("name")?.as_str()?.to_owned()))
            .collect();
        names.sort();
        names
    }
}

/// Whether a plugin writes a file of this machine, which is the operator's to allow.
fn writes_file(fields: &Map<String, Value>) -> bool {
    let path = fields.get("config").and_then(|config| config["path"].as_str());
    fields.get("name").is_some_and(|name| name == "file-log")
        && !path.is_some_and(|path| matches!(path, "/dev/stdout" | "/dev/stderr"))
}

/// Whether a vault is asked over the network: by each process that compiles the configuration, the control plane among
/// them, and for the references of all workspaces.
fn has_address(fields: &Map<String, Value>) -> bool {
    fields.get("name").is_none_or(|name| name != "env")
}

/// Refuses plugins that write files or have a certificate authority called, and vaults with an address, to callers who
/// may not write in all workspaces.
///
/// # Errors
/// The entity is one of these, and the caller may not write everywhere.
pub fn check_confined(
    is_confined: bool,
    entity_type: &EntityType,
    fields: &Map<String, Value>,
) -> Result<(), Failure> {
    let message = match entity_type.name {
        "plugins" if writes_file(fields) => {
            "files are the operator's: this takes the right to write in all workspaces"
        }
        "plugins" if fields.get("name").is_some_and(|name| name == "acme") => {
            "Weir itself calls a certificate authority: this takes the right to write in all workspaces"
        }
        "vaults" if has_address(fields) => {
            "a vault with an address serves all workspaces: this takes the right to write in all of them"
        }
        _ => return Ok(()),
    };
    match is_confined {
        true => Err(Failure::message(StatusCode::FORBIDDEN, message)),
        false => Ok(()),
    }
}

/// A document as it is stored. One that cannot be written is refused, rather than stored as an empty one.
fn document(fields: &impl serde::Serialize) -> Result<Arc<[u8]>, Failure> {
    match serde_json::to_vec(fields) {
        Ok(text) => Ok(text.into()),
        Err(error) => Err(Failure::of_store(&error)),
    }
}

/// The id of an entity.
pub fn id_of(fields: &Map<String, Value>) -> Uuid {
    let id = fields.get("id").and_then(Value::as_str);
    id.and_then(|id| Uuid::try_parse(id).ok()).unwrap_or_default()
}

/// How long an entity stays from now on; `None`: until it is removed.
fn time_left(entity_type: &EntityType, fields: &Map<String, Value>, now: SystemTime) -> Option<Duration> {
    Some(end(entity_type, fields)?.duration_since(now).unwrap_or_default())
}

/// Checks how long a credential is to stay, if a call gives it.
///
/// # Errors
/// It is less than 0, more than [`MAX_TTL`], or no whole number.
pub fn check_time_to_live(entity_type: &EntityType, given: &Map<String, Value>) -> Result<(), Failure> {
    let is_temporary = entity_type.record.field(TTL).is_some();
    let seconds = given.get(TTL).filter(|_| is_temporary).and_then(Value::as_f64);
    match seconds {
        Some(seconds) if seconds.fract() != 0.0 || !(0.0..=f64::from(MAX_TTL)).contains(&seconds) => {
            let message = format!("must be an integer between 0 and {MAX_TTL}");
            Err(Failure::invalid_option(TTL, &message))
        }
        _ => Ok(()),
    }
}

/// The most seconds for which a credential can be stored.
const MAX_TTL: u32 = 100_000_000;

/// A call gives how long a credential is to stay from now on; the stored value counts from when it was made.
pub fn keep_time_to_live(
    entity_type: &EntityType,
    fields: &mut Map<String, Value>,
    given: &Map<String, Value>,
    now: SystemTime,
) {
    let is_given = entity_type.record.field(TTL).is_some() && given.get(TTL).is_some_and(|it| !it.is_null());
    let (true, Some(seconds)) = (is_given, fields.get(TTL).and_then(Value::as_u64)) else {
        return;
    };
    let now = unix_time::seconds(now);
    let created = fields.get("created_at").and_then(Value::as_u64).unwrap_or(now);
    if seconds > 0 {
        fields.insert(
            TTL.to_owned(),
            seconds.saturating_add(now.saturating_sub(created)).into(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_refused_and_not_stored_as_nothing() {
        let odd = std::collections::BTreeMap::from([((1, 2), 3)]);
        let refused = document(&odd).expect_err("a key that is not a text");
        assert_eq!(refused.0.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(*document(&Map::new()).expect("a document"), *b"{}");
    }
}
