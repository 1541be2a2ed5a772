//! The types of entities that a document may hold: their fields, and what their ids are made from.

use super::{consumer, graphql, key, plugin, route, secret, service, session, upstream, vault, workspace};
use crate::schema::{Kind, Record};

/// A type of entities: a list in documents, of its own or inside of the entities that its members belong to.
#[derive(Debug)]
pub struct EntityType {
    /// The name of the list.
    pub name: &'static str,
    /// The fields of a member.
    pub record: &'static Record,
    /// The field by which other entities may refer to a member, besides its id.
    pub key: Option<&'static str>,
    /// The source of the id of a member without one.
    pub id_from: IdFrom,
    /// The collection's name in the Admin API.
    pub path: &'static str,
    /// Its name there below the entities that members refer to.
    pub nested_path: &'static str,
    /// Fields of which no two members have all the same values.
    pub unique_together: &'static [&'static str],
    /// Whether members go when an entity goes that they refer to; otherwise it cannot go while they are there.
    pub cascades: bool,
    /// Whether anything is made of its members.
    pub is_served: bool,
}

/// The source of an id.
#[derive(Debug, Clone, Copy)]
pub enum IdFrom {
    /// The field by which others refer to it.
    Key,
    /// Several fields together.
    Fields(&'static [&'static str]),
    /// Nothing that lasts; the original takes a random one.
    Nothing,
}

impl EntityType {
    const fn new(name: &'static str, record: &'static Record, key: &'static str) -> Self {
        Self {
            name,
            record,
            key: Some(key),
            id_from: IdFrom::Key,
            path: name,
            nested_path: name,
            unique_together: &[],
            cascades: false,
            is_served: true,
        }
    }

    const fn at(mut self, path: &'static str, nested_path: &'static str) -> Self {
        self.path = path;
        self.nested_path = nested_path;
        self
    }

    const fn unique_together(mut self, fields: &'static [&'static str]) -> Self {
        self.unique_together = fields;
        self
    }

    const fn cascading(mut self) -> Self {
        self.cascades = true;
        self
    }

    const fn id_from(mut self, id_from: IdFrom) -> Self {
        self.id_from = id_from;
        self
    }

    const fn kept_only(mut self) -> Self {
        self.is_served = false;
        self
    }

    /// Whether this is the entity type of that name.
    pub fn is(&self, name: &str) -> bool {
        self.name == name
    }

    /// The entity type of this name, if its members may stand inside of a member of this one, with the field by which they
    /// refer to it.
    pub fn child(&self, name: &str) -> Option<(&'static EntityType, &'static str)> {
        let child = entity_type(name)?;
        let field = child.record.fields.iter().find(|field| match field.kind {
            Kind::Foreign(parent) => parent == self.name,
            _ => false,
        })?;
        Some((child, field.name))
    }
}

/// The entity type of what GraphQL queries cost.
pub const GRAPHQL_COSTS: &str = "graphql_ratelimiting_cost_decorations";
/// The entity type of calls that are GraphQL queries.
pub const DEGRAPHQL_ROUTES: &str = "degraphql_routes";

/// The entity type of keys that the gateway has made for `jwt-signer`.
pub const SIGNER_KEYS: &str = "jwt_signer_jwks";

/// All entity types.
pub static ENTITY_TYPES: &[EntityType] = &[
    EntityType::new("certificates", &secret::CERTIFICATE, "id").id_from(IdFrom::Nothing),
    EntityType::new("ca_certificates", &secret::CA_CERTIFICATE, "id").id_from(IdFrom::Nothing),
    EntityType::new("snis", &secret::SNI, "name").cascading(),
    EntityType::new("key_sets", &key::KEY_SET, "name").at("key-sets", "key-sets"),
    EntityType::new("keys", &key::KEY, "name")
        .unique_together(&["kid", "set"])
        .cascading(),
    EntityType::new(SIGNER_KEYS, &key::SIGNER_KEYS, "name")
        .at("jwt-signer/jwks", "jwt-signer/jwks")
        .id_from(IdFrom::Nothing),
    EntityType::new("vaults", &secret::VAULT, "prefix").kept_only(),
    EntityType::new("vault_auth_vaults", &vault::VAULT_AUTH_VAULT, "name").at("vault-auth", "vault-auth"),
    EntityType::new("services", &service::RECORD, "name"),
    EntityType::new("routes", &route::RECORD, "name"),
    EntityType::new("consumers", &consumer::CONSUMER, "username"),
    EntityType::new("upstreams", &upstream::UPSTREAM, "name"),
    EntityType::new("targets", &upstream::TARGET, "target")
        .id_from(IdFrom::Fields(&["upstream", "target"]))
        .unique_together(&["upstream", "target"])
        .cascading(),
    EntityType::new("plugins", &plugin::RECORD, "instance_name")
        .id_from(IdFrom::Fields(&["name", "route", "service", "consumer"]))
        .unique_together(&["name", "route", "service", "consumer"])
        .cascading(),
    EntityType::new("keyauth_credentials", &consumer::KEYAUTH, "key")
        .at("key-auths", "key-auth")
        .id_from(IdFrom::Nothing)
        .cascading(),
    EntityType::new("keyauth_enc_credentials", &consumer::KEYAUTH, "key")
        .at("key-auths-enc", "key-auth-enc")
        .id_from(IdFrom::Nothing)
        .cascading(),
    EntityType::new("jwt_secrets", &consumer::JWT, "key")
        .at("jwts", "jwt")
        .id_from(IdFrom::Nothing)
        .cascading(),
    EntityType::new("acls", &consumer::ACL, "group")
        .id_from(IdFrom::Fields(&["consumer", "group"]))
        .unique_together(&["consumer", "group"])
        .cascading(),
    EntityType::new("basicauth_credentials", &consumer::BASICAUTH, "username")
        .at("basic-auths", "basic-auth")
        .id_from(IdFrom::Fields(&["username"]))
        .cascading(),
    EntityType::new("hmacauth_credentials", &consumer::HMACAUTH, "username")
        .at("hmac-auths", "hmac-auth")
        .id_from(IdFrom::Fields(&["username"]))
        .cascading(),
    EntityType::new("workspaces", &workspace::RECORD, "name").kept_only(),
    EntityType::new("oauth2_credentials", &consumer::OAUTH2, "client_id")
        .at("oauth2", "oauth2")
        .id_from(IdFrom::Nothing)
        .cascading(),
    EntityType::new("oauth2_tokens", &session::OAUTH2_TOKEN, "access_token")
        .id_from(IdFrom::Nothing)
        .cascading(),
    EntityType::new(GRAPHQL_COSTS, &graphql::COST, "id")
        .at(
            "graphql-rate-limiting-advanced/costs",
            "graphql-rate-limiting-advanced/costs",
        )
        .id_from(IdFrom::Nothing)
        .cascading(),
    EntityType::new(DEGRAPHQL_ROUTES, &graphql::DEGRAPHQL_ROUTE, "id")
        .at("degraphql_routes", "degraphql/routes")
        .id_from(IdFrom::Nothing)
        .cascading(),
    EntityType::new("sessions", &session::SESSION, "session_id")
        .id_from(IdFrom::Nothing)
        .kept_only(),
    EntityType::new("acme_storage", &session::ACME, "id")
        .id_from(IdFrom::Nothing)
        .kept_only(),
];

/// Lists that the original knows and of which nothing is made here, not even a check of their members.
pub const UNREAD: &[&str] = &[
    "workspaces",
    "parameters",
    "clustering_data_planes",
    "oauth2_authorization_codes",
    "ratelimiting_metrics",
];

/// The entity type of this name.
pub fn entity_type(name: &str) -> Option<&'static EntityType> {
    ENTITY_TYPES.iter().find(|entity_type| entity_type.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_documentation_names_every_entity() {
        let page = include_str!("../../../../docs/compatibility.md");
        let (_, section) = page.split_once("## Kong: `kong.yml`").expect("its section");
        let names_of = |end: &str| -> BTreeSet<&str> {
            let rows = section.lines().take_while(|line| !line.starts_with("## "));
            let rows = rows.filter(|line| line.starts_with("| `") && line.ends_with(end));
            rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect()
        };
        // Vaults have a row of their own, and workspaces are what an Admin API is for, not a document.
        let is_told_elsewhere = |name: &str| ["vaults", "workspaces"].contains(&name);
        for (is_served, end) in [
            (true, "| served |"),
            (false, "| checked but not used, with a warning |"),
        ] {
            let wanted = ENTITY_TYPES
                .iter()
                .filter(|it| it.is_served == is_served && !is_told_elsewhere(it.name));
            let wanted: BTreeSet<&str> = wanted.map(|it| it.name).collect();
            assert_eq!(names_of(end), wanted, "docs/compatibility.md, {end}");
        }
    }
}
