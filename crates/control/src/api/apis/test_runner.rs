//! A run of a version's tests: their calls are explained by what gateways of an environment would serve, and compared
//! with what was expected.

use super::access::{Access, AllAccess};
use super::entity_snapshot::{self, Changes, EntitySnapshot};
use crate::api::compiled_config::CompiledConfig;
use crate::api::{Api, Problem};
use crate::explain::{EndKind, ExplainedCall, Explanation};
use axum::http::StatusCode;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use weir_apis::call_tests::{self, Difference, Observed, TestReport, TestResult};
use weir_apis::entities::{CallTest, Expected, Publication, Runtime, TestRequest};
use weir_apis::render::consumer_of;

/// The tests of a version, by name.
pub fn tests_of(snapshot: &EntitySnapshot, name: &str, version: &str) -> Result<Vec<CallTest>, Problem> {
    snapshot.list(&entity_snapshot::test_key(name, version, ""))
}

/// Tests that are to be run before something is committed.
#[derive(Clone)]
pub struct TestRunner {
    /// The publication as it would be.
    pub publication: Publication,
    /// Only these tests; empty: all.
    pub names: Vec<String>,
    /// Whether the caller may see what happens to calls that routes of others take: callers who may read the
    /// configuration may.
    pub sees_others: bool,
}

impl TestRunner {
    /// Runs them by what gateways of the environment would serve after the changes.
    pub async fn run(
        self,
        api: &Arc<Api>,
        snapshot: &Arc<EntitySnapshot>,
        changes: &Changes,
    ) -> Result<TestReport, Problem> {
        let (api, snapshot, changes) = (Arc::clone(api), Arc::clone(snapshot), changes.clone());
        // Compiling takes its time with many routes.
        tokio::task::spawn_blocking(move || self.report(&api, &snapshot, &changes))
            .await
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?
    }

    fn report(&self, api: &Api, snapshot: &EntitySnapshot, changes: &Changes) -> Result<TestReport, Problem> {
        let publication = &self.publication;
        let mut tests = tests_of(snapshot, &publication.api, &publication.version)?;
        if let Some(unknown) = self
            .names
            .iter()
            .find(|name| !tests.iter().any(|it| it.name == **name))
        {
            return Err(Problem::not_found(format_args!("the test '{unknown}'")));
        }
        tests.retain(|it| {
            let is_here = it.environments.is_empty() || it.environments.contains(&publication.environment);
            is_here && (self.names.is_empty() || self.names.contains(&it.name))
        });
        let mut results = Vec::new();
        if !tests.is_empty() {
            let environment = vec![publication.environment.clone()];
            let dialects = api.options.dialects.clone().in_environments(environment);
            let known = snapshot
                .documents()
                .map(|(key, value)| (key.as_str(), Some(&**value)));
            let fresh = changes
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_deref()));
            let prepared = CompiledConfig::new(api, &dialects, known.chain(fresh))?;
            let access = Access::of_publication(snapshot, &AllAccess::read(snapshot)?, &publication.id())?;
            results.extend(tests.iter().map(|test| self.result(test, &access, &prepared)));
        }
        Ok(TestReport::new(
            publication.id(),
            publication.hash.clone(),
            results,
        ))
    }
}

impl TestRunner {
    fn result(&self, test: &CallTest, access: &Access, prepared: &CompiledConfig) -> TestResult {
        let publication = &self.publication;
        let mut result = TestResult {
            name: test.name.clone(),
            call: format!("{} {}", method_of(&test.request), test.request.path),
            passed: false,
            differences: Vec::new(),
            found: String::new(),
        };
        let mut fail = |field: &str, expected: &str, found: String| {
            result.differences.push(Difference {
                field: field.to_owned(),
                expected: expected.to_owned(),
                found,
            });
        };
        let consumer = match &test.request.application {
            None => test.request.consumer.clone(),
            Some(application) => {
                let Some(subscription) = access.subscription_of(application) else {
                    let found = format!(
                        "no accepted subscription of '{application}' to {}",
                        publication.id()
                    );
                    fail("request.application", "a subscriber", found);
                    return result;
                };
                Some(consumer_of(subscription))
            }
        };
        let call = match call_of(&test.request, &publication.runtime, consumer) {
            Ok(call) => call,
            Err(message) => {
                fail("request", "a call", message);
                return result;
            }
        };
        let (observed, is_own) = observed(&prepared.explain(&call), publication, access);
        result.call = call.to_string();
        (result.found, result.differences) = match is_own || observed.route.is_empty() || self.sees_others {
            true => (
                describe(&observed),
                call_tests::differences(&test.expected, &observed),
            ),
            false => (OF_ANOTHER.to_owned(), hidden(&test.expected)),
        };
        result.passed = result.differences.is_empty();
        result
    }
}

fn method_of(request: &TestRequest) -> &str {
    match request.method.as_str() {
        "" => "GET",
        method => method,
    }
}

/// The call of a test, at the address of the publication.
pub fn call_of(
    request: &TestRequest,
    runtime: &Runtime,
    consumer: Option<String>,
) -> Result<ExplainedCall, String> {
    let host = match (request.host.as_str(), runtime.hosts.first()) {
        ("", Some(first)) => first
            .strip_prefix("*.")
            .map_or_else(|| first.clone(), |it| format!("any.{it}")),
        ("", None) => "localhost".to_owned(),
        (host, _) => host.to_owned(),
    };
    let base = runtime.base_path.trim_end_matches('/');
    let text = format!("{} http://{host}{base}{}", method_of(request), request.path);
    let headers: Vec<String> = request
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let client = request.client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Ok(ExplainedCall {
        body: request.body.clone(),
        consumer,
        ..ExplainedCall::parse(&text, &headers, client)?
    })
}

/// The text about a route that takes a call and that the caller may not read.
const OF_ANOTHER: &str =
    "a route outside this version matches it; callers who may read the configuration see its name";

/// The difference if a route of others takes the call. Nothing else of it is compared: a test that passes would reveal
/// it.
fn hidden(expected: &Expected) -> Vec<Difference> {
    let observed = Observed {
        route: "of others".to_owned(),
        ..Observed::default()
    };
    let only = Expected {
        operation: expected.operation.clone(),
        ..Expected::default()
    };
    let mut found = call_tests::differences(&only, &observed);
    let all = json!(expected);
    let fields = all.as_object().into_iter().flatten();
    for (field, wanted) in fields.filter(|(field, _)| *field != "operation") {
        found.push(Difference {
            field: field.clone(),
            expected: wanted.as_str().map_or_else(|| wanted.to_string(), str::to_owned),
            found: OF_ANOTHER.to_owned(),
        });
    }
    found
}

/// An explanation in the form of tests; and whether a route of the version takes the call.
fn observed(explanation: &Explanation, publication: &Publication, access: &Access) -> (Observed, bool) {
    let label = |name: &str| explanation.labels.get(name).map_or("", String::as_str);
    let is_own = label("api") == publication.api
        && label("version") == publication.version
        && label("environment") == publication.environment;
    let consumer = explanation.consumer.clone().unwrap_or_default();
    let subscription = access
        .subscriptions
        .iter()
        .find(|it| !consumer.is_empty() && consumer_of(it) == consumer);
    let named = |index: usize| Some(explanation.plugins.get(index)?.plugin.as_ref()?.name.clone());
    let decides = explanation.end.step.and_then(|step| named(step - 1));
    let verdicts = explanation
        .plugins
        .iter()
        .filter_map(|it| Some((it.plugin.as_ref()?.name.clone(), word(&it.verdict.verdict))));
    let observed = Observed {
        operation: if is_own {
            label("operation").to_owned()
        } else {
            String::new()
        },
        route: explanation
            .route
            .as_ref()
            .map_or_else(String::new, |it| it.name.clone()),
        application: subscription.map_or_else(String::new, |it| it.application.clone()),
        consumer,
        end: word(&explanation.end.kind),
        status: explanation.end.status,
        plugin: decides.unwrap_or_default(),
        reason: explanation.end.reason.clone().unwrap_or_default(),
        verdicts: verdicts.collect(),
        targets: targets(explanation),
    };
    (observed, is_own)
}

/// A kind as explanations write it.
fn word(kind: &impl serde::Serialize) -> String {
    json!(kind).as_str().unwrap_or_default().to_owned()
}

/// The targets that a call may go to, as `host:port`.
fn targets(explanation: &Explanation) -> Vec<String> {
    let Some(route) = explanation
        .route
        .as_ref()
        .filter(|_| explanation.end.kind != EndKind::Answered)
    else {
        return Vec::new();
    };
    if let Some(upstream) = &route.upstream {
        return upstream.targets.iter().map(|it| it.address.clone()).collect();
    }
    let url = route
        .url
        .as_deref()
        .and_then(|it| it.parse::<axum::http::Uri>().ok());
    let address = url.and_then(|url| {
        let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") {
            443
        } else {
            80
        });
        Some(format!("{}:{port}", url.host()?))
    });
    address.into_iter().collect()
}

/// The outcome of a call, in a sentence.
fn describe(observed: &Observed) -> String {
    let route = match observed.route.as_str() {
        "" => "no route matches it".to_owned(),
        route => format!("the route {route} matches it"),
    };
    let reason = match observed.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    match (observed.status, observed.plugin.as_str()) {
        (Some(status), "") => format!("{route}, and the gateway answers {status}{reason}"),
        (Some(status), plugin) => format!("{route}, and {plugin} answers {status}{reason}"),
        (None, _) => format!("{route}, and it is {}{reason}", observed.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::VerdictKind;

    #[test]
    fn calls_are_made_where_the_api_is_published() {
        let runtime = |hosts: &[&str], base_path: &str| Runtime {
            hosts: hosts.iter().map(|it| (*it).to_owned()).collect(),
            base_path: base_path.to_owned(),
            ..Runtime::default()
        };
        for (hosts, base, host, expected) in [
            (&[][..], "", "", "GET http://localhost/pets?x=1"),
            (&[], "/v1/", "", "GET http://localhost/v1/pets?x=1"),
            (
                &["api.example.com", "b.c"],
                "/v1",
                "",
                "GET http://api.example.com/v1/pets?x=1",
            ),
            (
                &["*.example.com"],
                "/v1",
                "",
                "GET http://any.example.com/v1/pets?x=1",
            ),
            (
                &["api.example.com"],
                "/v1",
                "own:81",
                "GET http://own:81/v1/pets?x=1",
            ),
        ] {
            let request = TestRequest {
                path: "/pets?x=1".to_owned(),
                host: host.to_owned(),
                ..TestRequest::default()
            };
            let call = call_of(&request, &runtime(hosts, base), None).expect("a call");
            assert_eq!(call.to_string(), expected);
        }
        let wrong = TestRequest {
            method: "get".to_owned(),
            path: "/".to_owned(),
            ..TestRequest::default()
        };
        assert!(call_of(&wrong, &Runtime::default(), None).is_err());
    }

    #[test]
    fn every_verdict_has_a_word() {
        assert_eq!(word(&VerdictKind::DoesNotApply), "does-not-apply");
        assert_eq!(word(&EndKind::Forwarded), "forwarded");
    }
}
