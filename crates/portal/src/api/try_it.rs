//! Trying a call. The portal's server sends it, so that no API needs CORS. Its target follows from the publication and
//! its operation alone: a browser says only what stands in place of the path's parameters, and query, headers and body.

use super::operation::{Operation, Shared};
use super::versions::find_version;
use crate::state::PortalContext;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::SystemTime;
use weir_control::api::Json;
use weir_control::api::Problem;
use weir_control::attempt_counter::network;
use weir_control::http::ClientRequest;
use weir_control::identity_sources::IdentitySources;
use weir_control::try_it::{self as sending, CallParts, LONGEST, MAX_BODY, MAX_PARTS, MOST, TryItResponse};
use weir_model::unix_time;

/// The header that marks the call, so that analytics and backends can distinguish it.
const MARK: &str = sending::PORTAL_MARK;
/// The characters that stay as they are in a query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');
/// The call.
pub fn operations() -> Vec<Operation> {
    let about = (
        "tryOperation",
        "Sends a call to a publication that the portal shows, and returns the response",
    );
    let path = "/portal/v1/try/{api}/{version}/{environment}/{operation}";
    let operations = vec![
        Operation::post(path, about, try_it)
            .body::<TryItRequest>()
            .answers::<TryItResponse>(),
    ];
    Operation::tagged("Try", operations)
}

/// The call to send. There is no address in it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TryItRequest {
    /// The operation's path with values in place of its parameters.
    path: String,
    /// The query: names and values.
    #[serde(default)]
    query: Vec<(String, String)>,
    /// Headers: names and values.
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// The media type of the body.
    #[serde(default)]
    media: Option<String>,
    /// The body.
    #[serde(default)]
    body: Option<String>,
    /// The fields of a form, in place of a body.
    #[serde(default)]
    form: Option<Vec<FormField>>,
    /// The API key.
    #[serde(default)]
    key: Option<String>,
}

/// A field of a form.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormField {
    /// Its name.
    name: String,
    /// Its value; of a file, its name.
    value: String,
    /// Whether it is a file. Its content is its name.
    #[serde(default)]
    file: bool,
}

/// A path that fits the operation's template; `None`: it leads elsewhere.
fn fits(template: &str, path: &str) -> bool {
    let is_clean = path
        .bytes()
        .all(|it| it.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%/".contains(&it));
    let segments = |text: &str| -> Vec<String> { text.split('/').map(str::to_owned).collect() };
    let (expected, given) = (segments(template), segments(path));
    let is_dots = |segment: &str| {
        let decoded = percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
        // Servers behind may decode once more, or take other characters for a slash.
        matches!(&*decoded, "." | "..") || decoded.contains(['/', '\\', '\0', '%'])
    };
    is_clean
        && expected.len() == given.len()
        && expected
            .iter()
            .zip(&given)
            .all(|(expected, given)| match expected.split_once('{') {
                None => expected == given,
                Some((before, rest)) => {
                    let after = rest.rsplit_once('}').map_or("", |(_, after)| after);
                    let is_whole = given.len() > before.len() + after.len();
                    is_whole && given.starts_with(before) && given.ends_with(after) && !is_dots(given)
                }
            })
}

/// The headers that go with it, if it may go with this query and body. `sources`: what says to the gateway who calls.
fn headers(
    call: &TryItRequest,
    (query, has_body): (&str, bool),
    sources: &IdentitySources,
) -> Result<Vec<(String, String)>, Problem> {
    if let Some((name, _)) = (call.headers.iter()).find(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        return Err(Problem::bad(format!(
            "the header '{name}' cannot be set: use 'media'"
        )));
    }
    let parts = CallParts {
        headers: &call.headers,
        host: None,
        path: &call.path,
        query,
        has_body,
    };
    sending::check(&parts, sources)?;
    let mut headers = call.headers.clone();
    if let Some(key) = call.key.as_deref().filter(|it| !it.is_empty()) {
        match HeaderValue::from_str(key) {
            Ok(_) => headers.push(("X-API-Key".to_owned(), key.to_owned())),
            Err(_) => {
                return Err(Problem::bad(
                    "this is not a valid key: it has characters that no header can have",
                ));
            }
        }
    }
    Ok(headers)
}

/// The body and its media type.
fn body(call: &TryItRequest) -> Result<Option<(String, Vec<u8>)>, Problem> {
    let Some(media) = call.media.as_deref().filter(|it| !it.is_empty()) else {
        return Ok(None);
    };
    if HeaderValue::from_str(media).is_err() {
        return Err(Problem::bad("the media type is invalid"));
    }
    let made = match &call.form {
        None => (
            media.to_owned(),
            call.body.clone().unwrap_or_default().into_bytes(),
        ),
        Some(fields) if media.starts_with("multipart/") => multipart(fields)?,
        Some(fields) => {
            let encoded = fields.iter().map(|it| pair(&it.name, &it.value));
            let text = encoded.collect::<Vec<_>>().join("&");
            (media.to_owned(), text.into_bytes())
        }
    };
    match made.1.len() > MAX_BODY {
        true => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the body is longer than 1 MiB",
        )),
        false => Ok(Some(made)),
    }
}

fn multipart(fields: &[FormField]) -> Result<(String, Vec<u8>), Problem> {
    let boundary = sending::random()?;
    let mut text = String::new();
    // Quotes and ends of lines would end a name.
    let quoted = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    for field in fields {
        let name = quoted(&field.name);
        text += &format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"");
        if field.file {
            text += &format!(
                "; filename=\"{}\"\r\nContent-Type: application/octet-stream",
                quoted(&field.value)
            );
        }
        text += &format!("\r\n\r\n{}\r\n", field.value);
    }
    text += &format!("--{boundary}--\r\n");
    Ok((
        format!("multipart/form-data; boundary={boundary}"),
        text.into_bytes(),
    ))
}

fn pair(name: &str, value: &str) -> String {
    let encode = |text: &str| utf8_percent_encode(text, QUERY).to_string();
    format!("{}={}", encode(name), encode(value))
}

async fn try_it(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((api, version, environment, operation)): Path<(String, String, String, String)>,
    Json(call): Json<TryItRequest>,
) -> Result<Json<TryItResponse>, Problem> {
    let now = unix_time::seconds(SystemTime::now());
    let who = visit.viewer.developer.clone();
    let who = who.unwrap_or_else(|| network(visit.address).to_string());
    if let Err(wait) = portals.tries.take(&who, MOST, now) {
        let detail = format!("{MOST} calls a minute can be tried; try again in {wait} seconds");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    }
    let catalogue = portals.catalogue().await;
    let (_, found) = find_version(&catalogue, &visit, (&api, &version))?;
    let place = found.places.iter().find(|it| it.environment.name == environment);
    let place = place.ok_or_else(|| Problem::not_found(format_args!("a publication in '{environment}'")))?;
    let described = place.operation(&operation);
    let described =
        described.ok_or_else(|| Problem::not_found(format_args!("the operation '{operation}'")))?;
    if !fits(&described.path, &call.path) {
        let detail = format!(
            "the path does not fit {}: expected a value for each parameter",
            described.path
        );
        return Err(Problem::bad(detail));
    }
    if call.query.len() + call.headers.len() + call.form.as_ref().map_or(0, Vec::len) > MAX_PARTS {
        return Err(Problem::bad(format!("expected at most {MAX_PARTS} values")));
    }
    let base = place.base_url(&portals.gateway);
    let base = base.ok_or_else(|| {
        let detail = "the address of this API is unknown: ask its provider to set an address of the environment \
            (base_urls)";
        Problem::new(StatusCode::CONFLICT, detail)
    })?;
    let query: Vec<String> = call.query.iter().map(|(name, value)| pair(name, value)).collect();
    let query = query.join("&");
    let mark = if query.is_empty() { "" } else { "?" };
    let mut request = ClientRequest {
        method: Method::from_bytes(described.method.as_bytes())
            .map_err(|_| Problem::bad(format!("'{}' is not a valid method", described.method)))?,
        timeout: LONGEST,
        ..ClientRequest::get(format!("{base}{}{mark}{query}", call.path))
    };
    let body = body(&call)?;
    let sources = portals.delegate.identity_sources().await?;
    for (name, value) in headers(&call, (&query, body.is_some()), &sources)? {
        request = request.header(name, value);
    }
    if let Some((media, bytes)) = body {
        request = request.header("content-type", media);
        request.body = bytes;
    }
    let request = request
        .header("X-Request-Id", sending::random()?)
        .header(MARK, visit.portal.name.clone())
        .header("User-Agent", "weir-portal");
    Ok(Json(sending::send(request).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 30
    #[test]
    fn paths_lead_nowhere_else() {
        for (template, path, expected) in [
            ("/pets/{id}", "/pets/7", true),
            ("/pets/{id}", "/pets/a%20b", true),
            ("/pets/{id}.json", "/pets/7.json", true),
            ("/pets/{id}.json", "/pets/.json", false),
            ("/pets", "/pets", true),
            ("/pets/{id}", "/pets/", false),
            ("/pets/{id}", "/pets/../admin", false),
            ("/pets/{id}", "/pets/..", false),
            ("/pets/{id}", "/pets/%2e%2e", false),
            ("/pets/{id}", "/pets/%2e%2e%2fadmin", false),
            ("/pets/{id}", "/pets/%252e%252e", false),
            ("/pets/{id}", "/pets/a\\b", false),
            ("/pets/{id}", "/pets/7?x=1", false),
            ("/pets/{id}", "/pets/7#x", false),
            ("/pets/{id}", "http://evil.test/7", false),
            ("/pets/{id}", "@evil.test/7", false),
            ("/pets/{id}", "/cats/7", false),
            ("/pets", "/pets\r\nHost: evil", false),
        ] {
            assert_eq!(fits(template, path), expected, "{template} {path:?}");
        }
    }

    fn call(value: serde_json::Value) -> TryItRequest {
        serde_json::from_value(value).expect("a call")
    }

    #[test]
    fn headers_of_the_connection_cannot_be_set() {
        let sources = IdentitySources {
            headers: ["x-edge".to_owned()].into(),
            ..IdentitySources::default()
        };
        for (header, is_good) in [
            (["X-Trace", "1"], true),
            (["Authorization", "Bearer x"], true),
            (["Host", "evil.test"], false),
            (["HOST", "evil.test"], false),
            (["X-Forwarded-For", "127.0.0.1"], false),
            (["X-Real-IP", "127.0.0.1"], false),
            (["X_Edge", "127.0.0.1"], false),
            (["X-Request-Id", "mine"], false),
            (["Transfer-Encoding", "chunked"], false),
            (["a b", "1"], false),
            (["X", "a\r\nHost: evil"], false),
        ] {
            let tried = call(serde_json::json!({"path": "/", "headers": [header]}));
            let found = headers(&tried, ("", false), &sources);
            assert_eq!(found.is_ok(), is_good, "{header:?}");
        }
        let sources = IdentitySources {
            path: true,
            query: true,
            ..IdentitySources::default()
        };
        for (path, query, is_good) in [
            ("/pets/7", "a=b", true),
            ("/pets/127.0.0.1", "", false),
            ("/pets/7", "127.0.0.1", false),
        ] {
            let tried = call(serde_json::json!({"path": path}));
            assert_eq!(
                headers(&tried, (query, false), &sources).is_ok(),
                is_good,
                "{path}?{query}"
            );
        }
        let other =
            serde_json::from_value::<TryItRequest>(serde_json::json!({"path": "/", "url": "http://x"}));
        assert!(other.is_err(), "there is no address in it");
    }

    #[test]
    fn forms_are_written() {
        let form = serde_json::json!([{"name": "a\"b", "value": "x y"}, {"name": "f", "value": "p.png", "file": true}]);
        let tried = call(serde_json::json!({"path": "/", "media": "multipart/form-data", "form": form}));
        let (media, bytes) = body(&tried).expect("a body").expect("a body");
        let text = String::from_utf8(bytes).expect("text");
        assert!(media.starts_with("multipart/form-data; boundary="));
        assert!(
            text.contains("name=\"a%22b\"\r\n\r\nx y\r\n") && text.contains("filename=\"p.png\""),
            "{text}"
        );
        let tried = call(
            serde_json::json!({"path": "/", "media": "application/x-www-form-urlencoded", "form": [{"name": "a", "value": "x&y"}]}),
        );
        assert_eq!(body(&tried).expect("good").expect("a body").1, b"a=x%26y");
        let long =
            call(serde_json::json!({"path": "/", "media": "text/plain", "body": "x".repeat(MAX_BODY + 1)}));
        assert!(body(&long).is_err());
    }
}
