//! What everybody may ask: the portal, its APIs with their reference, search, pages. What is hidden from the one who asks
//! does not exist.

use super::operation::{Operation, Shared};
use super::reference;
use super::shapes::{
    ApiDetail, Card, Cards, ChangeLine, ChangedOperation, DeprecationNotice, Found, List, OperationDetail,
    OperationLine, PageDetail, PlaceLine, PlanCard, PlanLimit, PortalInfo, ProviderLine, Schemas, TagLine,
    TitledLink, VersionChanges, VersionDetail, VersionLine,
};
use crate::catalogue::{Catalogue, Place, PublishedApi, PublishedVersion};
use crate::markdown::{self, Node};
use crate::state::{Portals, Visit};
use crate::yaml;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_apis::entities::{LineState, Plan, PlanSecurity, PlanState};
use weir_apis::{diff, export};
use weir_control::api::Problem;

/// Hits of a search.
const MAX_HITS: usize = 30;
/// Letters of a card's summary.
const SUMMARY: usize = 240;

const API: &str = "/portal/v1/apis/{api}";
const VERSION: &str = "/portal/v1/apis/{api}/versions/{version}";

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            "/portal/v1/portal",
            ("getPortal", "Reads what the portal is"),
            portal,
        )
        .answers::<PortalInfo>(),
        Operation::get(
            "/portal/v1/apis",
            ("listApis", "Lists the APIs of the portal"),
            list,
        )
        .query::<Filter>()
        .answers::<Cards>(),
        Operation::get(
            "/portal/v1/search",
            (
                "search",
                "Searches APIs, operations and pages; typing errors are forgiven",
            ),
            search,
        )
        .query::<Wanted>()
        .answers::<Found>(),
        Operation::get(API, ("getApi", "Reads an API with its versions"), api).answers::<ApiDetail>(),
        Operation::get(
            VERSION,
            ("getVersion", "Reads a version with its operations and plans"),
            version,
        )
        .answers::<VersionDetail>(),
        Operation::get(
            "/portal/v1/apis/{api}/versions/{version}/operations/{operation}",
            ("getOperation", "Reads an operation with its schemas"),
            operation,
        )
        .answers::<OperationDetail>(),
        Operation::get(
            "/portal/v1/apis/{api}/versions/{version}/schemas/{schema}",
            ("getSchema", "Reads a schema of a version"),
            schema,
        )
        .answers::<Schemas>(),
        Operation::get(
            "/portal/v1/apis/{api}/versions/{version}/openapi.json",
            ("downloadOpenapi", "Reads the OpenAPI document of a version"),
            document,
        )
        .answers::<Value>(),
        Operation::get(
            "/portal/v1/apis/{api}/versions/{version}/openapi.yaml",
            (
                "downloadOpenapiYaml",
                "Reads the OpenAPI document of a version as YAML",
            ),
            document_yaml,
        )
        .answers::<String>()
        .media("application/openapi+yaml"),
        Operation::get(
            "/portal/v1/apis/{api}/versions/{version}/changes",
            ("compareVersions", "Tells what differs from another version"),
            changes,
        )
        .query::<Since>()
        .answers::<VersionChanges>(),
        Operation::get(
            "/portal/v1/pages",
            ("listPages", "Lists the pages of the portal"),
            pages,
        )
        .answers::<List<TitledLink>>(),
        Operation::get(
            "/portal/v1/pages/{page}",
            ("getPage", "Reads a page of the portal"),
            page,
        )
        .answers::<PageDetail>(),
    ];
    Operation::tagged("Catalogue", operations)
}

/// By what the catalogue is filtered.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub struct Filter {
    /// Words in the title or the description.
    q: String,
    /// The category.
    category: String,
    /// A label, as `key:value`.
    label: String,
    /// How callers are recognised.
    security: String,
    /// `title` (the default) or `newest`.
    sort: String,
}

/// What is searched for.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub struct Wanted {
    /// Words; they may be begun or mistyped.
    q: String,
}

/// With what a version is compared.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub struct Since {
    /// The other version; without it, the one before.
    from: String,
}

/// Names of enumerations as they are written.
pub fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn shortened(text: &str) -> String {
    match text.chars().count() > SUMMARY {
        true => format!("{}…", text.chars().take(SUMMARY).collect::<String>().trim_end()),
        false => text.to_owned(),
    }
}

pub async fn portal(State(portals): Shared, Extension(visit): Extension<Visit>) -> Json<PortalInfo> {
    let catalogue = portals.catalogue().await;
    let portal = &visit.portal;
    let featured = portal
        .featured
        .iter()
        .filter_map(|name| catalogue.api(portal, &visit.viewer, name));
    let menu = catalogue
        .pages(portal, &visit.viewer)
        .filter(|it| it.menu && it.api.is_none());
    let providers = portal.providers.iter().filter_map(|it| {
        let known = portals.providers.get(&it.name)?;
        Some(ProviderLine {
            name: known.name.clone(),
            title: known.display_name.clone(),
        })
    });
    Json(PortalInfo {
        name: portal.name.clone(),
        title: match portal.display_name.as_str() {
            "" => "Developer portal".to_owned(),
            title => title.to_owned(),
        },
        description: portal.description.clone(),
        url: visit.url.clone(),
        home: markdown::read(&portal.home),
        featured: featured.map(|it| card(&it)).collect(),
        menu: menu.map(page_link).collect(),
        footer: portal
            .footer
            .iter()
            .map(|it| TitledLink {
                title: it.title.clone(),
                to: it.to.clone(),
            })
            .collect(),
        sign_up: word(&portal.sign_up.mode),
        providers: providers.collect(),
    })
}

fn page_link(page: &weir_apis::entities::Page) -> TitledLink {
    TitledLink {
        title: page.title.clone(),
        to: format!("/pages/{}", page.name),
    }
}

/// How callers of a version are recognised.
fn security(version: &PublishedVersion) -> Vec<String> {
    let offered = version.plans.iter().filter(|it| it.state == PlanState::Published);
    let kinds: BTreeSet<String> = offered.map(|it| word(&it.security)).collect();
    match kinds.is_empty() {
        true => vec![word(&PlanSecurity::Keyless)],
        false => kinds.into_iter().collect(),
    }
}

fn about(api: &PublishedApi) -> &str {
    let first = api.versions.first().and_then(|it| it.places.first());
    match (api.api.description.as_str(), first) {
        ("", Some(place)) => text_of(&place.description.info["description"]),
        (about, _) => about,
    }
}

fn card(api: &PublishedApi) -> Card {
    let newest = api.versions.first();
    let plain = markdown::plain(&markdown::read(about(api)));
    Card {
        name: api.api.name.clone(),
        title: api.title().to_owned(),
        summary: shortened(&plain),
        version: newest.map_or_else(String::new, |it| it.version.version.clone()),
        versions: api.versions.len(),
        category: api.api.category.clone(),
        labels: api.api.labels.clone(),
        security: newest.map_or_else(Vec::new, security),
        is_deprecated: newest.is_some_and(|it| it.version.line == LineState::Deprecated),
        operations: newest
            .and_then(|it| it.places.first())
            .map_or(0, |it| it.operations().count()),
    }
}

pub async fn list(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Query(filter): Query<Filter>,
) -> Json<Cards> {
    let catalogue = portals.catalogue().await;
    let all: Vec<(Card, u64)> = catalogue
        .apis(&visit.portal, &visit.viewer)
        .map(|api| {
            let created = api.versions.iter().map(|it| it.version.created).max();
            (card(&api), created.unwrap_or(0))
        })
        .collect();
    let labels = |card: &Card| -> Vec<String> {
        card.labels
            .iter()
            .map(|(key, value)| format!("{key}:{value}"))
            .collect()
    };
    let collect = |of: &dyn Fn(&Card) -> Vec<String>| -> Vec<String> {
        let found: BTreeSet<String> = all.iter().flat_map(|(card, _)| of(card)).collect();
        found.into_iter().filter(|it| !it.is_empty()).collect()
    };
    let (categories, known_labels) = (collect(&|it| vec![it.category.clone()]), collect(&labels));
    let kinds = collect(&|it| it.security.clone());
    let sought = filter.q.to_lowercase();
    let fits = |card: &Card| {
        let text = format!("{} {} {}", card.name, card.title, card.summary).to_lowercase();
        text.contains(sought.trim())
            && (filter.category.is_empty() || card.category == filter.category)
            && (filter.label.is_empty() || labels(card).contains(&filter.label))
            && (filter.security.is_empty() || card.security.contains(&filter.security))
    };
    let mut items: Vec<(Card, u64)> = all.into_iter().filter(|(card, _)| fits(card)).collect();
    if filter.sort == "newest" {
        items.sort_by_key(|(_, created)| std::cmp::Reverse(*created));
    }
    Json(Cards {
        items: items.into_iter().map(|(card, _)| card).collect(),
        categories,
        labels: known_labels,
        security: kinds,
    })
}

pub async fn search(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Query(wanted): Query<Wanted>,
) -> Json<Found> {
    let catalogue = portals.catalogue().await;
    Json(Found {
        items: catalogue.search(&visit.portal, &visit.viewer, &wanted.q, MAX_HITS),
    })
}

fn find_api(catalogue: &Catalogue, visit: &Visit, name: &str) -> Result<PublishedApi, Problem> {
    let found = catalogue.api(&visit.portal, &visit.viewer, name);
    found.ok_or_else(|| Problem::not_found(format_args!("the API '{name}'")))
}

/// A version as it is shown to the visitor.
pub fn find_version(
    catalogue: &Catalogue,
    visit: &Visit,
    (name, version): (&str, &str),
) -> Result<(PublishedApi, PublishedVersion), Problem> {
    let api = find_api(catalogue, visit, name)?;
    let found = api.versions.iter().find(|it| it.version.version == version);
    let found = found.cloned();
    let missing = || Problem::not_found(format_args!("version '{version}' of the API '{name}'"));
    Ok((api, found.ok_or_else(missing)?))
}

/// The place of a version whose document is shown.
pub fn first_place(version: &PublishedVersion) -> Result<&Place, Problem> {
    let first = version.places.first();
    first.ok_or_else(|| Problem::not_found("a publication of this version"))
}

pub async fn api(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path(name): Path<String>,
) -> Result<Json<ApiDetail>, Problem> {
    let catalogue = portals.catalogue().await;
    let api = find_api(&catalogue, &visit, &name)?;
    let pages = catalogue.pages(&visit.portal, &visit.viewer);
    let pages = pages.filter(|it| it.api.as_deref() == Some(&name));
    Ok(Json(ApiDetail {
        name: api.api.name.clone(),
        title: api.title().to_owned(),
        description: markdown::read(about(&api)),
        category: api.api.category.clone(),
        labels: api.api.labels.clone(),
        links: api
            .api
            .links
            .iter()
            .filter(|(_, to)| to.starts_with("https://") || to.starts_with("http://"))
            .map(|(title, to)| TitledLink {
                title: title.clone(),
                to: to.clone(),
            })
            .collect(),
        contacts: api.api.contacts.clone(),
        pages: pages.map(page_link).collect(),
        versions: api
            .versions
            .iter()
            .map(|it| VersionLine {
                version: it.version.version.clone(),
                state: word(&it.version.line),
                created: it.version.created,
            })
            .collect(),
    }))
}

pub async fn version(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<VersionDetail>, Problem> {
    let catalogue = portals.catalogue().await;
    let (_, version) = find_version(&catalogue, &visit, (&name, &version))?;
    let place = first_place(&version)?;
    let description = &place.description;
    let tags = description.tags.iter().map(|it| TagLine {
        name: text_of(&it["name"]).to_owned(),
        description: text_of(&it["description"]).to_owned(),
    });
    let operations = place.operations().map(|it| OperationLine {
        id: it.id.clone(),
        method: it.method.clone(),
        path: it.path.clone(),
        summary: it.summary.clone().unwrap_or_default(),
        tag: it.tags.first().cloned().unwrap_or_default(),
        is_deprecated: it.deprecated,
    });
    Ok(Json(VersionDetail {
        api: name,
        version: version.version.version.clone(),
        title: text_of(&description.info["title"]).to_owned(),
        state: word(&version.version.line),
        description: markdown::read(text_of(&description.info["description"])),
        news: markdown::read(&version.version.description),
        places: version.places.iter().map(|it| place_line(&portals, it)).collect(),
        plans: version.plans.iter().map(|it| plan_card(it, &visit)).collect(),
        tags: tags.collect(),
        operations: operations.collect(),
    }))
}

fn place_line(portals: &Arc<Portals>, place: &Place) -> PlaceLine {
    let environment = &place.environment;
    PlaceLine {
        publication: place.publication.id(),
        environment: environment.name.clone(),
        title: match environment.display_name.as_str() {
            "" => environment.name.clone(),
            title => title.to_owned(),
        },
        is_production: environment.kind == weir_apis::entities::EnvironmentKind::Production,
        base_url: place.base_url(&portals.gateway),
        deprecation: place
            .publication
            .deprecation
            .as_ref()
            .map(|it| DeprecationNotice {
                since: it.since,
                sunset: it.sunset,
                link: it.link.clone().filter(|it| it.starts_with("http")),
                successor: it.successor.clone(),
            }),
    }
}

/// Why somebody cannot subscribe to a plan; `None`: it can be.
pub fn refusal(plan: &Plan, visit: &Visit) -> Option<String> {
    let is_hidden = !plan.visible_to.is_empty() && !visit.viewer.is_in(&plan.visible_to);
    if plan.security == PlanSecurity::Keyless {
        Some("This plan needs no subscription: call without a key.".to_owned())
    } else if plan.state == PlanState::Deprecated {
        Some("This plan takes no new subscriptions.".to_owned())
    } else if is_hidden {
        Some(format!(
            "This plan is for members of {}.",
            plan.visible_to.join(", ")
        ))
    } else {
        None
    }
}

fn plan_card(plan: &Plan, visit: &Visit) -> PlanCard {
    PlanCard {
        name: plan.name.clone(),
        title: match plan.display_name.as_str() {
            "" => plan.name.clone(),
            title => title.to_owned(),
        },
        description: markdown::read(&plan.description),
        security: word(&plan.security),
        limits: plan
            .limits
            .iter()
            .map(|it| PlanLimit {
                count: it.count,
                per: word(&it.per),
            })
            .collect(),
        operations: plan.operations.clone(),
        needs_approval: word(&plan.validation) == "manual",
        conditions: markdown::read(&plan.conditions),
        conditions_revision: plan.conditions_revision,
        price: plan.price.clone(),
        refused: refusal(plan, visit),
    }
}

pub async fn operation(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path((name, version, id)): Path<(String, String, String)>,
) -> Result<Json<OperationDetail>, Problem> {
    let catalogue = portals.catalogue().await;
    let (_, version) = find_version(&catalogue, &visit, (&name, &version))?;
    let place = first_place(&version)?;
    let operation = place.operation(&id);
    let operation = operation.ok_or_else(|| Problem::not_found(format_args!("the operation '{id}'")))?;
    let schemas = reference::named_in(&operation.value, &place.description.schemas);
    let mut value = operation.value.as_object().cloned().unwrap_or_default();
    // Where the backend is, and whom it trusts, concerns no caller: plans say how to call.
    value.remove("servers");
    value.remove("security");
    let text = value.remove("description");
    Ok(Json(OperationDetail {
        id: operation.id.clone(),
        method: operation.method.clone(),
        path: operation.path.clone(),
        summary: operation.summary.clone().unwrap_or_default(),
        is_deprecated: operation.deprecated,
        description: described(text),
        value,
        schemas,
    }))
}

fn described(text: Option<Value>) -> Vec<Node> {
    match text {
        Some(Value::String(text)) => markdown::read(&text),
        _ => Vec::new(),
    }
}

pub async fn schema(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path((name, version, schema)): Path<(String, String, String)>,
) -> Result<Json<Schemas>, Problem> {
    let catalogue = portals.catalogue().await;
    let (_, version) = find_version(&catalogue, &visit, (&name, &version))?;
    let place = first_place(&version)?;
    // A schema counts if an operation that is shown leads to it.
    let is_reached = place
        .operations()
        .any(|it| reference::leads_to(&it.value, &place.description.schemas, &schema));
    match is_reached {
        true => Ok(Json(Schemas {
            schemas: reference::from(&schema, &place.description.schemas),
        })),
        false => Err(Problem::not_found(format_args!("the schema '{schema}'"))),
    }
}

pub async fn document(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let exported = exported(&portals, &visit, (&name, &version)).await?;
    let file = format!("{name}-{version}.openapi.json");
    Ok(download(
        "application/openapi+json",
        &file,
        format!("{exported:#}\n"),
    ))
}

pub async fn document_yaml(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let exported = exported(&portals, &visit, (&name, &version)).await?;
    let file = format!("{name}-{version}.openapi.yaml");
    Ok(download("application/openapi+yaml", &file, yaml::of(&exported)))
}

fn download(media: &str, file: &str, body: String) -> Response {
    let kind = [
        (header::CONTENT_TYPE, media.to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{file}\""),
        ),
    ];
    (kind, body).into_response()
}

/// The OpenAPI document of a version, as callers may see it.
async fn exported(
    portals: &Arc<Portals>,
    visit: &Visit,
    (name, version): (&str, &str),
) -> Result<Value, Problem> {
    let catalogue = portals.catalogue().await;
    let (_, found) = find_version(&catalogue, visit, (name, version))?;
    let place = first_place(&found)?;
    let base = place.base_url(&portals.gateway);
    let path = place.publication.runtime.base_path.trim_end_matches('/');
    // The export puts the base path behind each.
    let servers: Vec<String> = base
        .iter()
        .map(|it| it.strip_suffix(path).unwrap_or(it).to_owned())
        .collect();
    let exported = export::export(
        &place.description,
        &servers,
        Some(&place.publication),
        &found.plans,
        |id| !place.shows(id),
    );
    Ok(exported)
}

pub async fn changes(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path((name, version)): Path<(String, String)>,
    Query(since): Query<Since>,
) -> Result<Json<VersionChanges>, Problem> {
    let catalogue = portals.catalogue().await;
    let (api, new) = find_version(&catalogue, &visit, (&name, &version))?;
    let old = match since.from.as_str() {
        "" => {
            let index = api.versions.iter().position(|it| it.version.version == version);
            api.versions.get(index.map_or(0, |it| it + 1)).cloned()
        }
        from => Some(find_version(&catalogue, &visit, (&name, from))?.1),
    };
    let old = old.ok_or_else(|| Problem::not_found("an earlier version"))?;
    let (before, after) = (first_place(&old)?, first_place(&new)?);
    let difference = diff::diff(&before.description, &after.description);
    let is_shown = |id: &str| before.shows(id) && after.shows(id);
    let operations = difference.operations.into_iter().filter(|it| is_shown(&it.id));
    let told = operations.map(|it| ChangedOperation {
        operation: format!("{} {}", it.method, it.path),
        changes: match it.kind {
            diff::Kind::Added => vec![ChangeLine {
                text: "is new".to_owned(),
                is_breaking: false,
            }],
            _ => it
                .changes
                .into_iter()
                .map(|it| ChangeLine {
                    text: match it.place.as_str() {
                        "" => it.message,
                        place => format!("{place}: {}", it.message),
                    },
                    is_breaking: it.breaking,
                })
                .collect(),
        },
    });
    Ok(Json(VersionChanges {
        from: old.version.version.clone(),
        to: version,
        operations: told.collect(),
    }))
}

pub async fn pages(State(portals): Shared, Extension(visit): Extension<Visit>) -> Json<List<TitledLink>> {
    let catalogue = portals.catalogue().await;
    let pages = catalogue.pages(&visit.portal, &visit.viewer);
    Json(List {
        items: pages.map(page_link).collect(),
    })
}

pub async fn page(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path(name): Path<String>,
) -> Result<Json<PageDetail>, Problem> {
    let catalogue = portals.catalogue().await;
    let mut pages = catalogue.pages(&visit.portal, &visit.viewer);
    let page = pages.find(|it| it.name == name);
    let page = page.ok_or_else(|| Problem::not_found(format_args!("the page '{name}'")))?;
    Ok(Json(PageDetail {
        name: page.name.clone(),
        title: page.title.clone(),
        body: markdown::read(&page.body),
        api: page.api.clone(),
    }))
}
