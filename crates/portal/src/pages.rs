//! What browsers and machines load other than the API: the application's page with a title, a description and a list of
//! operations for those who run no scripts; the theme; built files; and the catalogue of RFC 9727 with a sitemap.

use crate::catalogue::Catalogue;
use crate::markdown;
use crate::shell::{PageMetadata, escape};
use crate::state::{PortalContext, Portals};
use crate::viewer::Viewer;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;
use weir_apis::entities::{Font, Portal};
use weir_apis::portal::{ink_on, palettes};

/// Operations that are listed for those who run no scripts.
const MAX_LISTED: usize = 500;
/// Pages that are the same in all portals, with their titles.
const OWN_PAGES: [(&str, &str); 9] = [
    ("search", "Search"),
    ("login", "Sign in"),
    ("sign-up", "Make an account"),
    ("confirm", "Confirm your mail address"),
    ("reset", "A new password"),
    ("account", "Account"),
    ("teams", "Teams"),
    ("notices", "Notifications"),
    ("invitation", "Join a team"),
];
/// The content type of the catalogue's answer (RFC 9727, section 4.1).
const LINKSET: &str = "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"";
const HEADERS: [(HeaderName, &str); 3] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
];

/// The paths.
pub fn router(portals: &Arc<Portals>) -> Router {
    Router::new()
        .route("/theme.css", get(theme))
        .route("/logos/portal", get(portal_logo))
        .route("/logos/apis/{api}", get(api_logo))
        .route("/ui/{*path}", get(file))
        .route("/.well-known/api-catalog", get(api_catalog))
        .route("/sitemap.xml", get(sitemap))
        .route("/robots.txt", get(robots))
        .fallback(get(page))
        .with_state(Arc::clone(portals))
}

async fn file(State(portals): State<Arc<Portals>>, Path(path): Path<String>, headers: HeaderMap) -> Response {
    // The console's page and paths are not here; what both are made of is.
    match path.ends_with(".html") {
        true => (StatusCode::NOT_FOUND, HEADERS, "there is no such file\n").into_response(),
        false => portals.shell.files.answer(&path, &headers),
    }
}

async fn page(
    State(portals): State<Arc<Portals>>,
    Extension(visit): Extension<PortalContext>,
    uri: Uri,
) -> Response {
    let catalogue = portals.catalogue().await;
    let about = about(&catalogue, &visit, uri.path());
    let status = if about.is_there {
        StatusCode::OK
    } else {
        StatusCode::NOT_FOUND
    };
    let url = format!("<{}/.well-known/api-catalog>; rel=\"api-catalog\"", visit.url);
    let mut answer = (
        status,
        HEADERS,
        [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
        ],
        portals.shell.page(&about),
    )
        .into_response();
    if let Ok(link) = url.parse() {
        answer.headers_mut().insert(header::LINK, link);
    }
    answer
}

fn portal_title(portal: &Portal) -> &str {
    match portal.display_name.as_str() {
        "" => "Developer portal",
        title => title,
    }
}

/// The metadata of the page at a path. Something that is hidden is as absent as something that is not there.
fn about(catalogue: &Catalogue, visit: &PortalContext, path: &str) -> PageMetadata {
    let portal = portal_title(&visit.portal);
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    let segments: Vec<&str> = decoded.split('/').filter(|it| !it.is_empty()).collect();
    let named = |title: &str, description: &str| PageMetadata {
        title: format!("{title} · {portal}"),
        description: description.to_owned(),
        listed: String::new(),
        is_there: true,
    };
    let missing = || PageMetadata {
        is_there: false,
        ..named("Nothing here", "")
    };
    match segments.as_slice() {
        [] => PageMetadata {
            title: portal.to_owned(),
            listed: listed_apis(catalogue, visit),
            ..named(portal, &visit.portal.description)
        },
        ["apis"] => PageMetadata {
            listed: listed_apis(catalogue, visit),
            ..named("APIs", &visit.portal.description)
        },
        ["apis", name, rest @ ..] => {
            let Some(api) = catalogue.api(&visit.portal, &visit.viewer, name) else {
                return missing();
            };
            let version = match rest.first() {
                Some(wanted) => api.versions.iter().find(|it| it.version.version == *wanted),
                None => api.versions.first(),
            };
            let Some(version) = version else {
                return missing();
            };
            let place = version.places.first();
            let title = format!("{} {}", api.title(), version.version.version);
            let about = markdown::plain(&markdown::read(&api.api.description));
            let mut listed = format!("<h1>{}</h1><p>{}</p><ul>", escape(&title), escape(&about));
            for operation in place.into_iter().flat_map(|it| it.operations()).take(MAX_LISTED) {
                let summary = operation.summary.as_deref().unwrap_or_default();
                // Writing to a text cannot fail.
                let _written = write!(
                    listed,
                    "<li>{} {} {}</li>",
                    escape(&operation.method),
                    escape(&operation.path),
                    escape(summary)
                );
            }
            listed.push_str("</ul>");
            let description: String = about.chars().take(200).collect();
            PageMetadata {
                listed,
                ..named(&title, &description)
            }
        }
        ["pages", name] => {
            let mut pages = catalogue.pages(&visit.portal, &visit.viewer);
            match pages.find(|it| it.name == *name) {
                Some(page) => {
                    let text = markdown::plain(&markdown::read(&page.body));
                    let description: String = text.chars().take(200).collect();
                    PageMetadata {
                        listed: format!("<h1>{}</h1><p>{}</p>", escape(&page.title), escape(&text)),
                        ..named(&page.title, &description)
                    }
                }
                None => missing(),
            }
        }
        ["apps", ..] => named("Applications", ""),
        [first] => match OWN_PAGES.iter().find(|(path, _)| path == first) {
            Some((_, title)) => named(title, ""),
            None => missing(),
        },
        _ => missing(),
    }
}

fn listed_apis(catalogue: &Catalogue, visit: &PortalContext) -> String {
    let mut listed = "<ul>".to_owned();
    for api in catalogue.apis(&visit.portal, &visit.viewer).take(MAX_LISTED) {
        // Writing to a text cannot fail.
        let _written = write!(
            listed,
            "<li><a href=\"/apis/{}\">{}</a></li>",
            escape(&api.api.name),
            escape(api.title())
        );
    }
    listed.push_str("</ul>");
    listed
}

/// The theme's colours in place of the standard ones. They were checked when they were written.
async fn theme(Extension(visit): Extension<PortalContext>) -> Response {
    let [light, dark] = palettes(&visit.portal.theme);
    let pair = |name: &str, light: &str, dark: &str| format!("  --{name}: light-dark({light}, {dark});\n");
    let mix =
        |colour: &str, share: u8, other: &str| format!("color-mix(in srgb, {colour} {share}%, {other})");
    let mut css = ":root {\n".to_owned();
    if visit.portal.theme != weir_apis::entities::Theme::default() {
        css += &pair("accent", light.accent, dark.accent);
        css += &pair("accent-ink", ink_on(light.accent), ink_on(dark.accent));
        css += &pair(
            "accent-strong",
            &mix(light.accent, 75, light.ink),
            &mix(dark.accent, 75, dark.ink),
        );
        css += &pair(
            "accent-soft",
            &mix(light.accent, 9, light.surface),
            &mix(dark.accent, 14, dark.surface),
        );
        css += &pair("focus", light.accent, dark.accent);
        css += &pair("canvas", light.canvas, dark.canvas);
        css += &pair("surface", light.surface, dark.surface);
        css += &pair("ink", light.ink, dark.ink);
        let font = match visit.portal.theme.font {
            Font::System => "",
            Font::Serif => "ui-serif, Georgia, 'Noto Serif', 'Liberation Serif', serif",
            Font::Rounded => "ui-rounded, 'SF Pro Rounded', Nunito, 'Noto Sans', sans-serif",
            Font::Mono => "ui-monospace, 'SF Mono', 'Liberation Mono', monospace",
        };
        if !font.is_empty() {
            css += &format!("  --font: {font};\n");
        }
    }
    css += "}\n";
    let kind = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (HEADERS, kind, css).into_response()
}

async fn portal_logo(Extension(visit): Extension<PortalContext>) -> Response {
    logo_answer(&visit.portal.logo)
}

async fn api_logo(
    State(portals): State<Arc<Portals>>,
    Extension(visit): Extension<PortalContext>,
    Path(name): Path<String>,
) -> Response {
    let catalogue = portals.catalogue().await;
    let api = catalogue.api(&visit.portal, &visit.viewer, &name);
    logo_answer(api.as_ref().map_or("", |it| &it.api.logo))
}

/// A logo was checked when it was written, and is checked again: documents may come from elsewhere. Opened by itself, it
/// may do nothing.
fn logo_answer(text: &str) -> Response {
    let Ok(Some(logo)) = weir_apis::logo::read(text) else {
        return (StatusCode::NOT_FOUND, HEADERS, "there is no logo\n").into_response();
    };
    let kind = [
        (header::CONTENT_TYPE, logo.media),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "private, max-age=300"),
    ];
    (kind, logo.bytes).into_response()
}

/// The public APIs for machines (RFC 9727), for every caller.
async fn api_catalog(
    State(portals): State<Arc<Portals>>,
    Extension(visit): Extension<PortalContext>,
) -> Response {
    let catalogue = portals.catalogue().await;
    let (url, anybody) = (&visit.url, Viewer::default());
    let (mut items, mut contexts) = (Vec::new(), Vec::new());
    for api in catalogue.apis(&visit.portal, &anybody) {
        for version in &api.versions {
            let (name, number) = (&api.api.name, &version.version.version);
            let page = format!("{url}/apis/{name}/{number}");
            let base = version
                .places
                .first()
                .and_then(|it| it.base_url(&portals.gateway))
                .unwrap_or_else(|| page.clone());
            items.push(json!({ "href": base }));
            contexts.push(json!({
                "anchor": base,
                "service-desc": [{
                    "href": format!("{url}/portal/v1/apis/{name}/versions/{number}/openapi.json"),
                    "type": "application/openapi+json",
                }],
                "service-doc": [{ "href": page, "type": "text/html", "title": api.title() }],
            }));
        }
    }
    let mut all: Vec<Value> =
        vec![json!({ "anchor": format!("{url}/.well-known/api-catalog"), "item": items })];
    all.extend(contexts);
    let kind = [
        (header::CONTENT_TYPE, LINKSET.to_owned()),
        (
            header::LINK,
            format!("<{url}/.well-known/api-catalog>; rel=\"api-catalog\""),
        ),
    ];
    (HEADERS, kind, json!({ "linkset": all }).to_string()).into_response()
}

async fn sitemap(
    State(portals): State<Arc<Portals>>,
    Extension(visit): Extension<PortalContext>,
) -> Response {
    let catalogue = portals.catalogue().await;
    let anybody = Viewer::default();
    let mut paths = vec!["/".to_owned(), "/apis".to_owned()];
    for api in catalogue.apis(&visit.portal, &anybody) {
        let versions = api.versions.iter();
        paths.extend(versions.map(|it| format!("/apis/{}/{}", api.api.name, it.version.version)));
    }
    let pages = catalogue.pages(&visit.portal, &anybody);
    paths.extend(pages.map(|it| format!("/pages/{}", it.name)));
    let mut xml =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
            .to_owned();
    for path in paths {
        xml += &format!(
            "<url><loc>{}</loc></url>\n",
            escape(&format!("{}{path}", visit.url))
        );
    }
    xml += "</urlset>\n";
    (HEADERS, [(header::CONTENT_TYPE, "application/xml")], xml).into_response()
}

async fn robots(Extension(visit): Extension<PortalContext>) -> Response {
    let text = format!(
        "User-agent: *\nAllow: /\nDisallow: /portal/\nSitemap: {}/sitemap.xml\n",
        visit.url
    );
    (
        HEADERS,
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8")],
        text,
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_pages_are_there_with_a_title_of_their_own() {
        let visit = PortalContext {
            portal: Arc::new(Portal::default()),
            viewer: Viewer::default(),
            token: None,
            url: "http://portal.test".to_owned(),
            links: None,
            address: std::net::Ipv4Addr::LOCALHOST.into(),
        };
        let catalogue = Catalogue::default();
        for (path, title) in [
            ("/", "Developer portal"),
            ("/apis", "APIs · Developer portal"),
            ("/apps/shop/keys", "Applications · Developer portal"),
            ("/notices", "Notifications · Developer portal"),
            ("/teams", "Teams · Developer portal"),
            ("/search", "Search · Developer portal"),
            ("/account", "Account · Developer portal"),
        ] {
            let page = about(&catalogue, &visit, path);
            assert_eq!((page.title.as_str(), page.is_there), (title, true), "{path}");
        }
        for path in ["/elsewhere", "/teams/x", "/apis/none"] {
            assert!(!about(&catalogue, &visit, path).is_there, "{path}");
        }
    }
}
