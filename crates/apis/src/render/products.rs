//! Products: what their subscribers are to a publication, and the documents that all publications of a product share.

use super::access::{consumer, outcome};
use super::limits::limit_config;
use super::{Document, active};
use crate::entities::{Credential, Plan, PlanSecurity, Product, ProductState, Subscription};
use crate::plans::NO_OPERATION;
use serde_json::{Value, json};

/// A product with all that belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'o> {
    /// The product.
    pub product: &'o Product,
    /// Its plans.
    pub plans: &'o [Plan],
    /// Its subscriptions.
    pub subscriptions: &'o [Subscription],
    /// Their credentials.
    pub credentials: &'o [Credential],
}

/// The name of a product's plan in publications: there is no dot in names, so no plan of a version has it.
fn plan_name(product: &str, plan: &str) -> String {
    format!("{product}.{plan}")
}

/// The id of the plugin that keeps subscribers to the limits of a product's plan. All publications share its counters.
pub fn limit_id(product: &str, plan: &str) -> String {
    let plan = plan.rsplit('.').next().unwrap_or(plan);
    format!("products.{product}.plan.{plan}")
}

/// The plans and subscriptions of a product as those of one of its publications: a plan opens the operations that the
/// product has chosen there.
pub fn as_of_publication(offer: &Offer<'_>, publication: &str) -> (Vec<Plan>, Vec<Subscription>) {
    let product = offer.product;
    let (Some(chosen), ProductState::Published) = (product.publications.get(publication), product.state)
    else {
        return (Vec::new(), Vec::new());
    };
    let plan = |plan: &Plan| Plan {
        product: product.name.clone(),
        name: plan_name(&product.name, &plan.name),
        operations: match (chosen.is_empty(), plan.operations.is_empty()) {
            (true, _) => plan.operations.clone(),
            (false, true) => chosen.clone(),
            (false, false) => both(chosen, &plan.operations),
        },
        ..plan.clone()
    };
    let subscription = |it: &Subscription| Subscription {
        publication: publication.to_owned(),
        plan: plan_name(&product.name, &it.plan),
        ..it.clone()
    };
    let plans = active(offer.plans)
        .into_iter()
        .filter(|it| it.security != PlanSecurity::Keyless);
    (
        plans.map(plan).collect(),
        offer.subscriptions.iter().map(subscription).collect(),
    )
}

/// The ids that are in both lists. If there are none, nothing is opened: an empty list would open all.
fn both(chosen: &[String], opened: &[String]) -> Vec<String> {
    let ids: Vec<String> = chosen.iter().filter(|it| opened.contains(it)).cloned().collect();
    match ids.is_empty() {
        true => vec![NO_OPERATION.to_owned()],
        false => ids,
    }
}

/// The documents that all publications of a product in an environment share: its consumers, and its limits.
pub fn product(offer: &Offer<'_>, now: u64) -> Vec<Document> {
    if offer.product.state != ProductState::Published {
        return Vec::new();
    }
    let owned = |kind: &'static str, name: String, mut value: Value| {
        value["owned_by"] = offer.product.id().into();
        Document { kind, name, value }
    };
    let mut documents: Vec<Document> = active(offer.plans)
        .into_iter()
        .filter(|it| !it.limits.is_empty())
        .map(|plan| {
            let id = limit_id(&offer.product.name, &plan.name);
            let value = json!({ "id": id, "rate-limit": limit_config(&plan.limits, "consumer") });
            owned("plugins", id, value)
        })
        .collect();
    for subscription in offer.subscriptions.iter().filter(|it| outcome(it, now).is_some()) {
        let (id, value) = consumer(subscription, offer.credentials, now);
        documents.push(owned("consumers", id, value));
    }
    documents.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    documents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::{Limit, Period, PlanState, SubscriptionState};

    #[test]
    fn ids_that_a_product_and_its_plan_share_are_opened() {
        let ids = |all: &[&str]| -> Vec<String> { all.iter().map(|it| (*it).to_owned()).collect() };
        for (chosen, opened, expected) in [
            (&["a", "b"][..], &["b", "c"][..], &["b"][..]),
            (&["a"], &["b"], &[NO_OPERATION]),
        ] {
            assert_eq!(both(&ids(chosen), &ids(opened)), expected);
        }
    }

    #[test]
    fn a_product_opens_what_it_has_chosen_and_shares_its_limits() {
        let mut product = Product {
            name: "bundle".into(),
            publications: [
                ("pets/1/test".to_owned(), vec!["list".to_owned()]),
                ("cats/1/test".to_owned(), Vec::new()),
            ]
            .into(),
            state: ProductState::Published,
            ..Product::default()
        };
        let plans = [Plan {
            name: "gold".into(),
            state: PlanState::Published,
            limits: vec![Limit {
                count: 5,
                per: Period::Day,
            }],
            ..Plan::default()
        }];
        let subscriptions = [Subscription {
            id: "s".into(),
            application: "shop".into(),
            product: "bundle".into(),
            plan: "gold".into(),
            state: SubscriptionState::Accepted,
            ..Subscription::default()
        }];
        let made = |product: &Product| {
            let offer = Offer {
                product,
                plans: &plans,
                subscriptions: &subscriptions,
                credentials: &[],
            };
            let of = |publication: &str| as_of_publication(&offer, publication);
            (
                of("pets/1/test"),
                of("cats/1/test"),
                of("dogs/1/test"),
                super::product(&offer, 1),
            )
        };
        let (pets, cats, dogs, documents) = made(&product);
        assert_eq!(
            (pets.0[0].name.as_str(), pets.0[0].operations.as_slice()),
            ("bundle.gold", &["list".to_owned()][..])
        );
        assert_eq!(
            (pets.1[0].plan.as_str(), pets.1[0].publication.as_str()),
            ("bundle.gold", "pets/1/test")
        );
        assert!(cats.0[0].operations.is_empty() && dogs.0.is_empty() && dogs.1.is_empty());
        let names: Vec<&str> = documents.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["sub.s", "products.bundle.plan.gold"]);
        assert!(
            documents
                .iter()
                .all(|it| it.value["owned_by"] == "products/bundle")
        );
        assert_eq!(limit_id("bundle", "bundle.gold"), "products.bundle.plan.gold");
        product.state = ProductState::Unpublished;
        let (pets, _, _, documents) = made(&product);
        assert!(pets.0.is_empty() && documents.is_empty());
    }
}
