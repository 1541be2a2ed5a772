//! Compiling what can be compiled: a resource that the compile refuses is left out with all that leads to it, and
//! the rest is served. A route that cannot be compiled stays and refuses its calls, so that no other route takes them,
//! unless it is its path or another such condition that cannot be: they do not show which calls are its own. Without its
//! condition over variables, it refuses all calls that its other conditions hold for. A certificate whose clients must
//! show one stays too, and refuses handshakes: another certificate with its names could ask clients for none.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use weir_model::diagnostic::PathStep;
use weir_model::{
    Diagnostic, Model, PluginInstance, PluginRef, RouteTarget, Severity, UnservablePlugins, remove_steps,
};
use weir_plugin::Registry;
use weir_plugins::is_skippable;
use weir_snapshot::{CompileCache, PersistentState, Snapshot};

/// Leaving something out may let something else dangle, which shows in the next round.
const MAX_ROUNDS: usize = 8;

/// A resource that is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedResource {
    /// Its name for people.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Compiles a model, without what is wrong in it. What is known in `cache` is not compiled again; `hash` becomes the
/// snapshot's.
///
/// # Errors
/// The faults, if they cannot be left out.
pub fn compile(
    model: &Model,
    hash: u64,
    registry: &Registry,
    persistent: &PersistentState,
    cache: &mut CompileCache,
) -> Result<(Snapshot, Vec<SkippedResource>), Vec<Diagnostic>> {
    let reduced = reduce(model, hash, registry, persistent, cache)?;
    for warning in reduced.warnings {
        tracing::warn!(resource = warning.name, "{}", warning.reason);
    }
    Ok((reduced.snapshot, reduced.skipped))
}

/// The part of a model that can be served.
pub struct ReducedModel<'m> {
    /// Only what is served.
    pub model: Cow<'m, Model>,
    /// The same, compiled.
    pub snapshot: Snapshot,
    /// What is not served.
    pub skipped: Vec<SkippedResource>,
    /// Warnings about what is served.
    pub warnings: Vec<SkippedResource>,
    /// For each of the routes that are left, its position in the whole model.
    pub routes: Vec<usize>,
}

/// The same, with the model that is served. The caller reports the warnings.
///
/// # Errors
/// As [`compile`].
pub fn compile_reduced<'m>(
    model: &'m Model,
    registry: &Registry,
    persistent: &PersistentState,
) -> Result<ReducedModel<'m>, Vec<Diagnostic>> {
    reduce(model, 0, registry, persistent, &mut CompileCache::default())
}

/// Leaves out what cannot be compiled.
fn reduce<'m>(
    model: &'m Model,
    hash: u64,
    registry: &Registry,
    persistent: &PersistentState,
    cache: &mut CompileCache,
) -> Result<ReducedModel<'m>, Vec<Diagnostic>> {
    let mut model = Cow::Borrowed(model);
    let mut skipped = Vec::new();
    let mut routes: Vec<usize> = (0..model.routes.len()).collect();
    for _ in 0..MAX_ROUNDS {
        let found = match weir_snapshot::recompile(&model, hash, registry, persistent, cache) {
            Ok((snapshot, warnings)) => {
                let warnings = warnings.into_iter().map(|warning| SkippedResource {
                    name: name_of(&warning, &model),
                    reason: warning.message,
                });
                let warnings = warnings.collect();
                return Ok(ReducedModel {
                    model,
                    snapshot,
                    skipped,
                    warnings,
                    routes,
                });
            }
            Err(found) => found,
        };
        let mut culprits = RejectedPositions::default();
        for error in found.iter().filter(|it| it.severity == Severity::Error) {
            if !culprits.add(error) {
                return Err(found);
            }
            let reason = match is_refused(error, &model) {
                true => format!("{}; {REFUSED}", error.message),
                false => error.message.clone(),
            };
            skipped.push(SkippedResource {
                name: name_of(error, &model),
                reason,
            });
        }
        let dropped = culprits.leave_out_of(model.to_mut());
        drop_at(&mut routes, &dropped);
    }
    Err(Vec::new())
}

/// The consequence for calls that need what cannot be compiled.
const REFUSED: &str = "calls that come to it are refused";

/// Whether a finding is about a plugin, a table of plugins or the chain of a route.
fn is_about_plugins(found: &Diagnostic) -> bool {
    match found.path.0.as_slice() {
        [PathStep::Field(list), ..] if list == "plugins" || list == "consumer_tables" => true,
        [
            PathStep::Field(list),
            PathStep::Index(_),
            PathStep::Field(inner),
            ..,
        ] => matches!(list.as_str(), "routes" | "stream_routes") && inner == "plugins",
        _ => false,
    }
}

/// The position in the chain of a route that a finding about a plugin is about.
fn step_of(found: &Diagnostic) -> Option<usize> {
    match found.path.0.as_slice() {
        [_, _, _, PathStep::Index(step), PathStep::Field(inner), ..] if inner == "use" => Some(*step),
        _ => None,
    }
}

/// Whether a finding is about the service of a route.
fn is_about_service(found: &Diagnostic) -> bool {
    matches!(found.path.0.as_slice(), [_, PathStep::Index(_), PathStep::Field(inner), ..] if inner == "service")
}

/// What a finding about a route leaves of it.
enum RouteFault {
    /// Its name, or all of its conditions: nothing.
    Whole,
    /// The conditions of one match: its others.
    Match(usize),
    /// The condition over variables of one match: the match without it.
    When(usize),
    /// Another of its fields: its conditions.
    Field,
}

fn fault_of(path: &[PathStep]) -> RouteFault {
    match path.get(2..).unwrap_or_default() {
        [
            PathStep::Field(field),
            PathStep::Index(at),
            PathStep::Field(inner),
            ..,
        ] if field == "match" && inner == "when" => RouteFault::When(*at),
        [PathStep::Field(field), PathStep::Index(at), ..] if field == "match" => RouteFault::Match(*at),
        [PathStep::Field(field), ..] if field == "match" || field == "name" => RouteFault::Whole,
        [] => RouteFault::Whole,
        _ => RouteFault::Field,
    }
}

/// What a finding about a certificate leaves of it, if its clients must show one.
enum CertificateFault {
    /// The paths for which they need none: the certificate, for all of whose paths they need one.
    ExemptPaths,
    /// One of its names: the others.
    Name(usize),
    /// Something else: its names, for which handshakes are refused.
    Whole,
}

fn certificate_fault_of(path: &[PathStep]) -> CertificateFault {
    match path.get(2..).unwrap_or_default() {
        [PathStep::Field(field), PathStep::Field(inner), ..]
            if field == "client" && inner == "exempt_paths" =>
        {
            CertificateFault::ExemptPaths
        }
        [PathStep::Field(field), PathStep::Index(at), ..] if field == "names" => CertificateFault::Name(*at),
        _ => CertificateFault::Whole,
    }
}

/// Whether calls are refused for want of what a finding is about.
fn is_refused(found: &Diagnostic, model: &Model) -> bool {
    let [PathStep::Field(list), PathStep::Index(index), ..] = found.path.0.as_slice() else {
        return false;
    };
    let is_needed = |plugin: Option<&PluginInstance>| plugin.is_none_or(|it| !is_skippable(&it.name));
    match list.as_str() {
        "services" | "upstreams" => true,
        "plugins" => is_needed(model.plugins.get(*index)),
        "consumer_tables" => true,
        "certificates" => {
            let is_whole = matches!(certificate_fault_of(&found.path.0), CertificateFault::Whole);
            is_whole
                && model
                    .certificates
                    .get(*index)
                    .is_some_and(|it| it.client.is_some())
        }
        // Handshakes are refused both with an issued certificate and without one.
        "acme" => matches!(found.path.0.get(2), Some(PathStep::Field(field)) if field == "client"),
        "routes" | "stream_routes" if is_about_service(found) => true,
        "routes" if !is_about_plugins(found) => match fault_of(&found.path.0) {
            RouteFault::Whole => false,
            RouteFault::Match(_) => (model.routes.get(*index)).is_some_and(|it| it.matches.len() > 1),
            RouteFault::When(_) | RouteFault::Field => true,
        },
        "routes" if is_about_plugins(found) => {
            let route = model.routes.get(*index);
            let step = route.and_then(|route| route.plugins.get(step_of(found)?));
            is_needed(step.and_then(|step| match &step.plugin {
                Some(PluginRef::Inline(instance)) => Some(&**instance),
                _ => None,
            }))
        }
        _ => is_about_plugins(found),
    }
}

/// The name, for people, of the resource that a finding is about.
pub fn name_of(found: &Diagnostic, model: &Model) -> String {
    match resource_of(found, model) {
        Some((list, name)) => format!("{} '{name}'", kind_of(list)),
        None => found.path.to_string(),
    }
}

/// A list of a model in the words for one resource of it.
fn kind_of(list: &str) -> &str {
    match list {
        "stream_routes" => "stream route",
        "consumer_tables" => "consumer table",
        "dialect_settings" => "settings of the dialect",
        "certificates" => "certificate for",
        "acme" => "acme",
        list => list.trim_end_matches('s'),
    }
}

/// The list and the name of the resource that a finding is about.
pub fn resource_of<'m>(found: &'m Diagnostic, model: &'m Model) -> Option<(&'m str, &'m str)> {
    let [PathStep::Field(list), PathStep::Index(index), ..] = found.path.0.as_slice() else {
        return None;
    };
    let (list, index) = (list.as_str(), *index);
    let name = match list {
        "services" => model.services.get(index)?.name.as_str(),
        "routes" => model.routes.get(index)?.name.as_str(),
        "stream_routes" => model.stream_routes.get(index)?.name.as_str(),
        "upstreams" => model.upstreams.get(index)?.name.as_str(),
        "consumers" => model.consumers.get(index)?.id.as_str(),
        "plugins" => model.plugins.get(index)?.id.as_str(),
        "consumer_tables" => model.consumer_tables.get(index)?.id.as_str(),
        "dialect_settings" => model.dialect_settings.get(index)?.dialect.as_str(),
        "acme" => model.acme.get(index)?.name.as_str(),
        "certificates" => model
            .certificates
            .get(index)?
            .names
            .first()
            .map_or("", String::as_str),
        _ => return None,
    };
    Some((list, name))
}

/// The positions of what is to be left out, by list.
#[derive(Default)]
struct RejectedPositions {
    services: HashSet<usize>,
    routes: HashSet<usize>,
    /// Routes whose chains cannot be compiled, or that lead nowhere.
    refusing: HashSet<usize>,
    /// Routes another of whose fields cannot be compiled.
    faulty: HashSet<usize>,
    /// Route and match.
    matches: BTreeSet<(usize, usize)>,
    /// Route and match whose condition over variables cannot be compiled.
    conditions: BTreeSet<(usize, usize)>,
    /// Steps of routes that cannot be compiled.
    steps: HashMap<usize, HashSet<usize>>,
    stream_routes: HashSet<usize>,
    refusing_streams: HashSet<usize>,
    upstreams: HashSet<usize>,
    consumers: HashSet<usize>,
    /// Consumer and credential.
    credentials: BTreeSet<(usize, usize)>,
    plugins: HashSet<usize>,
    consumer_tables: HashSet<usize>,
    certificates: HashSet<usize>,
    /// Certificates whose exempt paths cannot be compiled.
    exempt_paths: HashSet<usize>,
    /// Certificate and name.
    names: BTreeSet<(usize, usize)>,
    acme: HashSet<usize>,
    dialect_settings: HashSet<usize>,
    unmatched: bool,
}

impl RejectedPositions {
    /// Whether what the finding is about can be left out.
    fn add(&mut self, found: &Diagnostic) -> bool {
        match found.path.0.as_slice() {
            [PathStep::Field(list), ..] if list == "unmatched" => self.unmatched = true,
            [
                PathStep::Field(list),
                PathStep::Index(consumer),
                PathStep::Field(inner),
                PathStep::Index(credential),
                ..,
            ] if list == "consumers" && inner == "credentials" => {
                self.credentials.insert((*consumer, *credential));
            }
            [PathStep::Field(list), PathStep::Index(index), ..] => {
                let is_refusing = is_about_plugins(found) || is_about_service(found);
                if let Some(step) = step_of(found).filter(|_| list == "routes" && is_about_plugins(found)) {
                    self.steps.entry(*index).or_default().insert(step);
                    return true;
                }
                if list == "routes" && !is_refusing {
                    match fault_of(&found.path.0) {
                        RouteFault::Whole => self.routes.insert(*index),
                        RouteFault::Match(at) => self.matches.insert((*index, at)),
                        RouteFault::When(at) => self.conditions.insert((*index, at)),
                        RouteFault::Field => self.faulty.insert(*index),
                    };
                    return true;
                }
                if list == "certificates" {
                    match certificate_fault_of(&found.path.0) {
                        CertificateFault::ExemptPaths => self.exempt_paths.insert(*index),
                        CertificateFault::Name(at) => self.names.insert((*index, at)),
                        CertificateFault::Whole => self.certificates.insert(*index),
                    };
                    return true;
                }
                let culprits = match list.as_str() {
                    "services" => &mut self.services,
                    "routes" => &mut self.refusing,
                    "stream_routes" if is_refusing => &mut self.refusing_streams,
                    "stream_routes" => &mut self.stream_routes,
                    "upstreams" => &mut self.upstreams,
                    "consumers" => &mut self.consumers,
                    "plugins" => &mut self.plugins,
                    "consumer_tables" => &mut self.consumer_tables,
                    "acme" => &mut self.acme,
                    "dialect_settings" => &mut self.dialect_settings,
                    _ => return false,
                };
                culprits.insert(*index);
            }
            _ => return false,
        }
        true
    }

    /// Leaves them out with all that leads to them. A route is never served without a plugin that it needs. If it lacks one, or
    /// its service, it stays and refuses calls: another route that asks for less could take them.
    ///
    /// Returns the positions of the routes that are gone.
    fn leave_out_of(mut self, model: &mut Model) -> HashSet<usize> {
        for (consumer, credential) in self.credentials.iter().rev() {
            if let Some(consumer) = model.consumers.get_mut(*consumer)
                && *credential < consumer.credentials.len()
            {
                consumer.credentials.remove(*credential);
            }
        }
        drop_at(&mut model.consumers, &self.consumers);
        drop_at(&mut model.dialect_settings, &self.dialect_settings);
        self.leave_certificates_out_of(model);
        drop_at(&mut model.acme, &self.acme);
        let upstreams: HashSet<String> = names_at(&model.upstreams, &self.upstreams, |it| &it.name);
        drop_at(&mut model.upstreams, &self.upstreams);
        let mut services = names_at(&model.services, &self.services, |it| &it.name);
        drop_at(&mut model.services, &self.services);
        model.services.retain(|service| {
            let is_led_astray = service.upstream.as_ref().is_some_and(|it| upstreams.contains(it));
            if is_led_astray {
                services.insert(service.name.clone());
            }
            !is_led_astray
        });
        // If one of several services with one name goes, the name still leads to the others.
        services.retain(|name| !model.services.iter().any(|it| it.name == *name));
        let plugins = self.plugins.iter().filter_map(|at| model.plugins.get(*at));
        let mut lost = UnservablePlugins::of(plugins, is_skippable);
        lost.tables = names_at(&model.consumer_tables, &self.consumer_tables, |it| &it.id);
        drop_at(&mut model.plugins, &self.plugins);
        drop_at(&mut model.consumer_tables, &self.consumer_tables);
        for ids in [&mut lost.plugins, &mut lost.skippable] {
            ids.retain(|id| !model.plugins.iter().any(|it| it.id == *id));
        }
        for (at, steps) in self.steps {
            if let Some(route) = model.routes.get_mut(at).map(Arc::make_mut)
                && remove_steps(&mut route.plugins, &steps, is_skippable)
            {
                route.refuse_calls();
            }
        }
        for at in self.refusing {
            if let Some(route) = model.routes.get_mut(at).map(Arc::make_mut) {
                route.refuse_calls();
                route.plugins.clear();
            }
        }
        for at in self.faulty {
            if let Some(route) = model.routes.get_mut(at).map(Arc::make_mut) {
                route.refuse_all();
            }
        }
        for (at, position) in &self.conditions {
            if let Some(route) = model.routes.get_mut(*at).map(Arc::make_mut) {
                if let Some(found) = route.matches.get_mut(*position) {
                    found.when = None;
                }
                route.refuse_all();
            }
        }
        for (at, position) in self.matches.iter().rev() {
            let Some(route) = model.routes.get_mut(*at).map(Arc::make_mut) else {
                continue;
            };
            if *position < route.matches.len() {
                route.matches.remove(*position);
            }
            match route.matches.is_empty() {
                true => {
                    self.routes.insert(*at);
                }
                false => route.refuse_all(),
            }
        }
        for at in self.refusing_streams {
            if let Some(route) = model.stream_routes.get_mut(at) {
                route.refuse_sessions();
            }
        }
        model.remove_plugins(&lost);
        drop_at(&mut model.routes, &self.routes);
        for route in &mut model.routes {
            if matches!(&route.target, RouteTarget::Service(name) if services.contains(name)) {
                Arc::make_mut(route).refuse_calls();
            }
        }
        drop_at(&mut model.stream_routes, &self.stream_routes);
        for route in &mut model.stream_routes {
            if route.service.as_ref().is_some_and(|name| services.contains(name)) {
                route.refuse_sessions();
            }
        }
        if self.unmatched {
            model.unmatched.clear();
        }
        self.routes
    }

    /// A certificate whose clients must show one keeps its names.
    fn leave_certificates_out_of(&mut self, model: &mut Model) {
        for at in &self.exempt_paths {
            match model.certificates.get_mut(*at).map(|it| &mut it.client) {
                Some(Some(client)) => client.exempt_paths.clear(),
                _ => drop(self.certificates.insert(*at)),
            }
        }
        for (at, position) in self.names.iter().rev() {
            match model.certificates.get_mut(*at).filter(|it| it.client.is_some()) {
                Some(certificate) if *position < certificate.names.len() => {
                    certificate.names.remove(*position);
                }
                _ => drop(self.certificates.insert(*at)),
            }
        }
        let mut dropped = HashSet::new();
        for at in &self.certificates {
            match model.certificates.get_mut(*at) {
                Some(certificate) if certificate.client.is_some() && !certificate.refuses_handshakes() => {
                    certificate.refuse_handshakes();
                }
                _ => drop(dropped.insert(*at)),
            }
        }
        drop_at(&mut model.certificates, &dropped);
    }
}

fn names_at<T>(list: &[T], positions: &HashSet<usize>, name: impl Fn(&T) -> &String) -> HashSet<String> {
    positions
        .iter()
        .filter_map(|at| list.get(*at))
        .map(|it| name(it).clone())
        .collect()
}

fn drop_at<T>(list: &mut Vec<T>, positions: &HashSet<usize>) {
    if positions.is_empty() {
        return;
    }
    let mut at = 0;
    list.retain(|_| {
        at += 1;
        !positions.contains(&(at - 1))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"weir": 1,
        "services": [
            {"name": "a", "url": "http://127.0.0.1:1", "routes": [
                {"name": "good", "paths": ["/good"]},
                {"name": "regex", "paths": ["~/("]},
                {"name": "shared", "paths": ["/shared"], "plugins": [{"use": "wrong"}]}]},
            {"name": "b", "upstream": "gone", "routes": [{"name": "astray", "paths": ["/b"]}]},
            {"name": "a", "url": "http://127.0.0.1:2"}],
        "plugins": [{"id": "wrong", "rate-limit": {"limits": "x"}}],
        "consumers": [{"name": "c", "credentials": [{"key-auth": {"key": 1}}, {"key-auth": {"key": "k"}}]}],
        "unmatched": [{"use": "wrong"}]}"#;

    /// Models in each of which one thing is wrong that no dialect may have found. Whatever it is, the rest is served.
    #[test]
    fn nothing_stops_everything() {
        let good = serde_json::json!({"name": "good", "match": [{"path": "/good"}], "to": {"service": "s"}});
        let with = |part: serde_json::Value| {
            let mut model =
                serde_json::json!({"services": [{"name": "s", "url": "http://h"}], "routes": [good]});
            for (list, items) in part.as_object().expect("lists") {
                let known = model[list].as_array().cloned().unwrap_or_default();
                let items = items.as_array().expect("a list").clone();
                model[list] = [known, items].concat().into();
            }
            model
        };
        let split = |service: &str, host: &str| {
            let choice = serde_json::json!({"service": service, "host": {"fixed": host}});
            serde_json::json!({"id": "p", "name": "traffic-split", "config": {"rules": [{"choices": [choice]}]}})
        };
        let route = |step: serde_json::Value| serde_json::json!({"name": "r", "match": [{"path": "/r"}], "to": {"service": "s"}, "plugins": [step]});
        let two = |item: &str| {
            let item: serde_json::Value = serde_json::from_str(item).expect("JSON");
            serde_json::json!([item, item])
        };
        for wrong in [
            serde_json::json!({"routes": [route(serde_json::json!({"use": split("s", "a:b")}))]}),
            serde_json::json!({"routes": [route(serde_json::json!({"use": split("gone", "a")}))]}),
            serde_json::json!({"routes": [route(serde_json::json!({"use": "p"}))], "plugins": [split("s", "a:b")]}),
            serde_json::json!({"routes": [route(serde_json::json!({"use": split("t", "a")}))],
                "services": [{"name": "t", "upstream": "gone"}]}),
            serde_json::json!({"routes": [route(serde_json::json!({"overrides": ["t"]}))],
                "plugins": [split("s", "a:b")], "consumer_tables": [{"id": "t", "instances": {"c": "p"}}]}),
            serde_json::json!({"plugins": [split("s", "a:b")]}),
            serde_json::json!({"unmatched": [{"use": split("s", "a:b")}]}),
            serde_json::json!({"stream_routes": [{"name": "l", "service": "s"}, {"name": "m", "service": "gone"}]}),
            serde_json::json!({"stream_routes": [{"name": "l", "plugins": [{"use": split("s", "a:b")}]}]}),
            serde_json::json!({"services": two(r#"{"name": "t", "url": "http://"}"#)}),
            serde_json::json!({"upstreams": two(r#"{"name": "u", "targets": [{"host": " ", "port": 0}]}"#)}),
            serde_json::json!({"consumers": two(r#"{"id": "c", "credentials": [{"plugin": "key-auth", "config": {"key": "k"}}]}"#),
                "routes": [route(serde_json::json!({"use": {"name": "key-auth"}}))]}),
            serde_json::json!({"consumers": [{"id": "c", "credentials": [{"plugin": "cors", "config": {}}]}]}),
            serde_json::json!({"certificates": [{"names": ["a"], "key_pairs": [{"certificate": "", "key": ""}]}]}),
            serde_json::json!({"dialect_settings": two(r#"{"dialect": "native", "charset": {"name": "\n", "media_types": []}}"#)}),
            serde_json::json!({"routes": [{"name": "", "match": [], "to": {"service": ""},
                "https_only_status": 1, "request_headers": [{"name": " ", "value": {"text": "\n"}}]}]}),
        ] {
            let model: Model = serde_json::from_value(with(wrong.clone()))
                .unwrap_or_else(|error| panic!("{error}: {wrong}"));
            let registry = weir_plugins::registry();
            let mut cache = CompileCache::default();
            // Twice: what was compiled before must not be in the way.
            for _ in 0..2 {
                let made = compile(&model, 7, &registry, &PersistentState::default(), &mut cache);
                let (snapshot, skipped) = made.unwrap_or_else(|found| panic!("{wrong}: {found:?}"));
                let is_served = snapshot.routes.iter().any(|it| &*it.series_names.1 == "good");
                assert!(is_served && !skipped.is_empty(), "{wrong}: {skipped:?}");
            }
        }
    }

    /// A route in which something is wrong keeps its calls from other routes, as far as it shows which they are.
    #[test]
    fn a_wrong_route_refuses_its_calls() {
        use serde_json::json;
        for (wrong, matches) in [
            (json!({"path": {"base": "/a b"}}), Some(1)),
            (json!({"upstream_host": {"fixed": "a b"}}), Some(1)),
            (json!({"https_only_status": 1, "grpc_only_status": 1}), Some(1)),
            (json!({"forwarded": {"via": "\n"}}), Some(1)),
            (
                json!({"response_headers": [{"name": " ", "value": "request-id"}]}),
                Some(1),
            ),
            (
                json!({"request_headers": [{"name": "A", "value": {"text-if-absent": "b"}}]}),
                Some(1),
            ),
            (
                json!({"to": {"respond": {"status": 1}}, "connect": true}),
                Some(1),
            ),
            (json!({"to": {"service": "gone"}}), Some(1)),
            (json!({"match": [{"path": "/r"}, {"path": "~("}]}), Some(1)),
            (json!({"match": [{"path": "~("}]}), None),
            (
                json!({"match": [{"path": "/r", "when": ["arg_a", "~~", "("]}]}),
                Some(1),
            ),
            (json!({"match": []}), None),
        ] {
            let mut route = json!({"name": "r", "match": [{"path": "/r"}], "to": {"service": "s"},
                "plugins": [{"use": {"name": "key-auth"}}]});
            for (field, value) in wrong.as_object().expect("fields") {
                route[field] = value.clone();
            }
            let model = json!({"weir": 1, "services": [{"name": "s", "url": "http://h"}], "routes": [route]});
            let model: Model =
                serde_json::from_value(model).unwrap_or_else(|error| panic!("{error}: {wrong}"));
            let registry = weir_plugins::registry();
            let ReducedModel {
                model,
                skipped,
                routes,
                ..
            } = compile_reduced(&model, &registry, &PersistentState::default())
                .unwrap_or_else(|found| panic!("{wrong}: {found:?}"));
            assert_eq!(routes.len(), model.routes.len(), "{wrong}");
            let left: Vec<usize> = (model.routes.iter())
                .filter(|it| it.target == RouteTarget::respond_before_plugins(503))
                .map(|it| it.matches.len())
                .collect();
            assert_eq!(left, Vec::from_iter(matches), "{wrong}");
            assert!(!skipped.is_empty(), "{wrong}");
            let is_explained = skipped.iter().all(|it| it.reason.ends_with(REFUSED));
            assert_eq!(is_explained, matches.is_some(), "{wrong}: {skipped:?}");
        }
    }

    /// The names of a certificate whose clients must show one never go to another certificate.
    #[test]
    fn a_wrong_certificate_that_asks_clients_for_one_keeps_its_names() {
        use serde_json::json;
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
        let pem = made.cert.pem();
        let pair = json!({"certificate": pem, "key": made.signing_key.serialize_pem()});
        for (wrong, has_keys, exempt) in [
            (json!({"client": {"authorities": "none"}}), false, None),
            (
                json!({"client": {"authorities": "none", "exempt_paths": ["(?!a)"]}}),
                false,
                None,
            ),
            (
                json!({"client": {"authorities": "", "optional": true}}),
                false,
                None,
            ),
            (
                json!({"key_pairs": [{"certificate": pem, "key": "none"}]}),
                false,
                None,
            ),
            (json!({"key_pairs": []}), false, None),
            (
                json!({"client": {"authorities": pem, "exempt_paths": ["^/open", "(?!a)"]}}),
                true,
                None,
            ),
            (
                json!({"names": ["a.test", "a*b", "*.*.c"],
                    "client": {"authorities": pem, "exempt_paths": ["^/open"]}}),
                true,
                Some(1),
            ),
        ] {
            let mut certificate =
                json!({"names": ["a.test"], "key_pairs": [pair], "client": {"authorities": pem}});
            for (field, value) in wrong.as_object().expect("fields") {
                certificate[field] = value.clone();
            }
            let beside = ["*.test", "a.*", "*"].map(|name| json!({"names": [name], "key_pairs": [pair]}));
            let certificates = [vec![certificate], beside.to_vec()].concat();
            let model: Model = serde_json::from_value(json!({"weir": 1, "certificates": certificates}))
                .unwrap_or_else(|error| panic!("{error}: {wrong}"));
            let registry = weir_plugins::registry();
            let persistent = PersistentState::default();
            let reduced = compile_reduced(&model, &registry, &persistent)
                .unwrap_or_else(|found| panic!("{wrong}: {found:?}"));
            assert!(!reduced.skipped.is_empty(), "{wrong}");
            let left = &reduced.model.certificates;
            assert_eq!(left.len(), 4, "{wrong}");
            assert_eq!(left[0].names, ["a.test"], "{wrong}");
            assert_eq!(left[0].refuses_handshakes(), !has_keys, "{wrong}");
            let tls = &reduced.snapshot.tls;
            let shown = tls.find(Some("a.test")).expect("an identity");
            assert!(shown.requests_client_certificate, "{wrong}");
            let paths = shown.exempt_paths.as_ref().map(|it| it.len());
            assert_eq!(paths, exempt, "{wrong}");
            let other = tls.find(Some("b.test")).expect("an identity");
            assert!(!other.requests_client_certificate, "{wrong}");
            assert!(!other.satisfies(shown), "{wrong}");
            let is_explained = reduced.skipped.iter().any(|it| it.reason.ends_with(REFUSED));
            assert_eq!(is_explained, !has_keys, "{wrong}: {:?}", reduced.skipped);
        }
    }

    #[test]
    fn the_good_is_served_without_the_bad() {
        let document: serde_json::Value = serde_json::from_str(DOCUMENT).expect("JSON");
        let (model, _) = weir_native::translate(&document).expect("a model");
        let registry = weir_plugins::registry();
        let (snapshot, skipped) = compile(
            &model,
            7,
            &registry,
            &PersistentState::default(),
            &mut CompileCache::default(),
        )
        .expect("the rest");
        let names: Vec<&str> = snapshot
            .routes
            .iter()
            .map(|it| it.series_names.1.as_ref())
            .collect();
        assert_eq!(names, ["good", "shared", "astray"]);
        let skipped: HashSet<&str> = skipped.iter().map(|it| it.name.as_str()).collect();
        for name in [
            "service 'a'",
            "service 'b'",
            "plugin 'wrong'",
            "route 'regex'",
            "consumer 'c'",
        ] {
            assert!(skipped.contains(name), "{name}: {skipped:?}");
        }
    }
}
