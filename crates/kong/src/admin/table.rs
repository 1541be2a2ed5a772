//! The members of an entity type in a workspace, found by everything that calls ask for: id, unique fields, what they refer
//! to, tags.

use crate::document::entity_type::EntityType;
use crate::schema::Kind;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use uuid::Uuid;
use weir_store::Revision;

/// The name under which the values of several fields are kept that are unique together.
const TOGETHER: &str = "@together";

/// A member.
pub struct TableRow {
    /// Its id.
    pub id: Uuid,
    /// The document as it is stored.
    pub value: Arc<[u8]>,
    /// The document as calls are answered with it.
    pub answer: Arc<[u8]>,
    /// The commit that changed it last.
    pub modified: Revision,
}

/// Values may hold secrets.
impl std::fmt::Debug for TableRow {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TableRow")
            .field("id", &self.id)
            .field("modified", &self.modified)
            .finish_non_exhaustive()
    }
}

impl TableRow {
    /// The fields of the document as it is stored.
    pub fn fields(&self) -> Map<String, Value> {
        serde_json::from_slice(&self.value).unwrap_or_default()
    }

    /// The fields with which calls are answered.
    pub fn answer_fields(&self) -> Map<String, Value> {
        serde_json::from_slice(&self.answer).unwrap_or_default()
    }
}

/// The indexes of members.
#[derive(Default, PartialEq, Eq)]
pub struct Keys {
    /// Values that no other member has, by their field.
    pub unique: Vec<(&'static str, Box<str>)>,
    /// Ids that it refers to, by the field.
    pub foreign: Vec<(&'static str, Uuid)>,
    tags: Vec<Box<str>>,
}

impl Keys {
    /// The keys of a member with these fields.
    pub fn of(entity_type: &EntityType, fields: &Map<String, Value>) -> Self {
        let mut keys = Self::default();
        for field in entity_type.record.fields {
            let value = fields.get(field.name).unwrap_or(&Value::Null);
            if let Kind::Foreign(_) = field.kind
                && let Some(id) = foreign_id(value)
            {
                keys.foreign.push((field.name, id));
            }
            if field.unique
                && let Value::String(text) = value
            {
                keys.unique.push((field.name, text.as_str().into()));
            }
        }
        if let Some(together) = together(entity_type, fields) {
            keys.unique.push((TOGETHER, together));
        }
        if let Some(Value::Array(tags)) = fields.get("tags") {
            keys.tags = tags.iter().filter_map(Value::as_str).map(Box::from).collect();
        }
        keys
    }
}

/// The id in a reference, `{"id": …}`.
pub fn foreign_id(value: &Value) -> Option<Uuid> {
    Uuid::try_parse(value.get("id")?.as_str()?).ok()
}

/// The values of the fields that are unique together as one text; `None`: none of them has a value.
fn together(entity_type: &EntityType, fields: &Map<String, Value>) -> Option<Box<str>> {
    let mut text = String::new();
    let mut has_value = false;
    for field in entity_type.unique_together {
        match fields.get(*field) {
            Some(Value::String(value)) => {
                text.push_str(value);
                has_value = true;
            }
            Some(value) => {
                if let Some(id) = foreign_id(value) {
                    text.push_str(&id.to_string());
                    has_value = true;
                }
            }
            None => {}
        }
        // No text of an entity has this character.
        text.push('\0');
    }
    has_value.then(|| text.into())
}

/// The members of an entity type.
#[derive(Default)]
pub struct Table {
    by_id: BTreeMap<Uuid, Arc<TableRow>>,
    unique: HashMap<(&'static str, Box<str>), Uuid>,
    foreign: HashMap<(&'static str, Uuid), BTreeSet<Uuid>>,
    tags: HashMap<Box<str>, BTreeSet<Uuid>>,
}

/// Values may hold secrets.
impl std::fmt::Debug for Table {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Table")
            .field("members", &self.len())
            .finish_non_exhaustive()
    }
}

impl Table {
    /// Adds a member, or puts it in the place of the one with its id.
    pub fn put(&mut self, entity_type: &'static EntityType, kept: TableRow, fields: &Map<String, Value>) {
        self.remove(entity_type, kept.id);
        let keys = Keys::of(entity_type, fields);
        for key in keys.unique {
            self.unique.insert(key, kept.id);
        }
        for key in keys.foreign {
            self.foreign.entry(key).or_default().insert(kept.id);
        }
        for tag in keys.tags {
            self.tags.entry(tag).or_default().insert(kept.id);
        }
        self.by_id.insert(kept.id, Arc::new(kept));
    }

    /// Takes a member out.
    pub fn remove(&mut self, entity_type: &'static EntityType, id: Uuid) {
        let Some(kept) = self.by_id.remove(&id) else {
            return;
        };
        let keys = Keys::of(entity_type, &kept.fields());
        for key in keys.unique {
            if self.unique.get(&key) == Some(&id) {
                self.unique.remove(&key);
            }
        }
        for key in keys.foreign {
            take(&mut self.foreign, key, id);
        }
        for tag in keys.tags {
            take(&mut self.tags, tag, id);
        }
    }

    /// The member with this id.
    pub fn get(&self, id: Uuid) -> Option<&Arc<TableRow>> {
        self.by_id.get(&id)
    }

    /// The member that has this value in a unique field.
    pub fn find(&self, field: &'static str, value: &str) -> Option<&Arc<TableRow>> {
        let id = self.unique.get(&(field, Box::from(value)))?;
        self.by_id.get(id)
    }

    /// The member that has the same values as these in the fields that are unique together.
    pub fn find_together(
        &self,
        entity_type: &EntityType,
        fields: &Map<String, Value>,
    ) -> Option<&Arc<TableRow>> {
        let id = self.unique.get(&(TOGETHER, together(entity_type, fields)?))?;
        self.by_id.get(id)
    }

    /// The unique fields (one; or those that are unique together, all) of which another member than `id` has these
    /// values already.
    pub fn conflict(
        &self,
        entity_type: &'static EntityType,
        id: Uuid,
        fields: &Map<String, Value>,
    ) -> Option<Vec<&'static str>> {
        let keys = Keys::of(entity_type, fields);
        let taken = |key: &&(&'static str, Box<str>)| self.unique.get(*key).is_some_and(|other| *other != id);
        // What is unique together is found first, as in the original's database.
        let (field, _) = keys.unique.iter().rev().find(taken)?;
        Some(match *field {
            TOGETHER => entity_type.unique_together.to_vec(),
            field => vec![field],
        })
    }

    /// All members by their ids, from one on.
    pub fn all(&self, from: Uuid) -> impl Iterator<Item = &Arc<TableRow>> {
        self.by_id.range(from..).map(|(_, kept)| kept)
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The ids of the members that refer to an entity by a field.
    pub fn referring(&self, field: &'static str, id: Uuid) -> Option<&BTreeSet<Uuid>> {
        self.foreign.get(&(field, id))
    }

    /// The ids of the members with a tag.
    pub fn tagged(&self, tag: &str) -> Option<&BTreeSet<Uuid>> {
        self.tags.get(tag)
    }

    /// All tags with the ids of the members that have them.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &BTreeSet<Uuid>)> {
        self.tags.iter().map(|(tag, ids)| (tag.as_ref(), ids))
    }
}

fn take<K: std::hash::Hash + Eq>(index: &mut HashMap<K, BTreeSet<Uuid>>, key: K, id: Uuid) {
    if let Some(ids) = index.get_mut(&key) {
        ids.remove(&id);
        if ids.is_empty() {
            index.remove(&key);
        }
    }
}
