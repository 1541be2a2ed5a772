//! Calls to the Admin API that change entities: what each is to write. The caller makes the commit.

use super::call::{Call, RequestBody};
use super::entity_rules;
use super::failure::Failure;
use super::form_body;
use super::parse_entity::{self, Context};
use super::path::{EntitySelector, Parent, ResourcePath};
use super::plan::{Plan, WorkspaceView, check_confined, id_of, keep_time_to_live};
use super::render_entity::definition;
use super::response::ApiResponse;
use super::server_names;
use super::table::{TableRow, foreign_id};
use super::unserved;
use crate::document::entity_type::EntityType;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::time::SystemTime;
use uuid::Uuid;

/// A call that changes something, at the workspace that it is for.
pub struct WriteRequest<'w> {
    /// The call.
    pub call: &'w Call,
    /// Where.
    pub site: WorkspaceView<'w>,
    /// When.
    pub now: SystemTime,
}

impl WriteRequest<'_> {
    /// Works out what the call changes.
    ///
    /// # Errors
    /// Why it is refused; nothing is to be changed then.
    pub fn plan(&self, place: &ResourcePath) -> Result<Plan, Failure> {
        match (place, self.call.method.as_str()) {
            (ResourcePath::Collection(family, parent), "POST") => self.create(family, parent.as_ref()),
            (ResourcePath::Member(family, pick, parent), "PUT") => {
                self.replace(family, pick, parent.as_ref())
            }
            (ResourcePath::Member(family, pick, parent), "PATCH") => {
                self.change(family, pick, parent.as_ref())
            }
            (ResourcePath::Member(family, pick, parent), "DELETE") => {
                self.remove(family, pick, parent.as_ref())
            }
            (
                ResourcePath::Foreign {
                    of,
                    member,
                    field,
                    family,
                },
                _,
            ) => self.foreign(of, member, field, family),
            _ => Err(Failure(ApiResponse::method_not_allowed())),
        }
    }

    fn create(&self, family: &'static EntityType, parent: Option<&Parent>) -> Result<Plan, Failure> {
        let mut given = given(self.call, family, None);
        self.insert_parent(&mut given, parent)?;
        self.store(family, given, None, None, StatusCode::CREATED)
    }

    fn replace(
        &self,
        family: &'static EntityType,
        pick: &EntitySelector,
        parent: Option<&Parent>,
    ) -> Result<Plan, Failure> {
        // Targets are changed by `PUT` as by `PATCH`.
        if family.is("targets") && parent.is_some() {
            return self.change(family, pick, parent);
        }
        let owner = self.owner(parent)?;
        let old = pick.find_below(family, self.site.workspace, owner)?;
        self.check_match(old.as_deref())?;
        let mut given = given(self.call, family, None);
        self.insert_parent(&mut given, parent)?;
        let id = match (pick, &old) {
            (EntitySelector::Id(id), _) => *id,
            (_, Some(old)) => old.id,
            _ => Uuid::new_v4(),
        };
        match pick {
            EntitySelector::Key(field, value) => {
                given.insert((*field).to_owned(), value.clone().into());
            }
            EntitySelector::Beside(field, value) => {
                given.entry(*field).or_insert_with(|| value.clone().into());
            }
            EntitySelector::ServerName(name) => server_names::add_server_name(&mut given, name),
            EntitySelector::Id(_) | EntitySelector::Other(_) => {}
        }
        self.store(family, given, Some(id), old.as_deref(), StatusCode::OK)
    }

    fn change(
        &self,
        family: &'static EntityType,
        pick: &EntitySelector,
        parent: Option<&Parent>,
    ) -> Result<Plan, Failure> {
        let owner = self.owner(parent)?;
        let found = pick.find_below(family, self.site.workspace, owner)?;
        if let Some(owner) = owner {
            check_belongs(found.as_deref(), owner)?;
        }
        let old = found.ok_or_else(|| pick.missing())?;
        self.check_match(Some(&old))?;
        let fields = old.fields();
        let mut given = given(self.call, family, Some(&fields));
        if let Some((field, id)) = owner {
            given
                .entry(field)
                .or_insert_with(|| json!({ "id": id.to_string() }));
        }
        let side = entity_rules::prepare(family, &mut given, self.call.method == Method::PUT)?;
        let new = parse_entity::read(
            family,
            given.clone(),
            Some(old.id),
            Context::Change(&fields),
            self.site.workspace,
            self.now,
        )?;
        self.finish(family, new, &given, side, StatusCode::OK)
    }

    fn remove(
        &self,
        family: &'static EntityType,
        pick: &EntitySelector,
        parent: Option<&Parent>,
    ) -> Result<Plan, Failure> {
        let owner = self.owner(parent)?;
        let found = pick.find_below(family, self.site.workspace, owner)?;
        if let Some(owner) = owner {
            check_belongs(found.as_deref(), owner)?;
        }
        if found.is_none() && matches!(pick, EntitySelector::ServerName(_)) {
            return Err(pick.missing());
        }
        self.check_match(found.as_deref())?;
        let mut plan = Plan::nothing(ApiResponse::no_content());
        if let Some(found) = found {
            self.site.remove(family, found.id, &mut plan.changes)?;
        }
        Ok(plan)
    }

    /// Changes what a member refers to; where it refers to nothing yet, `PUT` makes it and lets the member refer to it.
    fn foreign(
        &self,
        of: &'static EntityType,
        member: &EntitySelector,
        field: &'static str,
        family: &'static EntityType,
    ) -> Result<Plan, Failure> {
        let member = member
            .find(of, self.site.workspace)?
            .ok_or_else(Failure::not_found)?;
        let mut member_fields = member.fields();
        let target = member_fields.get(field).and_then(foreign_id);
        match (self.call.method.as_str(), target) {
            ("DELETE", Some(_)) => Err(Failure(ApiResponse::method_not_allowed())),
            ("PATCH", Some(id)) => self.change(family, &EntitySelector::Id(id), None),
            ("PUT", Some(id)) => self.replace(family, &EntitySelector::Id(id), None),
            ("PUT", None) => {
                let id = Uuid::new_v4();
                let mut plan = self.replace(family, &EntitySelector::Id(id), None)?;
                member_fields.insert(field.to_owned(), json!({ "id": id.to_string() }));
                plan.changes.push(self.site.put(of, &member_fields)?);
                Ok(plan)
            }
            ("DELETE" | "PATCH", None) => Err(Failure::not_found()),
            _ => Err(Failure(ApiResponse::method_not_allowed())),
        }
    }

    /// The entity below which the path goes on: the field that refers to it, and its id.
    fn owner(&self, parent: Option<&Parent>) -> Result<Option<(&'static str, Uuid)>, Failure> {
        parent.map(|parent| parent.owner(self.site.workspace)).transpose()
    }

    fn insert_parent(&self, given: &mut Map<String, Value>, parent: Option<&Parent>) -> Result<(), Failure> {
        if let Some((field, id)) = self.owner(parent)? {
            given.insert(field.to_owned(), json!({ "id": id.to_string() }));
        }
        Ok(())
    }

    /// A new entity, or one in the place of `old`.
    fn store(
        &self,
        family: &'static EntityType,
        mut given: Map<String, Value>,
        id: Option<Uuid>,
        old: Option<&TableRow>,
        status: StatusCode,
    ) -> Result<Plan, Failure> {
        let side = entity_rules::prepare(family, &mut given, self.call.method == Method::PUT)?;
        let context = Context::Whole;
        let fields = parse_entity::read(family, given.clone(), id, context, self.site.workspace, self.now)?;
        let new_id = id_of(&fields);
        if old.is_none() && self.site.workspace.table(family).get(new_id).is_some() {
            return Err(Failure::primary_key_violation(&new_id.to_string()));
        }
        self.finish(family, fields, &given, side, status)
    }

    fn finish(
        &self,
        family: &'static EntityType,
        mut fields: Map<String, Value>,
        given: &Map<String, Value>,
        side: server_names::ServerNameChange,
        status: StatusCode,
    ) -> Result<Plan, Failure> {
        entity_rules::transform(family, &mut fields, given);
        keep_time_to_live(family, &mut fields, given, self.now);
        self.site.check(family, &fields)?;
        check_confined(self.call.is_confined, family, &fields)?;
        let mut changes = vec![self.site.put(family, &fields)?];
        let names = side.apply(&self.site, id_of(&fields), self.now, &mut changes)?;
        let warning = unserved::warning(family, &fields);
        let mut rendered = self.site.rendered(family, fields);
        if let Some(names) = names {
            rendered.insert("snis".to_owned(), names.into());
        }
        Ok(Plan {
            changes,
            answer: ApiResponse::json(status, &Value::Object(rendered)).with_warnings(warning),
            has_document: true,
        })
    }

    /// The entity is still the one that the caller knows.
    fn check_match(&self, old: Option<&TableRow>) -> Result<(), Failure> {
        self.call.check_match(old.map(|old| old.modified))
    }
}

/// The fields that a call brings. `old`: those of the entity that it changes.
pub fn given(
    call: &Call,
    family: &'static EntityType,
    old: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    match &call.body {
        RequestBody::Json(Value::Object(fields)) => fields.clone(),
        RequestBody::Form(fields) => {
            let mut fields = fields.clone();
            form_body::infer_fields(&mut fields, family.record);
            let plugin = definition(family, &fields).or_else(|| old.and_then(|old| definition(family, old)));
            if let (Some(plugin), Some(Value::Object(config))) = (plugin, fields.get_mut("config")) {
                form_body::infer_fields(config, &plugin.config);
                entity_rules::infer_former_names(plugin, config);
            }
            entity_rules::infer(family, &mut fields);
            fields
        }
        _ => Map::new(),
    }
}

/// A member below another entity must belong to it.
pub fn check_belongs(found: Option<&TableRow>, (field, id): (&str, Uuid)) -> Result<(), Failure> {
    let belongs = found.is_some_and(|found| found.fields().get(field).and_then(foreign_id) == Some(id));
    if belongs {
        Ok(())
    } else {
        Err(Failure::not_found())
    }
}
