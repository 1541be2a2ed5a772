//! The server names of a certificate, which calls give with it and which are entities of their own.

use super::failure::Failure;
use super::parse_entity::{self, Context};
use super::plan::WorkspaceView;
use super::table::foreign_id;
use crate::document::entity_type::family;
use crate::schema::text;
use serde_json::{Map, Value, json};
use std::time::SystemTime;
use uuid::Uuid;
use weir_store::Change;

/// What a call changes besides the entity that it is about.
#[derive(Debug, Default)]
pub struct Side {
    /// The server names that a certificate has from now on; `None`: those that it has.
    pub server_names: Option<Vec<String>>,
}

/// Adds a server name to those that are given for a certificate.
pub fn add_server_name(given: &mut Map<String, Value>, name: &str) {
    match given.entry("snis").or_insert(Value::Null) {
        Value::Array(names) => {
            if !names.iter().any(|known| known == name) {
                names.push(name.into());
            }
        }
        // Where none are given it has none from then on, this one included, as in the original.
        Value::Null => {}
        one if one == name => *one = json!([name]),
        one => *one = json!([one.take(), name]),
    }
}

/// The server names that are given for a certificate.
///
/// # Errors
/// One of them is none, or is there twice.
pub fn read_server_names(given: &[Value]) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::with_capacity(given.len());
    for (index, name) in given.iter().enumerate() {
        let complaint = match name.as_str() {
            None => Some("expected a string".to_owned()),
            Some(name) if names.iter().any(|known| known == name) => {
                return Err(Failure::of_field("snis", &format!("{name} is duplicated")));
            }
            Some(name) => text::sni(name).err(),
        };
        if let Some(complaint) = complaint {
            let mut list = vec![Value::Null; index];
            list.push(complaint.into());
            return Err(Failure::schema_violation(json!({ "snis": list })));
        }
        names.extend(name.as_str().map(str::to_owned));
    }
    Ok(names)
}

impl Side {
    /// Adds what changes besides the entity `id`. Returns the server names of a certificate where they are known from
    /// the call.
    ///
    /// # Errors
    /// A server name belongs to another certificate.
    pub fn apply(
        self,
        site: &WorkspaceView<'_>,
        id: Uuid,
        now: SystemTime,
        changes: &mut Vec<Change>,
    ) -> Result<Option<Vec<String>>, Failure> {
        let (Some(names), Some(snis)) = (self.server_names, family("snis")) else {
            return Ok(None);
        };
        let table = site.workspace.table(snis);
        for old in site.server_names(id) {
            if !names.contains(&old)
                && let Some(kept) = table.find("name", &old)
            {
                changes.push(site.delete(snis, kept.id)?);
            }
        }
        for name in &names {
            match table.find("name", name) {
                Some(kept) => {
                    let owner = kept.fields().get("certificate").and_then(foreign_id);
                    if owner != Some(id) {
                        let owner = owner.unwrap_or_default();
                        let complaint =
                            format!("{name} already associated with existing certificate '{owner}'");
                        return Err(Failure::of_field("snis", &complaint));
                    }
                }
                None => {
                    let given = Map::from_iter([
                        ("name".to_owned(), Value::from(name.as_str())),
                        ("certificate".to_owned(), json!({ "id": id.to_string() })),
                    ]);
                    let sni = parse_entity::read(snis, given, None, Context::Whole, site.workspace, now)?;
                    site.check_other_workspaces(snis, &sni)?;
                    changes.push(site.put(snis, &sni)?);
                }
            }
        }
        Ok(Some(names))
    }
}
