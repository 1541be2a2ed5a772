//! The things that a write would take from another workspace: calls, server names, the prefix of a vault. It is
//! refused, unless the caller may write there as well.

use super::failure::Failure;
use super::plan::{WorkspaceView, id_of};
use crate::claims::Claim;
use crate::document::entity_type::EntityType;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use weir_dialect::RouteOwner;
use weir_model::{HostPattern, server_names_may_overlap};

impl WorkspaceView<'_> {
    /// Checks that an entity takes nothing of a workspace in which the caller may not write.
    ///
    /// # Errors
    /// It does.
    pub fn check_takeover(
        &self,
        entity_type: &'static EntityType,
        fields: &Map<String, Value>,
    ) -> Result<(), Failure> {
        if self.rights.are_all() {
            return Ok(());
        }
        if matches!(entity_type.name, "routes" | "snis")
            && self.others.is_some_and(|others| !others.are_known())
        {
            return Err(Failure::message(
                StatusCode::SERVICE_UNAVAILABLE,
                "what other dialects serve is not known yet; try again in a moment",
            ));
        }
        match entity_type.name {
            "routes" => self.check_calls(fields),
            "snis" => self.check_server_name(entity_type, fields),
            "vaults" => self.check_prefix(entity_type, fields),
            _ => Ok(()),
        }
    }

    fn check_calls(&self, fields: &Map<String, Value>) -> Result<(), Failure> {
        let (id, workspace) = (id_of(fields), Arc::from(self.name));
        let value = serde_json::to_vec(fields).map_err(|error| Failure::of_store(&error))?;
        let Some(claim) = Claim::of(&workspace, id, &value, self.state.router()) else {
            return Ok(());
        };
        let claims = self.state.claims();
        // What it takes already is reported, and stays as it is until a user with the right changes it.
        if claims
            .get(self.name, id)
            .is_some_and(|known| known.is_same(&claim))
        {
            return Ok(());
        }
        let mut others = claims
            .beside(&claim)
            .filter(|other| !self.rights.may_write(&other.workspace));
        let is_taken = others.any(|other| claim.takes_from(other))
            || self.others.is_some_and(|others| {
                let is_foreign =
                    |owner: RouteOwner<'_>| owner.is_behind && !self.rights.may_write(owner.workspace);
                others.any(crate::NAME, &mut |matches, owner| {
                    is_foreign(owner) && claim.takes_any_of(matches)
                }) || others.any_stream(crate::NAME, &mut |route, owner| {
                    is_foreign(owner) && claim.takes_sessions_of(route)
                })
            });
        match is_taken {
            true => Err(Failure::takeover(
                "API route collides with an existing API: it would take calls of another workspace, in which you may \
                 not write",
                fields,
                &["hosts", "paths", "methods", "headers", "snis", "destinations"],
            )),
            false => Ok(()),
        }
    }

    /// The names of another workspace's certificates and routes are that workspace's, patterns included. A certificate for
    /// one of them would be shown to its callers.
    fn check_server_name(
        &self,
        snis: &'static EntityType,
        fields: &Map<String, Value>,
    ) -> Result<(), Failure> {
        let own = fields.get("name").and_then(Value::as_str).unwrap_or_default();
        let pattern = HostPattern::parse(own);
        let own = [own.to_owned()];
        // Server names have no case: another workspace's may be the same in other letters.
        let takes = |name: &str| name != "*" && server_names_may_overlap(&own, &[name.to_owned()]);
        let refused = || {
            let message = "the server name is one of another workspace, in which you may not write";
            Err(Failure::takeover(message, fields, &["name"]))
        };
        let is_of_others = self.others.is_some_and(|others| {
            others.any_server_names(crate::NAME, &mut |names, workspace| {
                !self.rights.may_write(workspace) && names.iter().any(|name| takes(name))
            })
        });
        if is_of_others {
            return refused();
        }
        // A certificate for all names is shown where there is none for the name itself.
        if let Ok(pattern) = pattern
            && pattern != HostPattern::Any
        {
            let is_other = |workspace: &str| !self.rights.may_write(workspace);
            let mut routes = self.state.claims().of_others(self.name);
            let is_of_routes = routes.any(|it| is_other(&it.workspace) && it.has_server_name(&pattern))
                || self.others.is_some_and(|others| {
                    others.any(crate::NAME, &mut |matches, owner| {
                        is_other(owner.workspace) && matches.iter().any(|it| it.is_for_server_name(&pattern))
                    }) || others.any_stream(crate::NAME, &mut |route, owner| {
                        is_other(owner.workspace) && route.is_for_server_name(&pattern)
                    })
                });
            if is_of_routes {
                return refused();
            }
        }
        for workspace in self.other_workspaces() {
            let mut all = workspace.table(snis).all(uuid::Uuid::nil());
            let is_taken = all.any(|kept| {
                let fields = kept.fields();
                fields.get("name").and_then(Value::as_str).is_some_and(takes)
            });
            if is_taken {
                return refused();
            }
        }
        Ok(())
    }

    /// References lead to the vault of a prefix, whatever the workspace.
    fn check_prefix(&self, vaults: &'static EntityType, fields: &Map<String, Value>) -> Result<(), Failure> {
        let prefix = fields.get("prefix").and_then(Value::as_str).unwrap_or_default();
        let is_taken = self
            .other_workspaces()
            .any(|it| it.table(vaults).find("prefix", prefix).is_some());
        match is_taken {
            true => {
                let message = "the prefix is one of another workspace, in which you may not write";
                Err(Failure::takeover(message, fields, &["prefix"]))
            }
            false => Ok(()),
        }
    }

    /// The other workspaces, in which the caller may not write.
    fn other_workspaces(&self) -> impl Iterator<Item = &super::state::Workspace> {
        let all = self.state.named_workspaces();
        all.filter(|(name, _)| *name != self.name && !self.rights.may_write(name))
            .map(|(_, workspace)| workspace)
    }
}

impl Failure {
    /// A write that would take something of another workspace. The answer names neither that workspace nor its route.
    fn takeover(message: &str, fields: &Map<String, Value>, about: &[&str]) -> Self {
        let given = about.iter().filter_map(|name| {
            let value = fields.get(*name).filter(|value| !value.is_null())?;
            Some(((*name).to_owned(), value.clone()))
        });
        let given: Map<String, Value> = given.collect();
        Self::conflict(message, json!(given))
    }
}
