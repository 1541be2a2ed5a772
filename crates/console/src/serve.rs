//! How assets are served: names that change with their content are kept for good by browsers, the page itself is asked
//! for each time, and every path of the application answers that page.

use crate::archive::{Archive, File};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use std::collections::HashMap;
use std::sync::Arc;

/// Where built files with hashed names are.
const ASSETS: &str = "assets/";
/// The page that every path of the application answers.
const INDEX: &str = "index.html";
/// All that a page may load comes from here; no script stands inside a page.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";
/// What every answer says.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::VARY, "accept-encoding"),
];
/// For names that change with their content.
const FOR_GOOD: &str = "public, max-age=31536000, immutable";

/// The files by path. Cheap to share.
#[derive(Debug, Clone)]
pub struct Files(Arc<HashMap<String, File>>);

impl Files {
    /// Those of an archive.
    pub fn new(archive: Archive) -> Self {
        let files = archive.files.into_iter().map(|file| (file.path.clone(), file));
        Self(Arc::new(files.collect()))
    }

    fn get(&self, path: &str) -> Option<&File> {
        self.0.get(path)
    }

    /// The answer to a call for a file, by its path below `/ui/`.
    pub fn answer(&self, path: &str, headers: &HeaderMap) -> Response {
        answer(self.get(path), headers)
    }

    /// A file as a text; `None`: there is none.
    pub fn text(&self, path: &str) -> Option<String> {
        String::from_utf8(self.get(path)?.content().ok()?).ok()
    }
}

/// The paths of the console: `/`, which leads to `/ui/`, and everything below that.
pub fn router(archive: Archive) -> Router {
    let files = Files::new(archive);
    Router::new()
        .route("/", get(async || Redirect::to("/ui/")))
        .route("/ui", get(async || Redirect::to("/ui/")))
        .route("/ui/", get(index))
        .route("/ui/{*path}", get(file))
        .with_state(files)
}

async fn index(State(files): State<Files>, headers: HeaderMap) -> Response {
    answer(files.get(INDEX), &headers)
}

async fn file(State(files): State<Files>, Path(path): Path<String>, headers: HeaderMap) -> Response {
    let found = match path.starts_with(ASSETS) {
        true => files.get(&path),
        // A link into the application: the page finds out what to show.
        false => files.get(&path).or_else(|| files.get(INDEX)),
    };
    answer(found, &headers)
}

fn answer(file: Option<&File>, headers: &HeaderMap) -> Response {
    let Some(file) = file else {
        return (StatusCode::NOT_FOUND, HEADERS, "there is no such file\n").into_response();
    };
    let caching = match (file.is_hashed, file.path.as_str()) {
        (true, _) => FOR_GOOD,
        (false, INDEX) => "no-store",
        (false, _) => "no-cache",
    };
    let about = [
        (header::CONTENT_TYPE, file.media_type.clone()),
        (header::ETAG, file.tag.clone()),
        (header::CACHE_CONTROL, caching.to_owned()),
    ];
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|tags| tags.to_str().ok())
        .is_some_and(|tags| tags.split(',').any(|tag| tag.trim() == file.tag));
    if is_known {
        return (StatusCode::NOT_MODIFIED, HEADERS, about).into_response();
    }
    if accepts_gzip(headers) {
        let coding = [(header::CONTENT_ENCODING, "gzip")];
        return (HEADERS, about, coding, file.compressed).into_response();
    }
    match file.content() {
        Ok(content) => (HEADERS, about, content).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, HEADERS, format!("{error}\n")).into_response(),
    }
}

/// Whether a client accepts gzip: it names it, and not with a quality of zero.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let codings = values.filter_map(|value| value.to_str().ok());
    codings.flat_map(|codings| codings.split(',')).any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = quality.trim().strip_prefix("q=").unwrap_or("1");
        name.trim().eq_ignore_ascii_case("gzip") && quality.parse().is_ok_and(|weight: f32| weight > 0.0)
    })
}
