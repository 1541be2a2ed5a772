//! Which plan takes a call of a publication, and why the others do not.

use crate::api::Problem;
use crate::api::apis::{self, CallerInfo, PlanDiagnosis};
use crate::explain::{ExplainedCall, Explanation};
use weir_apis::hash;
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
    let has_key = match &explanation.auth_failure {
        Some(failure) => *failure != AuthFailure::Missing,
        None => explanation.consumer.is_some(),
    };
    let caller = CallerInfo {
        has_key,
        hashes: candidates(call),
        consumer: call.consumer.clone(),
        operation: label("operation").unwrap_or_default().to_owned(),
    };
    let plans = apis::diagnose_plans(documents, &publication, &caller)?;
    Ok((Some(publication), plans))
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
