//! Which callers see which entities of API management. An entity lies in APIs, environments or portals: a caller with a
//! right there sees it in lists and reads it, other callers do not. A list may be empty.
//!
//! **What it is not**: paths that name their API or environment are checked before, in `operation`.

use super::entity_snapshot::{self, EntitySnapshot, PREFIX};
use crate::access::{Action, Caller, Scope};
use crate::api::Problem;
use crate::api::operation::refusal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use weir_apis::entities::{Application, Product, Subscription};

/// The scopes that an entity lies in. A caller needs a right in one scope of each group.
#[derive(Clone)]
pub struct EntityScopes(Vec<Vec<Scope>>);

impl EntityScopes {
    /// Nowhere in particular: a right in everything is asked for.
    fn everywhere() -> Self {
        Self(vec![vec![Scope::Everything]])
    }

    fn of_api(name: &str) -> Self {
        Self(vec![vec![Scope::Api(name.to_owned())]])
    }

    /// Of `API/VERSION/ENVIRONMENT`: the API or the environment.
    pub fn of_publication(id: &str) -> Self {
        let parts: Vec<&str> = id.split('/').collect();
        match parts.as_slice() {
            [name, _, environment] => Self(vec![vec![
                Scope::Api((*name).to_owned()),
                Scope::Environment((*environment).to_owned()),
            ]]),
            _ => Self::everywhere(),
        }
    }

    /// All publications of a product.
    pub fn of_product(product: &Product) -> Self {
        let places = product.publications.keys();
        match product.publications.is_empty() {
            true => Self::everywhere(),
            false => Self(places.flat_map(|it| Self::of_publication(it).0).collect()),
        }
    }

    /// What a subscription is to.
    pub fn of_subscription(snapshot: &EntitySnapshot, subscription: &Subscription) -> Result<Self, Problem> {
        if subscription.product.is_empty() {
            return Ok(Self::of_publication(&subscription.publication));
        }
        let product: Option<Product> = snapshot.find(&entity_snapshot::product_key(&subscription.product))?;
        Ok(product.map_or_else(Self::everywhere, |it| Self::of_product(&it)))
    }

    /// Refuses a caller who may not do this in one of the places.
    pub fn permit(&self, caller: &Caller, action: Action) -> Result<(), Problem> {
        let is_allowed = |scopes: &&Vec<Scope>| scopes.iter().any(|scope| caller.can(action, scope));
        match self.0.iter().find(|it| !is_allowed(it)) {
            None => Ok(()),
            Some(scopes) => Err(Problem::forbidden(refusal(caller, action, scopes))),
        }
    }
}

/// Refuses a caller who may not change an application: that asks for a right everywhere, or where each of its subscriptions
/// is. An application without any is for everybody with a right in an API, unless it is a developer's.
pub fn permit_application(
    snapshot: &EntitySnapshot,
    caller: &Caller,
    application: &Application,
) -> Result<(), Problem> {
    const WRITE: Action = Action::SubscriptionsWrite;
    if caller.can(WRITE, &Scope::Everything) {
        return Ok(());
    }
    if !application.owner.is_empty() {
        return Err(Problem::forbidden(refusal(caller, WRITE, &[Scope::Everything])));
    }
    let all: Vec<Subscription> = snapshot.list(&format!("{PREFIX}subscriptions/"))?;
    let mut own = all
        .iter()
        .filter(|it| it.application == application.name)
        .peekable();
    if own.peek().is_none() {
        let is_part = |it: &Scope| matches!(it, Scope::Api(_) | Scope::Environment(_) | Scope::Portal(_));
        return match caller.scopes(WRITE).iter().any(is_part) {
            true => Ok(()),
            false => Err(Problem::forbidden(refusal(caller, WRITE, &[Scope::Everything]))),
        };
    }
    own.try_for_each(|it| EntityScopes::of_subscription(snapshot, it)?.permit(caller, WRITE))
}

/// The right that reading an entity of a kind asks for; `None`: nothing but the call's own.
fn action_of(kind: &str) -> Option<Action> {
    Some(match kind {
        "apis" | "versions" | "publications" | "products" => Action::ApisRead,
        "applications" | "subscriptions" => Action::SubscriptionsRead,
        "environments" => Action::EnvironmentsRead,
        "portals" => Action::PortalsRead,
        _ => return None,
    })
}

/// Which entities a caller sees.
pub struct VisibilityFilter<'s> {
    snapshot: &'s EntitySnapshot,
    caller: &'s Caller,
    /// The applications with a subscription that the caller sees; read once they are asked for.
    applications: Option<BTreeSet<String>>,
    /// Where the publications of products are, which many subscriptions may be to; read once they are asked for.
    products: BTreeMap<String, EntityScopes>,
}

impl<'s> VisibilityFilter<'s> {
    pub fn new(snapshot: &'s EntitySnapshot, caller: &'s Caller) -> Self {
        Self {
            snapshot,
            caller,
            applications: None,
            products: BTreeMap::new(),
        }
    }

    /// Those of a list that the caller sees, each as the caller sees it.
    pub fn of_list(&mut self, kind: &str, items: Vec<Value>) -> Result<Vec<Value>, Problem> {
        let is_all = action_of(kind).is_none_or(|it| self.caller.can(it, &Scope::Everything));
        if is_all {
            return Ok(items);
        }
        let mut seen = Vec::new();
        for item in items {
            if self.of_one(kind, &item)?.is_ok() {
                seen.push(item);
            } else if let Some(brief) = self.brief(kind, &item) {
                seen.push(brief);
            }
        }
        Ok(seen)
    }

    /// Refuses a caller who does not see an entity.
    pub fn demand(&mut self, kind: &str, item: &Value) -> Result<(), Problem> {
        self.of_one(kind, item)?
    }

    /// Whether the caller sees it, or why not. The outer error: the store is not understood.
    fn of_one(&mut self, kind: &str, item: &Value) -> Result<Result<(), Problem>, Problem> {
        let Some(action) = action_of(kind) else {
            return Ok(Ok(()));
        };
        let text = |field: &str| item[field].as_str().unwrap_or_default();
        let places = match kind {
            "apis" => EntityScopes::of_api(text("name")),
            "versions" => EntityScopes::of_api(text("api")),
            "publications" => EntityScopes::of_publication(&format!(
                "{}/{}/{}",
                text("api"),
                text("version"),
                text("environment")
            )),
            "products" => EntityScopes::of_product(&entity(item)?),
            "subscriptions" => self.of_subscription(&entity(item)?)?,
            "applications" if self.applications(action)?.contains(text("name")) => return Ok(Ok(())),
            // Who may change one may read it.
            "applications" => return Ok(permit_application(self.snapshot, self.caller, &entity(item)?)),
            "environments" => EntityScopes(vec![vec![Scope::Environment(text("name").to_owned())]]),
            "portals" => EntityScopes(vec![vec![Scope::Portal(text("name").to_owned())]]),
            _ => EntityScopes::everywhere(),
        };
        Ok(places.permit(self.caller, action))
    }

    /// What a subscription is to.
    fn of_subscription(&mut self, subscription: &Subscription) -> Result<EntityScopes, Problem> {
        if let Some(known) = self.products.get(&subscription.product) {
            return Ok(known.clone());
        }
        let places = EntityScopes::of_subscription(self.snapshot, subscription)?;
        if !subscription.product.is_empty() {
            self.products.insert(subscription.product.clone(), places.clone());
        }
        Ok(places)
    }

    /// The applications that have asked for something that the caller sees.
    fn applications(&mut self, action: Action) -> Result<&BTreeSet<String>, Problem> {
        if self.applications.is_none() {
            let all: Vec<Subscription> = self.snapshot.list(&format!("{PREFIX}subscriptions/"))?;
            let mut seen = BTreeSet::new();
            for it in all {
                let places = self.of_subscription(&it)?;
                if places.permit(self.caller, action).is_ok() {
                    seen.insert(it.application);
                }
            }
            self.applications = Some(seen);
        }
        Ok(self.applications.get_or_insert_default())
    }

    /// An environment as people see it who have a right in an API: where it can be published to, without plugins and
    /// variables.
    fn brief(&self, kind: &str, item: &Value) -> Option<Value> {
        const SHOWN: [&str; 8] = [
            "name",
            "display_name",
            "description",
            "labels",
            "kind",
            "order",
            "base_urls",
            "protected",
        ];
        let action = action_of(kind).filter(|it| *it == Action::EnvironmentsRead)?;
        let scopes = self.caller.scopes(action);
        if !scopes.iter().any(|it| matches!(it, Scope::Api(_))) {
            return None;
        }
        let mut brief = item.clone();
        brief
            .as_object_mut()?
            .retain(|field, _| SHOWN.contains(&field.as_str()));
        Some(brief)
    }
}

fn entity<T: serde::de::DeserializeOwned>(item: &Value) -> Result<T, Problem> {
    serde_json::from_value(item.clone())
        .map_err(|error| Problem::unreadable(format!("an entity in the store is not understood: {error}")))
}
