//! The calls that are open to everybody: the portal, its APIs, search, pages. What is hidden from the caller does not
//! exist.

use super::authenticated_developer::AuthenticatedDeveloper;
use super::catalogue_entries::{about, card, logo_path, word};
use super::operation::{Operation, Shared};
use super::shapes::{
    ApiDetail, Card, Cards, List, PageDetail, PortalInfo, ProviderLine, SearchResponse, TitledLink,
    VersionLine,
};
use super::trials::own_apis;
use super::versions::find_api;
use crate::markdown;
use crate::state::PortalContext;
use axum::Extension;
use axum::extract::{Path, Query, State};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use weir_control::api::Json;
use weir_control::api::Problem;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get("/portal/v1/portal", ("getPortal", "Reads the portal"), portal)
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
        .query::<CatalogueQuery>()
        .answers::<SearchResponse>(),
        Operation::get(API, ("getApi", "Reads an API with its versions"), api).answers::<ApiDetail>(),
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

/// Hits of a search.
const MAX_HITS: usize = 30;

const API: &str = "/portal/v1/apis/{api}";

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
    /// `true`: only those that your applications are subscribed to.
    mine: bool,
    /// `title` (the default) or `newest`.
    sort: String,
}

/// A search.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub struct CatalogueQuery {
    /// Words; they may be begun or mistyped.
    q: String,
}

pub async fn portal(State(portals): Shared, Extension(visit): Extension<PortalContext>) -> Json<PortalInfo> {
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
        logo: logo_path("portal", &portal.logo),
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

pub async fn list(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Query(filter): Query<Filter>,
) -> Result<Json<Cards>, Problem> {
    let own = match filter.mine {
        true => Some(own_apis(
            &portals,
            &AuthenticatedDeveloper::of(&portals, &visit).await?,
        )),
        false => None,
    };
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
            && own.as_ref().is_none_or(|it| it.contains(&card.name))
    };
    let mut items: Vec<(Card, u64)> = all.into_iter().filter(|(card, _)| fits(card)).collect();
    if filter.sort == "newest" {
        items.sort_by_key(|(_, created)| std::cmp::Reverse(*created));
    }
    Ok(Json(Cards {
        items: items.into_iter().map(|(card, _)| card).collect(),
        categories,
        labels: known_labels,
        security: kinds,
    }))
}

pub async fn search(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Query(wanted): Query<CatalogueQuery>,
) -> Json<SearchResponse> {
    let catalogue = portals.catalogue().await;
    Json(SearchResponse {
        items: catalogue.search(&visit.portal, &visit.viewer, &wanted.q, MAX_HITS),
    })
}

pub async fn api(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
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
        logo: logo_path(&format!("apis/{}", api.api.name), &api.api.logo),
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

pub async fn pages(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
) -> Json<List<TitledLink>> {
    let catalogue = portals.catalogue().await;
    let pages = catalogue.pages(&visit.portal, &visit.viewer);
    Json(List {
        items: pages.map(page_link).collect(),
    })
}

pub async fn page(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
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
