//! `/vault-auth/{vault}/credentials`: pairs of tokens of consumers, written into the vault and taken out of it.
//!
//! Neither the store nor this process keeps them: the vault answers. **What it is not**: the connections to vaults are entities
//! as others are.

use super::Admin;
use super::call::{ApiCall, RequestBody};
use super::entity_rules::{find_consumer, find_vault};
use super::failure::Failure;
use super::password_hash::random_text;
use super::plan::WorkspaceView;
use super::response::ApiResponse;
use axum::body::Bytes;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher as _, BuildHasherDefault};
use std::time::SystemTime;
use tokio::sync::{Mutex, MutexGuard};
use weir_dialect::{HttpCall, SecretSyntax};
use weir_model::unix_time;
use weir_plugins::vault_auth::{EngineVersion, HEADERS, VaultServer, last_version};

/// Answers a call for pairs of tokens; `None`: it is for something else.
pub async fn answer(admin: &Admin, call: &ApiCall) -> Option<Result<ApiResponse, Failure>> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let (vault, selector) = match path.as_slice() {
        ["vault-auth", vault, "credentials", "token", access] => (*vault, CredentialSelector::Pair(access)),
        ["vault-auth", vault, "credentials", consumer] => (*vault, CredentialSelector::Consumer(consumer)),
        _ => return None,
    };
    let answer = match (&call.method, selector) {
        (&Method::OPTIONS, CredentialSelector::Pair(_)) => Ok(ApiResponse::options("DELETE, OPTIONS")),
        (&Method::OPTIONS, CredentialSelector::Consumer(_)) => Ok(ApiResponse::options("OPTIONS, POST")),
        (&Method::DELETE, CredentialSelector::Pair(access)) => remove(admin, call, vault, access).await,
        (&Method::POST, CredentialSelector::Consumer(consumer)) => create(admin, call, vault, consumer).await,
        _ => Err(Failure(ApiResponse::method_not_allowed())),
    };
    let is_tried = call.dry_run && matches!(call.method, Method::POST | Method::DELETE);
    Some(answer.map(|answer| if is_tried { answer.tried() } else { answer }))
}

/// The credential that a path names.
enum CredentialSelector<'p> {
    /// A pair, by its access token.
    Pair(&'p str),
    /// All of a consumer.
    Consumer(&'p str),
}

/// The fields of a new pair.
struct NewPair {
    access: String,
    secret: String,
    ttl: Option<u64>,
    /// Whether the caller has chosen the access token: it may be another one's.
    is_chosen: bool,
}

/// Engines of the first version have no way to write only what they do not have: looking and writing are two calls.
/// Within this process no two calls for one access token are between them. Which lock is one's own follows from the
/// token.
static WRITES: [Mutex<()>; 64] = [const { Mutex::const_new(()) }; 64];

/// Waits until no other call writes a pair with this access token.
async fn lock_token(access: &str) -> MutexGuard<'static, ()> {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(access);
    WRITES[(hash % WRITES.len() as u64) as usize].lock().await
}

async fn create(admin: &Admin, call: &ApiCall, vault: &str, consumer: &str) -> Result<ApiResponse, Failure> {
    let (server, consumer) = {
        let state = admin.state();
        let view = WorkspaceView::new(&state, &call.workspace, SystemTime::now());
        let server = find_vault(view.workspace, vault).ok_or_else(Failure::not_found)?;
        let consumer = find_consumer(view.workspace, consumer).ok_or_else(Failure::not_found)?;
        (server, consumer)
    };
    let pair = NewPair::read(&call.body)?;
    let address = address(&server, &pair.access, false)?;
    let client = Client::new(admin, server)?;
    let is_taken = || Failure::unique_violation(json!({ "access_token": pair.access }));
    let has_versions = client.server.version == EngineVersion::V2;
    let _alone = match pair.is_chosen && !has_versions {
        true => Some(lock_token(&pair.access).await),
        false => None,
    };
    let mut last = 0;
    if pair.is_chosen {
        let (status, body_read) = client.ask(Method::GET, &address, None).await?;
        if status != StatusCode::NOT_FOUND {
            return Err(is_taken());
        }
        last = last_version(&body_read);
    }
    let now = unix_time::seconds(SystemTime::now());
    let mut body = json!({
        "access_token": pair.access,
        "secret_token": pair.secret,
        "created_at": now,
        "consumer": { "id": consumer },
        "ttl": pair.ttl,
    });
    if !call.dry_run {
        let mut kept = body.clone();
        kept["updated_at"] = now.into();
        let (status, body_read) = client.ask(Method::POST, &address, Some((kept, last))).await?;
        if has_versions && status == StatusCode::BAD_REQUEST && contains(&body_read, OTHER_VERSION) {
            return Err(is_taken());
        }
        client.expect(status)?;
        tracing::info!(vault, consumer, "a pair of tokens was written into the vault");
    }
    Ok(ApiResponse::json(
        StatusCode::CREATED,
        &json!({ "data": body.take() }),
    ))
}

async fn remove(admin: &Admin, call: &ApiCall, vault: &str, access: &str) -> Result<ApiResponse, Failure> {
    let server = {
        let state = admin.state();
        let view = WorkspaceView::new(&state, &call.workspace, SystemTime::now());
        find_vault(view.workspace, vault).ok_or_else(Failure::not_found)?
    };
    let (address, whole) = (address(&server, access, false)?, address(&server, access, true)?);
    let client = Client::new(admin, server)?;
    if client.ask(Method::GET, &address, None).await?.0 == StatusCode::NOT_FOUND {
        return Err(Failure::not_found());
    }
    if !call.dry_run {
        let (status, _) = client.ask(Method::DELETE, &whole, None).await?;
        client.expect(status)?;
        tracing::info!(vault, "a pair of tokens was removed from the vault");
    }
    Ok(ApiResponse::no_content())
}

/// A vault's message about a secret of which it has another version than the one that it is to write over.
const OTHER_VERSION: &str = "check-and-set parameter did not match";

fn contains(text: &[u8], part: &str) -> bool {
    text.windows(part.len()).any(|it| it == part.as_bytes())
}

fn address(server: &VaultServer, access: &str, is_whole: bool) -> Result<String, Failure> {
    let message = "expected no more than 512 printable characters, without / \\ ? # and %";
    let address = server.address_of(access, is_whole);
    address.ok_or_else(|| Failure::of_field("access_token", message))
}

impl NewPair {
    /// Reads a call's fields; tokens that it does not give are made.
    fn read(given: &RequestBody) -> Result<Self, Failure> {
        let none = Map::new();
        let fields = match given {
            RequestBody::Nothing => &none,
            RequestBody::Json(Value::Object(fields)) | RequestBody::Form(fields) => fields,
            RequestBody::Json(_) | RequestBody::Text(_) => {
                return Err(Failure::message(
                    StatusCode::BAD_REQUEST,
                    "Cannot parse JSON body",
                ));
            }
        };
        let known = ["access_token", "secret_token", "ttl"];
        if let Some(other) = fields.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Failure::of_field(other, "unknown field"));
        }
        let token = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(token)) if token.is_empty() => {
                Err(Failure::of_field(name, "length must be at least 1"))
            }
            Some(Value::String(token)) => Ok(Some(token.clone())),
            Some(_) => Err(Failure::of_field(name, "expected a string")),
        };
        let (access, secret) = (token("access_token")?, token("secret_token")?);
        let ttl = match fields.get("ttl") {
            None | Some(Value::Null) => None,
            // Forms have texts alone.
            Some(value) => {
                let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
                Some(number.ok_or_else(|| Failure::of_field("ttl", "expected an integer"))?)
            }
        };
        Ok(Self {
            is_chosen: access.is_some(),
            access: access.unwrap_or_else(random_text),
            secret: secret.unwrap_or_else(random_text),
            ttl: ttl.filter(|ttl| *ttl > 0),
        })
    }
}

/// Asks one vault.
struct Client<'a> {
    admin: &'a Admin,
    server: VaultServer,
}

impl<'a> Client<'a> {
    /// A reference for the token is refused: only gateways know its value.
    fn new(admin: &'a Admin, server: VaultServer) -> Result<Self, Failure> {
        if crate::secrets::Vaults::default().is_reference(&server.token) {
            let message = "expected a token: references are not known to the Admin API. Write the pair in the vault itself";
            return Err(Failure::of_field("vault_token", message));
        }
        Ok(Self { admin, server })
    }

    /// The status and the body of the vault's answer; `secret`: what is written, and the last version that the vault had.
    async fn ask(
        &self,
        method: Method,
        url: &str,
        secret: Option<(Value, u64)>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let client = self.admin.options.node.http.as_ref();
        let client = client.ok_or_else(|| away("this process asks no servers"))?;
        let json = secret.map(|(secret, last)| self.server.document(secret, last).to_string().into_bytes());
        let (token, request) = HEADERS;
        let made = client.make(HttpCall {
            method: method.clone(),
            url: url.to_owned(),
            headers: vec![(token, self.server.token.clone()), (request, "true".to_owned())],
            json,
        });
        let (status, body) = made.await.map_err(|reason| away(&reason))?;
        if method == Method::GET && status != StatusCode::NOT_FOUND {
            self.expect(status)?;
        }
        Ok((status, body))
    }

    fn expect(&self, status: StatusCode) -> Result<(), Failure> {
        match status.is_success() {
            true => Ok(()),
            false => Err(away(&format!("it answers {status}"))),
        }
    }
}

/// The answer is always the same: who may write a vault's address must not learn what listens where. The log says more.
fn away(reason: &str) -> Failure {
    tracing::warn!(reason, "the vault of vault-auth cannot be used");
    Failure::message(
        StatusCode::BAD_GATEWAY,
        "the vault cannot be asked: the gateway's log says why",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_taken_and_the_rest_is_made() {
        for (given, expected) in [
            (json!({}), Ok((None, None, None))),
            (
                json!({"ttl": 60, "access_token": "a"}),
                Ok((Some("a"), None, Some(60))),
            ),
            (
                json!({"ttl": "60", "secret_token": "s"}),
                Ok((None, Some("s"), Some(60))),
            ),
            (json!({"ttl": 0, "access_token": null}), Ok((None, None, None))),
            (json!({"ttl": -1}), Err(())),
            (json!({"access_token": 5}), Err(())),
            (json!({"secret_token": ""}), Err(())),
            (json!({"key": "k"}), Err(())),
        ] {
            let read = NewPair::read(&RequestBody::Json(given.clone()));
            match (read, expected) {
                (Ok(pair), Ok((access, secret, ttl))) => {
                    assert_eq!(pair.is_chosen, access.is_some(), "{given}");
                    assert_eq!(pair.ttl, ttl, "{given}");
                    assert!(access.is_none_or(|it| it == pair.access) && !pair.access.is_empty());
                    assert!(secret.is_none_or(|it| it == pair.secret) && !pair.secret.is_empty());
                }
                (Err(_), Err(())) => {}
                (read, expected) => panic!("{given}: {:?} {expected:?}", read.is_ok()),
            }
        }
    }
}
