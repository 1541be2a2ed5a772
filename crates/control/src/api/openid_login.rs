//! Logging in through identity providers, and managing these, in Weir's own API. What decides is in
//! [`crate::access::openid`].

use super::precondition::{Precondition, tag_of_content, with_tag};
use super::problem::Problem;
use super::scopes::check_scopes;
use super::session::{Origin, base_url, begin, no_store};
use super::shapes::{GroupRoles, IdentityProvider, List};
use super::writing::tried;
use super::{Api, is_dry_run};
use crate::access::openid::Provider;
use crate::access::openid::engine::{
    Callback, LONGEST_LOGIN, LoginError, PendingLogin, is_private, safe_return,
};
use crate::access::openid::provider::{Mapping, PREFIX, key_of};
use crate::access::session::{Login, OPENID};
use crate::access::{
    AuditIdentity, Audited, Caller, EVERYWHERE, NotAllowed, Right, Role, RoleAssignment, Token, USERS, User,
    cookie,
};
use crate::api::json_body::{Json, JsonBody};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;
use std::time::SystemTime;
use weir_store::{Change, CommitError, Document, Revision, Transaction};

/// Attempts of a change while others write too.
const MAX_ATTEMPTS: usize = 20;
/// The longest text of a provider, in bytes; and its most mappings.
const MAX_TEXT: usize = 2_000;
const MAX_MAPPINGS: usize = 1_000;
/// Identity providers, at most.
const MAX_PROVIDERS: usize = 20;

/// The target of a login.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct LoginStart {
    /// The page of the console to be shown afterwards: a path that begins with `/ui/`.
    #[serde(default)]
    return_to: Option<String>,
    /// The suggested user for the login, such as a mail address.
    #[serde(default)]
    login_hint: Option<String>,
}

fn provider_of(api: &Api, name: &str) -> Result<Arc<Provider>, Problem> {
    let missing = || Problem::not_found(format_args!("the identity provider '{name}'"));
    api.options.users.providers().get(name).ok_or_else(missing)
}

fn redirect_uri(base: &str, provider: &Provider) -> String {
    format!("{base}/api/v1/session/openid/{}/callback", provider.name)
}

/// Sends a browser on.
fn send_to(location: &str, cookies: &[String]) -> Result<Response, Problem> {
    let value = |text: &str| HeaderValue::from_str(text).map_err(|it| Problem::unreadable(it.to_string()));
    let mut answer = StatusCode::SEE_OTHER.into_response();
    let headers = answer.headers_mut();
    headers.insert(header::LOCATION, value(location)?);
    headers.insert(header::CACHE_CONTROL, no_store());
    // The address of the callback has the code in it.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    for cookie in cookies {
        headers.append(header::SET_COOKIE, value(cookie)?);
    }
    Ok(answer)
}

pub async fn start(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Query(start): Query<LoginStart>,
    parts: Parts,
) -> Result<Response, Problem> {
    let from = Origin::of(&parts);
    from.require_tls_or_loopback()?;
    let provider = provider_of(&api, &name)?;
    let return_to = safe_return(start.return_to.as_deref());
    let metadata = match api.openid.metadata(&provider).await {
        Ok(metadata) => metadata,
        Err(error) => return failed(&provider, &error, &from),
    };
    let random = || Token::random().map(|it| it.as_str().to_owned());
    let (Some(state), Some(nonce), Some(verifier)) = (random(), random(), random()) else {
        return Err(Problem::unreadable("no random bits"));
    };
    let redirect_uri = redirect_uri(
        &base_url(provider.base_url.as_deref(), &parts.headers, &from)?,
        &provider,
    );
    let random = [state, nonce, verifier];
    let begun = PendingLogin::new(&provider, redirect_uri, return_to, random, SystemTime::now());
    let url = begun.authorization_url(&provider, &metadata, start.login_hint.as_deref());
    let kept = cookie::LOGIN.set(&begun.to_cookie(), from.is_secure, LONGEST_LOGIN);
    send_to(&url, &[kept])
}

pub async fn callback(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Query(callback): Query<Callback>,
    parts: Parts,
) -> Result<Response, Problem> {
    let from = Origin::of(&parts);
    from.require_tls_or_loopback()?;
    let provider = provider_of(&api, &name)?;
    let begun = cookie::LOGIN.value_in(&parts.headers, from.is_secure);
    let Some(begun) = begun.and_then(PendingLogin::from_cookie) else {
        return failed(&provider, &LoginError::State, &from);
    };
    let (who, groups) = match person(&api, &provider, &begun, &callback).await {
        Ok(person) => person,
        Err(error) => return failed(&provider, &error, &from),
    };
    let login = Login {
        user: who.clone(),
        method: format!("{OPENID}{}", provider.name),
        groups: Some(groups),
        address: from.address.to_string(),
        agent: from.agent.clone(),
    };
    let (cookie, _) = begin(&api, &parts.headers, &from, login).await?;
    let cookie = cookie
        .to_str()
        .map_err(|it| Problem::unreadable(it.to_string()))?
        .to_owned();
    let mut answer = send_to(
        &safe_return(Some(&begun.return_to)),
        &[cookie, cookie::LOGIN.clear(from.is_secure)],
    )?;
    answer.extensions_mut().insert(AuditIdentity(who));
    answer.extensions_mut().insert(Audited);
    Ok(answer)
}

/// The person who has logged in, and the person's groups.
async fn person(
    api: &Api,
    provider: &Provider,
    begun: &PendingLogin,
    callback: &Callback,
) -> Result<(String, Vec<String>), LoginError> {
    let now = SystemTime::now();
    let metadata = api.openid.metadata(provider).await?;
    let code = begun.code(provider, &metadata, callback, now)?;
    let claims = api.openid.claims(provider, (begun, code), now).await?;
    let unnamed = || LoginError::Provider("there is no name in its token".to_owned());
    let who = provider.name_in(&claims).ok_or_else(unnamed)?;
    let groups = provider.groups_in(&claims);
    match provider.rights_of(&groups).is_empty() {
        true => Err(LoginError::NoRights(who)),
        false => Ok((who, groups)),
    }
}

/// Sends the browser to the login page, which says what went wrong. More of it is in the log.
fn failed(provider: &Provider, error: &LoginError, from: &Origin) -> Result<Response, Problem> {
    tracing::warn!(provider = provider.name, %error, address = %from.address, "a login has failed");
    let location = format!("/ui/?login_error={}", error.code());
    let mut answer = send_to(&location, &[cookie::LOGIN.clear(from.is_secure)])?;
    answer.extensions_mut().insert(NotAllowed);
    let who = match error {
        LoginError::NoRights(who) => who.clone(),
        _ => "unknown".to_owned(),
    };
    answer.extensions_mut().insert(AuditIdentity(who));
    Ok(answer)
}

/// A new identity provider.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderRequest {
    /// Its name for people; left out: its name in paths.
    #[serde(default)]
    display_name: Option<String>,
    /// Its issuer, such as `https://id.example.com/realms/main`.
    issuer: String,
    /// The id of this Weir at the provider.
    client_id: String,
    /// The secret for it; left out: the one that it has, or a public client. It is never shown.
    #[serde(default)]
    client_secret: Option<String>,
    /// The scopes to request; left out: `openid profile email groups`.
    #[serde(default)]
    scopes: Option<Vec<String>>,
    /// The address of this Weir for browsers, such as `https://weir.example.com`; left out: as the browser says in
    /// `Host`.
    #[serde(default)]
    base_url: Option<String>,
    /// The claim that holds the name of the user; left out: `preferred_username`. Without it, `sub` is the name.
    #[serde(default)]
    name_claim: Option<String>,
    /// The claim that holds the groups; left out: `groups`.
    #[serde(default)]
    groups_claim: Option<String>,
    /// The rights of members of groups. A user who is in none of them is not let in. Empty: for developers of portals
    /// only.
    mappings: Vec<GroupRights>,
}

/// The rights of members of a group.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupRights {
    /// The group; `*`: everyone that the provider accepts.
    group: String,
    /// The rights.
    #[schemars(with = "Vec<RoleAssignment>")]
    rights: Vec<Right>,
}

impl ProviderRequest {
    /// As it is stored, if it is good.
    fn into_provider(self, name: &str) -> Result<Provider, Problem> {
        let words = |words: &str| words.split(' ').map(str::to_owned).collect();
        let provider = Provider {
            name: name.to_owned(),
            display_name: self.display_name.unwrap_or_else(|| name.to_owned()),
            issuer: self.issuer,
            client_id: self.client_id,
            client_secret: self.client_secret,
            scopes: self
                .scopes
                .unwrap_or_else(|| words("openid profile email groups")),
            base_url: self.base_url,
            name_claim: self.name_claim.unwrap_or_else(|| "preferred_username".to_owned()),
            groups_claim: self.groups_claim.unwrap_or_else(|| "groups".to_owned()),
            mappings: self
                .mappings
                .into_iter()
                .map(|it| Mapping {
                    group: it.group,
                    rights: it.rights,
                })
                .collect(),
        };
        let faults = faults_of(&provider);
        match faults.is_empty() {
            true => Ok(provider),
            false => {
                let detail = faults.iter().map(|(path, message)| format!("{path}: {message}"));
                let detail = detail.collect::<Vec<_>>().join("; ");
                Err(Problem::listing(StatusCode::UNPROCESSABLE_ENTITY, detail, faults))
            }
        }
    }
}

/// The faults of an identity provider, each with its place.
fn faults_of(provider: &Provider) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    let mut fault = |path: &str, message: &str| faults.push((path.to_owned(), message.to_owned()));
    let is_text = |text: &str| !text.is_empty() && text.len() <= MAX_TEXT && !text.contains(char::is_control);
    let is_plain = |url: &str| !url.contains(['?', '#', '@']) && is_text(url);
    if !is_private(&provider.issuer) || !is_plain(&provider.issuer) {
        fault(
            "issuer",
            "expected https://HOST/PATH, or http:// of this machine, without query and fragment",
        );
    }
    if provider
        .base_url
        .as_deref()
        .is_some_and(|it| !is_private(it) || !is_plain(it))
    {
        fault("base_url", "expected https://HOST, or http:// of this machine");
    }
    for (path, text) in [
        ("display_name", &provider.display_name),
        ("client_id", &provider.client_id),
        ("name_claim", &provider.name_claim),
        ("groups_claim", &provider.groups_claim),
    ] {
        if !is_text(text) {
            fault(
                path,
                "expected a text of at most 2,000 bytes without control characters",
            );
        }
    }
    if !provider.scopes.iter().any(|it| it == "openid") {
        fault("scopes", "expected 'openid' among them");
    }
    if !provider.scopes.iter().all(|it| is_text(it) && !it.contains(' ')) {
        fault("scopes", "expected words without spaces");
    }
    // Without any, it gives no login to this Weir: it is for the developers of portals.
    if provider.mappings.len() > MAX_MAPPINGS {
        fault("mappings", "expected at most 1,000");
    }
    if !provider.mappings.iter().all(|it| is_text(&it.group)) {
        fault("mappings", "expected a group in each");
    }
    faults
}

fn to_response(provider: &Provider) -> IdentityProvider {
    let mappings = provider.mappings.iter().map(|it| GroupRoles {
        group: it.group.clone(),
        rights: RoleAssignment::of(&it.rights),
    });
    let mut response = IdentityProvider {
        name: provider.name.clone(),
        display_name: provider.display_name.clone(),
        issuer: provider.issuer.clone(),
        client_id: provider.client_id.clone(),
        has_client_secret: provider.client_secret.is_some(),
        scopes: provider.scopes.clone(),
        base_url: provider.base_url.clone(),
        name_claim: provider.name_claim.clone(),
        groups_claim: provider.groups_claim.clone(),
        mappings: mappings.collect(),
        etag: None,
    };
    // Of what can be read: the secret says nothing here, and a write without it leaves it as it is.
    response.etag = Some(tag_of_content(&response));
    response
}

pub async fn list(State(api): State<Arc<Api>>) -> Json<List<IdentityProvider>> {
    let providers = api.options.users.providers().list();
    Json(List {
        items: providers.iter().map(|it| to_response(it)).collect(),
    })
}

/// The providers and users of the store at one moment.
struct IdentityState {
    providers: Vec<Provider>,
    users: Vec<User>,
    /// The revision after which nothing may have been committed.
    revision: Revision,
}

impl IdentityState {
    async fn read(api: &Api) -> Result<Self, Problem> {
        // What comes between the two makes the commit fail, as it is after the first.
        let (users, revision) = api.store.read(USERS).await?;
        let (providers, _) = api.store.read(PREFIX).await?;
        let readable = |it: &Document| serde_json::from_slice(&it.value).ok();
        Ok(Self {
            providers: providers.iter().filter_map(readable).collect(),
            users: users
                .iter()
                .filter_map(|it| serde_json::from_slice(&it.value).ok())
                .collect(),
            revision,
        })
    }

    fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.iter().find(|it| it.name == name)
    }

    /// Whether a user here, or members of a group, may still manage users if a provider is what it is `after` (`None`:
    /// gone).
    fn leaves_an_admin(&self, name: &str, after: Option<&Provider>) -> Result<(), Problem> {
        let others = || self.providers.iter().filter(|it| it.name != name);
        let is_nothing_left = after.is_none() && others().next().is_none() && self.users.is_empty();
        let has_admin = after.is_some_and(Provider::has_admin)
            || others().any(Provider::has_admin)
            || self.users.iter().any(|it| it.may(Role::Admin, EVERYWHERE));
        match is_nothing_left || has_admin {
            true => Ok(()),
            false => {
                let detail = "no user could manage users any more: map a group to admin everywhere, or add such a \
                    user first";
                Err(Problem::new(StatusCode::CONFLICT, detail))
            }
        }
    }
}

/// Commits a change of a provider, which a function makes of what is stored right before. A dry run only asks it.
async fn commit<T>(
    api: &Api,
    (caller, note, is_dry): (&Caller, String, bool),
    write: impl Fn(&IdentityState) -> Result<(Change, T), Problem>,
) -> Result<T, Problem> {
    for _ in 0..MAX_ATTEMPTS {
        let stored = IdentityState::read(api).await?;
        let (change, outcome) = write(&stored)?;
        if is_dry {
            return Ok(outcome);
        }
        let transaction = Transaction {
            author: caller.name(),
            note: note.clone(),
            time: SystemTime::now(),
            changes: vec![change.clone()],
        };
        match api.store.commit(transaction, stored.revision).await {
            Ok(_) => {
                // What follows the store is a moment behind.
                let (key, value) = match &change {
                    Change::Put { key, value, .. } => (key, Some(&**value)),
                    Change::Delete { key } => (key, None),
                };
                api.options.users.providers().apply(key, value);
                return Ok(outcome);
            }
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let detail = "conflicting concurrent writes; try again";
    Err(Problem::new(StatusCode::CONFLICT, detail))
}

/// Refuses a change of another version than the one that the call names.
fn demand_version(headers: &HeaderMap, name: &str, known: Option<&Provider>) -> Result<(), Problem> {
    let precondition = Precondition::of(headers);
    let tag = known.and_then(|it| to_response(it).etag);
    match precondition.holds_tag(tag.as_deref()) {
        true => Ok(()),
        false => Err(precondition.refusal_of(&format!("the identity provider '{name}'"), known.is_some())),
    }
}

/// The rights of a provider's groups with their places.
fn placed(provider: &Provider) -> Vec<(String, &Right)> {
    let groups = provider.mappings.iter().enumerate();
    let rights = groups.flat_map(|(group, mapping)| {
        let rights = mapping.rights.iter().enumerate();
        rights.map(move |(place, it)| (format!("mappings[{group}].rights[{place}]"), it))
    });
    rights.collect()
}

pub async fn put(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<ProviderRequest>,
) -> Result<Response, Problem> {
    let key = key_of(&name).map_err(|_| {
        Problem::bad(format!(
            "'{name}' is not a valid name: expected {}",
            weir_apis::naming::EXPECTED_NAME
        ))
    })?;
    let known = IdentityState::read(&api).await?;
    let before = known.provider(&name).into_iter().flat_map(|it| &it.mappings);
    let before: Vec<Right> = before.flat_map(|it| it.rights.iter().cloned()).collect();
    let keeps_secret = wanted.client_secret.is_none();
    let provider = wanted.into_provider(&name)?;
    // A change of another version is refused before its rights are looked at.
    demand_version(&headers, &name, known.provider(&name))?;
    let warning = check_scopes(&api, &placed(&provider), &before).await?;
    let is_dry = is_dry_run(&headers);
    let note = format!("change the identity provider {name}");
    let written = commit(&api, (&caller, note, is_dry), |stored| {
        let there = stored.provider(&name);
        if there.is_none() && stored.providers.len() >= MAX_PROVIDERS {
            let detail = format!("there may be at most {MAX_PROVIDERS} identity providers");
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        demand_version(&headers, &name, there)?;
        stored.leaves_an_admin(&name, Some(&provider))?;
        let mut provider = provider.clone();
        if keeps_secret {
            provider.client_secret = there.and_then(|it| it.client_secret.clone());
        }
        let value = serde_json::to_vec(&provider).map_err(|it| Problem::unreadable(it.to_string()))?;
        Ok((Change::put(key.clone(), value), provider))
    })
    .await?;
    let answer = to_response(&written);
    let tag = answer.etag.clone();
    let answer = warning.with_warning(Json(answer).into_response());
    match is_dry {
        true => Ok(tried(answer)),
        false => Ok(with_tag(answer, tag.as_deref())),
    }
}

pub async fn remove(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let missing = || Problem::not_found(format_args!("the identity provider '{name}'"));
    let key = key_of(&name).map_err(|_| missing())?;
    let is_dry = is_dry_run(&headers);
    let note = format!("remove the identity provider {name}");
    commit(&api, (&caller, note, is_dry), |stored| {
        let there = stored.provider(&name).ok_or_else(missing)?;
        demand_version(&headers, &name, Some(there))?;
        stored.leaves_an_admin(&name, None)?;
        Ok((Change::Delete { key: key.clone() }, ()))
    })
    .await?;
    Ok(match is_dry {
        true => tried(StatusCode::NO_CONTENT),
        false => StatusCode::NO_CONTENT.into_response(),
    })
}
