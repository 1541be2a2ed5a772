//! From a publication to native documents: a pure function.
//!
//! Names are derived (`ENV.API.VERSION.COMPONENT`), and each document says in `owned_by` which publication it belongs to.
//! There is one service document for each component, with a route for each operation in it; shared plugins and consumer
//! tables for plans; and a consumer for each subscription.
//!
//! A route's chain: the environment's plugins, an end of service, who calls, whether they have subscribed, the plan's
//! limits, then the plugins of the version, the component and the operation.

mod access;
mod backends;
mod credential_plugins;
mod limits;
mod products;
mod routes;

pub use access::{anonymous_consumer, consumer_of};
pub use products::{Offer, as_of_publication, limit_id as limit_of_product, product};
pub use routes::{base_path_fault, is_served};

use crate::entities::{
    Canary, Credential, Environment, Plan, PlanState, Publication, PublicationState, Revision, Subscription,
};
use crate::naming;
use crate::openapi::Description;
use serde::Serialize;
use serde_json::{Value, json};

/// A revision, with the document that it was made of.
#[derive(Debug, Clone, Copy)]
pub struct Content<'c> {
    /// The revision.
    pub revision: &'c Revision,
    /// Its document.
    pub description: &'c Description,
}

/// The entities that a publication is rendered from.
#[derive(Debug, Clone, Copy)]
pub struct Input<'i> {
    /// Where.
    pub environment: &'i Environment,
    /// The publication.
    pub publication: &'i Publication,
    /// The revision that it serves.
    pub stable: Content<'i>,
    /// The revision of its canary.
    pub candidate: Option<Content<'i>>,
    /// The plans of its version.
    pub plans: &'i [Plan],
    /// The subscriptions of the publication.
    pub subscriptions: &'i [Subscription],
    /// The credentials of those.
    pub credentials: &'i [Credential],
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// A native document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// The kind of resource, such as `services`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its content.
    pub value: Value,
}

impl Document {
    /// The key of the document in a store: `env/ENV/native/KIND/NAME`.
    pub fn key(&self, environment: &str) -> String {
        format!("{}{}/{}", prefix(environment), self.kind, self.name)
    }
}

/// The prefix of the keys of an environment's native documents.
pub fn prefix(environment: &str) -> String {
    format!("env/{environment}/native/")
}

/// The `owned_by` of documents of a publication.
pub fn owner(publication: &Publication) -> String {
    format!("publications/{}", publication.id())
}

/// A fault that prevents rendering, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RenderError {
    /// The place, such as `runtime.backends.main`.
    pub place: String,
    /// The fault.
    pub message: String,
}

/// The state of rendering.
struct Renderer<'i> {
    input: Input<'i>,
    /// `ENV.API.VERSION`.
    name: String,
    documents: Vec<Document>,
    faults: Vec<RenderError>,
}

impl Renderer<'_> {
    fn fault(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.faults.push(RenderError {
            place: place.into(),
            message: message.into(),
        });
    }

    fn document(&mut self, kind: &'static str, name: String, mut value: Value) {
        value["owned_by"] = owner(self.input.publication).into();
        self.documents.push(Document { kind, name, value });
    }

    /// A plugin that chains use by its id.
    fn plugin(&mut self, suffix: &str, plugin: &str, config: Value) -> String {
        let id = format!("{}.{suffix}", self.name);
        self.document("plugins", id.clone(), json!({ "id": id, plugin: config }));
        id
    }
}

/// The plans that count: those that are offered, and those that still serve their subscribers.
fn active(plans: &[Plan]) -> Vec<&Plan> {
    let mut active: Vec<&Plan> = plans
        .iter()
        .filter(|it| matches!(it.state, PlanState::Published | PlanState::Deprecated))
        .collect();
    active.sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
    active
}

/// The services of a canary's candidate, by their names in analytics.
pub fn candidate_services(publication: &Publication, candidate: &Revision) -> Vec<String> {
    let name = naming::publication(&publication.environment, &publication.api, &publication.version);
    let components = candidate.components.iter();
    components
        .map(|it| format!("{name}.{}.canary", it.name))
        .collect()
}

/// The services of a revision, by their names in analytics: those that are live, and those of a canary.
pub fn services(publication: &Publication, revision: &Revision) -> Vec<String> {
    let name = naming::publication(&publication.environment, &publication.api, &publication.version);
    let live = revision.components.iter().map(|it| format!("{name}.{}", it.name));
    live.chain(candidate_services(publication, revision)).collect()
}

/// The documents of a publication, in the order of their kinds and names.
///
/// # Errors
/// All that is wrong.
pub fn render(input: Input<'_>) -> Result<Vec<Document>, Vec<RenderError>> {
    let publication = input.publication;
    let name = naming::publication(&publication.environment, &publication.api, &publication.version);
    let mut renderer = Renderer {
        input,
        name,
        documents: Vec::new(),
        faults: Vec::new(),
    };
    if publication.state == PublicationState::Live {
        let upstreams = renderer.backends();
        let head = renderer.head();
        renderer.services(&input.stable, &upstreams, &head, None);
        if let (Some(candidate), Some(canary)) = (&input.candidate, &publication.canary) {
            let upstreams = renderer.backends_of_canary(&upstreams, canary, candidate.revision);
            renderer.services(candidate, &upstreams, &head, Some(canary));
        }
        renderer.unmatched(&head);
    }
    if !renderer.faults.is_empty() {
        return Err(renderer.faults);
    }
    let mut documents = renderer.documents;
    documents.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    Ok(documents)
}

/// The condition under which a call is the candidate's.
fn canary_condition(canary: &Canary) -> Value {
    use crate::entities::CanaryKey;
    let variable = match &canary.by {
        CanaryKey::Cookie(name) => format!("share_cookie_{name}"),
        CanaryKey::Header(name) => format!("share_http_{}", name.to_lowercase().replace('-', "_")),
        CanaryKey::Address => "share_remote_addr".to_owned(),
    };
    let share = json!([variable, "<", canary.share]);
    match &canary.when {
        Some(when) => json!(["AND", share, when]),
        None => share,
    }
}

#[cfg(test)]
mod tests;
