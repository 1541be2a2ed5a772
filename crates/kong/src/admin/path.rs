//! The target of a path of the Admin API: a list, an entity or one of its parts. Nothing is looked up here.

use super::failure::Failure;
use super::state::Workspace;
use super::table::{TableRow, foreign_id};
use crate::document::entity_type::{ENTITY_TYPES, EntityType, entity_type};
use crate::schema::{Kind, Location, Problems, text};
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use uuid::Uuid;
use weir_plugin::uri;

/// The segments of a path, decoded.
pub fn segments(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| String::from_utf8_lossy(&uri::unescape(segment.as_bytes())).into_owned())
        .collect()
}

/// The target of a path.
#[derive(Debug)]
pub enum ResourcePath {
    /// An entity type, or its members that belong to another entity.
    Collection(&'static EntityType, Option<Parent>),
    /// A member, perhaps of those that belong to another entity.
    Member(&'static EntityType, EntitySelector, Option<Parent>),
    /// The entity that a member refers to: by which field, and of which entity type it is.
    Foreign {
        /// The entity type of the member that refers.
        of: &'static EntityType,
        /// The member that refers.
        member: EntitySelector,
        /// The field by which it refers.
        field: &'static str,
        /// The entity type of what it refers to.
        entity_type: &'static EntityType,
    },
}

/// The entity below which a path goes on.
#[derive(Debug)]
pub struct Parent {
    /// Its entity type.
    pub entity_type: &'static EntityType,
    /// Which one.
    pub pick: EntitySelector,
    /// The field by which the others refer to it.
    pub field: &'static str,
}

/// How a path names an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntitySelector {
    /// By its id.
    Id(Uuid),
    /// By the field that its entity type has for that.
    Key(&'static str, String),
    /// By a field of which no two that belong to the same entity have the same value.
    Beside(&'static str, String),
    /// A certificate by one of its server names.
    ServerName(String),
    /// By something else, which the entity type has no field for.
    Other(String),
}

impl EntitySelector {
    /// How a segment names a member of an entity type.
    pub fn of(entity_type: &EntityType, segment: &str) -> Self {
        if let Some(id) = uuid(segment) {
            return Self::Id(id);
        }
        match endpoint_key(entity_type) {
            Some(key) => Self::Key(key, segment.to_owned()),
            None if entity_type.is("certificates") => Self::ServerName(segment.to_owned()),
            None => Self::Other(segment.to_owned()),
        }
    }

    /// How a segment names a member of an entity type below the entity that members refer to by `field`.
    fn below(entity_type: &EntityType, field: &str, segment: &str) -> Self {
        match (Self::of(entity_type, segment), entity_type.key) {
            (Self::Other(text), Some(key)) if entity_type.unique_together.contains(&field) => {
                let text = match key {
                    "target" => text::full_target(&text).unwrap_or(text),
                    _ => text,
                };
                Self::Beside(key, text)
            }
            (pick, _) => pick,
        }
    }

    /// The entity.
    ///
    /// # Errors
    /// A name that none can have.
    pub fn find(
        &self,
        entity_type: &'static EntityType,
        workspace: &Workspace,
    ) -> Result<Option<Arc<TableRow>>, Failure> {
        self.find_below(entity_type, workspace, None)
    }

    /// The entity. `owner`: the field by which it refers to the entity below which it is asked for, and that one's id.
    ///
    /// # Errors
    /// A name that none can have.
    pub fn find_below(
        &self,
        entity_type: &'static EntityType,
        workspace: &Workspace,
        owner: Option<(&'static str, Uuid)>,
    ) -> Result<Option<Arc<TableRow>>, Failure> {
        let table = workspace.table(entity_type);
        match self {
            Self::Id(id) => Ok(table.get(*id).cloned()),
            Self::Beside(field, value) => {
                let Some((owner_field, owner)) = owner else {
                    return Err(Failure::invalid_primary_key());
                };
                let fields = Map::from_iter([
                    ((*field).to_owned(), value.as_str().into()),
                    (owner_field.to_owned(), json!({ "id": owner.to_string() })),
                ]);
                Ok(table.find_together(entity_type, &fields).cloned())
            }
            Self::ServerName(name) => {
                let snis = known("snis");
                check_key(snis, "name", name)?;
                let owner = workspace
                    .table(snis)
                    .find("name", name)
                    .and_then(|sni| foreign_id(sni.fields().get("certificate")?));
                Ok(owner.and_then(|id| table.get(id)).cloned())
            }
            Self::Key(field, value) => {
                check_key(entity_type, field, value)?;
                Ok(table.find(field, value).cloned())
            }
            Self::Other(_) => Err(Failure::invalid_primary_key()),
        }
    }

    /// That there is no such entity, as it is said of one that is to be changed.
    pub fn missing(&self) -> Failure {
        match self {
            Self::Id(id) => Failure::no_such_entity(json!({ "id": id.to_string() }), true),
            Self::Key(field, value) => Failure::no_such_entity(json!({ *field: value }), false),
            Self::ServerName(_) => Failure::message(StatusCode::NOT_FOUND, "SNI not found"),
            Self::Beside(..) => Failure::not_found(),
            Self::Other(_) => Failure::invalid_primary_key(),
        }
    }
}

/// An entity type that there always is.
fn known(name: &str) -> &'static EntityType {
    entity_type(name).expect("invariant: one of the entity types")
}

/// A UUID in the one form that paths have it in.
pub fn uuid(text: &str) -> Option<Uuid> {
    (text.len() == 36).then(|| Uuid::try_parse(text).ok()).flatten()
}

/// The field by which paths name members of an entity type.
pub fn endpoint_key(entity_type: &EntityType) -> Option<&'static str> {
    let key = entity_type.key?;
    entity_type
        .record
        .field(key)
        .filter(|field| field.unique)
        .map(|_| key)
}

fn check_key(entity_type: &'static EntityType, field: &str, value: &str) -> Result<(), Failure> {
    let mut problems = Problems::default();
    if let Some(described) = entity_type.record.field(field) {
        described.read(
            Some(&Value::String(value.to_owned())),
            &Location::ROOT,
            &mut problems,
        );
    }
    match problems.0.into_iter().next() {
        Some(found) => Err(Failure::invalid_unique(field, &found.message)),
        None => Ok(()),
    }
}

/// The entity type whose collection has this name.
pub fn collection(name: &str) -> Option<&'static EntityType> {
    ENTITY_TYPES.iter().find(|entity_type| entity_type.path == name)
}

/// A path in which names of entity types that have two segments are one: at its beginning, or after a member.
fn joined(path: &[String]) -> Vec<String> {
    let mut segments = path.to_vec();
    join(&mut segments, 0, |entity_type| entity_type.path);
    join(&mut segments, 2, |entity_type| entity_type.nested_path);
    segments
}

fn join(segments: &mut Vec<String>, at: usize, name: fn(&EntityType) -> &'static str) {
    if let Some([first, second]) = segments.get(at..at + 2) {
        let both = format!("{first}/{second}");
        if ENTITY_TYPES.iter().any(|entity_type| name(entity_type) == both) {
            segments.splice(at..at + 2, [both]);
        }
    }
}

impl ResourcePath {
    /// Whether the original has closed this path: targets are found below their upstream only, and the certificate of
    /// a server name below `/certificates`.
    pub fn is_closed(&self) -> bool {
        match self {
            Self::Collection(entity_type, None) | Self::Member(entity_type, _, None) => {
                entity_type.is("targets")
            }
            Self::Foreign { of, .. } => of.is("targets") || of.is("snis"),
            _ => false,
        }
    }

    /// The target of these segments.
    pub fn of(path: &[String]) -> Option<Self> {
        let path = joined(path);
        let (first, rest) = path.split_first()?;
        let entity_type = collection(first)?;
        match rest {
            [] => Some(Self::Collection(entity_type, None)),
            [id] => Some(Self::Member(
                entity_type,
                EntitySelector::of(entity_type, id),
                None,
            )),
            [id, below] => match foreign_field(entity_type, below) {
                Some((field, target)) => Some(Self::Foreign {
                    of: entity_type,
                    member: EntitySelector::of(entity_type, id),
                    field,
                    entity_type: target,
                }),
                None => {
                    let (child, field) = nested(entity_type, below)?;
                    Some(Self::Collection(child, Some(Parent::of(entity_type, id, field))))
                }
            },
            [id, below, all] if below == "targets" && all == "all" => {
                let (child, field) = nested(entity_type, below)?;
                Some(Self::Collection(child, Some(Parent::of(entity_type, id, field))))
            }
            [id, below, member] => {
                let (child, field) = nested(entity_type, below)?;
                let parent = Parent::of(entity_type, id, field);
                Some(Self::Member(
                    child,
                    EntitySelector::below(child, field, member),
                    Some(parent),
                ))
            }
            _ => None,
        }
    }
}

impl Parent {
    /// The field that refers to the entity, and its id.
    ///
    /// # Errors
    /// It is not there.
    pub fn owner(&self, workspace: &Workspace) -> Result<(&'static str, Uuid), Failure> {
        match self.pick.find(self.entity_type, workspace)? {
            Some(found) => Ok((self.field, found.id)),
            None if matches!(self.pick, EntitySelector::ServerName(_)) => Err(self.pick.missing()),
            None => Err(Failure::not_found()),
        }
    }

    fn of(entity_type: &'static EntityType, id: &str, field: &'static str) -> Self {
        Self {
            entity_type,
            pick: EntitySelector::of(entity_type, id),
            field,
        }
    }
}

/// The field of this name by which members refer to others, and the entity type of those.
fn foreign_field(of: &EntityType, name: &str) -> Option<(&'static str, &'static EntityType)> {
    let field = of.record.field(name)?;
    match field.kind {
        Kind::Foreign(target) => Some((field.name, entity_type(target)?)),
        _ => None,
    }
}

/// The entity type whose members stand under this name below members of another one, and the field by which they refer
/// to them.
fn nested(parent: &EntityType, name: &str) -> Option<(&'static EntityType, &'static str)> {
    ENTITY_TYPES
        .iter()
        .filter(|entity_type| entity_type.nested_path == name)
        .find_map(|entity_type| parent.child(entity_type.name))
}
