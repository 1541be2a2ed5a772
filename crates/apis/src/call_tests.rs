//! Whether a test of an API holds: what was expected of a call against what an explanation says of it; and a report of many
//! tests as JUnit has it.
//!
//! **What it is not**: it explains no call.

use crate::entities::{CallTest, Expected};
use crate::lint::escaped;
use crate::naming;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The tests that a version has at most.
pub const MAX_TESTS: usize = 500;
/// The name that a path of the API takes.
const RESERVED: &str = "run";
/// The longest description, in characters, and how much of a request a test holds, in bytes: all of them are read with
/// every publish.
const MAX_DESCRIPTION: usize = 2_000;
const MAX_PATH: usize = 8 << 10;
const MAX_HEADERS: usize = 32 << 10;
const MAX_BODY: usize = 64 << 10;
/// Environments and verdicts that a test names.
const MAX_NAMED: usize = 100;
/// Headers that carry nothing but credentials.
const CREDENTIALS: [&str; 3] = ["authorization", "proxy-authorization", "cookie"];
/// The possible ends of a call, in a word.
const ENDS: [&str; 3] = ["forwarded", "answered", "unknown"];

/// The part of an explanation that tests ask for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observed {
    /// The operation of the API that takes it; empty: none.
    pub operation: String,
    /// The route that takes it, of whatever API; empty: none.
    pub route: String,
    /// The consumer; empty: none.
    pub consumer: String,
    /// Its application; empty: none.
    pub application: String,
    /// `forwarded`, `answered` or `unknown`.
    pub end: String,
    /// The status, if the gateway answers.
    pub status: Option<u16>,
    /// The plugin that decides; empty: none.
    pub plugin: String,
    /// Why, in a sentence.
    pub reason: String,
    /// Plugins with what they make of the call.
    pub verdicts: Vec<(String, String)>,
    /// The targets that it may go to, as `host:port`.
    pub targets: Vec<String>,
}

/// A difference from what was expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Difference {
    /// The field of `expected`.
    pub field: String,
    /// The expected value.
    pub expected: String,
    /// The value that was found.
    pub found: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            field,
            expected,
            found,
        } = self;
        write!(formatter, "{field}: expected {expected}, found {found}")
    }
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TestResult {
    /// The test.
    pub name: String,
    /// The call: method and URL.
    pub call: String,
    /// Whether all is as expected.
    pub passed: bool,
    /// The differences.
    pub differences: Vec<Difference>,
    /// The outcome of the call, in a sentence.
    pub found: String,
}

/// The results of the tests of a version in an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TestReport {
    /// The publication, as `API/VERSION/ENVIRONMENT`.
    pub publication: String,
    /// SHA-256 of the content that was tested.
    pub hash: String,
    /// Tests that hold.
    pub passed: usize,
    /// Tests that do not.
    pub failed: usize,
    /// Each of them.
    pub results: Vec<TestResult>,
}

impl TestReport {
    /// Counts results.
    pub fn new(publication: String, hash: String, results: Vec<TestResult>) -> Self {
        let passed = results.iter().filter(|it| it.passed).count();
        Self {
            publication,
            hash,
            passed,
            failed: results.len() - passed,
            results,
        }
    }

    /// A line for each test that fails: its name, and what differs.
    pub fn failures(&self) -> Vec<(String, String)> {
        let failed = self.results.iter().filter(|it| !it.passed);
        failed
            .map(|it| {
                let differences: Vec<String> = it.differences.iter().map(ToString::to_string).collect();
                (it.name.clone(), differences.join("; "))
            })
            .collect()
    }
}

/// The faults of a test, each with its place.
pub fn check(test: &CallTest) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    let mut refuse = |place: &str, message: String| wrong.push((place.to_owned(), message));
    if !naming::is_name(&test.name) || test.name == RESERVED {
        let expected = naming::EXPECTED_NAME;
        refuse(
            "name",
            format!(
                "'{}' is not a valid name: expected {expected}, and not '{RESERVED}'",
                test.name
            ),
        );
    }
    if !test.request.path.starts_with('/') {
        refuse(
            "request.path",
            format!(
                "expected a path after the base path, such as /pets, found '{}'",
                test.request.path
            ),
        );
    }
    for (place, size, most) in sizes(test) {
        if size > most {
            refuse(place, format!("expected at most {most}, found {size}"));
        }
    }
    for name in test.request.headers.keys() {
        if CREDENTIALS.iter().any(|it| name.eq_ignore_ascii_case(it)) {
            refuse(
                &format!("request.headers.{name}"),
                "expected no credential, because tests are stored as plain text: name the caller in 'request.application' or 'request.consumer'"
                    .to_owned(),
            );
        }
    }
    if test.request.application.is_some() && test.request.consumer.is_some() {
        refuse(
            "request.consumer",
            "expected an application or a consumer, not both".to_owned(),
        );
    }
    let expected = &test.expected;
    if *expected == Expected::default() {
        refuse(
            "expected",
            "expected at least one expectation about the call".to_owned(),
        );
    }
    if let Some(end) = expected.end.as_deref().filter(|it| !ENDS.contains(it)) {
        refuse(
            "expected.end",
            format!("expected forwarded, answered or unknown, found '{end}'"),
        );
    }
    if let Some(status) = expected.status.filter(|it| !(100..=599).contains(it)) {
        refuse(
            "expected.status",
            format!("expected a status from 100 to 599, found {status}"),
        );
    }
    wrong
}

/// The sizes that are bounded: the place, the size, and the bound.
fn sizes(test: &CallTest) -> [(&'static str, usize, usize); 6] {
    let request = &test.request;
    let headers = request
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.len() + 4);
    [
        ("description", test.description.chars().count(), MAX_DESCRIPTION),
        ("environments", test.environments.len(), MAX_NAMED),
        ("request.path", request.path.len(), MAX_PATH),
        ("request.headers", headers.sum(), MAX_HEADERS),
        ("request.body", request.body.len(), MAX_BODY),
        ("expected.verdicts", test.expected.verdicts.len(), MAX_NAMED),
    ]
}

/// The differences from what is expected.
pub fn differences(expected: &Expected, observed: &Observed) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut differ = |field: &str, expected: String, is: String| {
        found.push(Difference {
            field: field.to_owned(),
            expected,
            found: is,
        });
    };
    let named = |text: &str| {
        if text.is_empty() {
            "none".to_owned()
        } else {
            format!("'{text}'")
        }
    };
    if let Some(operation) = expected
        .operation
        .as_deref()
        .filter(|it| *it != observed.operation)
    {
        let is = match (observed.operation.as_str(), observed.route.as_str()) {
            ("", "") => "no route that matches the call".to_owned(),
            ("", route) => format!("the route {route}, which belongs to no operation of this publication"),
            (operation, _) => named(operation),
        };
        differ("operation", named(operation), is);
    }
    for (field, wanted, is) in [
        ("consumer", &expected.consumer, &observed.consumer),
        ("application", &expected.application, &observed.application),
        ("end", &expected.end, &observed.end),
        ("plugin", &expected.plugin, &observed.plugin),
    ] {
        if let Some(wanted) = wanted.as_deref().filter(|it| it != is) {
            differ(field, named(wanted), with_reason(named(is), field, observed));
        }
    }
    if let Some(status) = expected.status.filter(|it| Some(*it) != observed.status) {
        let is = match observed.status {
            Some(status) => status.to_string(),
            None => format!("none: the call is {}", observed.end),
        };
        differ("status", status.to_string(), with_reason(is, "status", observed));
    }
    for (plugin, wanted) in &expected.verdicts {
        let mut own = observed
            .verdicts
            .iter()
            .filter(|(name, _)| name == plugin)
            .peekable();
        let is = match own.peek() {
            None => "a chain without it".to_owned(),
            Some((_, first)) => named(first),
        };
        if !own.any(|(_, verdict)| verdict == wanted) {
            differ(&format!("verdicts.{plugin}"), named(wanted), is);
        }
    }
    if let Some(target) = expected
        .target
        .as_ref()
        .filter(|it| !observed.targets.contains(it))
    {
        let is = match observed.targets.is_empty() {
            true => "no server".to_owned(),
            false => observed.targets.join(", "),
        };
        differ("target", target.clone(), is);
    }
    found
}

/// What is found, with its reason, if the reason explains it.
fn with_reason(found: String, field: &str, observed: &Observed) -> String {
    match observed.reason.as_str() {
        "" => found,
        reason if matches!(field, "status" | "end") => format!("{found} ({reason})"),
        _ => found,
    }
}

/// A report as JUnit has it, which build servers show.
pub fn junit(report: &TestReport) -> String {
    let (tests, failed) = (report.results.len(), report.failed);
    let suite = escaped(&report.publication);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _written = writeln!(
        out,
        "<testsuites tests=\"{tests}\" failures=\"{failed}\">\n  <testsuite name=\"{suite}\" tests=\"{tests}\" failures=\"{failed}\" errors=\"0\">"
    );
    for it in &report.results {
        let name = escaped(&it.name);
        let texts: Vec<String> = it.differences.iter().map(ToString::to_string).collect();
        let _written = match it.passed {
            true => writeln!(out, "    <testcase name=\"{name}\" classname=\"{suite}\"/>"),
            false => writeln!(
                out,
                "    <testcase name=\"{name}\" classname=\"{suite}\"><failure message=\"{}\">{}</failure></testcase>",
                escaped(&texts.join("; ")),
                escaped(&format!("{}: {}", it.call, it.found))
            ),
        };
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::parse;
    use serde_json::{Value, json};

    fn observed() -> Observed {
        Observed {
            operation: "listPets".into(),
            route: "test.pets.1.main.listpets".into(),
            consumer: "sub.7".into(),
            application: "shop".into(),
            end: "answered".into(),
            status: Some(429),
            plugin: "rate-limit".into(),
            reason: "a limit is reached".into(),
            verdicts: vec![
                ("key-auth".into(), "continues".into()),
                ("rate-limit".into(), "continues".into()),
                ("rate-limit".into(), "refuses".into()),
            ],
            targets: vec!["10.0.0.1:80".into(), "10.0.0.2:80".into()],
        }
    }

    #[test]
    fn what_is_expected_is_compared_field_by_field() {
        for (expected, differs) in [
            (
                json!({"operation": "listPets", "consumer": "sub.7", "application": "shop", "end": "answered", "status": 429, "plugin": "rate-limit", "target": "10.0.0.2:80", "verdicts": {"key-auth": "continues", "rate-limit": "refuses"}}),
                vec![],
            ),
            (json!({}), vec![]),
            (
                json!({"operation": "addPet"}),
                vec!["operation: expected 'addPet', found 'listPets'"],
            ),
            (
                json!({"operation": ""}),
                vec!["operation: expected none, found 'listPets'"],
            ),
            (
                json!({"consumer": ""}),
                vec!["consumer: expected none, found 'sub.7'"],
            ),
            (
                json!({"application": "kiosk"}),
                vec!["application: expected 'kiosk', found 'shop'"],
            ),
            (
                json!({"end": "forwarded"}),
                vec!["end: expected 'forwarded', found 'answered' (a limit is reached)"],
            ),
            (
                json!({"status": 401}),
                vec!["status: expected 401, found 429 (a limit is reached)"],
            ),
            (
                json!({"plugin": ""}),
                vec!["plugin: expected none, found 'rate-limit'"],
            ),
            (
                json!({"verdicts": {"cors": "continues", "key-auth": "refuses"}}),
                vec![
                    "verdicts.cors: expected 'continues', found a chain without it",
                    "verdicts.key-auth: expected 'refuses', found 'continues'",
                ],
            ),
            (
                json!({"target": "10.0.0.3:80"}),
                vec!["target: expected 10.0.0.3:80, found 10.0.0.1:80, 10.0.0.2:80"],
            ),
        ] {
            let wanted: Expected = parse(&expected).expect("valid");
            let found: Vec<String> = differences(&wanted, &observed())
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(found, differs, "{expected}");
        }
        let wanted: Expected = parse(&json!({"operation": "listPets", "status": 200})).expect("valid");
        let lost = Observed {
            end: "forwarded".into(),
            ..Observed::default()
        };
        let texts: Vec<String> = differences(&wanted, &lost)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "operation: expected 'listPets', found no route that matches the call",
                "status: expected 200, found none: the call is forwarded"
            ]
        );
    }

    #[test]
    fn tests_are_checked() {
        let good = json!({"name": "lists", "request": {"path": "/pets"}, "expected": {"status": 401}});
        for (change, place) in [
            (json!({}), None),
            (json!({"name": "Run it"}), Some("name")),
            (json!({"name": "run"}), Some("name")),
            (json!({"request": {"path": "pets"}}), Some("request.path")),
            (
                json!({"request": {"path": "/p", "headers": {"Authorization": "Bearer x"}}}),
                Some("request.headers.Authorization"),
            ),
            (
                json!({"request": {"path": "/p", "application": "a", "consumer": "b"}}),
                Some("request.consumer"),
            ),
            (json!({"expected": {}}), Some("expected")),
            (json!({"expected": {"end": "gone"}}), Some("expected.end")),
            (json!({"expected": {"status": 99}}), Some("expected.status")),
        ] {
            let mut value: Value = good.clone();
            value
                .as_object_mut()
                .expect("a map")
                .extend(change.as_object().expect("a map").clone());
            let test: CallTest = parse(&value).expect("valid");
            let places: Vec<String> = check(&test).into_iter().map(|(place, _)| place).collect();
            assert_eq!(
                places.iter().map(String::as_str).collect::<Vec<_>>(),
                Vec::from_iter(place),
                "{change}"
            );
        }
    }

    #[test]
    fn reports_count_and_are_junit() {
        let result = |name: &str, differences: Vec<Difference>| TestResult {
            name: name.to_owned(),
            call: "GET http://localhost/v1/<x>".to_owned(),
            passed: differences.is_empty(),
            differences,
            found: "answered".to_owned(),
        };
        let difference = Difference {
            field: "status".into(),
            expected: "200".into(),
            found: "\"401\"".into(),
        };
        let report = TestReport::new(
            "pets/1/test".into(),
            "h".into(),
            vec![result("good", vec![]), result("bad", vec![difference])],
        );
        assert_eq!((report.passed, report.failed), (1, 1));
        assert_eq!(
            report.failures(),
            [("bad".to_owned(), "status: expected 200, found \"401\"".to_owned())]
        );
        let text = junit(&report);
        assert!(
            text.contains("<testsuite name=\"pets/1/test\" tests=\"2\" failures=\"1\" errors=\"0\">"),
            "{text}"
        );
        assert!(
            text.contains("<testcase name=\"good\" classname=\"pets/1/test\"/>"),
            "{text}"
        );
        assert!(text.contains("<failure message=\"status: expected 200, found &quot;401&quot;\">GET http://localhost/v1/&lt;x&gt;: answered</failure>"), "{text}");
    }
}
