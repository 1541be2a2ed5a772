//! The things that documents refer to instead of holding them: secrets and files of definitions. The texts
//! that refer to secrets are those of the dialects ([`weir_dialect::SecretSyntax`]).
//!
//! References are replaced in the model, right before it is compiled, so neither a store nor an Admin API ever holds
//! what they stand for. A value that cannot be had again stays what it was; what refers to a value that could never be
//! had is left out, because everyone can guess an empty secret; routes that ask for such a plugin refuse their calls, unless
//! it is one that may be missed.

mod cache;
mod definitions;
mod reading;
mod syntaxes;
mod unresolved;

pub use cache::Cache;
pub use reading::{Reading, SecretReadings, SecretState};
pub(crate) use syntaxes::Syntaxes;
pub use unresolved::{Policy, UnresolvedEffect, UnresolvedReference};

use cache::NO_FIELD;
use std::collections::{HashMap, HashSet};
use syntaxes::{References, field_of};
use weir_dialect::{DialectName, DialectSet, SkippedDocument};
use weir_model::{Acme, Certificate, ChainStep, Consumer, Model, PluginRef, UnservablePlugins, remove_steps};
use weir_plugins::is_skippable;

/// The targets of references, and the values that were found there.
#[derive(Debug, Default)]
pub struct Secrets {
    syntaxes: Syntaxes,
    /// The folders in which dialects look for definitions that others import.
    folders: Vec<&'static str>,
    cache: Cache,
}

impl Secrets {
    /// References of these dialects. Values are kept in a cache, which is shared with what refreshes them.
    pub fn new(dialects: &DialectSet, cache: Cache) -> Self {
        Self {
            syntaxes: Syntaxes::of(dialects),
            folders: dialects
                .iter()
                .flat_map(|it| it.definition_folders())
                .copied()
                .collect(),
            cache,
        }
    }

    /// Takes over one document, if it defines the target of references. Returns whether it does.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) -> bool {
        self.syntaxes.apply(key, value)
    }

    /// Puts secrets in the place of references in what documents of a dialect say (`None`: files). What refers to nothing
    /// is left out, and named. May wait a moment for values that are not known yet; not to be called on a thread of a
    /// runtime.
    pub fn resolve(&mut self, dialect: Option<DialectName>, model: &mut Model) -> Vec<SkippedDocument> {
        let unresolved = self.resolve_by(dialect, Policy::Serve, model);
        unresolved.into_iter().map(|it| it.broken).collect()
    }

    /// The same, and what becomes of that which refers to nothing. For a look, no more than certificates are left out.
    pub fn resolve_by(
        &mut self,
        dialect: Option<DialectName>,
        policy: Policy,
        model: &mut Model,
    ) -> Vec<UnresolvedReference> {
        let references = self.syntaxes.within(dialect);
        let mut leads = Vec::new();
        let mut are_there = false;
        for_each_config(references, model, &mut |_, config| {
            are_there = true;
            references.each(config, &mut |text| leads.extend(references.locate(text).ok()));
        });
        let texts = model.certificates.iter_mut().flat_map(texts_of);
        for text in texts.chain(model.acme.iter_mut().filter_map(text_of)) {
            leads.extend(references.locate(text).ok());
        }
        if !leads.is_empty() {
            self.cache.want(leads);
        }
        let mut broken = Vec::new();
        if are_there {
            broken = self.resolve_configs(references, policy, model);
        }
        let certificates = self.resolve_certificates(references, model).into_iter();
        broken.extend(certificates.map(|(broken, leads_nowhere)| UnresolvedReference {
            broken,
            effect: UnresolvedEffect::Dropped,
            leads_nowhere,
        }));
        broken
    }

    fn resolve_configs(
        &self,
        references: References<'_>,
        policy: Policy,
        model: &mut Model,
    ) -> Vec<UnresolvedReference> {
        let mut broken = Vec::new();
        let mut faulty = HashSet::new();
        for_each_config(references, model, &mut |owner, config| {
            let (mut fault, mut kept, mut leads_nowhere) = (None, None, false);
            let is_credential = matches!(owner, SecretOwner::Credential(..));
            references.each(config, &mut |text| match self.value(references, text) {
                Ok(value) => *text = value,
                Err(reason) if references.keeps(policy, text, is_credential) => {
                    kept = Some(format!("{reason}; {text} stays a text"));
                }
                Err(reason) => {
                    leads_nowhere |= references.locate(text).is_err();
                    fault = Some(named(text, &reason));
                }
            });
            if let Err(reason) = definitions::inline_files(config, &self.folders) {
                fault = Some(reason);
            }
            let effect = match fault {
                Some(_) if is_credential => UnresolvedEffect::Dropped,
                Some(_) => UnresolvedEffect::Skipped,
                None => UnresolvedEffect::AsText,
            };
            if let Some(reason) = fault.or(kept) {
                broken.push(UnresolvedReference {
                    broken: SkippedDocument {
                        document: owner.description(),
                        reason,
                    },
                    effect,
                    leads_nowhere,
                });
                if effect != UnresolvedEffect::AsText {
                    faulty.insert(owner);
                }
            }
        });
        if !faulty.is_empty() {
            leave_out(model, &faulty);
        }
        broken
    }

    /// What is left out, each with whether its reference leads nowhere.
    fn resolve_certificates(
        &self,
        references: References<'_>,
        model: &mut Model,
    ) -> Vec<(SkippedDocument, bool)> {
        let mut broken = Vec::new();
        model.certificates.retain_mut(|certificate| {
            let name = certificate.names.first().cloned().unwrap_or_default();
            let mut fault = None;
            for text in texts_of(certificate) {
                if !references.is_reference(text) {
                    continue;
                }
                match self.value(references, text) {
                    Ok(value) => *text = value,
                    Err(reason) => {
                        fault = Some((named(text, &reason), references.locate(text).is_err()));
                        break;
                    }
                }
            }
            let Some((mut reason, leads_nowhere)) = fault else {
                return true;
            };
            // Another certificate may have these names too, and ask clients for none.
            let is_kept = certificate.client.is_some();
            if is_kept {
                certificate.refuse_handshakes();
                reason.push_str(NO_HANDSHAKES);
            }
            let document = format!("certificate for '{name}'");
            broken.push((SkippedDocument { document, reason }, leads_nowhere));
            is_kept
        });
        for entry in &mut model.acme {
            let document = format!("acme '{}'", entry.name);
            let Some(text) = text_of(entry).filter(|text| references.is_reference(text)) else {
                continue;
            };
            match self.value(references, text) {
                Ok(value) => *text = value,
                Err(reason) => {
                    let leads_nowhere = references.locate(text).is_err();
                    let reason = format!("{}{NO_ORDERS}", named(text, &reason));
                    broken.push((SkippedDocument { document, reason }, leads_nowhere));
                    // Only orders need it: a certificate that was issued before is served.
                    text.clear();
                }
            }
        }
        broken
    }

    fn value(&self, references: References<'_>, text: &str) -> Result<String, String> {
        let target = references.locate(text)?;
        let secret = self.cache.get(&target.place);
        secret.and_then(|secret| {
            let value = field_of(&secret, target.field.as_deref());
            value.ok_or_else(|| NO_FIELD.to_owned())
        })
    }
}

/// The consequence for clients that would have to show a certificate.
const NO_HANDSHAKES: &str = "; handshakes for its names are refused";
/// The consequence for an entry whose account has no key.
const NO_ORDERS: &str = "; no certificate is ordered until it has a value";

/// Why a reference is of no use. Who reads this may see the reference, but not what the vault's document says of the place.
fn named(text: &str, reason: &str) -> String {
    format!("{text}: {reason}")
}

/// The texts of a certificate that may be references.
fn texts_of(certificate: &mut Certificate) -> impl Iterator<Item = &mut String> {
    let pairs = certificate.key_pairs.iter_mut();
    pairs.flat_map(|pair| [&mut pair.certificate, &mut pair.key])
}

/// The text of an entry that may be a reference.
fn text_of(entry: &mut Acme) -> Option<&mut String> {
    entry.external_account.as_mut().map(|account| &mut account.key)
}

/// The owner of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SecretOwner {
    /// A shared instance of a plugin.
    Plugin(String),
    /// A step of a route, by their places.
    Route(usize, usize, String),
    /// A step of the chain of unmatched calls.
    Unmatched(usize),
    /// A credential of a consumer, by their places.
    Credential(usize, usize, String),
}

impl SecretOwner {
    fn description(&self) -> String {
        match self {
            Self::Plugin(id) => format!("plugin '{id}'"),
            Self::Route(_, _, name) => format!("route '{name}'"),
            Self::Unmatched(_) => "the plugins of unmatched calls".to_owned(),
            Self::Credential(_, _, id) => format!("a credential of consumer '{id}'"),
        }
    }
}

/// Calls `visit` with every configuration of a plugin and every credential that refers to something elsewhere.
fn for_each_config(
    references: References<'_>,
    model: &mut Model,
    visit: &mut impl FnMut(SecretOwner, &mut serde_json::Value),
) {
    let inline = |steps: &mut [ChainStep], visit: &mut dyn FnMut(usize, &mut serde_json::Value)| {
        for (at, step) in steps.iter_mut().enumerate() {
            if let Some(PluginRef::Inline(instance)) = &mut step.plugin
                && has_external_references(references, &instance.config)
            {
                visit(at, &mut std::sync::Arc::make_mut(instance).config);
            }
        }
    };
    let plugins = model.plugins.iter_mut();
    for instance in plugins.filter(|it| has_external_references(references, &it.config)) {
        visit(SecretOwner::Plugin(instance.id.clone()), &mut instance.config);
    }
    for (at, route) in model.routes.iter_mut().enumerate() {
        // Those without a reference stay shared.
        if !route.plugins.iter().any(|step| has_reference(references, step)) {
            continue;
        }
        let route = std::sync::Arc::make_mut(route);
        let name = &route.name;
        inline(&mut route.plugins, &mut |step, config| {
            visit(SecretOwner::Route(at, step, name.clone()), config)
        });
    }
    inline(&mut model.unmatched, &mut |step, config| {
        visit(SecretOwner::Unmatched(step), config)
    });
    for (at, consumer) in model.consumers.iter_mut().enumerate() {
        let name = name_of(consumer);
        for (position, credential) in consumer.credentials.iter_mut().enumerate() {
            if has_external_references(references, &credential.config) {
                visit(
                    SecretOwner::Credential(at, position, name.clone()),
                    &mut credential.config,
                );
            }
        }
    }
}

/// What people call a consumer. Ids may be made of other things, and stand in no document.
fn name_of(consumer: &Consumer) -> String {
    consumer.username.as_ref().unwrap_or(&consumer.id).clone()
}

fn has_reference(references: References<'_>, step: &ChainStep) -> bool {
    matches!(&step.plugin, Some(PluginRef::Inline(instance)) if has_external_references(references, &instance.config))
}

fn has_external_references(references: References<'_>, config: &serde_json::Value) -> bool {
    references.are_in(config) || definitions::names_file(config)
}

/// Takes out what refers to nothing. Routes that ask for such a plugin refuse their calls, unless calls may pass without it.
fn leave_out(model: &mut Model, faulty: &HashSet<SecretOwner>) {
    let mut chains: HashMap<usize, HashSet<usize>> = HashMap::new();
    let mut unmatched = HashSet::new();
    for owner in faulty {
        match owner {
            SecretOwner::Route(route, step, _) => drop(chains.entry(*route).or_default().insert(*step)),
            SecretOwner::Unmatched(step) => drop(unmatched.insert(*step)),
            SecretOwner::Plugin(_) | SecretOwner::Credential(..) => {}
        }
    }
    for (at, steps) in chains {
        let route = std::sync::Arc::make_mut(&mut model.routes[at]);
        if remove_steps(&mut route.plugins, &steps, is_skippable) {
            route.refuse_calls();
        }
    }
    if remove_steps(&mut model.unmatched, &unmatched, is_skippable) {
        model.unmatched.clear();
    }
    let plugins = model.plugins.iter();
    let lost = plugins.filter(|it| faulty.contains(&SecretOwner::Plugin(it.id.clone())));
    let lost = UnservablePlugins::of(lost, is_skippable);
    model.remove_plugins(&lost);
    for (at, consumer) in model.consumers.iter_mut().enumerate() {
        let mut position = 0;
        let name = name_of(consumer);
        consumer.credentials.retain(|_| {
            position += 1;
            !faulty.contains(&SecretOwner::Credential(at, position - 1, name.clone()))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_model::RouteTarget;

    const SAMPLE: Option<DialectName> = Some(DialectName::new("sample"));
    const OTHER: Option<DialectName> = Some(DialectName::new("other"));

    fn secrets() -> Secrets {
        Secrets::new(&crate::sample::all(), Cache::default())
    }

    const DOCUMENT: &str = r#"{"weir": 1,
        "services": [{"name": "a", "url": "http://127.0.0.1:1", "routes": [
            {"name": "plain", "paths": ["/a"]},
            {"name": "good", "paths": ["/b"], "plugins": [{"request-termination": {"body": "sample:PATH"}}]},
            {"name": "bad", "paths": ["/c"], "plugins": [{"request-termination": {"body": "other:NOT_THERE_2"}}]},
            {"name": "shared", "paths": ["/d"], "plugins": [{"use": "p"}]}]}],
        "plugins": [{"id": "p", "request-termination": {"body": "sample:vault/a"}}],
        "consumers": [{"name": "c", "credentials": [
            {"key-auth": {"key": "other:PATH"}}, {"key-auth": {"key": "sample:NOT_THERE_2"}}]}]}"#;

    #[test]
    fn values_take_the_place_of_references_and_the_rest_is_left_out() {
        let document: serde_json::Value = serde_json::from_str(DOCUMENT).expect("JSON");
        let (mut model, _) = weir_native::translate(&document).expect("a model");
        let broken = secrets().resolve(None, &mut model);
        let names: Vec<&str> = broken.iter().map(|it| it.document.as_str()).collect();
        assert_eq!(
            names,
            ["plugin 'p'", "route 'bad'", "a credential of consumer 'c'"]
        );
        let names: Vec<&str> = model.routes.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["plain", "good", "bad", "shared"]);
        let refused = |at: usize| model.routes[at].target == RouteTarget::respond_before_plugins(503);
        let refused: Vec<bool> = (0..4).map(refused).collect();
        assert_eq!(refused, [false, false, true, true]);
        let path = std::env::var("PATH").expect("a path");
        assert_eq!(model.consumers[0].credentials.len(), 1);
        assert_eq!(model.consumers[0].credentials[0].config["key"], path.as_str());
        assert!(broken.iter().all(|it| !it.reason.contains(&path)));
    }

    /// Names whose clients must show a certificate never go to another certificate.
    #[test]
    fn certificates_that_ask_clients_for_one_keep_their_names_without_a_key() {
        use serde_json::json;
        let pair = |key: &str| json!([{"certificate": "c", "key": key}]);
        let client = json!({"authorities": "a"});
        let missing = "sample:NOT_THERE_2";
        let mut model: Model = serde_json::from_value(json!({"weir": 1,
            "certificates": [
                {"names": ["a.test"], "key_pairs": pair(missing), "client": client},
                {"names": ["b.test"], "key_pairs": pair(missing)},
                {"names": ["*.test"], "key_pairs": pair("k")}],
            "acme": [
                {"name": "c", "hosts": ["c.test"], "terms_accepted": true, "client": client,
                    "external_account": {"id": "i", "key": missing}},
                {"name": "d", "hosts": ["d.test"], "terms_accepted": true,
                    "external_account": {"id": "i", "key": missing}}]}))
        .expect("a model");
        let broken = secrets().resolve(None, &mut model);
        let refused: Vec<(&str, bool)> = broken
            .iter()
            .map(|it| (it.document.as_str(), it.reason.ends_with(NO_HANDSHAKES)))
            .collect();
        assert_eq!(
            refused,
            [
                ("certificate for 'a.test'", true),
                ("certificate for 'b.test'", false),
                ("acme 'c'", false),
                ("acme 'd'", false),
            ]
        );
        assert!(broken[2..].iter().all(|it| it.reason.ends_with(NO_ORDERS)));
        let left: Vec<(&str, bool)> = model
            .certificates
            .iter()
            .map(|it| (it.names[0].as_str(), it.refuses_handshakes()))
            .collect();
        assert_eq!(left, [("a.test", true), ("*.test", false)]);
        // What was issued for an entry is served; without the account's key nothing is ordered.
        let keys = model
            .acme
            .iter()
            .map(|it| (it.name.as_str(), it.client.is_some(), &it.external_account));
        let keys = keys.map(|(name, asks, account)| (name, asks, account.as_ref().map(|it| it.key.as_str())));
        let keys: Vec<_> = keys.collect();
        assert_eq!(keys, [("c", true, Some("")), ("d", false, Some(""))]);
        assert_eq!(crate::acme::wanted(&model), []);
    }

    /// Whether calls of `/a` are refused, for all and for the consumer, when this is all that refers to nothing.
    #[test]
    fn no_more_is_refused_than_needs_what_is_missing() {
        let missing = |name: &str| serde_json::json!({"id": "p", "name": name, "config": {"text": "sample:NOT_THERE_2"}});
        let shared = serde_json::json!([{"use": "p"}]);
        let of_consumer = serde_json::json!([{"use": "p", "overrides": ["t"]}]);
        let table = |plugin: &str| serde_json::json!([{"id": "t", "instances": {"c": plugin}}]);
        let fine = |name: &str| serde_json::json!({"id": "q", "name": name});
        for (plugins, steps, tables, all, own) in [
            (vec![missing("logger")], shared.clone(), table("p"), false, None),
            (vec![missing("key-auth")], shared, table("p"), true, Some("p")),
            (
                vec![],
                serde_json::json!([{"use": missing("tracing")}]),
                serde_json::json!([]),
                false,
                None,
            ),
            (
                vec![],
                serde_json::json!([{"use": missing("acl")}]),
                serde_json::json!([]),
                true,
                None,
            ),
            (
                vec![missing("rate-limit"), fine("rate-limit")],
                serde_json::json!([{"use": "q", "overrides": ["t"]}]),
                table("p"),
                false,
                Some("p"),
            ),
            (
                vec![missing("logger"), fine("logger")],
                serde_json::json!([{"use": "q", "overrides": ["t"]}]),
                table("p"),
                false,
                None,
            ),
            (
                vec![missing("logger"), fine("logger")],
                of_consumer,
                table("q"),
                false,
                Some("q"),
            ),
            // A response is too late.
            (
                vec![missing("response-transform")],
                serde_json::json!([{"overrides": ["t"], "response_only": true}]),
                table("p"),
                true,
                Some("p"),
            ),
        ] {
            let printed = format!("{plugins:?} {steps}");
            let mut model: Model = serde_json::from_value(serde_json::json!({"weir": 1,
                "services": [{"name": "s", "url": "http://h"}], "consumers": [{"id": "c"}],
                "routes": [{"name": "a", "match": [{"path": "/a"}], "to": {"service": "s"}, "plugins": steps}],
                "plugins": plugins, "consumer_tables": tables}))
            .unwrap_or_else(|error| panic!("{error}: {printed}"));
            let broken = secrets().resolve(None, &mut model);
            assert_eq!(broken.len(), 1, "{printed}");
            let is_refused = model.routes[0].target == RouteTarget::respond_before_plugins(503);
            let table = model.consumer_tables.first();
            let found = table.and_then(|it| it.instances.get("c")?.as_deref());
            assert_eq!(found, own, "{printed}");
            assert_eq!(is_refused, all, "{printed}");
            let placeholder = model.plugins.iter().find(|it| it.id == "p");
            assert_eq!(
                placeholder.map(|it| it.config["status"].as_u64()),
                own.filter(|it| *it == "p").map(|_| Some(503)),
                "{printed}"
            );
        }
    }

    #[test]
    fn references_may_stay_texts_but_for_credentials() {
        let document: serde_json::Value = serde_json::from_str(
            r#"{"weir": 1,
            "services": [{"name": "a", "url": "http://127.0.0.1:1", "routes": [
                {"name": "r", "paths": ["/a"], "plugins": [{"request-termination": {"body": "sample:NOT_THERE_2"}}]}]}],
            "consumers": [{"name": "c", "credentials": [{"key-auth": {"key": "sample:NOT_THERE_2"}}]}]}"#,
        )
        .expect("JSON");
        let (model, _) = weir_native::translate(&document).expect("a model");
        for (forms, policy, fates, routes, credentials) in [
            (
                SAMPLE,
                Policy::Serve,
                vec![UnresolvedEffect::AsText, UnresolvedEffect::Dropped],
                1,
                0,
            ),
            (
                None,
                Policy::Serve,
                vec![UnresolvedEffect::Skipped, UnresolvedEffect::Dropped],
                0,
                0,
            ),
            (
                None,
                Policy::Look,
                vec![UnresolvedEffect::AsText, UnresolvedEffect::AsText],
                1,
                1,
            ),
            (OTHER, Policy::Serve, vec![], 1, 1),
        ] {
            let mut model = model.clone();
            let unresolved = secrets().resolve_by(forms, policy, &mut model);
            let found: Vec<UnresolvedEffect> = unresolved.iter().map(|it| it.effect).collect();
            assert_eq!(found, fates, "{forms:?} {policy:?}");
            let served = model.routes.iter();
            let served = served.filter(|it| matches!(it.target, RouteTarget::Service(_)));
            let left = (served.count(), model.consumers[0].credentials.len());
            assert_eq!(left, (routes, credentials), "{forms:?} {policy:?}");
            let is_reported = unresolved
                .iter()
                .all(|it| it.broken.reason.contains("NOT_THERE_2"));
            assert!(is_reported, "{unresolved:?}");
        }
    }

    /// For a look, a variable that is not set may be set elsewhere; a vault that is not described is nowhere.
    #[test]
    fn references_that_lead_nowhere_are_told_from_those_without_a_value() {
        let text = r#"{"weir": 1, "consumers": [{"name": "c", "credentials": [{"key-auth": {"key": "sample:KEY"}}]}]}"#;
        for (key, policy, effect, leads_nowhere) in [
            ("NOT_THERE_2", Policy::Look, UnresolvedEffect::AsText, false),
            ("NOT_THERE_2", Policy::Serve, UnresolvedEffect::Dropped, false),
            ("vault/a", Policy::Look, UnresolvedEffect::Dropped, true),
            ("vault/a", Policy::Serve, UnresolvedEffect::Dropped, true),
        ] {
            let document = serde_json::from_str(&text.replace("KEY", key)).expect("JSON");
            let (mut model, _) = weir_native::translate(&document).expect("a model");
            let unresolved = secrets().resolve_by(None, policy, &mut model);
            let found: Vec<_> = unresolved
                .iter()
                .map(|it| (it.effect, it.leads_nowhere))
                .collect();
            assert_eq!(found, [(effect, leads_nowhere)], "{key} {policy:?}");
        }
    }

    #[test]
    fn references_of_another_dialect_are_texts() {
        let document: serde_json::Value = serde_json::from_str(DOCUMENT).expect("JSON");
        let (mut model, _) = weir_native::translate(&document).expect("a model");
        let broken = secrets().resolve(OTHER, &mut model);
        let names: Vec<&str> = broken.iter().map(|it| it.document.as_str()).collect();
        assert_eq!(names, ["route 'bad'"]);
        assert_eq!(model.plugins[0].config["body"], "sample:vault/a");
        let Some(PluginRef::Inline(plugin)) = &model.routes[1].plugins[0].plugin else {
            panic!("{:?}", model.routes[1]);
        };
        assert_eq!(plugin.config["body"], "sample:PATH");
    }
}
