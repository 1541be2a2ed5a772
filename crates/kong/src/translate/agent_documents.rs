//! Routes and services in the data for policy agents (`opa`): what is written about them, with their defaults.

use crate::document::{Route, Service};
use serde::Serialize;
use serde_json::{Map, Value, json};
use weir_plugins::{ROUTE_DOCUMENT_LABEL, SERVICE_DOCUMENT_LABEL};

/// The labels of a route with these documents.
pub fn labels<'d>(
    route: &'d Route,
    service: Option<&'d Service>,
) -> impl Iterator<Item = (String, String)> + use<'d> {
    let service = service.map(|service| {
        let document = document(service, "client_certificate");
        (SERVICE_DOCUMENT_LABEL.to_owned(), document)
    });
    let route = (ROUTE_DOCUMENT_LABEL.to_owned(), document(route, "service"));
    std::iter::once(route).chain(service)
}

/// An entity as JSON, of which one field refers to another entity. What it has not is left out.
fn document(entity: &impl Serialize, reference: &str) -> String {
    let mut fields = match serde_json::to_value(entity) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    fields.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    });
    if let Some(id) = fields.get_mut(reference) {
        *id = json!({"id": id.take()});
    }
    for time in ["created_at", "updated_at"] {
        if let Some(value) = fields.get_mut(time)
            && let Some(seconds) = value.as_f64()
        {
            *value = (seconds as u64).into();
        }
    }
    Value::from(fields).to_string()
}
