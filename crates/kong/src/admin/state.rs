//! The content of the store below `kong/`, in memory and indexed.

use super::render_entity;
use super::table::{Table, TableRow};
use crate::RouterFlavor;
use crate::claims::{Claim, Claims};
use crate::document::entity_type::{ENTITY_TYPES, EntityType, entity_type};
use crate::document::id;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use uuid::Uuid;
use weir_dialect::{DEFAULT_WORKSPACE, ReplicaState};
use weir_store::{Document, Key, Revision};

/// The first segment of the names of this dialect's documents.
pub const PREFIX: &str = "kong/";

/// All workspaces at a revision.
#[derive(Debug)]
pub struct AdminState {
    /// The last commit that changed anything in it.
    pub changed: Revision,
    workspaces: BTreeMap<String, Workspace>,
    /// Documents that are no entities, with the reason.
    broken: BTreeMap<String, &'static str>,
    router: RouterFlavor,
    /// The claims of routes. Made when first asked for: only writers who may not write everywhere need them.
    claims: OnceLock<Claims>,
}

/// The entities of a workspace.
#[derive(Debug)]
pub struct Workspace {
    /// In the order of [`ENTITY_TYPES`].
    tables: Vec<Table>,
}

impl Default for Workspace {
    fn default() -> Self {
        Self {
            tables: ENTITY_TYPES.iter().map(|_| Table::default()).collect(),
        }
    }
}

impl Workspace {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(|table| table.len() == 0)
    }

    /// The members of an entity type.
    pub fn table(&self, entity_type: &EntityType) -> &Table {
        &self.tables[position(entity_type)]
    }
}

fn position(entity_type: &EntityType) -> usize {
    ENTITY_TYPES
        .iter()
        .position(|known| known.name == entity_type.name)
        .expect("invariant: every entity type is among all entity types")
}

/// The name under which an entity is stored.
pub fn key(workspace: &str, entity_type: &EntityType, id: Uuid) -> Option<Key> {
    Key::new(&format!("{PREFIX}{workspace}/{}/{id}", entity_type.name)).ok()
}

/// The one workspace that is always there, in no store.
impl Default for AdminState {
    fn default() -> Self {
        let mut state = Self {
            changed: Revision::default(),
            workspaces: BTreeMap::new(),
            broken: BTreeMap::new(),
            router: RouterFlavor::default(),
            claims: OnceLock::new(),
        };
        let id = id::from_key("workspaces", DEFAULT_WORKSPACE);
        let value =
            format!("{{\"id\":\"{id}\",\"name\":\"{DEFAULT_WORKSPACE}\",\"meta\":{{}},\"config\":{{}}}}");
        if let Some(key) =
            entity_type("workspaces").and_then(|entity_type| key(DEFAULT_WORKSPACE, entity_type, id))
        {
            let document = Document {
                key: key.clone(),
                value: value.into_bytes().into(),
                created: Revision::default(),
                modified: Revision::default(),
            };
            state.apply(&key, Some(&document));
        }
        state
    }
}

impl ReplicaState for AdminState {
    fn empty(&self) -> Self {
        Self::new(self.router)
    }

    fn apply(&mut self, key: &Key, document: Option<&Document>) {
        let Some(name) = key.as_str().strip_prefix(PREFIX) else {
            return;
        };
        self.broken.remove(name);
        let mut segments = name.split('/');
        let (Some(workspace), Some(entity_type_name), Some(id), None) =
            (segments.next(), segments.next(), segments.next(), segments.next())
        else {
            self.broken.insert(name.to_owned(), "not the name of an entity");
            return;
        };
        let (Some(entity_type), Ok(id)) = (entity_type(entity_type_name), Uuid::try_parse(id)) else {
            self.broken.insert(name.to_owned(), "not the name of an entity");
            return;
        };
        if let Some(claims) = self.claims.get_mut().filter(|_| entity_type.is("routes")) {
            let value = document.map(|it| it.value.as_ref());
            match value.and_then(|value| Claim::of(&workspace.into(), id, value, self.router)) {
                Some(claim) => claims.put(claim),
                None => claims.remove(workspace, id),
            }
        }
        let Some(document) = document else {
            if let Some(workspace) = self.workspaces.get_mut(workspace) {
                workspace.tables[position(entity_type)].remove(entity_type, id);
            }
            return;
        };
        let Ok(mut fields) = serde_json::from_slice::<Map<String, Value>>(&document.value) else {
            self.broken.insert(name.to_owned(), "not a JSON object");
            return;
        };
        fields.insert("id".to_owned(), id.to_string().into());
        let answer = render_entity::answer(entity_type, &fields);
        let kept = TableRow {
            id,
            answer: match answer {
                Some(answer) => serde_json::to_vec(&answer).unwrap_or_default().into(),
                None => Arc::clone(&document.value),
            },
            value: Arc::clone(&document.value),
            modified: document.modified,
        };
        let workspace = self.workspaces.entry(workspace.to_owned()).or_default();
        workspace.tables[position(entity_type)].put(entity_type, kept, &fields);
    }

    fn note(&mut self, revision: Revision, has_changed: bool) {
        if has_changed {
            self.changed = revision;
        }
    }
}

impl AdminState {
    /// No documents, for routes of this router.
    pub fn new(router: RouterFlavor) -> Self {
        Self {
            router,
            ..Self::default()
        }
    }

    /// A workspace; those that nothing was written to are empty.
    pub fn workspace(&self, name: &str) -> &Workspace {
        static EMPTY: std::sync::LazyLock<Workspace> = std::sync::LazyLock::new(Workspace::default);
        self.workspaces.get(name).unwrap_or(&EMPTY)
    }

    /// The router for which routes are kept.
    pub fn router(&self) -> RouterFlavor {
        self.router
    }

    /// The claims of the routes of all workspaces.
    pub fn claims(&self) -> &Claims {
        self.claims.get_or_init(|| {
            let mut claims = Claims::default();
            let routes = entity_type("routes");
            for (name, workspace) in &self.workspaces {
                let name = Arc::from(name.as_str());
                let all = routes.map(|routes| workspace.table(routes).all(Uuid::nil()));
                for kept in all.into_iter().flatten() {
                    if let Some(claim) = Claim::of(&name, kept.id, &kept.value, self.router) {
                        claims.put(claim);
                    }
                }
            }
            claims
        })
    }

    /// All workspaces with their names.
    pub fn named_workspaces(&self) -> impl Iterator<Item = (&str, &Workspace)> {
        self.workspaces
            .iter()
            .map(|(name, workspace)| (name.as_str(), workspace))
    }

    /// All workspaces.
    pub fn workspaces(&self) -> impl Iterator<Item = &Workspace> {
        self.workspaces.values()
    }

    /// Whether there is a workspace of this name: one that was made, or that something was written to.
    pub fn has_workspace(&self, name: &str) -> bool {
        let is_made = entity_type("workspaces").is_some_and(|entity_type| {
            self.workspace(DEFAULT_WORKSPACE)
                .table(entity_type)
                .find("name", name)
                .is_some()
        });
        is_made || !self.workspace(name).is_empty()
    }

    /// Documents that are left out, and why.
    pub fn broken(&self) -> impl Iterator<Item = (&str, &str)> {
        self.broken.iter().map(|(name, reason)| (name.as_str(), *reason))
    }
}
