//! Secrets that documents refer to: which stores there are, what refers to them, and whether each can be had. No answer
//! holds a value.

use super::Api;
use super::problem::Problem;
use super::view::references::{FileReferences, Holder, ReferenceUse, References};
use crate::access::{Action, Caller, Scope};
use crate::api::json_body::{Json, JsonBody};
use crate::secrets::{Reading, SecretReadings, SecretState};
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;
use weir_dialect::SecretTarget;
use weir_model::unix_time::seconds;

/// Most references that are listed; those that cannot be had come first.
const MAX_LISTED: usize = 5000;
/// Most places of one reference that are listed.
const MAX_USES: usize = 50;
/// Most tests a minute for each caller.
const MOST: u32 = 30;
/// The longest text that is tested.
const MAX_TEXT: usize = 4096;

/// Secret stores and references to them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SecretList {
    /// The stores: the environment, and those that documents describe.
    pub stores: Vec<SecretStoreSummary>,
    /// The references, first those that cannot be had.
    pub references: Vec<SecretReference>,
    /// How many references are not listed, because there are too many: of all, of one document or of one file.
    pub skipped: usize,
}

/// A store of secrets.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretStoreSummary {
    /// The dialect whose references name it.
    pub dialect: String,
    /// The name that references use.
    pub name: String,
    /// Its kind, in the dialect's word: `env`, `hcv`, `vault`.
    pub kind: String,
    /// The key of the document that describes it; absent: it is always there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// The address of the vault; absent: in the environment of each gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How many different references name it.
    pub references: usize,
    /// How many of these cannot be had.
    pub failing: usize,
}

/// A reference to a secret.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretReference {
    /// The dialect of its syntax.
    pub dialect: String,
    /// As it is written.
    pub text: String,
    /// The store that it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// State.
    #[serde(flatten)]
    pub stand: SecretStatus,
    /// The places that refer to it, the first 50.
    pub used_by: Vec<ReferenceLocation>,
    /// In how many places it is used.
    pub uses: usize,
}

/// The state of a secret in this process.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretStatus {
    /// Whether it is known.
    pub state: SecretState,
    /// Why it could not be had the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was last read, in seconds since the Unix epoch; absent: never, or from the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// When its value was last another one than before, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<u64>,
    /// When the last failed request was made, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// For how many seconds a value counts as fresh; absent: it leads nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_for: Option<u64>,
}

/// The place of a reference.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReferenceLocation {
    /// The key of the document; absent: it is in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// The file's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The place there (RFC 6901).
    pub pointer: String,
}

/// The reference to test.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretTestRequest {
    /// A reference, as a document holds it, such as `{vault://env/DB_PASSWORD}`.
    pub reference: String,
}

impl SecretStatus {
    fn of(text: &str, target: &Result<SecretTarget, String>, readings: Option<&dyn SecretReadings>) -> Self {
        match target {
            Ok(target) => {
                let reading = readings.map(|it| it.reading(target));
                Self::new(text, reading.unwrap_or_else(unknown), Some(target))
            }
            Err(reason) => Self::new(text, Reading::of(Err(reason.clone())), None),
        }
    }

    /// Users who may see the reference need not see the vault's document: the reason says nothing of the place.
    fn new(text: &str, reading: Reading, target: Option<&SecretTarget>) -> Self {
        Self {
            state: reading.state,
            reason: reading.reason.map(|reason| format!("{text}: {reason}")),
            read: reading.read.map(seconds),
            changed: reading.changed.map(seconds),
            failed: reading.failed.map(seconds),
            fresh_for: target.map(|it| it.life.as_secs()),
        }
    }

    /// Whether what refers to it does not get today's value.
    fn is_failing(&self) -> bool {
        matches!(self.state, SecretState::Missing | SecretState::Stale)
    }
}

/// Nothing here asks for secrets.
fn unknown() -> Reading {
    Reading {
        state: SecretState::Waiting,
        ..Reading::of(Ok(()))
    }
}

/// Answers `GET /api/v1/secrets`.
pub async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<SecretList>, Problem> {
    let scopes = caller.scopes(Action::ConfigurationRead);
    let listing = Arc::clone(&api);
    let listed = tokio::task::spawn_blocking(move || {
        let references = listing.index.references();
        let of_files = listing.index.references_of_files();
        listed(
            &references,
            &of_files,
            &scopes,
            listing.options.secrets.as_deref(),
        )
    });
    let listed = listed.await;
    Ok(Json(listed.map_err(|error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    })?))
}

/// The stores that may be seen with the right in these parts.
fn stores(references: &References, scopes: &[Scope]) -> Vec<SecretStoreSummary> {
    let is_visible = |key: &String| {
        let scope = references.scope_of(key);
        scopes.iter().any(|it| it.contains(&scope))
    };
    let all = references.stores().into_iter();
    let all = all.filter(|(_, key, _)| key.as_ref().is_none_or(is_visible));
    all.map(|(dialect, document, store)| SecretStoreSummary {
        dialect: dialect.as_str().to_owned(),
        name: store.name,
        kind: store.kind,
        document,
        address: store.address,
        references: 0,
        failing: 0,
    })
    .collect()
}

/// The references that may be seen with the right in these parts.
fn listed(
    references: &References,
    of_files: &FileReferences,
    scopes: &[Scope],
    readings: Option<&dyn SecretReadings>,
) -> SecretList {
    let is_visible = |scope: &Scope| scopes.iter().any(|it| it.contains(scope));
    let uses = of_files.uses(is_visible).chain(references.uses(is_visible));
    let cut = of_files.skipped(is_visible) + references.skipped(is_visible);
    let mut all = grouped(uses, readings);
    let mut counts: HashMap<(&str, &str), (usize, usize)> = HashMap::new();
    for it in &all {
        let store = it.store.as_deref().unwrap_or_default();
        let (count, failing) = counts.entry((&it.dialect, store)).or_default();
        *count += 1;
        *failing += usize::from(it.stand.is_failing());
    }
    let mut stores = stores(references, scopes);
    for store in &mut stores {
        let counted = counts.get(&(store.dialect.as_str(), store.name.as_str()));
        (store.references, store.failing) = counted.copied().unwrap_or_default();
    }
    all.sort_by_key(|it| it.stand.state);
    let skipped = cut + all.len().saturating_sub(MAX_LISTED);
    all.truncate(MAX_LISTED);
    SecretList {
        stores,
        references: all,
        skipped,
    }
}

/// The references of these uses, each once.
fn grouped(
    uses: impl Iterator<Item = ReferenceUse>,
    readings: Option<&dyn SecretReadings>,
) -> Vec<SecretReference> {
    // The same text leads elsewhere in a file, which knows no vaults.
    let mut known: BTreeMap<(String, String, bool), SecretReference> = BTreeMap::new();
    for it in uses {
        let (document, file) = match it.holder {
            Holder::Document(key) => (Some(key), None),
            Holder::File(name) => (None, Some(name)),
        };
        let dialect = it.dialect.as_str().to_owned();
        let entry = known
            .entry((dialect.clone(), it.text.clone(), file.is_some()))
            .or_insert_with(|| SecretReference {
                dialect,
                stand: SecretStatus::of(&it.text, &it.target, readings),
                text: it.text,
                store: it.store,
                used_by: Vec::new(),
                uses: 0,
            });
        entry.uses += 1;
        if entry.used_by.len() < MAX_USES {
            entry.used_by.push(ReferenceLocation {
                document,
                file,
                pointer: it.pointer,
            });
        }
    }
    known.into_values().collect()
}

/// Answers `POST /api/v1/secrets/test`.
pub async fn test(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    JsonBody(wanted): JsonBody<SecretTestRequest>,
) -> Result<Json<SecretStatus>, Problem> {
    let now = seconds(SystemTime::now());
    let who = format!("secrets {}", caller.name());
    if let Err(wait) = api.tries.take(&who, MOST, now) {
        let detail = format!("{MOST} secrets a minute are tested; try again in {wait} seconds");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    }
    if wanted.reference.len() > MAX_TEXT {
        return Err(Problem::bad(format!(
            "reference: expected at most {MAX_TEXT} bytes"
        )));
    }
    let native = weir_model::DialectName::NATIVE;
    let found = api.index.references().locate(native, &wanted.reference);
    let Some(target) = found else {
        let expected =
            "reference: expected {vault://STORE/NAME}, $env://NAME or $secret://vault/ID/PATH/FIELD";
        return Err(Problem::bad(expected.to_owned()));
    };
    let readings = api.options.secrets.as_deref();
    Ok(Json(match (&target, readings) {
        (Ok(target), Some(readings)) => {
            let reading = readings.read_now(target, &api.options.secret_reach).await;
            SecretStatus::new(&wanted.reference, reading, Some(target))
        }
        (target, readings) => SecretStatus::of(&wanted.reference, target, readings),
    }))
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::api::view::FileText;
    use crate::api::view::references::{MAX_IN_DOCUMENT, ReferenceFinder};
    use crate::webhook_addresses::WebhookAddressPolicy;
    use std::time::Duration;
    use weir_dialect::SecretLocation;
    use weir_store::Key;

    /// Knows the places whose addresses end with `good`, and has lost `kept`.
    struct FixedReadings;

    #[async_trait::async_trait]
    impl SecretReadings for FixedReadings {
        fn reading(&self, target: &SecretTarget) -> Reading {
            let SecretLocation::Http { url: place, .. } = &target.place else {
                return Reading::of(Ok(()));
            };
            let at = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds));
            let state = match place.rsplit('/').next() {
                Some("good") => SecretState::Resolved,
                Some("kept") => SecretState::Stale,
                _ => SecretState::Missing,
            };
            Reading {
                state,
                reason: (state != SecretState::Resolved).then(|| "it is not given".to_owned()),
                read: at(100),
                changed: at(50),
                failed: None,
            }
        }

        async fn read_now(&self, target: &SecretTarget, _reach: &Arc<WebhookAddressPolicy>) -> Reading {
            self.reading(target)
        }
    }

    fn references() -> References {
        let finder = ReferenceFinder::new(&crate::sample::all());
        let mut references = References::new(&crate::sample::all());
        for (key, value) in [
            ("sample/vault", "http://v:1"),
            (
                "sample/routes/1",
                r#"{"a":"sample:vault/good","b":"sample:vault/good"}"#,
            ),
            ("sample/routes/2", r#"{"a":"sample:vault/kept"}"#),
            ("env/prod/native/routes/3", r#"{"a":"sample:vault/bad"}"#),
        ] {
            let read = serde_json::from_str(value).ok();
            let found = read.and_then(|read| finder.found(key, &read));
            references.apply(&Key::new(key).expect("a key"), Some(value.as_bytes()), found);
        }
        references
    }

    fn listing_for(scopes: &[&str]) -> (Vec<String>, Vec<String>) {
        let references = references();
        let scopes: Vec<Scope> = scopes
            .iter()
            .map(|it| Scope::parse(it).expect("a scope"))
            .collect();
        let of_files = FileReferences::of(&crate::sample::all(), &[]);
        let list = listed(&references, &of_files, &scopes, Some(&FixedReadings));
        let of_store = |it: &SecretStoreSummary| {
            format!("{} {} {} of {}", it.dialect, it.name, it.failing, it.references)
        };
        let of_reference = |it: &SecretReference| {
            format!(
                "{} {:?} {} in {}",
                it.text,
                it.stand.state,
                it.uses,
                it.used_by.len()
            )
        };
        (
            list.stores.iter().map(of_store).collect(),
            list.references.iter().map(of_reference).collect(),
        )
    }

    #[test]
    fn what_cannot_be_had_comes_first_and_only_what_may_be_seen() {
        let (stores, all) = listing_for(&["everything"]);
        assert_eq!(
            all,
            [
                "sample:vault/bad Missing 1 in 1",
                "sample:vault/kept Stale 1 in 1",
                "sample:vault/good Resolved 2 in 2"
            ]
        );
        assert_eq!(
            stores,
            ["sample env 0 of 0", "sample vault 2 of 3", "other env 0 of 0"]
        );
        let (stores, all) = listing_for(&["environment:prod"]);
        assert_eq!(all, ["sample:vault/bad Missing 1 in 1"]);
        assert_eq!(stores, ["sample env 0 of 0", "other env 0 of 0"]);
    }

    /// References of a document in workspace `default`, those of a file, and how many of them are listed and counted.
    #[test]
    fn what_is_not_listed_is_counted() {
        let dialects = crate::sample::all();
        let many = |count: usize| serde_json::json!({"a": vec!["sample:vault/good"; count]});
        for (scope, in_document, in_file, expected) in [
            ("everything", MAX_IN_DOCUMENT, 0, (MAX_IN_DOCUMENT, 0)),
            ("everything", MAX_IN_DOCUMENT + 3, 0, (MAX_IN_DOCUMENT, 3)),
            ("workspace:default", MAX_IN_DOCUMENT + 3, 1, (MAX_IN_DOCUMENT, 3)),
            ("environment:prod", MAX_IN_DOCUMENT + 3, 1, (0, 0)),
            ("everything", 0, MAX_IN_DOCUMENT + 3, (MAX_IN_DOCUMENT + 3, 0)),
        ] {
            let key = "sample/routes/1";
            let found = ReferenceFinder::new(&dialects).found(key, &many(in_document));
            let mut references = References::new(&dialects);
            references.apply(&Key::new(key).expect("a key"), None, found);
            let file = FileText {
                dialect: weir_dialect::DialectName::new("sample"),
                file: "sample.yaml".to_owned(),
                text: many(in_file).to_string().into(),
            };
            let of_files = FileReferences::of(&dialects, &[file]);
            let scopes = [Scope::parse(scope).expect("a scope")];
            let list = listed(&references, &of_files, &scopes, None);
            let uses: usize = list.references.iter().map(|it| it.uses).sum();
            assert_eq!((uses, list.skipped), expected, "{scope} {in_document} {in_file}");
        }
    }
}
