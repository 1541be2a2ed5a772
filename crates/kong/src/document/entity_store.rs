//! Entities that come one by one, each as it is stored, and go again.

use super::entity_type::{DEGRAPHQL_ROUTES, EntityType, GRAPHQL_COSTS, SIGNER_KEYS, entity_type};
use super::{Document, Entity, Plugin, Route, adapt, read_plugin_config};
use crate::schema::{Fields, ItemLocation, Kind, Location, Problems, RawFields};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;
use weir_model::{DocPath, Severity};

/// A document whose lists are in the order of the entities' ids.
#[derive(Clone, Default)]
pub struct EntityStore {
    /// The entities that something is made of.
    pub document: Document,
    ids: HashMap<&'static str, Vec<Uuid>>,
}

impl EntityStore {
    /// Takes over an entity as it is stored, in the place of the one with its id. Of entity types that nothing is made of
    /// nothing is kept.
    ///
    /// # Errors
    /// Why it does not fit the entity type; what was in its place is gone.
    pub fn put(
        &mut self,
        entity_type: &'static EntityType,
        id: Uuid,
        value: &[u8],
        place: DocPath,
    ) -> Result<(), String> {
        let result = self.insert_or_replace(entity_type, id, value, place);
        if result.is_err() {
            self.remove(entity_type, id);
        }
        result
    }

    fn insert_or_replace(
        &mut self,
        entity_type: &'static EntityType,
        id: Uuid,
        value: &[u8],
        place: DocPath,
    ) -> Result<(), String> {
        let fields = read(entity_type, id, value)?;
        let place = ItemLocation {
            list: Arc::new(place),
            index: 0,
        };
        let ids = self.ids.entry(entity_type.name).or_default();
        let at = match ids.binary_search(&id) {
            Ok(position) => InsertPosition::Instead(position),
            Err(position) => InsertPosition::Before(position),
        };
        let is_kept = insert(&mut self.document, entity_type.name, at, (fields, place))
            .map_err(|error| format!("out of range: {error}"))?;
        if let (true, InsertPosition::Before(position)) = (is_kept, at) {
            ids.insert(position, id);
        }
        Ok(())
    }

    /// Takes an entity out.
    pub fn remove(&mut self, entity_type: &'static EntityType, id: Uuid) {
        if let Some(ids) = self.ids.get_mut(entity_type.name)
            && let Ok(position) = ids.binary_search(&id)
        {
            ids.remove(position);
            remove(&mut self.document, entity_type.name, position);
        }
    }

    /// The position of an entity in the list of its entity type.
    pub fn position(&self, entity_type: &str, id: Uuid) -> Option<usize> {
        self.ids.get(entity_type)?.binary_search(&id).ok()
    }
}

/// A route as it is stored; `None`: it cannot be read.
pub fn read_route(id: Uuid, value: &[u8]) -> Option<Route> {
    read(entity_type("routes")?, id, value).ok()?.typed().ok()
}

/// The fields of a stored entity, with the defaults of those that are `null`, and ids in the place of references.
fn read(entity_type: &'static EntityType, id: Uuid, value: &[u8]) -> Result<Fields, String> {
    let mut stored: Map<String, Value> =
        serde_json::from_slice(value).map_err(|error| format!("no JSON object: {error}"))?;
    without_nulls(&mut stored);
    for field in entity_type.record.fields {
        if let Kind::Foreign(_) = field.kind
            && let Some(reference) = stored.get_mut(field.name)
            && let Some(Value::String(id)) = reference.get("id")
        {
            *reference = Value::String(id.clone());
        }
    }
    let mut given = RawFields::of(&stored);
    adapt(entity_type, &mut given);
    let mut problems = Problems::default();
    let place = Location::ROOT;
    let mut fields = entity_type.record.read(given.iter(), &place, &mut problems);
    if entity_type.is("plugins") {
        read_plugin_config(&mut fields, given.get("config"), true, &place, &mut problems);
    }
    fields.insert("id", id.to_string().into());
    let mut errors = problems
        .0
        .iter()
        .filter(|found| found.severity == Severity::Error);
    match errors.next() {
        Some(error) if error.path.0.is_empty() => Err(error.message.clone()),
        Some(error) => Err(format!("{}: {}", error.path, error.message)),
        None => Ok(fields),
    }
}

/// Takes out what is `null`, in records too.
fn without_nulls(fields: &mut Map<String, Value>) {
    fields.retain(|_, value| !value.is_null());
    for value in fields.values_mut() {
        match value {
            Value::Object(inner) => without_nulls(inner),
            Value::Array(items) => items
                .iter_mut()
                .filter_map(Value::as_object_mut)
                .for_each(without_nulls),
            _ => {}
        }
    }
}

/// The position at which an entity comes into a list.
#[derive(Debug, Clone, Copy)]
enum InsertPosition {
    /// Before the one that is there.
    Before(usize),
    /// In place of the one that is there: the others, which may be very many, keep their positions.
    Instead(usize),
}

/// Puts an entity into the list of its entity type; whether there is one.
fn insert(
    document: &mut Document,
    entity_type: &str,
    position: InsertPosition,
    entity: (Fields, ItemLocation),
) -> Result<bool, serde_json::Error> {
    match entity_type {
        "services" => insert_at(&mut document.services, position, entity, Fields::typed)?,
        "routes" => insert_at(&mut document.routes, position, entity, Fields::typed)?,
        "consumers" => insert_at(&mut document.consumers, position, entity, Fields::typed)?,
        "plugins" => insert_at(&mut document.plugins, position, entity, Plugin::of)?,
        "upstreams" => insert_at(&mut document.upstreams, position, entity, Fields::typed)?,
        "targets" => insert_at(&mut document.targets, position, entity, Fields::typed)?,
        "keyauth_credentials" => {
            insert_at(&mut document.keyauth_credentials, position, entity, Fields::typed)?;
        }
        "keyauth_enc_credentials" => {
            insert_at(
                &mut document.keyauth_enc_credentials,
                position,
                entity,
                Fields::typed,
            )?;
        }
        "jwt_secrets" => insert_at(&mut document.jwt_secrets, position, entity, Fields::typed)?,
        "acls" => insert_at(&mut document.acls, position, entity, Fields::typed)?,
        "basicauth_credentials" => {
            insert_at(
                &mut document.basicauth_credentials,
                position,
                entity,
                Fields::typed,
            )?;
        }
        "hmacauth_credentials" => {
            insert_at(
                &mut document.hmacauth_credentials,
                position,
                entity,
                Fields::typed,
            )?;
        }
        "oauth2_credentials" => {
            insert_at(&mut document.oauth2_credentials, position, entity, Fields::typed)?;
        }
        "oauth2_tokens" => insert_at(&mut document.oauth2_tokens, position, entity, Fields::typed)?,
        GRAPHQL_COSTS => insert_at(&mut document.graphql_costs, position, entity, Fields::typed)?,
        DEGRAPHQL_ROUTES => insert_at(&mut document.degraphql_routes, position, entity, Fields::typed)?,
        "certificates" => insert_at(&mut document.certificates, position, entity, Fields::typed)?,
        "snis" => insert_at(&mut document.snis, position, entity, Fields::typed)?,
        "ca_certificates" => insert_at(&mut document.ca_certificates, position, entity, Fields::typed)?,
        "key_sets" => insert_at(&mut document.key_sets, position, entity, Fields::typed)?,
        "keys" => insert_at(&mut document.keys, position, entity, Fields::typed)?,
        SIGNER_KEYS => insert_at(&mut document.jwt_signer_jwks, position, entity, Fields::typed)?,
        "vault_auth_vaults" => {
            insert_at(&mut document.vault_auth_vaults, position, entity, Fields::typed)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn insert_at<T>(
    list: &mut Vec<Entity<T>>,
    at: InsertPosition,
    (fields, place): (Fields, ItemLocation),
    make: fn(Fields) -> Result<T, serde_json::Error>,
) -> Result<(), serde_json::Error> {
    let value = make(fields)?;
    let entity = Entity { place, value };
    match at {
        InsertPosition::Before(position) => list.insert(position, entity),
        InsertPosition::Instead(position) => list[position] = entity,
    }
    Ok(())
}

fn remove(document: &mut Document, entity_type: &str, position: usize) {
    fn take<T>(list: &mut Vec<Entity<T>>, position: usize) {
        list.remove(position);
    }
    match entity_type {
        "services" => take(&mut document.services, position),
        "routes" => take(&mut document.routes, position),
        "consumers" => take(&mut document.consumers, position),
        "plugins" => take(&mut document.plugins, position),
        "upstreams" => take(&mut document.upstreams, position),
        "targets" => take(&mut document.targets, position),
        "keyauth_credentials" => take(&mut document.keyauth_credentials, position),
        "keyauth_enc_credentials" => take(&mut document.keyauth_enc_credentials, position),
        "jwt_secrets" => take(&mut document.jwt_secrets, position),
        "acls" => take(&mut document.acls, position),
        "basicauth_credentials" => take(&mut document.basicauth_credentials, position),
        "hmacauth_credentials" => take(&mut document.hmacauth_credentials, position),
        "oauth2_credentials" => take(&mut document.oauth2_credentials, position),
        "oauth2_tokens" => take(&mut document.oauth2_tokens, position),
        GRAPHQL_COSTS => take(&mut document.graphql_costs, position),
        DEGRAPHQL_ROUTES => take(&mut document.degraphql_routes, position),
        "certificates" => take(&mut document.certificates, position),
        "snis" => take(&mut document.snis, position),
        "ca_certificates" => take(&mut document.ca_certificates, position),
        "key_sets" => take(&mut document.key_sets, position),
        "keys" => take(&mut document.keys, position),
        SIGNER_KEYS => take(&mut document.jwt_signer_jwks, position),
        "vault_auth_vaults" => take(&mut document.vault_auth_vaults, position),
        _ => {}
    }
}
