//! From a declarative configuration to the entities that are stored, and back.

use crate::Options;
use crate::admin::failure::{self, Failure};
use crate::admin::plan::{WorkspaceView, check_confined};
use crate::admin::state::Workspace;
use crate::admin::table::foreign_id;
use crate::admin::{entity_rules, password_hash, render_entity, unserved};
use crate::document::entity_type::{ENTITY_TYPES, EntityType, IdFrom, SIGNER_KEYS, entity_type};
use crate::document::{entities_as_written, raw_entities};
use crate::schema::Kind;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::time::SystemTime;
use uuid::Uuid;
use weir_model::diagnostic::PathStep;
use weir_model::unix_time;
use weir_model::{Diagnostic, Severity};
use weir_store::Change;

/// The stand-in for a value that will be made up, in the answer to a dry run: the write makes another one.
const MADE_WHEN_STORED: &str = "(made when it is imported)";

/// The entities of a configuration as they are stored.
pub struct Loaded {
    entities: Vec<LoadedEntity>,
    /// The keys of credentials that the configuration gives.
    given_keys: HashSet<(&'static str, String)>,
}

/// An entity of a configuration.
struct LoadedEntity {
    entity_type: &'static EntityType,
    fields: Map<String, Value>,
    /// The fields whose values the configuration does not give: they are made up.
    made: Vec<&'static str>,
}

impl Loaded {
    /// Reads a configuration.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn read(document: &Value, options: &Options, now: SystemTime) -> Result<Self, Vec<Diagnostic>> {
        crate::translate(document, options)?;
        let (raw, _) = raw_entities(document)?;
        let hashes_passwords = document.get("_transform") != Some(&Value::Bool(false));
        let entities: Vec<LoadedEntity> = raw
            .into_iter()
            .map(|entity| {
                let fields = match Value::from(entity.fields) {
                    Value::Object(fields) => fields,
                    _ => Map::new(),
                };
                stored(entity.entity_type, fields, hashes_passwords, now)
            })
            .collect();
        let given_keys = entities.iter().filter_map(LoadedEntity::given_key).collect();
        Ok(Self { entities, given_keys })
    }

    /// The fields of an entity in a workspace, and whether values of them are made up. A credential that is there keeps its
    /// values if the configuration gives none: its clients know them.
    fn fields_in<'e>(
        &self,
        entity: &'e LoadedEntity,
        workspace: &Workspace,
    ) -> (Cow<'e, Map<String, Value>>, bool) {
        if entity.made.is_empty() {
            return (Cow::Borrowed(&entity.fields), false);
        }
        let id = crate::admin::plan::id_of(&entity.fields);
        let old = workspace.table(entity.entity_type).get(id);
        let old = old
            .map(|old| old.fields())
            .filter(|old| entity.is_credential(old));
        let is_free = |old: &Map<String, Value>| {
            let key = old.get(entity.entity_type.key?)?.as_str()?;
            let key = (entity.entity_type.name, key.to_owned());
            Some(!self.given_keys.contains(&key) || entity.given_key() == Some(key))
        };
        let Some(old) = old.filter(|old| is_free(old) == Some(true)) else {
            return (Cow::Borrowed(&entity.fields), true);
        };
        let mut fields = entity.fields.clone();
        for name in &entity.made {
            fields.insert((*name).to_owned(), old.get(*name).cloned().unwrap_or_default());
        }
        (Cow::Owned(fields), false)
    }

    /// The changes that make a workspace hold these entities and no others. What is there already, but for its times,
    /// stays as it is.
    ///
    /// # Errors
    /// An entity has no name in the store, takes something of another workspace, or names a file or a vault's
    /// address that is not this caller's to name.
    pub fn changes(&self, view: WorkspaceView<'_>, is_confined: bool) -> Result<Vec<Change>, Failure> {
        let mut changes = Vec::new();
        let mut kept: HashSet<(&str, Uuid)> = HashSet::with_capacity(self.entities.len());
        for entity in &self.entities {
            let entity_type = entity.entity_type;
            let (fields, _) = self.fields_in(entity, view.workspace);
            let fields = &*fields;
            let id = crate::admin::plan::id_of(fields);
            kept.insert((entity_type.name, id));
            let old = view.workspace.table(entity_type).get(id);
            if !old.is_some_and(|old| is_same(&old.fields(), fields)) {
                view.check_takeover(entity_type, fields)?;
                view.check_file(entity_type, fields)?;
                check_confined(is_confined, entity_type, fields)?;
                changes.push(view.put(entity_type, fields)?);
            }
        }
        // Keys that the gateway has made stay, unless the configuration has such keys.
        let has_keys = self
            .entities
            .iter()
            .any(|entity| entity.entity_type.is(SIGNER_KEYS));
        let is_kept = |entity_type: &EntityType| {
            entity_type.is("workspaces") || (entity_type.is(SIGNER_KEYS) && !has_keys)
        };
        for entity_type in ENTITY_TYPES.iter().filter(|entity_type| !is_kept(entity_type)) {
            for old in view.workspace.table(entity_type).all(Uuid::nil()) {
                if !kept.contains(&(entity_type.name, old.id)) {
                    changes.push(view.delete(entity_type, old.id)?);
                }
            }
        }
        Ok(changes)
    }

    /// The warnings about entities that are stored and not served.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let entities = self.entities.iter();
        entities.flat_map(|entity| unserved::warnings(entity.entity_type, &entity.fields, None))
    }

    /// The entities by entity type and id, as the original answers; after a dry run without the values that are made up.
    pub fn entities_json(&self, workspace: &Workspace, is_dry: bool) -> Value {
        let mut entity_types: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
        for entity in &self.entities {
            let (fields, are_made) = self.fields_in(entity, workspace);
            let mut fields = fields.into_owned();
            for name in entity.made.iter().filter(|_| is_dry && are_made) {
                fields.insert((*name).to_owned(), MADE_WHEN_STORED.into());
            }
            let id = fields.get("id").and_then(Value::as_str).unwrap_or_default();
            let id = id.to_owned();
            let members = entity_types.entry(entity.entity_type.name).or_default();
            if fields.get("ttl").is_some_and(Value::is_null) {
                fields.remove("ttl");
            }
            members.insert(id, Value::Object(fields));
        }
        json!(entity_types)
    }
}

impl LoadedEntity {
    /// The key of a credential whose key could be made up, if the configuration gives it.
    fn given_key(&self) -> Option<(&'static str, String)> {
        let name = self.entity_type.key?;
        let is_given = entity_rules::is_made_up(self.entity_type, name) && !self.made.contains(&name);
        let key = self.fields.get(name).filter(|_| is_given)?.as_str()?;
        Some((self.entity_type.name, key.to_owned()))
    }

    /// Whether a stored entity is this credential. Ids come from places in the file: another line there may have moved them to
    /// the credential of another consumer.
    fn is_credential(&self, old: &Map<String, Value>) -> bool {
        let mut identifying = ["consumer", "hash_secret"]
            .into_iter()
            .chain(self.entity_type.key);
        identifying.all(|name| self.made.contains(&name) || old.get(name) == self.fields.get(name))
    }
}

/// An entity as it is stored: complete, with references in the form that calls have them in.
fn stored(
    entity_type: &'static EntityType,
    mut fields: Map<String, Value>,
    hashes_passwords: bool,
    now: SystemTime,
) -> LoadedEntity {
    let mut made = Vec::new();
    for field in entity_type.record.fields {
        let value = fields.get(field.name).filter(|value| !value.is_null());
        let value: Value = match (field.kind, value) {
            (Kind::Foreign(_), Some(Value::String(id))) => json!({ "id": id }),
            (_, Some(_)) => continue,
            _ if matches!(field.name, "created_at" | "updated_at") => unix_time::seconds(now).into(),
            _ if entity_rules::is_made_up(entity_type, field.name) => {
                made.push(field.name);
                password_hash::random_text().into()
            }
            _ => continue,
        };
        fields.insert(field.name.to_owned(), value);
    }
    if hashes_passwords {
        let given = fields.clone();
        entity_rules::transform(entity_type, &mut fields, &given);
    }
    if let Some(definition) = render_entity::definition(entity_type, &fields)
        && let Some(Value::Object(config)) = fields.get_mut("config")
    {
        render_entity::complete(&definition.config, config);
    }
    render_entity::complete(entity_type.record, &mut fields);
    LoadedEntity {
        entity_type,
        fields,
        made,
    }
}

fn is_same(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let is_time = |name: &str| matches!(name, "created_at" | "updated_at");
    old.len() == new.len()
        && new
            .iter()
            .all(|(name, value)| is_time(name) || old.get(name) == Some(value))
}

/// All that is wrong, by the fields that it is about.
pub fn tree(document: &Value, found: &[Diagnostic]) -> Value {
    let found: Vec<Diagnostic> = found
        .iter()
        .filter(|found| found.severity == Severity::Error)
        .map(|found| as_reported(document, found.clone()))
        .collect();
    failure::tree(found.iter()).unwrap_or_else(|| json!({}))
}

/// A complaint at the original's place for it, and with the values that diagnostics keep to themselves: the
/// caller sent them.
fn as_reported(document: &Value, mut found: Diagnostic) -> Diagnostic {
    if found.message.contains("'(hidden)'")
        && let Some(key) = at(document, &found.path.0).and_then(|entity| entity.get("key")?.as_str())
    {
        found.message = found.message.replace("(hidden)", key);
    }
    let steps = &mut found.path.0;
    if found.message.starts_with("uniqueness violation") {
        // The lists are flat by the time when doubles are looked for, but for the innermost.
        let is_of_key = found.message.contains(" entity with primary key set to ");
        let kept = if is_of_key { 4 } else { 2 };
        steps.drain(..steps.len().saturating_sub(kept));
    } else if found.message.starts_with("invalid reference") && steps.len() >= 3 {
        // And so are they, by their names, when references are.
        let entity = at(document, &steps[..steps.len() - 1]);
        steps.drain(..steps.len() - 3);
        if let (Some(PathStep::Field(name)), Some(entity)) = (steps.first(), entity)
            && let Some(key) = name_of(name, entity)
        {
            *steps = vec![
                PathStep::Field(name.clone()),
                PathStep::Field(key),
                PathStep::Index(0),
            ];
        }
    } else if is_entity(steps) {
        steps.push(PathStep::Field(failure::WHOLE.to_owned()));
    }
    found
}

/// Whether a place is that of an entity.
fn is_entity(steps: &[PathStep]) -> bool {
    let mut around: Option<&'static EntityType> = None;
    for pair in steps.chunks(2) {
        let [PathStep::Field(name), PathStep::Index(_)] = pair else {
            return false;
        };
        around = match around {
            None => entity_type(name),
            Some(outer) => outer.child(name).map(|(child, _)| child),
        };
        if around.is_none() {
            return false;
        }
    }
    around.is_some()
}

fn name_of(of: &str, entity: &Value) -> Option<String> {
    let key = entity_type(of)?.key?;
    let name = entity.get(key).or_else(|| entity.get("id"))?;
    name.as_str().map(str::to_owned)
}

fn at<'d>(document: &'d Value, path: &[PathStep]) -> Option<&'d Value> {
    path.iter().try_fold(document, |value, step| match step {
        PathStep::Field(name) => value.get(name),
        PathStep::Index(index) => value.get(index),
    })
}

/// The document with the ids that its entities were given. If an entity is there twice, the original has given them
/// before it complains.
pub fn with_ids(document: &Value, found: &[Diagnostic]) -> Value {
    let mut document = document.clone();
    if found
        .iter()
        .any(|found| found.message.starts_with("uniqueness violation"))
    {
        for entity in entities_as_written(&document.clone()) {
            if matches!(entity.entity_type.id_from, IdFrom::Nothing) {
                continue;
            }
            let path = entity.place.to_path();
            let written = path.0.iter().try_fold(&mut document, |value, step| match step {
                PathStep::Field(name) => value.get_mut(name),
                PathStep::Index(index) => value.get_mut(index),
            });
            if let Some(Value::Object(fields)) = written {
                fields.entry("id").or_insert_with(|| entity.id.to_string().into());
            }
        }
    }
    document
}

/// The entities of a workspace as a configuration.
pub fn export(view: WorkspaceView<'_>) -> Value {
    let mut document = Map::new();
    document.insert("_format_version".to_owned(), "3.0".into());
    // Passwords are hashed already.
    document.insert("_transform".to_owned(), false.into());
    for entity_type in ENTITY_TYPES
        .iter()
        .filter(|entity_type| !entity_type.is("workspaces"))
    {
        let members: Vec<Value> = view
            .workspace
            .table(entity_type)
            .all(Uuid::nil())
            .map(|kept| {
                let mut fields = kept.fields();
                for value in fields.values_mut() {
                    if let Some(id) = foreign_id(value) {
                        *value = id.to_string().into();
                    }
                }
                if fields.get("ttl").is_some_and(Value::is_null) {
                    fields.remove("ttl");
                }
                Value::Object(fields)
            })
            .collect();
        if !members.is_empty() {
            document.insert(entity_type.name.to_owned(), members.into());
        }
    }
    Value::Object(document)
}
