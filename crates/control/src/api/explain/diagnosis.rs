//! Which plan takes a call of a publication, and why the others do not.

use crate::api::Problem;
use crate::api::apis::{self, CallerInfo, PlanDiagnosis};
use crate::explain::{ExplainedCall, Explanation};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weir_apis::{hash, naming, render};
use weir_plugin::{AuthFailure, Request, uri};
use weir_store::Document;

/// Texts of a call that may be keys, at most.
const MAX_CANDIDATES: usize = 100;

/// The publication that a call's route belongs to, and how its plans stand to the call.
pub fn of(
    explanation: &Explanation,
    call: &ExplainedCall,
    documents: Vec<Document>,
) -> Result<(Option<String>, Vec<PlanDiagnosis>), Problem> {
    let label = |name: &str| explanation.labels.get(name).map(String::as_str);
    let (Some(api), Some(version), Some(environment)) =
        (label("api"), label("version"), label("environment"))
    else {
        return Ok((None, Vec::new()));
    };
    let publication = format!("{api}/{version}/{environment}");
    // Beside a keyless plan no caller is refused: one that is not known there is the anonymous caller.
    let anonymous = render::anonymous_consumer(&naming::publication(environment, api, version));
    let has_key = match (&explanation.auth_failure, &explanation.consumer) {
        (Some(failure), _) => *failure != AuthFailure::Missing,
        (None, Some(consumer)) if *consumer == anonymous => carries_key(call),
        (None, consumer) => consumer.is_some(),
    };
    let caller = CallerInfo {
        has_key,
        hashes: candidates(call),
        names: names(call),
        consumer: call.consumer.clone(),
        recognised: explanation.consumer.clone(),
        operation: label("operation").unwrap_or_default().to_owned(),
    };
    let plans = apis::diagnose_plans(documents, &publication, &caller)?;
    Ok((Some(publication), plans))
}

/// Whether a call has something in a common place of keys.
fn carries_key(call: &ExplainedCall) -> bool {
    const HEADERS: [&str; 3] = ["authorization", "x-api-key", "apikey"];
    let mut request = Request::default();
    call.fill(&mut request);
    let query = request.query.clone().unwrap_or_default();
    let is_header = |name: &str| HEADERS.iter().any(|it| name.eq_ignore_ascii_case(it));
    call.headers.iter().any(|(name, _)| is_header(name))
        || uri::query_pairs(&query).any(|(name, _)| *uri::decode_form(name) == *b"apikey")
}

/// The hashes of all texts of a call that may be keys. A key is found by its hash; the place does not matter here.
fn candidates(call: &ExplainedCall) -> Vec<String> {
    let mut request = Request::default();
    call.fill(&mut request);
    let query = request.query.clone().unwrap_or_default();
    let in_query = uri::query_pairs(&query).filter_map(|(_, value)| value);
    let in_query = in_query.map(|value| uri::decode_form(value).into_owned());
    let in_headers = call.headers.iter().map(|(_, value)| value.clone().into_bytes());
    in_query
        .chain(in_headers)
        .take(MAX_CANDIDATES)
        .map(|it| hash::of_bytes(&it))
        .collect()
}

/// The names in `Authorization` that come with a password or a signature.
fn names(call: &ExplainedCall) -> Vec<String> {
    let is_it = |name: &str| name.eq_ignore_ascii_case("authorization");
    let values = call.headers.iter().filter(|(name, _)| is_it(name));
    let name = |value: &str| {
        let (scheme, rest) = value.trim().split_once(' ')?;
        if scheme.eq_ignore_ascii_case("basic") {
            let pair = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
            return pair.split_once(':').map(|(name, _)| name.to_owned());
        }
        let rest = rest.split_once("username=\"")?.1;
        rest.split_once('"').map(|(name, _)| name.to_owned())
    };
    values
        .filter_map(|(_, value)| name(value))
        .filter(|it| !it.is_empty())
        .collect()
}
