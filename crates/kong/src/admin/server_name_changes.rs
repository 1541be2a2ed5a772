//! The changes of a call to the server names of a certificate.

use super::failure::Failure;
use super::parse_entity::{self, Context};
use super::plan::WorkspaceView;
use super::server_names::ServerNameChange;
use super::table::foreign_id;
use crate::document::entity_type::entity_type;
use serde_json::{Map, Value, json};
use std::time::SystemTime;
use uuid::Uuid;
use weir_store::Change;

impl ServerNameChange {
    /// Adds what changes in addition to the entity `id`. Returns the server names of a certificate if they are known
    /// from the call.
    ///
    /// # Errors
    /// A server name belongs to another certificate.
    pub fn apply(
        self,
        view: &WorkspaceView<'_>,
        id: Uuid,
        now: SystemTime,
        changes: &mut Vec<Change>,
    ) -> Result<Option<Vec<String>>, Failure> {
        let (Some(names), Some(snis)) = (self.server_names, entity_type("snis")) else {
            return Ok(None);
        };
        let table = view.workspace.table(snis);
        for old in view.server_names(id) {
            if !names.contains(&old)
                && let Some(kept) = table.find("name", &old)
            {
                changes.push(view.delete(snis, kept.id)?);
            }
        }
        for name in &names {
            match table.find("name", name) {
                Some(kept) => {
                    let owner = kept.fields().get("certificate").and_then(foreign_id);
                    if owner != Some(id) {
                        let owner = owner.unwrap_or_default();
                        let message =
                            format!("{name} already associated with existing certificate '{owner}'");
                        return Err(Failure::of_field("snis", &message));
                    }
                }
                None => {
                    let given = Map::from_iter([
                        ("name".to_owned(), Value::from(name.as_str())),
                        ("certificate".to_owned(), json!({ "id": id.to_string() })),
                    ]);
                    let sni = parse_entity::read(snis, given, None, Context::Whole, view.workspace, now)?;
                    view.check_other_workspaces(snis, &sni)?;
                    changes.push(view.put(snis, &sni)?);
                }
            }
        }
        Ok(Some(names))
    }
}
