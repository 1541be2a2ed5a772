//! The vaults that documents refer to by `$secret://`.

use crate::schema::{Schema, array, boolean, having, object, text};
use serde_json::json;
use std::sync::LazyLock;

/// The shape of a vault's document, by its id (`KIND/NAME`); `None`: there is no such kind.
pub fn shape_of(id: &str) -> Option<&'static Schema> {
    shape(id.split('/').next()?)
}

/// The shape of a vault's document, by its kind.
pub fn shape(manager: &str) -> Option<&'static Schema> {
    static VAULT: LazyLock<Schema> = LazyLock::new(|| {
        object([
            ("uri", uri()),
            ("prefix", text()),
            ("token", text()),
            ("namespace", text()),
        ])
        .required(["uri", "prefix", "token"])
    });
    static AWS: LazyLock<Schema> = LazyLock::new(|| {
        object([
            ("access_key_id", text()),
            ("secret_access_key", text()),
            ("session_token", text()),
            ("region", text().or("us-east-1")),
            ("endpoint_url", uri()),
        ])
        .required(["access_key_id", "secret_access_key"])
    });
    static GCP: LazyLock<Schema> = LazyLock::new(gcp);
    match manager {
        "vault" => Some(&VAULT),
        "aws" => Some(&AWS),
        "gcp" => Some(&GCP),
        _ => None,
    }
}

fn uri() -> Schema {
    text().pattern(r"^[^\/]+:\/\/([\da-zA-Z.-]+|\[[\da-fA-F:]+\])(:\d+)?")
}

fn gcp() -> Schema {
    let account = object([
        ("client_email", text()),
        ("private_key", text()),
        ("project_id", text()),
        ("token_uri", text().or("https://oauth2.googleapis.com/token")),
        (
            "scope",
            array(text()).or(json!(["https://www.googleapis.com/auth/cloud-platform"])),
        ),
        (
            "entries_uri",
            text().or("https://secretmanager.googleapis.com/v1"),
        ),
    ])
    .required(["client_email", "private_key", "project_id"]);
    object([
        ("auth_config", account),
        ("ssl_verify", boolean().or(true)),
        ("auth_file", text()),
    ])
    .one_of([having(["auth_config"]), having(["auth_file"])])
}
