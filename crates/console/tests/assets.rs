//! The embedded assets: that they are built from the sources in the tree, small enough, and served as browsers expect.

use aws_lc_rs::digest::{SHA256, digest};
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use data_encoding::HEXLOWER;
use http_body_util::BodyExt;
use std::fs;
use std::path::{Path, PathBuf};
use tower::ServiceExt;

/// What the pages of the console and of the developer portal add to the program at most, in bytes.
const MOST: usize = 1_500_000;
/// What a first view loads at most, compressed, in bytes.
const FIRST_SCRIPTS: usize = 150_000;
const FIRST_STYLES: usize = 20_000;
/// Any script that is loaded later, compressed, in bytes.
const LATER_SCRIPT: usize = 170_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => collect(&path, found),
            false => found.push(path),
        }
    }
}

/// The hash of everything that the build reads, as `console/scripts/pack.mjs` computes it.
fn hash_of_sources() -> String {
    let console = root().join("console");
    let mut paths: Vec<PathBuf> = [
        "index.html",
        "portal.html",
        "package-lock.json",
        "tsconfig.json",
        "vite.config.ts",
    ]
    .map(|name| console.join(name))
    .to_vec();
    collect(&console.join("src"), &mut paths);
    let mut lines: Vec<String> = paths
        .iter()
        .map(|path| {
            let name = path
                .strip_prefix(&console)
                .expect("below")
                .to_str()
                .expect("text");
            let content = fs::read(path).expect("a file");
            format!("{name} {}\n", HEXLOWER.encode(digest(&SHA256, &content).as_ref()))
        })
        .collect();
    lines.sort();
    HEXLOWER.encode(digest(&SHA256, lines.concat().as_bytes()).as_ref())
}

#[test]
fn assets_are_built_from_the_sources_in_the_tree() {
    let archive = weir_console::assets().expect("assets");
    assert_eq!(
        archive.sources,
        hash_of_sources(),
        "the console's sources changed since its assets were built: run `make console`"
    );
}

#[test]
fn assets_are_small() {
    let archive = weir_console::assets().expect("assets");
    let total: usize = archive.files.iter().map(|file| file.compressed.len()).sum();
    assert!(total <= MOST, "{total} bytes");
    first_view_is_small(&archive, "index.html");
    first_view_is_small(&archive, "portal.html");
    for file in archive.files.iter().filter(|file| file.path.ends_with(".js")) {
        let size = file.compressed.len();
        assert!(size <= LATER_SCRIPT, "{}: {size} bytes", file.path);
    }
}

fn first_view_is_small(archive: &weir_console::Archive, name: &str) {
    let page = archive
        .files
        .iter()
        .find(|file| file.path == name)
        .expect("a page");
    let page = String::from_utf8(page.content().expect("content")).expect("text");
    // What the page names is loaded at once, and nothing stands inside it.
    let first = |suffix: &str| -> usize {
        let files = archive.files.iter().filter(|file| file.path.ends_with(suffix));
        let named = files.filter(|file| page.contains(&format!("/ui/{}", file.path)));
        named.map(|file| file.compressed.len()).sum()
    };
    let (scripts, styles) = (first(".js"), first(".css"));
    assert!((1..=FIRST_SCRIPTS).contains(&scripts), "{name}: {scripts} bytes");
    assert!((1..=FIRST_STYLES).contains(&styles), "{name}: {styles} bytes");
    assert!(!page.contains("<script>") && !page.contains("<style"), "{page}");
}

async fn get(path: &str, headers: &[(header::HeaderName, &str)]) -> Response<Body> {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    let router = weir_console::router(weir_console::assets().expect("assets"));
    router.oneshot(request).await.expect("an answer")
}

fn named<'a>(answer: &'a Response<Body>, name: &header::HeaderName) -> &'a str {
    answer
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().expect("text"))
}

#[tokio::test]
async fn links_into_the_application_answer_its_page() {
    for (path, status, location) in [
        ("/", StatusCode::SEE_OTHER, "/ui/"),
        ("/ui", StatusCode::SEE_OTHER, "/ui/"),
        ("/ui/", StatusCode::OK, ""),
        ("/ui/routes/a%20b?x=1", StatusCode::OK, ""),
        ("/ui/../../etc/passwd", StatusCode::OK, ""),
        ("/ui/assets/none.js", StatusCode::NOT_FOUND, ""),
    ] {
        let answer = get(path, &[]).await;
        assert_eq!(answer.status(), status, "{path}");
        assert_eq!(named(&answer, &header::LOCATION), location, "{path}");
        if status == StatusCode::OK {
            assert_eq!(named(&answer, &header::CACHE_CONTROL), "no-store", "{path}");
            assert!(
                named(&answer, &header::CONTENT_TYPE).starts_with("text/html"),
                "{path}"
            );
            let policy = named(&answer, &header::CONTENT_SECURITY_POLICY);
            assert!(
                policy.contains("default-src 'self'") && !policy.contains("unsafe"),
                "{policy}"
            );
            let body = answer.into_body().collect().await.expect("a body").to_bytes();
            assert!(body.starts_with(b"<!doctype html>"), "{path}");
        }
    }
}

#[tokio::test]
async fn hashed_names_are_kept_by_browsers() {
    let archive = weir_console::assets().expect("assets");
    let script = archive
        .files
        .iter()
        .find(|file| file.is_hashed && file.path.ends_with(".js"));
    let script = script.expect("a script");
    let path = format!("/ui/{}", script.path);
    let answer = get(&path, &[]).await;
    assert_eq!(
        named(&answer, &header::CACHE_CONTROL),
        "public, max-age=31536000, immutable"
    );
    assert_eq!(named(&answer, &header::CONTENT_ENCODING), "");
    let plain = answer.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(plain.len(), script.size);
    for (accepted, is_compressed) in [
        ("gzip, br", true),
        ("br;q=1, GZIP;q=0.5", true),
        ("gzip;q=0", false),
        ("gzip; q=0.0", false),
        ("br", false),
        ("gzip;q=x", false),
    ] {
        let answer = get(&path, &[(header::ACCEPT_ENCODING, accepted)]).await;
        let coding = named(&answer, &header::CONTENT_ENCODING) == "gzip";
        assert_eq!(coding, is_compressed, "{accepted}");
    }
    for (tags, status) in [
        (script.tag.as_str(), StatusCode::NOT_MODIFIED),
        ("\"other\"", StatusCode::OK),
    ] {
        let answer = get(&path, &[(header::IF_NONE_MATCH, tags)]).await;
        assert_eq!(answer.status(), status, "{tags}");
    }
}
