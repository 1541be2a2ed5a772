//! Who may depend on whom: `docs/architecture.md`, "The layers".

use crate::assert_none;
use crate::repository::{files, read};
use std::collections::BTreeMap;

/// The layers, lowest first, each with the layers that it may build on. Only lower ones can stand there.
const LAYERS: [(&str, &[&str]); 33] = [
    ("weir-model", &[]),
    ("weir-flow", &[]),
    ("weir-plugin", &["weir-model"]),
    // Documents as values: API management and the validators read them alike.
    ("weir-openapi", &["weir-model"]),
    ("weir-telemetry", &[]),
    // Its store is a file of its own; what configures gateways is another one.
    ("weir-analytics", &[]),
    ("weir-snapshot", &["weir-model", "weir-flow", "weir-plugin"]),
    // Tests of plugins depend on it; nothing that is shipped does.
    ("weir-plugins-testkit", &["weir-model", "weir-plugin"]),
    ("weir-plugins-shared", &["weir-model", "weir-plugin"]),
    // Messages and signatures of a protocol, without the gateway.
    ("weir-saml", &["weir-model"]),
    (
        "weir-plugins-authentication",
        &[
            "weir-model",
            "weir-flow",
            "weir-plugin",
            "weir-plugins-shared",
            "weir-saml",
        ],
    ),
    (
        "weir-plugins-traffic",
        &["weir-model", "weir-flow", "weir-plugin", "weir-plugins-shared"],
    ),
    (
        "weir-plugins-transformation",
        &["weir-model", "weir-flow", "weir-plugin", "weir-plugins-shared"],
    ),
    (
        "weir-plugins-validation",
        &[
            "weir-model",
            "weir-flow",
            "weir-openapi",
            "weir-plugin",
            "weir-plugins-shared",
        ],
    ),
    ("weir-plugins-caching", FAMILY),
    // Of telemetry, how the JSON of logs is written. Of caching, what the metrics endpoint purges; of authentication, the
    // logins that it serves.
    (
        "weir-plugins-observability",
        &[
            "weir-model",
            "weir-plugin",
            "weir-plugins-shared",
            "weir-plugins-authentication",
            "weir-plugins-caching",
            "weir-telemetry",
        ],
    ),
    (
        "weir-plugins",
        &[
            "weir-plugin",
            "weir-plugins-shared",
            "weir-plugins-authentication",
            "weir-plugins-traffic",
            "weir-plugins-transformation",
            "weir-plugins-validation",
            "weir-plugins-caching",
            "weir-plugins-observability",
        ],
    ),
    // The wire formats, without connections.
    ("weir-http1", &["weir-plugin"]),
    ("weir-http2", &["weir-plugin", "weir-http1"]),
    // Naming a plugin or a dialect here is what this list is there to prevent.
    (
        "weir-proxy",
        &[
            "weir-model",
            "weir-flow",
            "weir-plugin",
            "weir-http1",
            "weir-http2",
            "weir-snapshot",
            "weir-telemetry",
        ],
    ),
    ("weir-store", &[]),
    ("weir-dialect", CONTRACT),
    ("weir-kong", DIALECT),
    ("weir-apisix", DIALECT),
    ("weir-native", DIALECT),
    // Definitions and rendering, without the documents of a gateway: those are values to it.
    ("weir-apis", &["weir-model", "weir-openapi"]),
    ("weir-control", CONTROL),
    ("weir-console", &[]),
    // It acts for developers through Weir's own API, and shows the console's built pages.
    (
        "weir-portal",
        &[
            "weir-model",
            "weir-analytics",
            "weir-store",
            "weir-apis",
            "weir-control",
            "weir-console",
        ],
    ),
    // It starts programs and talks HTTP to them; it links nothing of the gateway.
    ("weir-bench", &[]),
    ("weir", ALL),
    // Only its tests know the parsers.
    ("weir-fuzz-replay", &[]),
    ("weir-tidy", &[]),
];

/// What a family of plugins may know. Another family is not among it.
const FAMILY: &[&str] = &["weir-model", "weir-plugin", "weir-plugins-shared"];

/// What a dialect may know. Another dialect is not among it.
const DIALECT: &[&str] = &[
    "weir-model",
    "weir-plugin",
    "weir-plugins",
    "weir-store",
    "weir-dialect",
];

/// What the contract of dialects may know.
const CONTRACT: &[&str] = &["weir-model", "weir-plugin", "weir-plugins", "weir-store"];

/// What management may know: all but the request path.
const CONTROL: &[&str] = &[
    "weir-model",
    "weir-flow",
    "weir-plugin",
    "weir-telemetry",
    "weir-analytics",
    "weir-snapshot",
    "weir-plugins",
    "weir-store",
    "weir-dialect",
    // Its Admin API is the management's own.
    "weir-native",
    "weir-apis",
];

/// What the binary wires together.
const ALL: &[&str] = &[
    "weir-model",
    "weir-flow",
    "weir-plugin",
    "weir-telemetry",
    "weir-analytics",
    "weir-snapshot",
    "weir-plugins",
    "weir-proxy",
    "weir-kong",
    "weir-apisix",
    "weir-native",
    "weir-store",
    "weir-dialect",
    "weir-apis",
    "weir-control",
    "weir-console",
    "weir-portal",
];

/// Layers without I/O and without async code, and what would bring it in.
const NO_IO: [&str; 14] = [
    "weir-apis",
    "weir-http1",
    "weir-http2",
    "weir-model",
    "weir-flow",
    "weir-plugin",
    "weir-snapshot",
    "weir-plugins",
    "weir-plugins-shared",
    "weir-plugins-authentication",
    "weir-plugins-traffic",
    "weir-plugins-transformation",
    "weir-plugins-caching",
    "weir-plugins-observability",
];
const IO_CRATES: [&str; 9] = [
    "tokio",
    "axum",
    "hickory-resolver",
    "socket2",
    "rustix",
    "mio",
    "hyper",
    "futures",
    "async-trait",
];

/// What would let the data plane read documents.
const READERS: [&str; 5] = ["serde", "serde_json", "saphyr-parser", "schemars", "toml"];

/// A crate of the workspace: its folder, and what each section of its manifest names.
struct Manifest {
    folder: String,
    sections: BTreeMap<String, Vec<String>>,
}

impl Manifest {
    fn names(&self, section: &str) -> &[String] {
        self.sections.get(section).map_or(&[], Vec::as_slice)
    }
}

/// All crates by name.
fn manifests() -> BTreeMap<String, Manifest> {
    let paths = files("crates", "Cargo.toml");
    paths
        .into_iter()
        .map(|path| {
            let (name, sections) = parse(&read(&path));
            let folder = path.trim_end_matches("/Cargo.toml").to_owned();
            (name, Manifest { folder, sections })
        })
        .collect()
}

/// The package's name, and the keys of each section.
fn parse(text: &str) -> (String, BTreeMap<String, Vec<String>>) {
    let (mut name, mut section) = (String::new(), String::new());
    let mut sections: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if let Some(title) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            title.clone_into(&mut section);
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            let key = key.trim().split('.').next().unwrap_or_default().to_owned();
            if section == "package" && key == "name" {
                value.trim().trim_matches('"').clone_into(&mut name);
            }
            sections.entry(section.clone()).or_default().push(key);
        }
    }
    (name, sections)
}

#[test]
fn dependencies_point_to_lower_layers_only() {
    let mut breaches = Vec::new();
    for (position, (layer, allowed)) in LAYERS.iter().enumerate() {
        for lower in *allowed {
            if !LAYERS[..position].iter().any(|(name, _)| name == lower) {
                breaches.push(format!(
                    "{layer} may not be allowed {lower}, which is not below it"
                ));
            }
        }
    }
    for (name, manifest) in manifests() {
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
            breaches.push(format!(
                "{}: {name} is not in the list of layers",
                manifest.folder
            ));
            continue;
        };
        for dependency in manifest
            .names("dependencies")
            .iter()
            .filter(|it| it.starts_with("weir"))
        {
            if !allowed.contains(&dependency.as_str()) {
                breaches.push(format!(
                    "{}/Cargo.toml: {name} depends on {dependency}",
                    manifest.folder
                ));
            }
        }
    }
    assert_none(&breaches, "a layer builds on lower layers only");
}

#[test]
fn every_layer_is_there() {
    let manifests = manifests();
    let missing = LAYERS.iter().filter(|(layer, _)| !manifests.contains_key(*layer));
    let missing: Vec<String> = missing.map(|(layer, _)| (*layer).to_owned()).collect();
    assert_none(&missing, "the list of layers names crates that exist");
}

#[test]
fn pure_layers_know_no_io() {
    let manifests = manifests();
    let mut breaches = Vec::new();
    for layer in NO_IO {
        let Some(manifest) = manifests.get(layer) else {
            continue;
        };
        for dependency in manifest.names("dependencies") {
            if IO_CRATES.contains(&dependency.as_str()) {
                breaches.push(format!(
                    "{}/Cargo.toml: {layer} depends on {dependency}",
                    manifest.folder
                ));
            }
        }
    }
    assert_none(
        &breaches,
        "model, algorithms, contract, snapshot and catalogue do no I/O",
    );
}

#[test]
fn dialects_serve_only_in_their_admin_apis() {
    let mut breaches = Vec::new();
    for dialect in ["kong", "apisix", "native"] {
        let admin = format!("crates/{dialect}/src/admin/");
        for path in files(&format!("crates/{dialect}/src"), ".rs") {
            if path.starts_with(&admin) {
                continue;
            }
            let text = read(&path);
            let served = ["axum::", "tokio::", "weir_store::", "async fn"];
            breaches.extend(
                served
                    .iter()
                    .filter(|word| text.contains(**word))
                    .map(|word| format!("{path}: {word}")),
            );
        }
    }
    assert_none(&breaches, "documents and translation do no I/O");
}

#[test]
fn the_data_plane_reads_no_documents() {
    let manifests = manifests();
    let mut breaches = Vec::new();
    for dependency in manifests
        .get("weir-proxy")
        .map_or(&[][..], |it| it.names("dependencies"))
    {
        if READERS.contains(&dependency.as_str()) {
            breaches.push(format!("crates/proxy/Cargo.toml: {dependency}"));
        }
    }
    assert_none(
        &breaches,
        "the data plane is handed a snapshot; it interprets no document and no JSON",
    );
}
