//! Native routes of others that have calls in common with a publication. Those of other dialects: `foreign_conflicts`.
//!
//! **What it is not**: a router. Two routes are compared by their hosts, paths, methods and headers; whether a call exists
//! that meets the further conditions of both is not asked.

use super::entity_snapshot::EntitySnapshot;
use super::foreign_conflicts::call_of;
use super::regex_conflicts::SelectiveRegex;
use crate::api::view::FileText;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use weir_apis::entities::Publication;
use weir_apis::render;
use weir_model::{DialectName, HostPattern, PathPattern, RouteMatch, document};

/// A call that two would take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "PublishConflict")]
pub struct Conflict {
    /// The owner of the route: a publication, or a document.
    pub with: String,
    /// The route.
    pub route: String,
    /// A call that both take.
    pub example: String,
    /// The outcome for that call.
    pub effect: ConflictEffect,
    /// Whether it is unclear which of both takes it.
    #[serde(skip)]
    pub is_tie: bool,
}

/// The outcome for a call that two would take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictEffect {
    /// The other route matches it, or it is unclear which one does.
    Takes,
    /// The other route has taken it so far, and loses it to the publication.
    Loses,
}

impl Conflict {
    /// Whether the other route may lose calls.
    pub fn may_lose(&self) -> bool {
        self.effect == ConflictEffect::Loses || self.is_tie
    }

    /// In words.
    pub fn text(&self) -> String {
        let verb = match self.effect {
            ConflictEffect::Takes => "which takes",
            ConflictEffect::Loses => "which would lose",
        };
        format!(
            "{} has the route {}, {verb} {}",
            self.with, self.route, self.example
        )
    }
}

/// Whose routes are compared with those of a publication.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// Other versions of the same API: who publishes there knows both, and one may stand in front of the other.
    Version,
    /// Another API. Its calls are not for this publication to take.
    Publication,
    /// Written by hand. A route for all calls below a path stands behind publications on purpose.
    Document,
}

impl Relation {
    fn is_conflict(self, rank: Rank) -> bool {
        match self {
            Self::Version => rank.path.is_eq(),
            Self::Publication => true,
            Self::Document => rank.path.is_ge(),
        }
    }
}

/// How the other route stands to that of the publication: by hosts and paths alone, and with all conditions.
#[derive(Clone, Copy)]
struct Rank {
    path: std::cmp::Ordering,
    whole: std::cmp::Ordering,
}

impl Rank {
    /// For the hosts that both have. If those differ, the worst for the publication counts.
    fn of(other: &RouteMatch, own: &RouteMatch) -> Option<Self> {
        let pairs = hosts(other)
            .iter()
            .flat_map(|host| hosts(own).iter().map(move |own| (host, own)));
        let both = pairs.filter(|(host, own_host)| host.may_overlap(own_host));
        let (other_bare, own_bare) = (bare(other), bare(own));
        let ranks = both.map(|(host, own_host)| Self {
            path: precedence(&other_bare, host).cmp(&precedence(&own_bare, own_host)),
            whole: precedence(other, host).cmp(&precedence(own, own_host)),
        });
        ranks.max_by_key(|it| (it.path, it.whole))
    }

    fn effect(self) -> ConflictEffect {
        match self.whole.is_ge() {
            true => ConflictEffect::Takes,
            false => ConflictEffect::Loses,
        }
    }
}

/// The hosts of a match. One that names none is for all of them.
fn hosts(of: &RouteMatch) -> &[HostPattern] {
    const EVERY: &[HostPattern] = &[HostPattern::Any];
    match of.hosts.as_slice() {
        [] => EVERY,
        some => some,
    }
}

fn precedence(of: &RouteMatch, host: &HostPattern) -> u64 {
    of.precedence.unwrap_or_else(|| of.default_precedence(host))
}

/// The match without what only narrows it.
fn bare(of: &RouteMatch) -> RouteMatch {
    RouteMatch {
        path: of.path.clone(),
        precedence: of.precedence,
        ..RouteMatch::default()
    }
}

/// A route as far as it takes calls.
struct Route {
    name: String,
    matches: Vec<RouteMatch>,
}

/// The routes of a document: its own, or those of a service. What cannot be read takes no calls.
fn routes(document: &Value) -> Vec<Route> {
    let is_route = ["match", "paths", "to"]
        .iter()
        .any(|it| document.get(it).is_some());
    let own = is_route.then_some(document);
    let nested = document.get("routes").and_then(Value::as_array);
    let all = nested.into_iter().flatten().chain(own);
    // A route behind those of all dialects takes only what no other route takes.
    let all = all.filter(|it| it["disabled"] != true && it["to"]["respond"]["last"] != true);
    all.map(|route| Route {
        name: route["name"].as_str().unwrap_or_default().to_owned(),
        matches: matches(route).unwrap_or_default(),
    })
    .collect()
}

fn matches(route: &Value) -> Option<Vec<RouteMatch>> {
    if let Some(written) = field::<Option<Vec<RouteMatch>>>(route, "match")? {
        return Some(written);
    }
    let common = RouteMatch {
        hosts: field(route, "hosts")?,
        methods: field(route, "methods")?,
        headers: field(route, "headers")?,
        ..RouteMatch::default()
    };
    let paths: Vec<PathPattern> = match field::<Vec<PathPattern>>(route, "paths")? {
        paths if paths.is_empty() => vec![PathPattern::Any],
        paths => paths,
    };
    let with_path = |path| RouteMatch {
        path,
        ..common.clone()
    };
    Some(paths.into_iter().map(with_path).collect())
}

/// A field; left out: its default. `None`: it cannot be read.
fn field<T: DeserializeOwned + Default>(of: &Value, name: &str) -> Option<T> {
    of.get(name)
        .map_or_else(|| Some(T::default()), |it| T::deserialize(it).ok())
}

/// The matches of a publication by what their paths begin with: of many routes only few can meet another one.
struct OwnMatches<'r> {
    by_begin: BTreeMap<String, Vec<&'r RouteMatch>>,
}

impl<'r> OwnMatches<'r> {
    fn of(routes: &'r [Route]) -> Self {
        let mut by_begin: BTreeMap<String, Vec<&RouteMatch>> = BTreeMap::new();
        for it in routes.iter().flat_map(|it| &it.matches) {
            by_begin.entry(begin(&it.path)).or_default().push(it);
        }
        Self { by_begin }
    }

    /// Those that may have calls in common with another match.
    fn near(&self, other: &RouteMatch) -> impl Iterator<Item = &'r RouteMatch> {
        let begin = begin(&other.path);
        let ends = (0..begin.len()).filter(|at| begin.is_char_boundary(*at));
        let shorter = ends.filter_map(|end| self.by_begin.get(&begin[..end]));
        let shorter: Vec<&Vec<&RouteMatch>> = shorter.collect();
        let longer = self.by_begin.range(begin.clone()..);
        let longer = longer.take_while(move |(it, _)| it.starts_with(&begin));
        let all = shorter.into_iter().chain(longer.map(|(_, it)| it));
        all.flatten().copied()
    }
}

/// The text that all paths of a pattern begin with, as far as it has no escapes: one character may be written in two ways.
fn begin(path: &PathPattern) -> String {
    let begin = path.begin();
    let end = begin
        .find(|it: char| it == '%' || !it.is_ascii())
        .unwrap_or(begin.len());
    begin[..end].to_owned()
}

/// Conflicts between the documents of a publication and all others that gateways of its environment serve.
pub fn find(
    snapshot: &EntitySnapshot,
    files: &[FileText],
    publication: &Publication,
    own: &[Value],
) -> Vec<Conflict> {
    let own: Vec<Route> = own.iter().flat_map(routes).collect();
    let own = OwnMatches::of(&own);
    let of_environment = render::prefix(&publication.environment);
    let places = ["services/", "routes/"];
    let prefixes: Vec<String> = places
        .iter()
        .flat_map(|it| [format!("native/{it}"), format!("{of_environment}{it}")])
        .collect();
    let owner = render::owner(publication);
    let same_api = format!("publications/{}/", publication.api);
    let mut conflicts = Vec::new();
    for (key, value) in snapshot.documents() {
        let key = key.as_str();
        // What goes in the same commit takes no calls.
        if !prefixes.iter().any(|it| key.starts_with(it)) || snapshot.bytes(key).is_none() {
            continue;
        }
        let Ok(document) = serde_json::from_slice::<Value>(value) else {
            continue;
        };
        let with = document["owned_by"].as_str().unwrap_or(key);
        let relation = match with {
            it if it == owner => continue,
            it if it.starts_with(&same_api) => Relation::Version,
            it if it.starts_with("publications/") => Relation::Publication,
            _ => Relation::Document,
        };
        let met = routes(&document)
            .into_iter()
            .filter_map(|it| conflict(&own, with, &it, relation));
        conflicts.extend(met);
    }
    for file in files.iter().filter(|it| it.dialect == DialectName::NATIVE) {
        let met = routes_of_file(file)
            .into_iter()
            .filter_map(|it| conflict(&own, &file.file, &it, Relation::Document));
        conflicts.extend(met);
    }
    conflicts
}

/// The routes of a native file that is served beside the store: those of its services, and its own.
fn routes_of_file(file: &FileText) -> Vec<Route> {
    // What is no document is not served.
    let Ok(document) = document::parse(&file.text) else {
        return Vec::new();
    };
    let services = document.get("services").and_then(Value::as_array);
    let services = services.into_iter().flatten();
    services.chain([&document]).flat_map(routes).collect()
}

/// The conflict with a route: the first call that it takes, else the first that it loses.
fn conflict(own: &OwnMatches<'_>, with: &str, other: &Route, relation: Relation) -> Option<Conflict> {
    let met = other.matches.iter().flat_map(|it| {
        let near: Vec<_> = own.near(it).filter(|own| own.may_overlap(it, false)).collect();
        // To compile an expression costs more than all else here.
        let is_tried = relation == Relation::Document && !near.is_empty();
        let regex = is_tried.then(|| SelectiveRegex::of(&it.path)).flatten();
        near.into_iter().filter_map(move |own| {
            let rank = Rank::of(it, own)?;
            let is_met = relation.is_conflict(rank) || regex.as_ref().is_some_and(|it| it.meets(own));
            is_met.then_some((it, own, rank))
        })
    });
    let (found, own, rank) = met.min_by_key(|(_, _, rank)| rank.effect() == ConflictEffect::Loses)?;
    Some(Conflict {
        with: with.to_owned(),
        route: other.name.clone(),
        effect: rank.effect(),
        is_tie: rank.whole.is_eq(),
        example: call_of(own, found),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_store::{Document, Key, Revision};

    /// A route of the publication `a/1`, whose the other route is (`-`: written by hand), that route, and what is told.
    const CASES: &str = r#"
The same calls
{"paths": ["/t/{id}"]} | publications/b/1/test | {"paths": ["/t/{x}"]} | takes GET /t/1
{"paths": ["/t/{id}"]} | -                     | {"paths": ["/t/{x}"]} | takes GET /t/1
{"paths": ["/t/{id}"]} | publications/a/2/test | {"paths": ["/t/{x}"]} | takes GET /t/1
Some of them
{"paths": ["/t/{id}"]} | publications/b/1/test | {"paths": ["=/t/5"]}   | takes GET /t/5
{"paths": ["/t/{id}"]} | -                     | {"paths": ["=/t/5"]}   | takes GET /t/5
{"paths": ["/t/{id}"]} | publications/a/2/test | {"paths": ["=/t/5"]}   |
{"paths": ["=/t/5"]}   | publications/b/1/test | {"paths": ["/t/{id}"]} | loses GET /t/5
{"paths": ["=/t/5"]}   | -                     | {"paths": ["/t/{id}"]} |
{"paths": ["=/t/5"]}   | publications/a/2/test | {"paths": ["/t/{id}"]} |
Regular expressions, which stand behind
{"paths": ["/t/{id}"]} | - | {"paths": ["~/t/\\d+"]} | loses GET /t/1
{"paths": ["=/t5"]}    | - | {"paths": ["~/t\\d"]}   | loses GET /t5
{"paths": ["=/tx"]}    | - | {"paths": ["~/t\\d"]}   |
{"paths": ["/t/{id}"]} | - | {"paths": ["~/t/.*"]}   |
{"paths": ["=/tx"]}    | publications/b/1/test | {"paths": ["~/t\\d"]} | loses GET /tx
Hosts
{"paths": ["=/t"], "hosts": ["a.test"]} | publications/b/1/test | {"paths": ["=/t"]} | loses GET http://a.test/t
{"paths": ["=/t"], "hosts": ["a.test"]} | publications/b/1/test | {"paths": ["=/t"], "hosts": ["b.test"]} |
{"paths": ["=/t"]} | - | {"paths": ["=/t"], "hosts": ["b.test"]} | takes GET http://b.test/t
Methods, and routes that take nothing from others
{"paths": ["=/t"], "methods": ["GET"]} | - | {"paths": ["=/t"], "methods": ["PUT"]} |
{"paths": ["=/t"], "methods": ["GET", "PUT"]} | - | {"paths": ["=/t"], "methods": ["PUT"]} | takes PUT /t
{"paths": ["=/t"]} | - | {"match": [{"path": "/t"}], "to": {"respond": {"status": 404, "last": true}}} |
{"paths": ["=/t"]} | - | {"paths": ["=/t"], "disabled": true} |
The long form, conditions and precedences
{"paths": ["=/t"]} | - | {"match": [{"path": "=/t", "headers": [{"name": "x-beta", "values": ["1"]}]}]} | takes GET /t with x-beta
{"match": [{"path": "=/t", "when": ["share_remote_addr", "<", 10]}]} | - | {"paths": ["=/t"]} | loses GET /t
{"paths": ["=/t"]} | - | {"match": [{"path": "*", "precedence": 18446744073709551615}]} | takes GET /t
{"paths": ["=/t"]} | - | {"paths": ["*"]} |
"#;

    #[test]
    fn native_routes_are_conflicts_if_they_take_calls_of_others() {
        let publication = Publication {
            api: "a".to_owned(),
            version: "1".to_owned(),
            environment: "test".to_owned(),
            ..Publication::default()
        };
        for line in CASES.lines() {
            let mut fields = line.split('|').map(str::trim);
            let mut next = || fields.next().unwrap_or_default();
            let (own, owner, other, expected) = (next(), next(), next(), next());
            if owner.is_empty() {
                continue;
            }
            let route = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            let mut document = json!({"name": "s", "routes": [route(other)]});
            if owner != "-" {
                document["owned_by"] = owner.into();
            }
            let snapshot = EntitySnapshot::new(vec![Document {
                key: Key::new("native/services/s").expect("a key"),
                value: document.to_string().into_bytes().into(),
                created: Revision(1),
                modified: Revision(1),
            }]);
            let own = json!({"name": "own", "routes": [route(own)]});
            let found = find(&snapshot, &[], &publication, &[own]);
            let effects = found.iter().map(|it| {
                let effect = json!(it.effect);
                format!("{} {}", effect.as_str().unwrap_or_default(), it.example)
            });
            assert_eq!(effects.collect::<Vec<_>>().join(", "), expected, "{line}");
        }
    }
    /// A file of a dialect, and the route whose conflict with `=/t/5` is found.
    #[test]
    fn native_files_beside_a_store_take_calls_too() {
        const IN_SERVICE: &str =
            "services: [{name: s, url: 'http://a.test', routes: [{name: r, paths: ['=/t/5']}]}]";
        const ALONE: &str = "routes: [{name: r, paths: ['/t/5'], to: {respond: {status: 204}}}]";
        const ELSEWHERE: &str = "routes: [{name: r, paths: ['/u'], to: {respond: {status: 204}}}]";
        let publication = Publication::default();
        let own = json!({"name": "own", "routes": [{"name": "own", "paths": ["=/t/5"]}]});
        for (dialect, text, expected) in [
            (
                DialectName::NATIVE,
                IN_SERVICE,
                Some("weir.yaml has the route r, which takes GET /t/5"),
            ),
            (DialectName::NATIVE, ALONE, None),
            (
                DialectName::NATIVE,
                &ALONE.replace("'/t/5'", "'=/t/5'"),
                Some("weir.yaml has the route r, which takes GET /t/5"),
            ),
            (DialectName::NATIVE, ELSEWHERE, None),
            (DialectName::NATIVE, "{", None),
            (DialectName::new("other"), IN_SERVICE, None),
        ] {
            let file = FileText {
                dialect,
                file: "weir.yaml".to_owned(),
                text: text.into(),
            };
            let found = find(
                &EntitySnapshot::new(Vec::new()),
                &[file],
                &publication,
                std::slice::from_ref(&own),
            );
            let texts: Vec<String> = found.iter().map(Conflict::text).collect();
            assert_eq!(texts.first().map(String::as_str), expected, "{text}");
        }
    }
}
