//! What the upstream gets after the callouts.

use super::message::{CalloutResponses, Custom, Names};
use weir_plugin::Exchange;
use weir_plugins_shared::expression::EvaluationError;

/// Headers that stay, whatever else is left out: the message could not be read without them.
const KEPT: [&[u8]; 3] = [b"host", b"content-type", b"content-encoding"];

/// Puts into the request what is configured.
pub(super) fn put(
    custom: &Custom,
    exchange: &mut Exchange,
    answers: &CalloutResponses,
) -> Result<(), EvaluationError> {
    let names = Names { exchange, answers };
    let headers: Vec<(String, String)> = (custom.headers(&names)?.into_iter())
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let query = match custom.forward_query && !custom.has_query() {
        true => None,
        false => Some(custom.query(&exchange.request, &names)?),
    };
    let body = match custom.forward_body && !custom.has_body() {
        true => None,
        false => Some(custom.body(&exchange.request, &names)?),
    };
    mark(custom, exchange, &headers, query.as_deref(), body.as_deref());
    let request = &mut exchange.request;
    if !custom.forward_headers {
        request
            .headers
            .retain(|header| KEPT.iter().any(|kept| header.name.eq_ignore_ascii_case(kept)));
    }
    if let Some(body) = body {
        if custom.has_body() {
            request.headers.set(b"Content-Type", b"application/json");
        }
        request.headers.remove(b"Content-Encoding");
        request.forget_parsed_body();
        request.has_body = !body.is_empty();
        request.content_length = Some(body.len() as u64);
        request.body = Some(body);
    }
    for (name, value) in headers {
        request.headers.set_owned(name.as_bytes(), value.as_bytes());
    }
    if let Some(query) = query {
        let mut escaped = Vec::with_capacity(query.len());
        weir_plugin::uri::escape_controls(&query, &mut escaped);
        exchange.upstream_query = Some(escaped);
    }
    Ok(())
}

/// Notes what the upstream gets that depends on responses of callouts: responses to it are no responses to others, which a
/// cache could not see in the call.
fn mark(
    custom: &Custom,
    exchange: &mut Exchange,
    headers: &[(String, String)],
    query: Option<&[u8]>,
    body: Option<&[u8]>,
) {
    let mut marks = Vec::new();
    for (name, value) in headers {
        for part in [name.as_str(), ": ", value.as_str(), "\n"] {
            marks.extend_from_slice(part.as_bytes());
        }
    }
    marks.push(b'\n');
    marks.extend_from_slice(query.filter(|_| custom.has_query()).unwrap_or_default());
    marks.push(b'\n');
    marks.extend_from_slice(body.filter(|_| custom.has_body()).unwrap_or_default());
    if marks.len() > 2 {
        exchange.add_fingerprint(&marks);
    }
}
