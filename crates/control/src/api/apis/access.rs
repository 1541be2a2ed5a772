//! The callers of a publication: those of its own plans and subscriptions, and of products that it is in.

use super::entity_snapshot::{self, EntitySnapshot, PREFIX};
use crate::api::Problem;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use weir_apis::entities::{
    Application, Credential, PRODUCTS, Plan, PlanSecurity, PlanState, Product, ProductState, Publication,
    Subscription, SubscriptionState, Version,
};
use weir_apis::render::{self, Document, Offer};
use weir_apis::{naming, renames};

/// All products, subscriptions and credentials. Rendering several publications reads them once.
pub struct AllAccess {
    products: Vec<Product>,
    subscriptions: Vec<Subscription>,
    credentials: Vec<Credential>,
}

impl AllAccess {
    pub fn read(snapshot: &EntitySnapshot) -> Result<Self, Problem> {
        Ok(Self {
            products: snapshot.list(&entity_snapshot::product_key(""))?,
            subscriptions: snapshot.list(&format!("{PREFIX}subscriptions/"))?,
            credentials: snapshot.list(&format!("{PREFIX}credentials/"))?,
        })
    }

    /// A product.
    pub fn product(&self, name: &str) -> Option<&Product> {
        self.products.iter().find(|it| it.name == name)
    }

    /// The subscriptions for which something holds, with their credentials.
    fn of_subscriptions(&self, holds: impl Fn(&Subscription) -> bool) -> Access {
        let own = self.subscriptions.iter().filter(|it| holds(it));
        let subscriptions: Vec<Subscription> = own.cloned().collect();
        let ids: HashSet<&str> = subscriptions.iter().map(|it| it.id.as_str()).collect();
        let own = self
            .credentials
            .iter()
            .filter(|it| ids.contains(it.subscription.as_str()));
        Access {
            plans: Vec::new(),
            credentials: own.cloned().collect(),
            subscriptions,
        }
    }
}

/// Plans, subscriptions and credentials.
#[derive(Default)]
pub struct Access {
    pub plans: Vec<Plan>,
    pub subscriptions: Vec<Subscription>,
    pub credentials: Vec<Credential>,
}

impl Access {
    /// The subscription by which an application calls: an accepted one before one that is paused or over, in the order of
    /// the plans. `None`: gateways know none.
    pub fn subscription_of(&self, application: &str) -> Option<&Subscription> {
        use SubscriptionState::{Accepted, Expired, Paused, Stopped};
        let own = self.subscriptions.iter().filter(|it| {
            it.application == application && matches!(it.state, Accepted | Expired | Paused | Stopped)
        });
        own.min_by_key(|it| {
            let plan = self.plans.iter().position(|plan| plan.name == it.plan);
            (it.state != Accepted, plan.unwrap_or(usize::MAX))
        })
    }

    /// Of a publication, with those of products as if they were its own.
    pub fn of_publication(
        snapshot: &EntitySnapshot,
        all: &AllAccess,
        publication: &str,
    ) -> Result<Self, Problem> {
        let mut parts = publication.split('/');
        let (api, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let mut access = all.of_subscriptions(|it| it.publication == publication);
        access.plans = snapshot.plans(api, version)?;
        access.add_of_applications(snapshot)?;
        let products = all.products.iter();
        for product in products.filter(|it| it.publications.contains_key(publication)) {
            let own = Self::of_product(snapshot, all, product)?;
            let (plans, subscriptions) = render::as_of_publication(&own.offer(product), publication);
            access.plans.extend(plans);
            access.subscriptions.extend(subscriptions);
            access.credentials.extend(own.credentials);
        }
        name_as_published(snapshot, publication, &mut access.plans)?;
        Ok(access)
    }

    /// Of a product.
    fn of_product(snapshot: &EntitySnapshot, all: &AllAccess, product: &Product) -> Result<Self, Problem> {
        let mut access = all.of_subscriptions(|it| it.product == product.name);
        access.plans = snapshot.list(&entity_snapshot::product_plan_key(&product.name, ""))?;
        access.add_of_applications(snapshot)?;
        Ok(access)
    }

    /// Adds what plans know of applications: client ids and certificates. No two documents have to agree on them.
    fn add_of_applications(&mut self, snapshot: &EntitySnapshot) -> Result<(), Problem> {
        let plans = self.plans.iter().filter(|it| it.is_of_application());
        let plans: BTreeMap<&str, &Plan> = plans.map(|it| (it.name.as_str(), it)).collect();
        for subscription in &self.subscriptions {
            let Some(plan) = plans.get(subscription.plan.as_str()) else {
                continue;
            };
            let application = entity_snapshot::application_key(&subscription.application);
            if let Some(application) = snapshot.find::<Application>(&application)? {
                let own = Credential::of_application(subscription, plan, &application);
                self.credentials.extend(own);
            }
        }
        Ok(())
    }

    fn offer<'o>(&'o self, product: &'o Product) -> Offer<'o> {
        Offer {
            product,
            plans: &self.plans,
            subscriptions: &self.subscriptions,
            credentials: &self.credentials,
        }
    }
}

/// Gives operations the ids that they have where a version is published. The draft may have others by now.
fn name_as_published(
    snapshot: &EntitySnapshot,
    publication: &str,
    plans: &mut [Plan],
) -> Result<(), Problem> {
    let published: Option<Publication> = snapshot.find(&entity_snapshot::publication_key(publication))?;
    let Some(published) = published else {
        return Ok(());
    };
    let key = entity_snapshot::version_key(&published.api, &published.version);
    let Some(version) = snapshot.find::<Version>(&key)? else {
        return Ok(());
    };
    for plan in plans {
        let candidate = published.canary.as_ref().map(|it| it.revision);
        let candidate = candidate.map(|it| renames::as_of(plan, &version.renames, it));
        *plan = renames::as_of(plan, &version.renames, published.revision);
        for id in candidate.iter().flat_map(|it| &it.operations) {
            if !plan.operations.contains(id) {
                plan.operations.push(id.clone());
            }
        }
        for (id, limits) in candidate.into_iter().flat_map(|it| it.operation_limits) {
            plan.operation_limits.entry(id).or_insert(limits);
        }
    }
    Ok(())
}

/// Notes which publications have plans: their calls need one from then on, whatever becomes of the plans.
pub fn note_plans(snapshot: &mut EntitySnapshot, targets: &BTreeSet<String>) -> Result<(), Problem> {
    let products: Vec<Product> = snapshot.list(&entity_snapshot::product_key(""))?;
    let has_had = |it: &Plan| it.state != PlanState::Staging;
    for id in targets.iter().filter(|it| !it.starts_with(PRODUCTS)) {
        let key = entity_snapshot::publication_key(id);
        let known: Option<Publication> = snapshot.find(&key)?;
        let Some(mut publication) = known.filter(|it| !it.needs_plan) else {
            continue;
        };
        let mut plans = snapshot.plans(&publication.api, &publication.version)?;
        let offering = products.iter().filter(|it| it.publications.contains_key(id));
        for product in offering.filter(|it| it.state == ProductState::Published) {
            let own: Vec<Plan> = snapshot.list(&entity_snapshot::product_plan_key(&product.name, ""))?;
            plans.extend(own.into_iter().filter(|it| it.security != PlanSecurity::Keyless));
        }
        // An earlier release kept no note of it. What gateways have tells.
        let (api, version) = (&publication.api, &publication.version);
        let name = naming::publication(&publication.environment, api, version);
        let recognises = format!("{}plugins/{name}.key", render::prefix(&publication.environment));
        if plans.iter().any(has_had) || snapshot.before(&recognises).is_some() {
            publication.needs_plan = true;
            snapshot.put(&key, &publication)?;
        }
    }
    Ok(())
}

/// The documents of a product, which are the same in each of its environments.
pub fn documents_of_product(
    snapshot: &EntitySnapshot,
    all: &AllAccess,
    product: &Product,
    now: u64,
) -> Result<Vec<Document>, Problem> {
    let access = Access::of_product(snapshot, all, product)?;
    Ok(render::product(&access.offer(product), now))
}

/// The publications to render when something of a publication or a product changes: of a product, all of its
/// publications.
pub fn affected(snapshot: &EntitySnapshot, target: &str) -> Result<BTreeSet<String>, Problem> {
    let mut targets = BTreeSet::from([target.to_owned()]);
    if let Some(name) = target.strip_prefix(PRODUCTS)
        && let Some(product) = snapshot.find::<Product>(&entity_snapshot::product_key(name))?
    {
        targets.extend(product.publications.into_keys());
    }
    Ok(targets)
}

/// The publications to render when something of these subscriptions changes. Each product of theirs is read once.
pub fn affected_by<'s>(
    snapshot: &EntitySnapshot,
    subscriptions: impl Iterator<Item = &'s Subscription>,
) -> Result<BTreeSet<String>, Problem> {
    let targets: BTreeSet<String> = subscriptions.map(Subscription::target).collect();
    let mut all = BTreeSet::new();
    for target in targets {
        all.extend(affected(snapshot, &target)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use SubscriptionState::{Accepted, Closed, Paused, Pending, Rejected};

    #[test]
    fn a_publication_that_has_a_plan_needs_one_from_then_on() {
        let id = "pets/1/test";
        let plan = |state| Plan {
            state,
            ..Plan::default()
        };
        let product = |state| Product {
            name: "bundle".to_owned(),
            publications: [(id.to_owned(), Vec::new())].into(),
            state,
            ..Product::default()
        };
        let (unpublished, published) = (ProductState::Unpublished, ProductState::Published);
        for (own, of_product, expected) in [
            (None, None, false),
            (Some(PlanState::Staging), None, false),
            (Some(PlanState::Published), None, true),
            (Some(PlanState::Closed), None, true),
            (None, Some((unpublished, PlanState::Published)), false),
            (None, Some((published, PlanState::Staging)), false),
            (None, Some((published, PlanState::Published)), true),
        ] {
            let mut snapshot = EntitySnapshot::new(Vec::new());
            let publication = Publication {
                api: "pets".to_owned(),
                version: "1".to_owned(),
                environment: "test".to_owned(),
                ..Publication::default()
            };
            let key = entity_snapshot::publication_key(id);
            snapshot.put(&key, &publication).expect("put");
            if let Some(state) = own {
                let key = format!("{PREFIX}plans/pets/1/gold");
                snapshot.put(&key, &plan(state)).expect("put");
            }
            if let Some((state, of_plan)) = of_product {
                let key = entity_snapshot::product_key("bundle");
                snapshot.put(&key, &product(state)).expect("put");
                let key = entity_snapshot::product_plan_key("bundle", "gold");
                snapshot.put(&key, &plan(of_plan)).expect("put");
            }
            let targets = BTreeSet::from([id.to_owned(), format!("{PRODUCTS}bundle")]);
            note_plans(&mut snapshot, &targets).expect("noted");
            let known: Publication = snapshot.get(&key).expect("a publication");
            assert_eq!(known.needs_plan, expected, "{own:?} {of_product:?}");
            // It stays so without the plans.
            for key in snapshot.keys(&format!("{PREFIX}plans/")) {
                snapshot.remove(key.as_str());
            }
            snapshot.remove(&entity_snapshot::product_key("bundle"));
            note_plans(&mut snapshot, &targets).expect("noted");
            let known: Publication = snapshot.get(&key).expect("a publication");
            assert_eq!(known.needs_plan, expected, "{own:?} {of_product:?}");
        }
    }

    #[test]
    fn an_application_calls_by_its_accepted_subscription() {
        let plan = |name: &str| Plan {
            name: name.to_owned(),
            ..Plan::default()
        };
        for (states, expected) in [
            (&[("gold", Accepted), ("silver", Accepted)][..], Some("gold")),
            (&[("silver", Accepted), ("gold", Accepted)], Some("gold")),
            (&[("gold", Pending), ("silver", Accepted)], Some("silver")),
            (&[("gold", Paused), ("silver", Accepted)], Some("silver")),
            (&[("gold", Paused), ("silver", Pending)], Some("gold")),
            (&[("gold", Pending), ("silver", Rejected), ("gold", Closed)], None),
            (&[], None),
        ] {
            let of_shop = states.iter().map(|(plan, state)| Subscription {
                application: "shop".to_owned(),
                plan: (*plan).to_owned(),
                state: *state,
                ..Subscription::default()
            });
            let of_another = Subscription {
                application: "kiosk".to_owned(),
                plan: "gold".to_owned(),
                state: Accepted,
                ..Subscription::default()
            };
            let access = Access {
                plans: vec![plan("gold"), plan("silver")],
                subscriptions: [of_another].into_iter().chain(of_shop).collect(),
                ..Access::default()
            };
            let found = access.subscription_of("shop").map(|it| it.plan.as_str());
            assert_eq!(found, expected, "{states:?}");
        }
    }
}
