//! Special rules of some entity types: values that are made up or hashed, other spellings, and checks that need other
//! entities.

use super::failure::Failure;
use super::form_body;
use super::password_hash::{self, SECRET_HASH};
use super::render_entity::definition;
use super::server_names::{ServerNameChange, read_server_names};
use super::state::Workspace;
use super::table::foreign_id;
use super::unsupported_config;
use crate::document::common::PROTOCOLS;
use crate::document::entity_type::{EntityType, SIGNER_KEYS, entity_type};
use crate::document::{Key, VaultAuthVault, private_keys};
use crate::plugins::{self, Consumers, Definition};
use crate::schema::{Kind, Location, Problems, text};
use aws_lc_rs::digest;
use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::time::SystemTime;
use uuid::Uuid;
use weir_model::unix_time;
use weir_model::x509::Certificate;
use weir_plugins::private_key::PrivateKey;
use weir_plugins::vault_auth::VaultServer;

/// Whether this field's value is generated if the client gives none.
pub fn is_made_up(entity_type: &EntityType, field: &str) -> bool {
    matches!(
        (entity_type.name, field),
        ("keyauth_credentials" | "keyauth_enc_credentials", "key")
            | ("jwt_secrets", "key" | "secret")
            | ("hmacauth_credentials", "secret")
            | ("oauth2_credentials", "client_id" | "client_secret")
    )
}

/// Makes values out of a form's texts if the description does not say their type.
pub fn infer(entity_type: &EntityType, fields: &mut Map<String, Value>) {
    if entity_type.is("certificates")
        && let Some(names) = fields.get_mut("snis")
        && names.is_string()
    {
        *names = json!([names.take()]);
    }
}

/// Makes values out of a form's texts that stand under former names.
pub fn infer_former_names(definition: &Definition, config: &mut Map<String, Value>) {
    for (former, record, field) in definition.shorthands {
        let mut described = Some(&definition.config);
        for step in record.split('.').filter(|step| !step.is_empty()) {
            described = match described
                .and_then(|record| record.field(step))
                .map(|field| field.kind)
            {
                Some(Kind::Record(record)) => Some(record),
                _ => None,
            };
        }
        if let Some(field) = described.and_then(|record| record.field(field))
            && let Some(value) = config.get_mut(*former)
        {
            form_body::infer(value, field);
        }
    }
}

/// Removes the fields that are not stored in the entity itself, and normalises the others. A whole certificate
/// (`PUT`) that names no servers has none.
///
/// # Errors
/// What is taken out is wrong.
pub fn prepare(
    entity_type: &EntityType,
    given: &mut Map<String, Value>,
    is_put: bool,
) -> Result<ServerNameChange, Failure> {
    let mut side = ServerNameChange::default();
    match entity_type.name {
        "certificates" => {
            side.server_names = match given.remove("snis") {
                None if !is_put => None,
                None | Some(Value::Null) => Some(Vec::new()),
                Some(Value::String(name)) => Some(vec![name]),
                Some(Value::Array(names)) => Some(read_server_names(&names)?),
                Some(_) => return Err(Failure::of_field("snis", "expected an array")),
            };
        }
        "targets" => {
            if let Some(Value::String(target)) = given.get_mut("target") {
                let message = "Invalid target; not a valid hostname or ip address";
                *target = text::full_target(target).ok_or_else(|| Failure::of_field("target", message))?;
            }
        }
        _ => {}
    }
    Ok(side)
}

/// Values that a hash is made of change together.
fn check_hashed(
    entity_type: &EntityType,
    given: &Map<String, Value>,
    old: &Map<String, Value>,
    problems: &mut Problems,
) {
    let (hashed, with, name) = match entity_type.name {
        "basicauth_credentials" => ("password", "consumer", "consumer.id"),
        "oauth2_credentials" => ("hash_secret", "client_secret", "client_secret"),
        _ => return,
    };
    let is_given = |field: &str| given.get(field).is_some_and(|value| !value.is_null());
    let is_other = given.get(with) != old.get(with);
    if (is_given(hashed) || is_other) && is_given(hashed) != is_given(with) {
        let message = format!("all or none of these fields must be set: '{hashed}', '{name}'");
        problems.error(&Location::ROOT, message);
    }
}

/// Reports what has other messages here than in documents, and takes it out of what is given.
/// `old`: the entity that is changed.
pub fn check_given(
    entity_type: &EntityType,
    given: &mut Map<String, Value>,
    old: Option<&Map<String, Value>>,
    problems: &mut Problems,
) {
    if let Some(old) = old {
        check_hashed(entity_type, given, old, problems);
    }
    if !entity_type.is("routes") {
        return;
    }
    let Some(Value::Array(protocols)) = given.get_mut("protocols") else {
        return;
    };
    let place = Location::ROOT;
    let place = place.field("protocols");
    if protocols.is_empty() {
        problems.error(&place, "length must be at least 1");
    }
    for (index, protocol) in protocols.iter().enumerate() {
        if !protocol.as_str().is_some_and(|it| PROTOCOLS.contains(&it)) {
            let message = match protocol {
                Value::String(_) => format!("expected one of: {}", PROTOCOLS.join(", ")),
                _ => "expected a string".to_owned(),
            };
            problems.error(&place.index(index), message);
        }
    }
    protocols.retain(|protocol| protocol.as_str().is_some_and(|it| PROTOCOLS.contains(&it)));
    if protocols.is_empty() {
        given.remove("protocols");
    }
}

/// Checks that a description cannot express.
pub fn check(
    entity_type: &'static EntityType,
    fields: &Map<String, Value>,
    workspace: &Workspace,
    now: SystemTime,
    problems: &mut Problems,
) {
    if !problems.0.is_empty() {
        return;
    }
    if let Some(definition) = definition(entity_type, fields) {
        check_plugin(definition, fields, workspace, problems);
    }
    if entity_type.is("ca_certificates")
        && let Some(certificate) = certificate_of(fields)
    {
        let now = unix_time::seconds(now);
        if certificate.not_after < i64::try_from(now).unwrap_or(i64::MAX) {
            let message = "certificate expired, \"Not After\" time is in the past";
            problems.error(&Location::ROOT, message);
        }
    }
}

/// Weir's plugin can do what the instance asks for, and it is one for calls that it can see.
fn check_plugin(
    definition: &Definition,
    fields: &Map<String, Value>,
    workspace: &Workspace,
    problems: &mut Problems,
) {
    let config = fields.get("config").cloned().unwrap_or_default();
    let is_served = plugins::DEFINITIONS
        .iter()
        .any(|served| std::ptr::eq(served, definition));
    let are_keys_missing = Cell::new(false);
    // What is not served can be kept all the same.
    let known = Consumers {
        find: &|name| find_consumer(workspace, name),
        authority: &|id| find_authority(workspace, id),
        key_set: &|name| find_key_set(workspace, name),
        // What there is not is made with the instance.
        signing_keys: &|name| {
            let found = find_signing_keys(workspace, name);
            are_keys_missing.set(are_keys_missing.get() || found.is_none());
            Some(found.unwrap_or_default())
        },
        vault: &|name| find_vault(workspace, name),
        // What they contain has been checked with them.
        graphql: &Vec::new,
    };
    let made = definition.translated(&config, &known);
    let (made, unfit) = match made {
        Ok(made) => (made, plugins::missing(definition.name, &config, &known)),
        Err(unfit) => (Value::Null, Some(unfit)),
    };
    let place = Location::ROOT.field("config");
    match unfit.filter(|_| is_served) {
        Some(unfit) if unfit.field.is_empty() => problems.error(&place, unfit.to_string()),
        Some(unfit) => problems.error(&place.field(unfit.field), unfit.to_string()),
        None if is_served && !made.is_null() && !are_keys_missing.get() => {
            let faults = unsupported_config::faults(definition.catalogue_name, &made);
            let words = faults.iter().map(|it| format!("{}: {}", it.path, it.message));
            if !faults.is_empty() {
                problems.error(&place, words.collect::<Vec<_>>().join("; "));
            }
        }
        None => {}
    }
    let protocols = fields.get("protocols");
    let place = Location::ROOT;
    if let Some(route) = fields.get("route").and_then(foreign_id) {
        if protocols_of(workspace, route).is_some_and(|of_route| !have_common(protocols, &of_route)) {
            problems.error(
                &place.field("protocols"),
                "must match the associated route's protocols",
            );
        }
    } else if let Some(service) = fields.get("service").and_then(foreign_id) {
        let routes = entity_type("routes").map(|routes| workspace.table(routes));
        let ids = routes.and_then(|routes| routes.referring("service", service));
        let fits =
            |id: &Uuid| protocols_of(workspace, *id).is_none_or(|of_route| have_common(protocols, &of_route));
        if ids.is_some_and(|ids| !ids.iter().any(fits)) {
            problems.error(
                &place.field("protocols"),
                "must match the protocols of at least one route pointing to this Plugin's service",
            );
        }
    }
}

fn protocols_of(workspace: &Workspace, route: Uuid) -> Option<Value> {
    let route = workspace.table(entity_type("routes")?).get(route)?;
    route.fields().remove("protocols")
}

fn have_common(protocols: Option<&Value>, others: &Value) -> bool {
    let (Some(protocols), Some(others)) = (protocols.and_then(Value::as_array), others.as_array()) else {
        return true;
    };
    protocols.iter().any(|protocol| others.contains(protocol))
}

/// The id of a consumer, by its name or its id.
pub fn find_consumer(workspace: &Workspace, name: &str) -> Option<String> {
    let table = workspace.table(entity_type("consumers")?);
    let by_id = Uuid::try_parse(name).ok().and_then(|id| table.get(id));
    let found = by_id.or_else(|| table.find("username", name))?;
    Some(found.id.to_string())
}

fn find_authority(workspace: &Workspace, id: &str) -> Option<String> {
    let table = workspace.table(entity_type("ca_certificates")?);
    let found = table.get(Uuid::try_parse(id).ok()?)?;
    let fields = found.fields();
    Some(fields.get("cert")?.as_str()?.to_owned())
}

pub fn find_key_set(workspace: &Workspace, name: &str) -> Option<Vec<PrivateKey>> {
    let sets = workspace.table(entity_type("key_sets")?);
    let by_id = Uuid::try_parse(name).ok().and_then(|id| sets.get(id));
    let set = by_id.or_else(|| sets.find("name", name))?;
    let keys = workspace.table(entity_type("keys")?);
    let members = keys.referring("set", set.id).into_iter().flatten();
    let key = |id: &Uuid| {
        let mut fields = keys.get(*id)?.fields();
        // What it belongs to is known, and written in another form here.
        fields.remove("set");
        serde_json::from_value::<Key>(Value::Object(fields))
            .ok()?
            .private()
    };
    Some(members.filter_map(key).collect())
}

/// The keys to sign with of a name: those of a set, else those that the gateway has made.
fn find_signing_keys(workspace: &Workspace, name: &str) -> Option<Vec<PrivateKey>> {
    find_key_set(workspace, name).or_else(|| {
        let made = workspace.table(entity_type(SIGNER_KEYS)?).find("name", name)?;
        Some(private_keys(made.fields().get("keys")?.as_array()?))
    })
}

/// A connection to a vault, by its name or its id.
pub fn find_vault(workspace: &Workspace, name: &str) -> Option<VaultServer> {
    let table = workspace.table(entity_type("vault_auth_vaults")?);
    let by_id = Uuid::try_parse(name).ok().and_then(|id| table.get(id));
    let found = by_id.or_else(|| table.find("name", name))?;
    let vault: VaultAuthVault = serde_json::from_value(Value::Object(found.fields())).ok()?;
    Some(vault.server())
}

fn certificate_of(fields: &Map<String, Value>) -> Option<Certificate> {
    Certificate::of_pem(fields.get("cert")?.as_str()?)
}

/// Turns what is given into what is kept, if that is something else.
pub fn transform(entity_type: &EntityType, fields: &mut Map<String, Value>, given: &Map<String, Value>) {
    if entity_type.is("ca_certificates")
        && let Some(certificate) = certificate_of(fields)
    {
        let hash = digest::digest(&digest::SHA256, &certificate.der);
        fields.insert("cert_digest".to_owned(), HEXLOWER.encode(hash.as_ref()).into());
    }
    if entity_type.is("oauth2_credentials")
        && fields.get("hash_secret") == Some(&Value::Bool(true))
        && let Some(Value::String(secret)) = fields.get_mut("client_secret")
        && !secret.starts_with(SECRET_HASH)
    {
        *secret = password_hash::secret_hash(secret);
    }
    if entity_type.is("basicauth_credentials")
        && let Some(Value::String(password)) = given.get("password")
    {
        let consumer = fields.get("consumer").and_then(foreign_id).unwrap_or_default();
        let hash = password_hash::password_hash(password, &consumer.to_string());
        fields.insert("password".to_owned(), hash.into());
    }
}
