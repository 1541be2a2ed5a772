//! Documents that publications own: the API of resources refuses to write them, and names the publication.

use crate::api::{Api, Problem};
use axum::http::StatusCode;
use serde_json::Value;
use weir_dialect::ENVIRONMENTS;

/// Refuses a write of a native resource that a publication owns.
pub async fn refuse_owned(api: &Api, kind: &str, name: &str) -> Result<(), Problem> {
    // Names that are derived have dots.
    let Some((first, _)) = name.split_once('.') else {
        return Ok(());
    };
    let prefix = match first {
        "sub" | "products" => ENVIRONMENTS.to_owned(),
        environment => format!("{ENVIRONMENTS}{environment}/native/"),
    };
    let (documents, _) = api.store.read(&prefix).await?;
    for document in documents {
        let key = document.key.as_str();
        let is_it = key.ends_with(&format!("/native/{kind}/{name}"));
        let service = key.rsplit_once("/native/services/").map(|(_, service)| service);
        let may_hold_it = kind == "routes" && service.is_some_and(|it| name.starts_with(&format!("{it}.")));
        if !is_it && !may_hold_it {
            continue;
        }
        let value: Value = serde_json::from_slice(&document.value).unwrap_or_default();
        let mut routes = value["routes"].as_array().into_iter().flatten();
        if let Some(owner) = value["owned_by"].as_str()
            && (is_it || routes.any(|it| it["name"] == name))
        {
            let detail = format!("{kind}/{name} belongs to {owner}: change it there, and publish it again");
            return Err(Problem::new(StatusCode::CONFLICT, detail).of_type("owned"));
        }
    }
    Ok(())
}
