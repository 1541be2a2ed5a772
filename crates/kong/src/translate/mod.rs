//! From a document to the model: everything about order and precedence is decided here.

mod agent_documents;
pub(crate) mod certificate;
pub(crate) mod chain;
pub(crate) mod consumer;
mod forward_proxy;
pub(crate) mod graphql;
mod health;
mod path;
pub(crate) mod precedence;
pub(crate) mod route;
pub(crate) mod service;
pub(crate) mod stream;

pub use route::NOT_GRPC;

use crate::document::Document;
use crate::plugins::acme;
use crate::{Options, RouterFlavor};
use serde_json::Value;
use weir_model::diagnostic::PathStep;
use weir_model::{DefaultCharset, Diagnostic, DialectSettings, DocPath, Model, PluginRef, Severity};

/// Checks and translates a whole declarative document. Diagnostics that come with the model are warnings, and resources
/// that are left out.
///
/// # Errors
/// The document is refused; all that is wrong with it.
pub fn translate(document: &Value, options: &Options) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (document, mut found) = Document::read(document)?;
    match model(document, options.router) {
        Ok((model, more)) => {
            found.extend(more);
            Ok((model, found))
        }
        Err(more) => {
            found.extend(more);
            Err(found)
        }
    }
}

/// Where in a document stands what a path of its model leads to, if that is a plugin. Its configuration there has other
/// fields than in the model, so the path ends at it. `None`: it is something else.
pub fn place_of_plugin(document: &Value, options: &Options, path: &DocPath) -> Option<DocPath> {
    let (model, _) = translate(document, options).ok()?;
    let (id, rest) = match path.0.as_slice() {
        [PathStep::Field(list), PathStep::Index(index), rest @ ..] if list == "plugins" => {
            (&model.plugins.get(*index)?.id, rest)
        }
        [
            PathStep::Field(list),
            PathStep::Index(index),
            PathStep::Field(inner),
            PathStep::Index(step),
            PathStep::Field(used),
            rest @ ..,
        ] if list == "routes" && inner == "plugins" && used == "use" => {
            match &model.routes.get(*index)?.plugins.get(*step)?.plugin {
                Some(PluginRef::Inline(instance)) => (&instance.id, rest),
                _ => return None,
            }
        }
        _ => return None,
    };
    let (document, _) = Document::read(document).ok()?;
    let plugin = (document.plugins.iter()).find(|it| it.value.id.to_string() == *id)?;
    let place = plugin.place.to_path();
    let is_in_config = matches!(rest.first(), Some(PathStep::Field(field)) if field == "config");
    Some(if is_in_config {
        place.field("config")
    } else {
        place
    })
}

/// Translates a document.
///
/// # Errors
/// Plugins whose configuration Weir cannot serve yet.
pub fn model(
    mut document: Document,
    router: RouterFlavor,
) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut found = Vec::new();
    let plugins = std::mem::take(&mut document.plugins);
    let acme = acme::entries(plugins.iter().map(|it| &it.value));
    let services = service::Services::translate(&document, &mut found);
    let mut chains = chain::Chains::translate(plugins, &document, &mut found);
    let routes = route::translate(&document, router, &services, &mut chains, &mut found);
    let stream_routes = stream::translate(&document, router, &services, &mut chains, &mut found);
    let unmatched = chains.unmatched();
    let (plugins, consumer_tables) = chains.into_parts();
    let model = Model {
        weir: 1,
        certificates: certificate::translate(&document),
        acme,
        dialect: crate::NAME,
        services: services.services,
        routes,
        stream_routes,
        upstreams: services.upstreams,
        consumers: consumer::translate(&document, &mut found),
        plugins,
        consumer_tables,
        unmatched,
        dialect_settings: vec![dialect_settings()],
        ..Model::default()
    };
    if found.iter().any(|found| found.severity == Severity::Error) {
        return Err(found);
    }
    Ok((model, found))
}

/// The settings of the original's web server for all routes.
pub(crate) fn dialect_settings() -> DialectSettings {
    DialectSettings {
        dialect: crate::NAME,
        trusts_real_ip_peers: true,
        answer_expect: true,
        plain_header_names: true,
        charset: Some(DefaultCharset::of_texts("UTF-8")),
        consumers_may_be_missing: true,
        ..DialectSettings::default()
    }
}
