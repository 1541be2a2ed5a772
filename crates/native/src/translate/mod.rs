//! From a `weir.yaml` to the model: short forms become the model's own, unknown fields are errors.

mod chain;
mod consumer;
mod reader;
mod route;
mod stream;
mod upstream;

use crate::renamed::with_current_names;
use crate::shorthand::FIELDS;
use reader::{Reader, only};
use serde_json::{Map, Value};
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath, Model, Service};

/// The key at the top of a `weir.yaml`.
pub(crate) const MARK: &str = "weir";
/// The version of the text form that this build reads and writes.
pub(crate) const VERSION: u32 = 1;

/// The parts of a document that may be written in short; everything else stands there as in the model.
const IN_WORDS: [&str; 7] = [
    "services",
    "routes",
    "stream_routes",
    "upstreams",
    "consumers",
    "plugins",
    "unmatched",
];

/// Whether `document` says that it is a `weir.yaml`: it has the top-level key `weir`.
pub fn recognises(document: &Value) -> bool {
    document.get(MARK).is_some()
}

/// Turns a `weir.yaml` into a model; with it come warnings.
///
/// Names that lead from one resource to another (a route's service, a service's upstream) and the
/// configurations of plugins are not followed here: they may lead into another file, so they are checked when
/// the whole model is known, by [`Model::validate`] and the compile. [`crate::locate`] finds the place in the
/// document for what those find.
///
/// # Errors
/// All findings, when at least one of them refuses the document: unknown fields, values of a wrong type,
/// things said twice.
pub fn translate(document: &Value) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (document, mut warnings) = with_current_names(document);
    let mut reader = Reader::default();
    let model = reader.document(&document).unwrap_or_default();
    if reader.is_good() {
        warnings.extend(reader.into_findings());
        Ok((model, warnings))
    } else {
        Err(reader.into_findings())
    }
}

impl Reader {
    fn document(&mut self, document: &Value) -> Option<Model> {
        let root = DocPath::root();
        let map = self.map(document, &root)?;
        self.check_fields(map, &root, &FIELDS.document);
        match map.get("weir") {
            Some(version) if version.as_u64() == Some(VERSION.into()) => {}
            _ => {
                let message = format!("expected '{VERSION}', the version of the text form");
                self.error(root.field("weir"), message);
                return None;
            }
        }
        let own = only(map, |key| {
            !IN_WORDS.contains(&key) && FIELDS.document.iter().any(|field| field == key)
        });
        let mut model = self
            .typed::<Model>(&Value::Object(own), &root)
            .unwrap_or_default();
        let services = root.field("services");
        for (index, value) in self.list(map, "services", &root).iter().enumerate() {
            self.service(value, &services.index(index), &mut model);
        }
        model
            .routes
            .extend(self.each(map, "routes", |reader, value, place| {
                reader.route(value, place, None).map(Arc::new)
            }));
        model.stream_routes = self.each(map, "stream_routes", Self::stream_route);
        model.upstreams = self.each(map, "upstreams", |reader, value, place| {
            reader.upstream(value, place).map(Arc::new)
        });
        model.consumers = self.each(map, "consumers", Self::consumer);
        model.plugins = self.each(map, "plugins", Self::instance);
        model.unmatched = self.each(map, "unmatched", Self::step);
        Some(model)
    }

    /// The items of the document's list `name`, each read by `read`.
    fn each<T>(
        &mut self,
        map: &Map<String, Value>,
        name: &str,
        read: impl Fn(&mut Self, &Value, &DocPath) -> Option<T>,
    ) -> Vec<T> {
        let root = DocPath::root();
        let place = root.field(name);
        let items = self.list(map, name, &root);
        items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| read(self, item, &place.index(index)))
            .collect()
    }

    /// A service, and its routes with it.
    fn service(&mut self, value: &Value, place: &DocPath, model: &mut Model) {
        let Some(map) = self.map(value, place) else { return };
        let map = self.known(map, place, &FIELDS.service);
        let own = Value::Object(only(&map, |key| key != "routes"));
        let service = self.typed::<Service>(&own, place);
        let says = |field: &str| map.get(field).is_some_and(|it| !it.is_null());
        if !says("url") && !says("upstream") {
            self.error(
                place.clone(),
                "expected 'url' (one target) or 'upstream' (several)",
            );
        }
        let name = service.as_ref().map_or("", |service| &service.name);
        let routes = place.field("routes");
        for (index, route) in self.list(&map, "routes", place).iter().enumerate() {
            let route = self.route(route, &routes.index(index), Some(name));
            model.routes.extend(route.map(Arc::new));
        }
        model.services.extend(service.map(Arc::new));
    }
}
