//! Calls to the Admin API that change entities: what each is to write. The caller makes the commit.

use super::call::{ApiCall, RequestBody};
use super::entity_rules;
use super::failure::Failure;
use super::form_body;
use super::parse_entity::{self, Context};
use super::path::{EntitySelector, Parent, ResourcePath};
use super::plan::{ChangePlan, WorkspaceView, check_confined, check_time_to_live, id_of, keep_time_to_live};
use super::render_entity::definition;
use super::response::ApiResponse;
use super::server_names;
use super::signing_keys::NewKeys;
use super::table::{TableRow, foreign_id};
use super::unserved;
use crate::document::entity_type::EntityType;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::time::SystemTime;
use uuid::Uuid;
use weir_dialect::PluginCheck;

/// A call that changes something, at the workspace that it is for.
pub struct WriteRequest<'w> {
    /// The call.
    pub call: &'w ApiCall,
    /// Where.
    pub view: WorkspaceView<'w>,
    /// When.
    pub now: SystemTime,
    /// Keys for sets that instances of `jwt-signer` name, and which are not there; `None`: none are to be made.
    pub new_keys: Option<&'w NewKeys>,
    /// What gateways can serve of plugins; `None`: nothing is to be said of that.
    pub plugin_check: Option<&'w PluginCheck>,
}

impl WriteRequest<'_> {
    /// Works out what the call changes.
    ///
    /// # Errors
    /// Why it is refused; nothing is to be changed then.
    pub fn plan(&self, place: &ResourcePath) -> Result<ChangePlan, Failure> {
        match (place, self.call.method.as_str()) {
            (ResourcePath::Collection(entity_type, parent), "POST") => {
                self.create(entity_type, parent.as_ref())
            }
            (ResourcePath::Member(entity_type, pick, parent), "PUT") => {
                self.replace(entity_type, pick, parent.as_ref())
            }
            (ResourcePath::Member(entity_type, pick, parent), "PATCH") => {
                self.change(entity_type, pick, parent.as_ref())
            }
            (ResourcePath::Member(entity_type, pick, parent), "DELETE") => {
                self.remove(entity_type, pick, parent.as_ref())
            }
            (
                ResourcePath::Foreign {
                    of,
                    member,
                    field,
                    entity_type,
                },
                _,
            ) => self.foreign(of, member, field, entity_type),
            _ => Err(Failure(ApiResponse::method_not_allowed())),
        }
    }

    fn create(
        &self,
        entity_type: &'static EntityType,
        parent: Option<&Parent>,
    ) -> Result<ChangePlan, Failure> {
        let mut given = given(self.call, entity_type, None);
        self.insert_parent(&mut given, parent)?;
        self.store(entity_type, given, None, None, StatusCode::CREATED)
    }

    fn replace(
        &self,
        entity_type: &'static EntityType,
        pick: &EntitySelector,
        parent: Option<&Parent>,
    ) -> Result<ChangePlan, Failure> {
        // Targets are changed by `PUT` as by `PATCH`.
        if entity_type.is("targets") && parent.is_some() {
            return self.change(entity_type, pick, parent);
        }
        let owner = self.owner(parent)?;
        let old = pick.find_below(entity_type, self.view.workspace, owner)?;
        self.check_match(old.as_deref())?;
        let mut given = given(self.call, entity_type, None);
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
        self.store(entity_type, given, Some(id), old.as_deref(), StatusCode::OK)
    }

    fn change(
        &self,
        entity_type: &'static EntityType,
        pick: &EntitySelector,
        parent: Option<&Parent>,
    ) -> Result<ChangePlan, Failure> {
        let owner = self.owner(parent)?;
        let found = pick.find_below(entity_type, self.view.workspace, owner)?;
        if let Some(owner) = owner {
            check_belongs(found.as_deref(), owner)?;
        }
        let old = found.ok_or_else(|| pick.missing())?;
        self.check_match(Some(&old))?;
        let fields = old.fields();
        let mut given = given(self.call, entity_type, Some(&fields));
        if let Some((field, id)) = owner {
            given
                .entry(field)
                .or_insert_with(|| json!({ "id": id.to_string() }));
        }
        check_time_to_live(entity_type, &given)?;
        let side = entity_rules::prepare(entity_type, &mut given, self.call.method == Method::PUT)?;
        let new = parse_entity::read(
            entity_type,
            given.clone(),
            Some(old.id),
            Context::Change(&fields),
            self.view.workspace,
            self.now,
        )?;
        self.finish(entity_type, new, &given, side, StatusCode::OK)
    }

    fn remove(
        &self,
        entity_type: &'static EntityType,
        pick: &EntitySelector,
        parent: Option<&Parent>,
    ) -> Result<ChangePlan, Failure> {
        let owner = self.owner(parent)?;
        let found = pick.find_below(entity_type, self.view.workspace, owner)?;
        if let Some(owner) = owner {
            check_belongs(found.as_deref(), owner)?;
        }
        if found.is_none() && matches!(pick, EntitySelector::ServerName(_)) {
            return Err(pick.missing());
        }
        self.check_match(found.as_deref())?;
        let mut plan = ChangePlan::nothing(ApiResponse::no_content());
        if let Some(found) = found {
            self.view.remove(entity_type, found.id, &mut plan.changes)?;
        }
        Ok(plan)
    }

    /// Changes what a member refers to; if it refers to nothing yet, `PUT` makes it and lets the member refer to it.
    fn foreign(
        &self,
        of: &'static EntityType,
        member: &EntitySelector,
        field: &'static str,
        entity_type: &'static EntityType,
    ) -> Result<ChangePlan, Failure> {
        let member = member
            .find(of, self.view.workspace)?
            .ok_or_else(Failure::not_found)?;
        let mut member_fields = member.fields();
        let target = member_fields.get(field).and_then(foreign_id);
        match (self.call.method.as_str(), target) {
            ("DELETE", Some(_)) => Err(Failure(ApiResponse::method_not_allowed())),
            ("PATCH", Some(id)) => self.change(entity_type, &EntitySelector::Id(id), None),
            ("PUT", Some(id)) => self.replace(entity_type, &EntitySelector::Id(id), None),
            ("PUT", None) => {
                let id = Uuid::new_v4();
                let mut plan = self.replace(entity_type, &EntitySelector::Id(id), None)?;
                member_fields.insert(field.to_owned(), json!({ "id": id.to_string() }));
                plan.changes.push(self.view.put(of, &member_fields)?);
                Ok(plan)
            }
            ("DELETE" | "PATCH", None) => Err(Failure::not_found()),
            _ => Err(Failure(ApiResponse::method_not_allowed())),
        }
    }

    /// The entity below which the path goes on: the field that refers to it, and its id.
    fn owner(&self, parent: Option<&Parent>) -> Result<Option<(&'static str, Uuid)>, Failure> {
        parent.map(|parent| parent.owner(self.view.workspace)).transpose()
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
        entity_type: &'static EntityType,
        mut given: Map<String, Value>,
        id: Option<Uuid>,
        old: Option<&TableRow>,
        status: StatusCode,
    ) -> Result<ChangePlan, Failure> {
        check_time_to_live(entity_type, &given)?;
        let side = entity_rules::prepare(entity_type, &mut given, self.call.method == Method::PUT)?;
        let context = Context::Whole;
        let fields = parse_entity::read(
            entity_type,
            given.clone(),
            id,
            context,
            self.view.workspace,
            self.now,
        )?;
        let new_id = id_of(&fields);
        if old.is_none() && self.view.workspace.table(entity_type).get(new_id).is_some() {
            return Err(Failure::primary_key_violation(&new_id.to_string()));
        }
        self.finish(entity_type, fields, &given, side, status)
    }

    fn finish(
        &self,
        entity_type: &'static EntityType,
        mut fields: Map<String, Value>,
        given: &Map<String, Value>,
        side: server_names::ServerNameChange,
        status: StatusCode,
    ) -> Result<ChangePlan, Failure> {
        entity_rules::transform(entity_type, &mut fields, given);
        keep_time_to_live(entity_type, &mut fields, given, self.now);
        self.view.check(entity_type, &fields)?;
        check_confined(self.call.is_confined, entity_type, &fields)?;
        let mut changes = vec![self.view.put(entity_type, &fields)?];
        if let Some(new_keys) = self.new_keys.filter(|_| entity_type.is("plugins")) {
            new_keys.add(&self.view, &fields, self.now, &mut changes)?;
        }
        let names = side.apply(&self.view, id_of(&fields), self.now, &mut changes)?;
        let warnings = unserved::warnings(entity_type, &fields, self.plugin_check);
        let mut rendered = self.view.rendered(entity_type, fields);
        if let Some(names) = names {
            rendered.insert("snis".to_owned(), names.into());
        }
        Ok(ChangePlan {
            changes,
            answer: ApiResponse::json(status, &Value::Object(rendered)).with_warnings(warnings),
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
    call: &ApiCall,
    entity_type: &'static EntityType,
    old: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    match &call.body {
        RequestBody::Json(Value::Object(fields)) => fields.clone(),
        RequestBody::Form(fields) => {
            let mut fields = fields.clone();
            form_body::infer_fields(&mut fields, entity_type.record);
            let plugin =
                definition(entity_type, &fields).or_else(|| old.and_then(|old| definition(entity_type, old)));
            if let (Some(plugin), Some(Value::Object(config))) = (plugin, fields.get_mut("config")) {
                form_body::infer_fields(config, &plugin.config);
                entity_rules::infer_former_names(plugin, config);
            }
            entity_rules::infer(entity_type, &mut fields);
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
