//! The catalogue: every API that is published somewhere, with its versions, its documents and its plans; and what a
//! portal shows of it to a viewer. Visibility is decided here, in one place, for lists, search, direct links and
//! catalogues for machines alike.

mod search;
mod typing;

pub use search::{Hit, HitKind};

use crate::documents::Documents;
use crate::markdown;
use crate::viewer::Viewer;
use search::{Index, SearchEntry};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use weir_apis::entities::{
    Api, Environment, EnvironmentKind, LineState, Page, Plan, PlanState, Portal, Publication,
    PublicationState, Revision, Version,
};
use weir_apis::openapi::{self, Description};
use weir_apis::render::is_served;

/// The address at which the gateway of this process takes the calls of an environment; `None`: it takes none.
pub type GatewayLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A version in an environment.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// The publication.
    pub publication: Arc<Publication>,
    /// Where.
    pub environment: Arc<Environment>,
    /// The revision that is served there.
    pub revision: Arc<Revision>,
    /// Its document.
    pub description: Arc<Description>,
}

impl Deployment {
    /// Whether callers can see an operation.
    pub fn shows(&self, operation: &str) -> bool {
        self.revision
            .operations
            .get(operation)
            .is_none_or(|it| !it.hidden)
    }

    /// The operations that callers can see: those that no gateway serves are of no use to them.
    pub fn operations(&self) -> impl Iterator<Item = &openapi::Operation> {
        let all = self.description.operations.iter();
        all.filter(|it| self.shows(&it.id) && is_served(&it.method))
    }

    /// The path before those of all operations.
    pub fn base_path(&self) -> &str {
        self.publication.runtime.base_path.trim_end_matches('/')
    }

    /// An operation that callers can see.
    pub fn operation(&self, id: &str) -> Option<&openapi::Operation> {
        self.operations().find(|it| it.id == id)
    }

    /// The address for calls; `None`: it is unknown.
    pub fn base_url(&self, gateway: &GatewayLookup) -> Option<String> {
        let runtime = &self.publication.runtime;
        let base = self.base_path();
        let host = runtime.hosts.iter().find(|it| !it.contains('*'));
        let of_environment = self
            .environment
            .base_urls
            .first()
            .map(|it| it.trim_end_matches('/'));
        let server = match (of_environment, host) {
            (Some(url), _) => url.to_owned(),
            (None, Some(host)) => format!("https://{host}"),
            (None, None) => gateway(&self.environment.name)?,
        };
        Some(format!("{server}{base}"))
    }
}

/// A version with all environments in which it is published.
#[derive(Debug, Clone)]
pub struct PublishedVersion {
    /// The version.
    pub version: Arc<Version>,
    /// The environments in which it is published, what customers call first.
    pub places: Vec<Deployment>,
    /// Its plans that are offered or still have subscribers, in their order.
    pub plans: Arc<Vec<Plan>>,
}

/// An API with its published versions.
#[derive(Debug, Clone)]
pub struct PublishedApi {
    /// The API.
    pub api: Api,
    /// Its versions, the newest first.
    pub versions: Vec<PublishedVersion>,
}

impl PublishedApi {
    /// Its name for people.
    pub fn title(&self) -> &str {
        match self.api.display_name.as_str() {
            "" => &self.api.name,
            title => title,
        }
    }
}

/// All that is published, at one moment.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The APIs, by their titles.
    pub apis: Vec<PublishedApi>,
    /// Pages of portals.
    pub pages: Vec<Page>,
    index: Index,
}

/// Descriptions that were read, by the hashes of their texts.
pub type Descriptions = HashMap<String, Arc<Description>>;

impl Catalogue {
    /// Makes it of what is known. `read` holds descriptions from before; those that are not needed any more go.
    pub fn build(documents: &Documents, read: &mut Descriptions) -> Self {
        let mut used = Descriptions::new();
        let mut describe = |hash: &str| -> Option<Arc<Description>> {
            if let Some(known) = used.get(hash).or_else(|| read.get(hash)) {
                let known = Arc::clone(known);
                used.insert(hash.to_owned(), Arc::clone(&known));
                return Some(known);
            }
            let text = documents.joined(&format!("apis/specs/{hash}/"))?;
            let description = Arc::new(openapi::read(&text).ok()?);
            used.insert(hash.to_owned(), Arc::clone(&description));
            Some(description)
        };
        let environments: BTreeMap<String, Arc<Environment>> = documents
            .list::<Environment>("apis/environments/")
            .into_iter()
            .map(|it| (it.name.clone(), Arc::new(it)))
            .collect();
        let mut places: BTreeMap<(String, String), Vec<Deployment>> = BTreeMap::new();
        for publication in documents.list::<Publication>("apis/publications/") {
            let (api, version) = (&publication.api, &publication.version);
            if publication.state != PublicationState::Live || publication.retired {
                continue;
            }
            let Some(environment) = environments.get(&publication.environment) else {
                continue;
            };
            let key = format!("apis/revisions/{api}/{version}/{:08}", publication.revision);
            let Some(revision) = documents.get::<Revision>(&key) else {
                continue;
            };
            let Some(description) = describe(&revision.spec) else {
                continue;
            };
            let of = (api.clone(), version.clone());
            places.entry(of).or_default().push(Deployment {
                environment: Arc::clone(environment),
                revision: Arc::new(revision),
                description,
                publication: Arc::new(publication),
            });
        }
        *read = used;
        let mut apis: Vec<PublishedApi> = documents
            .list::<Api>("apis/apis/")
            .into_iter()
            .map(|api| published(documents, api, &mut places))
            .filter(|it| !it.versions.is_empty())
            .collect();
        apis.sort_by_cached_key(|it| (it.title().to_lowercase(), it.api.name.clone()));
        let mut pages: Vec<Page> = documents.list("apis/pages/");
        pages.retain(|it| it.published);
        pages.sort_by_key(|it| (it.order, it.title.clone()));
        let index = Index::build(entries(&apis, &pages));
        Self { apis, pages, index }
    }

    /// An API as a portal shows it to a viewer; `None`: it shows none of this name.
    pub fn api(&self, portal: &Portal, viewer: &Viewer, name: &str) -> Option<PublishedApi> {
        let api = self.apis.iter().find(|it| it.api.name == name)?;
        visible_part(api, portal, viewer)
    }

    /// The APIs that a portal shows to a viewer.
    pub fn apis<'c>(
        &'c self,
        portal: &'c Portal,
        viewer: &'c Viewer,
    ) -> impl Iterator<Item = PublishedApi> + 'c {
        self.apis
            .iter()
            .filter_map(move |it| visible_part(it, portal, viewer))
    }

    /// The pages that a portal shows to a viewer. Pages of an API are shown to those who see the API.
    pub fn pages<'c>(
        &'c self,
        portal: &'c Portal,
        viewer: &'c Viewer,
    ) -> impl Iterator<Item = &'c Page> + 'c {
        self.pages.iter().filter(move |it| {
            let sees_api = it
                .api
                .as_ref()
                .is_none_or(|api| self.api(portal, viewer, api).is_some());
            it.portal == portal.name && viewer.sees(&it.visibility) && sees_api
        })
    }

    /// The results of a search in a portal for a viewer, the best first.
    pub fn search(&self, portal: &Portal, viewer: &Viewer, text: &str, most: usize) -> Vec<Hit> {
        // What is shown is found out once for each API.
        let mut known: HashMap<&str, Option<PublishedApi>> = HashMap::new();
        let mut hits = Vec::new();
        for (entry, score) in self.index.find(text) {
            let is_shown = match &entry.kind {
                HitKind::Page => self.pages(portal, viewer).any(|it| it.name == entry.name),
                HitKind::Api | HitKind::Operation => {
                    let api = known
                        .entry(&entry.api)
                        .or_insert_with(|| self.api(portal, viewer, &entry.api));
                    api.as_ref()
                        .is_some_and(|api| has(api, &entry.version, &entry.name))
                }
            };
            if is_shown {
                hits.push(Hit::of(entry, score));
                if hits.len() == most {
                    break;
                }
            }
        }
        hits
    }
}

/// Whether the place that is shown of a version has the operation; without a name, whether the version is there.
fn has(api: &PublishedApi, version: &str, operation: &str) -> bool {
    let version = api.versions.iter().find(|it| it.version.version == version);
    version
        .and_then(|it| it.places.first())
        .is_some_and(|place| operation.is_empty() || place.operation(operation).is_some())
}

fn published(
    documents: &Documents,
    api: Api,
    places: &mut BTreeMap<(String, String), Vec<Deployment>>,
) -> PublishedApi {
    let all: Vec<Version> = documents.list(&format!("apis/versions/{}/", api.name));
    let mut versions = Vec::new();
    for version in all {
        let of = (version.api.clone(), version.version.clone());
        let Some(mut places) = places.remove(&of) else {
            continue;
        };
        places.sort_by_key(|it| {
            let is_production = it.environment.kind == EnvironmentKind::Production;
            (Reverse(is_production), Reverse(it.environment.order))
        });
        let mut plans: Vec<Plan> = documents.list(&format!("apis/plans/{}/{}/", of.0, of.1));
        plans.retain(|it| matches!(it.state, PlanState::Published | PlanState::Deprecated));
        plans.sort_by_key(|it| (it.order, it.name.clone()));
        versions.push(PublishedVersion {
            version: Arc::new(version),
            places,
            plans: Arc::new(plans),
        });
    }
    // The newest first; versions that are over last.
    versions.sort_by(|one, other| {
        let key = |it: &PublishedVersion| it.version.line == LineState::Deprecated;
        let order = compare_versions(&other.version.version, &one.version.version);
        (key(one).cmp(&key(other))).then(order)
    });
    PublishedApi { api, versions }
}

/// The order of versions: numbers as numbers, and a version before a release of the same number below it.
pub fn compare_versions(one: &str, other: &str) -> std::cmp::Ordering {
    let split = |text: &str| -> (Vec<u64>, Option<String>) {
        let (numbers, rest) = text
            .split_once(['-', '+'])
            .map_or((text, None), |(numbers, rest)| (numbers, Some(rest.to_owned())));
        let numbers = numbers.trim_start_matches('v').split('.');
        (numbers.map(|it| it.parse().unwrap_or(0)).collect(), rest)
    };
    let ((one_numbers, one_rest), (other_numbers, other_rest)) = (split(one), split(other));
    let of_rest = match (&one_rest, &other_rest) {
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (Some(_), None) => std::cmp::Ordering::Less,
        (one, other) => one.cmp(other),
    };
    one_numbers.cmp(&other_numbers).then(of_rest)
}

/// The part of an API that a portal shows to a viewer.
fn visible_part(api: &PublishedApi, portal: &Portal, viewer: &Viewer) -> Option<PublishedApi> {
    let is_listed = portal.apis.is_empty() || portal.apis.contains(&api.api.name);
    if !is_listed || !viewer.sees(&api.api.visibility) {
        return None;
    }
    let mut versions = api.versions.clone();
    for version in &mut versions {
        version.places.retain(|it| {
            portal.environments.is_empty() || portal.environments.contains(&it.environment.name)
        });
    }
    versions.retain(|it| !it.places.is_empty());
    (!versions.is_empty()).then(|| PublishedApi {
        api: api.api.clone(),
        versions,
    })
}

/// The entries of the search.
fn entries(apis: &[PublishedApi], pages: &[Page]) -> Vec<SearchEntry> {
    let mut entries = Vec::new();
    for api in apis {
        for version in &api.versions {
            let Some(place) = version.places.first() else {
                continue;
            };
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let about = match api.api.description.as_str() {
                "" => text(&place.description.info["description"]),
                about => about.to_owned(),
            };
            let about = markdown::plain(&markdown::read(&about));
            let mut entry = SearchEntry {
                kind: HitKind::Api,
                api: api.api.name.clone(),
                version: version.version.version.clone(),
                name: String::new(),
                title: format!("{} {}", api.title(), version.version.version),
                about: about.clone(),
                words: Vec::new(),
            };
            entry.add(4, api.title());
            entry.add(4, &api.api.name);
            entry.add(2, &api.api.category);
            entry.add(1, &about);
            entries.push(entry);
            for operation in place.operations() {
                let summary = operation.summary.clone().unwrap_or_default();
                let mut entry = SearchEntry {
                    kind: HitKind::Operation,
                    api: api.api.name.clone(),
                    version: version.version.version.clone(),
                    name: operation.id.clone(),
                    title: format!("{} {}", operation.method, operation.path),
                    about: summary.clone(),
                    words: Vec::new(),
                };
                entry.add(3, &summary);
                entry.add(2, &operation.path);
                entry.add(2, &operation.id);
                entry.add(1, &operation.method);
                for tag in &operation.tags {
                    entry.add(1, tag);
                }
                entries.push(entry);
            }
        }
    }
    for page in pages {
        let text = markdown::plain(&markdown::read(&page.body));
        let mut entry = SearchEntry {
            kind: HitKind::Page,
            api: page.api.clone().unwrap_or_default(),
            version: String::new(),
            name: page.name.clone(),
            title: page.title.clone(),
            about: text.chars().take(200).collect(),
            words: Vec::new(),
        };
        entry.add(4, &page.title);
        entry.add(1, &text);
        entries.push(entry);
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let mut versions = ["1.9.0", "1.10.0", "2.0.0-rc.1", "2.0.0", "v3", "0.1"];
        versions.sort_by(|one, other| compare_versions(one, other));
        assert_eq!(versions, ["0.1", "1.9.0", "1.10.0", "2.0.0-rc.1", "2.0.0", "v3"]);
    }
}
