//! Access of callers: key authentication, consumer tables, limits, and consumers.

use super::credential_plugins::{self, credential, scope_of};
use super::{Renderer, active};
use crate::entities::{Credential, Deprecation, Plan, PlanSecurity, Subscription, SubscriptionState};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Why subscribers are refused: the end of the plugin's id, the reason for programs, and the text for people.
const CLOSED: [(&str, &str, &str); 5] = [
    (
        "paused",
        "subscription-paused",
        "The provider has paused this subscription.",
    ),
    (
        "stopped",
        "subscription-stopped",
        "The subscription is stopped. Its application can start it again.",
    ),
    ENDED,
    (
        "early",
        "subscription-not-begun",
        "The subscription has not begun yet.",
    ),
    (
        "not-in-plan",
        "not-in-plan",
        "The plan of this subscription does not contain this operation.",
    ),
];

/// The refusal of callers without a key that a keyless plan does not open an operation to.
const WITHOUT_KEY: (&str, &str, &str) = (
    "without-key",
    "not-in-plan",
    "The plan for calls without a key does not contain this operation.",
);

/// The refusal of those whose subscriptions have ended.
const ENDED: (&str, &str, &str) = ("expired", "subscription-ended", "The subscription has ended.");

/// The id under which calls below a component's prefix stand beside operations. No plan can name it, so that a plan which
/// opens some operations only does not open these calls.
pub(super) const NO_OPERATION: &str = "";

/// The label of consumers that holds the end of their subscriptions.
const ENDS_LABEL: &str = "ends";

/// The plugins in front of every route's own.
#[derive(Debug, Default)]
pub struct Head {
    /// Steps before callers are recognised.
    pub first: Vec<Value>,
    /// Steps that recognise callers.
    pub identify: Vec<Value>,
    /// The table of subscribers whose subscriptions end.
    pub ends: Option<String>,
    /// The table of who may call what, if there are plans: its id for each operation that not all plans open.
    pub access: BTreeMap<String, String>,
    /// The table for all other operations.
    pub access_to_all: Option<String>,
    /// The plugin that refuses callers that are in no table.
    pub refusal: Option<String>,
    /// The plugin that refuses calls of single operations by anybody, by their ids.
    pub refused_operations: BTreeMap<String, String>,
    /// Steps that limit.
    pub limit: Vec<Value>,
    /// Steps that limit single operations, by their ids.
    pub limit_of: BTreeMap<String, Vec<Value>>,
    /// Headers of all answers.
    pub headers: Vec<Value>,
}

impl Head {
    /// The steps in front of an operation's own plugins. `None`: all calls below a prefix, which are [`NO_OPERATION`].
    pub fn steps(&self, operation: Option<&str>) -> Vec<Value> {
        let operation = operation.unwrap_or(NO_OPERATION);
        let mut steps = self.first.clone();
        steps.extend(self.identify.iter().cloned());
        steps.extend(self.ends.iter().map(|id| json!({ "overrides": [id] })));
        let table = self.access.get(operation).or(self.access_to_all.as_ref());
        if let (Some(table), Some(refusal)) = (table, &self.refusal) {
            steps.push(json!({ "use": refusal, "overrides": [table] }));
        }
        let refused_operations = self.refused_operations.get(operation);
        steps.extend(refused_operations.map(|id| json!({ "use": id })));
        // What an operation's limit refuses uses up nothing of the plan's.
        let own = self.limit_of.get(operation);
        steps.extend(own.into_iter().flatten().cloned());
        steps.extend(self.limit.iter().cloned());
        steps
    }
}

/// The consumer that calls without a key count for, beside plans with keys: of the publication with this name.
pub fn anonymous_consumer(publication: &str) -> String {
    format!("{publication}.anonymous")
}

/// The consumer of a subscription.
pub fn consumer_of(subscription: &Subscription) -> String {
    format!("sub.{}", subscription.id)
}

impl Renderer<'_> {
    /// The plugins in front of every route's own, and the documents that they need.
    pub fn head(&mut self) -> Head {
        let input = self.input;
        let mut head = Head {
            first: input.environment.chain.clone(),
            ..Head::default()
        };
        self.end_of_service(&mut head);
        let plans = active(input.plans);
        let keyed: Vec<&Plan> = plans
            .iter()
            .copied()
            .filter(|it| it.security != PlanSecurity::Keyless)
            .collect();
        let keyless = plans
            .iter()
            .copied()
            .find(|it| it.security == PlanSecurity::Keyless);
        // Without any plan, as of keys: no key opens it.
        let none = Plan::default();
        match (keyed.as_slice(), keyless) {
            ([], None) if !input.publication.needs_plan => return head,
            ([], Some(plan)) => {
                self.without_keys(&mut head, plan);
                return head;
            }
            ([], None) => self.identify(&mut head, &[&none], false),
            (keyed, keyless) => self.identify(&mut head, keyed, keyless.is_some()),
        }
        self.tables(&mut head, &keyed, keyless);
        self.consumers();
        head
    }

    /// The only plan asks for no key: no caller is recognised.
    fn without_keys(&mut self, head: &mut Head, plan: &Plan) {
        let limit = self.limit(plan, "ip").into_iter();
        head.limit = limit.map(|id| json!({ "use": id })).collect();
        self.limits_of_operations(head, &[plan], None);
        let refused_operations: Vec<String> = self
            .operations()
            .filter(|id| !opens(plan, id))
            .map(str::to_owned)
            .collect();
        if refused_operations.is_empty() {
            return;
        }
        let refusal = self.refusal(WITHOUT_KEY);
        head.refused_operations = refused_operations
            .into_iter()
            .map(|id| (id, refusal.clone()))
            .collect();
    }

    /// The ids of all operations that are served, and of calls below a prefix.
    fn operations(&self) -> impl Iterator<Item = &str> {
        let contents = [Some(self.input.stable), self.input.candidate];
        contents.into_iter().flatten().flat_map(|content| {
            let mut components = content.revision.components.iter();
            let below = components.any(|it| it.prefix.is_some()).then_some(NO_OPERATION);
            let operations = content.description.operations.iter();
            operations.map(|it| it.id.as_str()).chain(below)
        })
    }

    /// The plugin that refuses callers with the status 403.
    fn refusal(&mut self, (suffix, reason, message): (&str, &str, &str)) -> String {
        let config = json!({ "status": 403, "message": message, "reason": reason });
        self.plugin(suffix, "request-termination", config)
    }

    fn end_of_service(&mut self, head: &mut Head) {
        let publication = self.input.publication;
        let deprecation = publication.deprecation.as_ref();
        if let Some(deprecation) = deprecation {
            head.headers = deprecation_headers(deprecation);
        }
        let is_over = deprecation
            .filter(|it| it.enforce)
            .and_then(|it| it.sunset)
            .is_some_and(|sunset| self.input.now >= sunset);
        if !is_over && !publication.retired {
            return;
        }
        let successor = deprecation.and_then(|it| it.successor.as_deref());
        let advice = successor
            .map(|it| format!(" Its successor is {it}."))
            .unwrap_or_default();
        let message = format!(
            "Version {} of {} is retired.{advice}",
            publication.version, publication.api
        );
        let gone = self.plugin(
            "gone",
            "request-termination",
            json!({ "status": 410, "message": message, "reason": "retired" }),
        );
        head.first.push(json!({ "use": gone }));
    }

    /// The plugins that recognise callers: each way that a plan has, in the order of the plans.
    fn identify(&mut self, head: &mut Head, plans: &[&Plan], is_keyless: bool) {
        let mut ways: Vec<(&str, Value)> = Vec::new();
        for plan in plans {
            let way = self.way(plan);
            // All signatures are looked at by each of them: the laxer one would let those of the other through.
            let signatures = ways.iter_mut().find(|it| it.0 == "hmac-auth" && way.0 == it.0);
            if let Some((_, known)) = signatures {
                credential_plugins::tighten(known, &way.1);
            } else if !ways.contains(&way) {
                ways.push(way);
            }
        }
        // A caller that no way knows is the anonymous one: the last way says so.
        if let Some((_, config)) = ways.last_mut().filter(|_| is_keyless) {
            let id = anonymous_consumer(&self.name);
            config["identity"] = json!({ "anonymous": id });
            let consumer = json!({ "id": id, "username": "anonymous" });
            self.document("consumers", id, consumer);
        }
        let id = match ways.as_slice() {
            [(name, config)] => self.plugin("key", name, config.clone()),
            _ => {
                let ways: Vec<Value> = ways
                    .into_iter()
                    .map(|(name, config)| json!({ name: config }))
                    .collect();
                self.plugin("key", "multi-auth", json!({ "any_of": ways }))
            }
        };
        head.identify.push(json!({ "use": id }));
    }

    /// Keys may stand in the document's place for them, and in the common places.
    pub(super) fn key_places(&self) -> Vec<Value> {
        let mut places: Vec<Value> = Vec::new();
        for scheme in self.input.stable.description.security_schemes.values() {
            let text = |field: &str| scheme.get(field).and_then(Value::as_str);
            if let (Some("apiKey"), Some(place @ ("header" | "query")), Some(name)) =
                (text("type"), text("in"), text("name"))
            {
                places.push(json!({ place: name }));
            }
        }
        for place in [
            json!({"header": "X-API-Key"}),
            json!({"header": "apikey"}),
            json!({"query": "apikey"}),
        ] {
            let is_same = |known: &Value| known.to_string().eq_ignore_ascii_case(&place.to_string());
            if !places.iter().any(is_same) {
                places.push(place);
            }
        }
        places
    }

    fn tables(&mut self, head: &mut Head, keyed: &[&Plan], keyless: Option<&Plan>) {
        let publication = self.input.publication;
        let what = format!("{} {}", publication.api, publication.version);
        let message = format!("There is no subscription to {what} for this key.");
        let none = self.refusal(("no-subscription", "no-subscription", &message));
        let closed: BTreeMap<&str, String> = CLOSED.into_iter().map(|it| (it.0, self.refusal(it))).collect();
        let anonymous = keyless.map(|_| anonymous_consumer(&self.name));
        let (mut all, mut limits) = (Map::new(), Map::new());
        let mut of_plan: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let limiting: BTreeMap<&str, Option<String>> = keyed
            .iter()
            .map(|plan| (plan.name.as_str(), self.limit(plan, "consumer")))
            .collect();
        for subscription in self.input.subscriptions {
            let Some(limit) = limiting.get(subscription.plan.as_str()) else {
                continue;
            };
            let Some(outcome) = outcome(subscription, self.input.now) else {
                continue;
            };
            let consumer = consumer_of(subscription);
            let instance = outcome
                .and_then(|suffix| closed.get(suffix))
                .map_or(Value::Null, |id| id.as_str().into());
            if instance.is_null() {
                of_plan
                    .entry(&subscription.plan)
                    .or_default()
                    .push(consumer.clone());
            }
            all.insert(consumer.clone(), instance);
            if let Some(limit) = limit {
                limits.insert(consumer, limit.as_str().into());
            }
        }
        if let (Some(anonymous), Some(plan)) = (&anonymous, keyless) {
            all.insert(anonymous.clone(), Value::Null);
            if let Some(limit) = self.limit(plan, "ip") {
                limits.insert(anonymous.clone(), limit.into());
            }
        }
        let plans: Vec<&Plan> = keyed.iter().copied().chain(keyless).collect();
        let mut refused_operations: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
        if let Some(refusal) = closed.get("not-in-plan") {
            let subscribers = of_plan.into_iter();
            refused_operations.extend(subscribers.map(|(plan, consumers)| {
                let refused = consumers.into_iter().map(|it| (it, refusal.clone()));
                (plan, refused.collect())
            }));
        }
        if let (Some(anonymous), Some(plan)) = (&anonymous, keyless)
            && !plan.operations.is_empty()
        {
            let refusal = self.refusal(WITHOUT_KEY);
            refused_operations.insert(&plan.name, vec![(anonymous.clone(), refusal)]);
        }
        self.narrow_tables(head, &plans, &all, &refused_operations);
        self.ends(head, &limiting);
        head.access_to_all = Some(self.table("access", all));
        head.refusal = Some(none);
        if !limits.is_empty() {
            let id = self.table("limits", limits);
            head.limit.push(json!({ "overrides": [id] }));
        }
        self.limits_of_operations(head, &plans, anonymous.as_deref());
    }

    /// The table of subscribers whose subscriptions end: gateways refuse them from then on by themselves, whether they
    /// reach their control plane or not.
    fn ends(&mut self, head: &mut Head, plans: &BTreeMap<&str, Option<String>>) {
        let input = self.input;
        let ending = input.subscriptions.iter();
        let ending =
            ending.filter(|it| plans.contains_key(it.plan.as_str()) && end_of(it, input.now).is_some());
        let consumers: Vec<String> = ending.map(consumer_of).collect();
        if consumers.is_empty() {
            return;
        }
        let config = json!({
            "status": 403, "message": ENDED.2, "reason": ENDED.1, "from_label": ENDS_LABEL,
        });
        let id = self.plugin("ends", "request-termination", config);
        let instances = consumers.into_iter().map(|it| (it, id.as_str().into())).collect();
        head.ends = Some(self.table("ends", instances));
    }

    /// Tables for operations that not all plans open: callers by the others are refused, each by its plugin.
    fn narrow_tables(
        &mut self,
        head: &mut Head,
        plans: &[&Plan],
        all: &Map<String, Value>,
        refused: &BTreeMap<&str, Vec<(String, String)>>,
    ) {
        if plans.iter().all(|plan| plan.operations.is_empty()) {
            return;
        }
        let ids: Vec<String> = self.operations().map(str::to_owned).collect();
        let mut made: BTreeMap<Vec<&str>, String> = BTreeMap::new();
        for id in ids {
            let refused_operations: Vec<&str> = plans
                .iter()
                .filter(|plan| !opens(plan, &id))
                .map(|plan| plan.name.as_str())
                .collect();
            if refused_operations.is_empty() || head.access.contains_key(&id) {
                continue;
            }
            let table = match made.get(&refused_operations) {
                Some(table) => table.clone(),
                None => {
                    let mut narrow = all.clone();
                    let refused = refused_operations
                        .iter()
                        .filter_map(|plan| refused.get(plan))
                        .flatten();
                    narrow.extend(refused.map(|(it, by)| (it.clone(), by.as_str().into())));
                    let table = self.table(
                        &format!("access-without-{}", refused_operations.join("-")),
                        narrow,
                    );
                    made.insert(refused_operations, table.clone());
                    table
                }
            };
            head.access.insert(id, table);
        }
    }

    pub(super) fn table(&mut self, suffix: &str, instances: Map<String, Value>) -> String {
        let id = format!("{}.{suffix}", self.name);
        self.document(
            "consumer_tables",
            id.clone(),
            json!({ "id": id, "instances": instances }),
        );
        id
    }

    /// A consumer for each subscription that may have keys.
    fn consumers(&mut self) {
        let input = self.input;
        for subscription in input.subscriptions {
            // Those of products belong to the product.
            if !subscription.product.is_empty() || outcome(subscription, input.now).is_none() {
                continue;
            }
            let (id, consumer) = consumer(subscription, input.credentials, input.now);
            self.document("consumers", id, consumer);
        }
    }
}

/// Whether a plan contains an operation.
fn opens(plan: &Plan, operation: &str) -> bool {
    plan.operations.is_empty() || plan.operations.iter().any(|it| it == operation)
}

/// The consumer that a subscription is, with the credentials that are good at a time.
pub(super) fn consumer(subscription: &Subscription, credentials: &[Credential], now: u64) -> (String, Value) {
    let of_it = |it: &&Credential| it.subscription == subscription.id && it.is_good(now);
    let mut good: Vec<&Credential> = credentials.iter().filter(of_it).collect();
    good.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    let scope = scope_of(subscription);
    let credentials: Vec<Value> = good.into_iter().map(|it| credential(it, &scope)).collect();
    let id = consumer_of(subscription);
    let mut labels = json!({ "application": subscription.application, "plan": subscription.plan });
    for (name, value) in [
        ("publication", &subscription.publication),
        ("product", &subscription.product),
    ] {
        if !value.is_empty() {
            labels[name] = value.as_str().into();
        }
    }
    if let Some(end) = end_of(subscription, now) {
        labels[ENDS_LABEL] = end.to_string().into();
    }
    let consumer = json!({
        "id": id,
        "username": subscription.application,
        "labels": labels,
        "credentials": credentials,
    });
    (id, consumer)
}

/// The end of a subscription that is still to come.
fn end_of(subscription: &Subscription, now: u64) -> Option<u64> {
    let known = outcome(subscription, now)?;
    subscription.ends.filter(|_| known != Some(ENDED.0))
}

/// The outcome of a subscriber's calls: they pass (`Some(None)`), they are refused for a reason, or the subscriber is
/// not known (`None`).
pub(super) fn outcome(subscription: &Subscription, now: u64) -> Option<Option<&'static str>> {
    match subscription.state {
        SubscriptionState::Pending | SubscriptionState::Rejected | SubscriptionState::Closed => None,
        SubscriptionState::Paused => Some(Some("paused")),
        SubscriptionState::Stopped => Some(Some("stopped")),
        SubscriptionState::Expired => Some(Some("expired")),
        SubscriptionState::Accepted if subscription.ends.is_some_and(|end| now >= end) => {
            Some(Some("expired"))
        }
        SubscriptionState::Accepted if subscription.starts.is_some_and(|start| now < start) => {
            Some(Some("early"))
        }
        SubscriptionState::Accepted => Some(None),
    }
}

/// The headers of RFC 9745 (`Deprecation`) and RFC 8594 (`Sunset`), and what they link to.
fn deprecation_headers(deprecation: &Deprecation) -> Vec<Value> {
    let header = |name: &str, text: String| json!({ "name": name, "value": { "text": text } });
    let mut headers = vec![header("Deprecation", format!("@{}", deprecation.since))];
    if let Some(sunset) = deprecation.sunset {
        headers.push(header("Sunset", http_date(sunset)));
    }
    let mut links = Vec::new();
    if let Some(link) = &deprecation.link {
        links.push(format!("<{link}>; rel=\"deprecation\""));
        if deprecation.sunset.is_some() {
            links.push(format!("<{link}>; rel=\"sunset\""));
        }
    }
    if let Some(successor) = &deprecation.successor {
        links.push(format!("<{successor}>; rel=\"successor-version\""));
    }
    if !links.is_empty() {
        headers.push(header("Link", links.join(", ")));
    }
    headers
}

fn http_date(seconds: u64) -> String {
    // The last date that the form can say.
    let seconds = seconds.min(253_402_300_799);
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds))
}
