//! The explanation of a Weir that runs: it is asked itself, because only it knows all that it serves, files among it.

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use weir_control::explain::{ExplainedCall, Explanation};
use weir_control::http::{ClientRequest, Method, StatusCode};
use weir_plugin::Headers;

/// The answer of its call for explanations, as far as the command shows it.
#[derive(Deserialize)]
pub struct RemoteExplanation {
    #[serde(flatten)]
    pub explanation: Explanation,
    skipped: Vec<SkippedPart>,
    /// What was not looked at.
    note: Option<String>,
}

#[derive(Deserialize)]
struct SkippedPart {
    document: String,
    reason: String,
}

impl RemoteExplanation {
    /// What is not served as it is written, one a line.
    pub fn report(&self) -> String {
        let line = |it: &SkippedPart| format!("not served as written: {}: {}\n", it.document, it.reason);
        self.skipped.iter().map(line).collect()
    }

    /// Whether nothing is published in the environments that it serves.
    pub fn has_note(&self) -> bool {
        self.note.is_some()
    }
}

/// Asks it. `None`: the token's user may read what gateways read, and ask nothing else.
///
/// # Errors
/// There is no explanation.
pub fn ask(
    (url, token): (&str, Option<&str>),
    call: &ExplainedCall,
    environment: Option<&str>,
) -> anyhow::Result<Option<RemoteExplanation>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let address = format!("{}/api/v1/explain", url.trim_end_matches('/'));
    let request = ClientRequest::json(Method::POST, address, &body(call, environment)).token(token);
    let (status, body) = runtime.block_on(request.make())?;
    match status {
        StatusCode::OK => {
            let answer = serde_json::from_slice(&body);
            Ok(Some(answer.context("its explanation cannot be read")?))
        }
        StatusCode::FORBIDDEN => Ok(None),
        status => {
            let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
            let detail = problem["detail"].as_str().unwrap_or("no explanation");
            anyhow::bail!("{url}: {status}: {detail}")
        }
    }
}

fn body(call: &ExplainedCall, environment: Option<&str>) -> Value {
    let text = call.to_string();
    let url = text.split_once(' ').map_or(text.as_str(), |(_, url)| url);
    let mut all = Headers::default();
    for (name, value) in &call.headers {
        all.append(name.as_bytes(), value.as_bytes());
    }
    let headers: Map<String, Value> = call
        .headers
        .iter()
        .filter_map(|(name, _)| {
            let whole = all.joined(name.as_bytes())?;
            Some((name.to_ascii_lowercase(), String::from_utf8_lossy(&whole).into()))
        })
        .collect();
    json!({
        "method": call.method,
        "url": url,
        "headers": headers,
        "client": call.client,
        "sni": call.sni,
        "consumer": call.consumer,
        "environment": environment,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_asked_about_as_it_was_given() {
        let headers = ["X-A: 1", "Cookie: a=1", "x-a: 2", "cookie: b=2", "Host: h.test"];
        let headers = headers.map(str::to_owned);
        let client = "10.0.0.1".parse().expect("an address");
        let call = ExplainedCall::parse("PUT /x?y=1", &headers, client).expect("a call");
        assert_eq!(
            body(&call, Some("prod")),
            json!({
                "method": "PUT",
                "url": "http://h.test/x?y=1",
                "headers": {"x-a": "1, 2", "cookie": "a=1; b=2"},
                "client": "10.0.0.1",
                "sni": null,
                "consumer": null,
                "environment": "prod",
            })
        );
    }
}
