//! What is wrong with an environment as it is written: the URLs that callers see, and the plugins before every API's own.
//! Without this, the first publish would tell. What is stored stays as it is.

use super::{chains, entity_snapshot};
use crate::access::Caller;
use crate::api::{Api, Problem};
use axum::http::Uri;
use std::sync::Arc;
use weir_apis::entities::Environment;

/// Refuses what is wrong with it, and is not stored so.
pub async fn check(api: &Arc<Api>, caller: &Caller, wanted: &Environment) -> Result<(), Problem> {
    let key = entity_snapshot::environment_key(&wanted.name);
    // One that is not understood is about to be replaced.
    let known = api.snapshot().await?.find(&key).ok().flatten();
    let known: Environment = known.unwrap_or_default();
    let urls = wanted.base_urls.iter().enumerate();
    let wrong = urls.filter(|(_, url)| !known.base_urls.contains(url) && !is_base_url(url));
    let wrong: Vec<(String, String)> = wrong
        .map(|(index, url)| {
            let message = format!("expected a URL such as https://api.example.com, found '{url}'");
            (format!("base_urls[{index}]"), message)
        })
        .collect();
    if !wrong.is_empty() {
        return Err(Problem::step("check", wrong));
    }
    if wanted.chain.is_empty() || wanted.chain == known.chain {
        return Ok(());
    }
    let chains = vec![("chain".to_owned(), wanted.chain.as_slice())];
    chains::permit(api, caller, &chains).await?;
    chains::check(api, chains).await
}

/// Whether a text is the address of a server, with or without a path.
fn is_base_url(text: &str) -> bool {
    let uri = text.parse::<Uri>().ok();
    uri.is_some_and(|it| {
        matches!(it.scheme_str(), Some("http" | "https"))
            && it.host().is_some_and(|host| !host.is_empty())
            && it.query().is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_addresses_of_servers() {
        for (text, expected) in [
            ("https://api.example.com", true),
            ("http://127.0.0.1:8000/shop", true),
            ("https://[::1]:8443/", true),
            ("https://xn--tda.de", true),
            ("not url", false),
            ("api.example.com", false),
            ("/v1", false),
            ("ftp://api.example.com", false),
            ("https://", false),
            ("https://a.example.com?x=1", false),
            ("https://ü.de", false),
        ] {
            assert_eq!(is_base_url(text), expected, "{text}");
        }
    }
}
