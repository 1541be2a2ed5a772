//! `GET /api/v1/schema`: the JSON Schema of native documents, from which forms and editors are made.

use axum::http::header;
use axum::response::IntoResponse;
use std::sync::LazyLock;

/// It is the same for as long as the program runs.
static SCHEMA: LazyLock<String> = LazyLock::new(|| weir_native::schema().to_string());

pub async fn read() -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "application/schema+json")],
        SCHEMA.as_str(),
    )
}
