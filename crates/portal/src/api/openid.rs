//! Signing in through an identity provider: the authorization code flow with PKCE of the console's login, which decides
//! ([`weir_control::access::openid`]). Groups of the provider decide what is shown, and give teams.

use super::account_common::take_turn;
use super::confirming::{confirm_step, send_confirm};
use super::operation::{Operation, Shared};
use super::session::begin_session;
use super::sign_up::may_join;
use crate::cookie;
use crate::people::{
    Account, Developer, DeveloperState, MAX_NAME, UnconfirmedCredential, checked_name, mail_of, mark_of,
    random_id,
};
use crate::state::{PortalContext, Portals};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;
use weir_apis::entities::SignInProvider;
use weir_control::access::openid::Provider;
use weir_control::access::openid::engine::{Callback, LoginError, PendingLogin, authenticated, is_private};
use weir_control::access::{AuditIdentity, Token};
use weir_control::api::Problem;
use weir_model::unix_time::seconds;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            "/portal/v1/session/openid/{provider}",
            (
                "startOpenidSignIn",
                "Sends a browser to an identity provider to sign in",
            ),
            start,
        )
        .query::<SignInStart>()
        .status(StatusCode::SEE_OTHER),
        Operation::get(
            "/portal/v1/session/openid/{provider}/callback",
            (
                "finishOpenidSignIn",
                "Takes a browser back from an identity provider, and begins its session",
            ),
            callback,
        )
        .query::<Callback>()
        .ignoring_unknown_parameters()
        .status(StatusCode::SEE_OTHER),
    ];
    Operation::tagged("Account", operations)
}

/// The target of a login.
#[derive(Deserialize, JsonSchema)]
pub struct SignInStart {
    /// The page to be shown afterwards: a path of the portal.
    #[serde(default)]
    to: Option<String>,
    /// The suggested user for the login, such as a mail address.
    #[serde(default)]
    login_hint: Option<String>,
    /// `true`: the provider must ask for the login again, even with an existing session.
    #[serde(default)]
    fresh: bool,
}

/// Why a developer is not signed in, as pages call it.
enum Refusal {
    /// An error of the engine or the provider.
    Login(LoginError),
    /// The provider returns no mail address, or says that it is not confirmed.
    NoMail,
    /// There is an account with this address, and the provider does not say that the address is confirmed.
    OtherAccount,
    /// The mail address is not confirmed yet: a link is in the mail.
    NotConfirmed,
    /// The portal's rules of signing up.
    NotWelcome,
    /// The account waits for approval.
    Waiting,
    /// The account is suspended, or was refused.
    NotActive,
}

impl Refusal {
    fn code(&self) -> &'static str {
        match self {
            Self::Login(error) => error.code(),
            Self::NoMail => "no-mail",
            Self::OtherAccount => "other-account",
            Self::NotConfirmed => "not-confirmed",
            Self::NotWelcome => "not-welcome",
            Self::Waiting => "waiting",
            Self::NotActive => "not-active",
        }
    }
}

/// The interruption of a login: a message for the page, or an answer of its own.
enum LoginInterruption {
    Refused(Refusal),
    Failed(Problem),
}

impl From<LoginError> for LoginInterruption {
    fn from(error: LoginError) -> Self {
        Self::Refused(Refusal::Login(error))
    }
}

impl From<Refusal> for LoginInterruption {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Problem> for LoginInterruption {
    fn from(problem: Problem) -> Self {
        Self::Failed(problem)
    }
}

/// A provider that this portal names.
fn provider_of(
    portals: &Portals,
    visit: &PortalContext,
    name: &str,
) -> Result<(Arc<Provider>, SignInProvider), Problem> {
    let missing = || Problem::not_found(format_args!("the identity provider '{name}'"));
    let named = visit.portal.providers.iter().find(|it| it.name == name);
    let named = named.ok_or_else(missing)?;
    let provider = portals.providers.get(name).ok_or_else(missing)?;
    Ok((provider, named.clone()))
}

/// A path of the portal, and no other site.
fn safe_return(wanted: Option<&str>) -> String {
    let is_safe = |it: &&str| {
        let is_path = it.starts_with('/') && !it.starts_with("//");
        // Browsers drop tabs and line ends: `/<tab>/evil.test` would be another site.
        is_path && it.is_ascii() && it.len() <= 1000 && !it.contains(|it: char| it == '\\' || it.is_control())
    };
    wanted.filter(is_safe).unwrap_or("/apps").to_owned()
}

fn send_to(location: &str, cookies: &[String]) -> Result<Response, Problem> {
    let value = |text: &str| HeaderValue::from_str(text).map_err(|it| Problem::unreadable(it.to_string()));
    let mut answer = StatusCode::SEE_OTHER.into_response();
    let headers = answer.headers_mut();
    headers.insert(header::LOCATION, value(location)?);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The address of the callback has the code in it.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    for cookie in cookies {
        headers.append(header::SET_COOKIE, value(cookie)?);
    }
    Ok(answer)
}

/// Sends the browser to the page that says what went wrong. More of it is in the log.
fn refused(visit: &PortalContext, provider: &str, refusal: &Refusal) -> Result<Response, Problem> {
    let reason = match refusal {
        Refusal::Login(error) => error.to_string(),
        other => other.code().to_owned(),
    };
    tracing::warn!(provider, reason, address = %visit.address, "login of a developer failed");
    let location = format!("/login?error={}", refusal.code());
    send_to(&location, &[cookie::clear_login(visit.is_secure())])
}

async fn start(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(name): Path<String>,
    Query(start): Query<SignInStart>,
) -> Result<Response, Problem> {
    let (provider, _) = provider_of(&portals, &visit, &name)?;
    if !is_private(&visit.url) {
        let detail = "this portal is reached without TLS: login data would not be protected";
        return Err(Problem::forbidden(detail));
    }
    let metadata = match portals.openid.metadata(&provider).await {
        Ok(metadata) => metadata,
        Err(error) => return refused(&visit, &name, &Refusal::Login(error)),
    };
    let random = || Token::random().map(|it| it.as_str().to_owned());
    let (Some(state), Some(nonce), Some(verifier)) = (random(), random(), random()) else {
        return Err(Problem::unreadable("no random bits"));
    };
    let redirect_uri = format!("{}/portal/v1/session/openid/{name}/callback", visit.url);
    let to = safe_return(start.to.as_deref());
    let begun = PendingLogin::new(
        &provider,
        redirect_uri,
        to,
        [state, nonce, verifier],
        SystemTime::now(),
    );
    let begun = if start.fresh { begun.fresh() } else { begun };
    let url = begun.authorization_url(&provider, &metadata, start.login_hint.as_deref());
    send_to(&url, &[cookie::set_login(&begun.to_cookie(), visit.is_secure())])
}

async fn callback(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(name): Path<String>,
    Query(callback): Query<Callback>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (provider, named) = provider_of(&portals, &visit, &name)?;
    let begun = cookie::get_login(&headers, visit.is_secure());
    let Some(begun) = begun.as_deref().and_then(PendingLogin::from_cookie) else {
        return refused(&visit, &name, &Refusal::Login(LoginError::State));
    };
    let (developer, asked) = match person(&portals, &visit, (&provider, &named), (&begun, &callback)).await {
        Ok(person) => person,
        Err(LoginInterruption::Refused(refusal)) => return refused(&visit, &name, &refusal),
        Err(LoginInterruption::Failed(problem)) => return Err(problem),
    };
    let session = begin_session(&portals, &visit, (&developer, asked), &headers).await?;
    let cookies = [session, cookie::clear_login(visit.is_secure())];
    let mut answer = send_to(&safe_return(Some(&begun.return_to)), &cookies)?;
    let who = AuditIdentity(format!("developer {}", developer.mail));
    answer.extensions_mut().insert(who);
    Ok(answer)
}

/// The developer who has signed in, with the groups and teams of now, and when the provider asked the person, if it
/// says so.
async fn person(
    portals: &Portals,
    visit: &PortalContext,
    (provider, named): (&Provider, &SignInProvider),
    (begun, callback): (&PendingLogin, &Callback),
) -> Result<(Developer, Option<u64>), LoginInterruption> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let metadata = portals.openid.metadata(provider).await?;
    let code = begun.code(provider, &metadata, callback, now)?;
    let claims = portals.openid.claims(provider, (begun, code), now).await?;
    let subject = claims["sub"].as_str().unwrap_or_default();
    let seen = ProviderClaims {
        mark: mark_of(&format!("{}\n{subject}", provider.issuer)),
        mail: claims["email"].as_str().and_then(mail_of),
        is_verified: verified(&claims["email_verified"]),
        name: claims["name"].as_str(),
        with: match provider.display_name.as_str() {
            "" => format!("an account of {}", provider.name),
            title => format!("an account of {title}"),
        },
    };
    let groups: BTreeSet<String> = provider.groups_in(&claims).into_iter().collect();
    let known = portals.people.by_account(portal, &seen.mark, now).await?;
    let mut developer = match known {
        Some((known, account)) if account.is_verified => known,
        Some((known, _)) => claim(portals, visit, known, &seen).await?,
        None => join(portals, visit, &seen).await?,
    };
    if developer.provided != groups {
        let change = |it: &mut Developer| {
            it.provided.clone_from(&groups);
            Ok(Vec::new())
        };
        developer = portals.people.change(portal, &developer.id, now, change).await?;
    }
    let of_groups = (developer.id.as_str(), &groups);
    portals
        .people
        .provide_teams(portal, named, of_groups, now)
        .await?;
    match developer.state {
        DeveloperState::Active => Ok((developer, authenticated(&claims))),
        DeveloperState::Registered | DeveloperState::Confirmed => Err(Refusal::Waiting.into()),
        DeveloperState::Suspended | DeveloperState::Refused => Err(Refusal::NotActive.into()),
    }
}

/// What a provider says about a user.
struct ProviderClaims<'c> {
    /// The mark of the account.
    mark: String,
    mail: Option<String>,
    /// Whether the mail address is that of the person; `None`: the provider says nothing.
    is_verified: Option<bool>,
    name: Option<&'c str>,
    /// With what it is, for the mail.
    with: String,
}

/// Whether a provider says that a mail address is confirmed. Some write it as text.
fn verified(claim: &Value) -> Option<bool> {
    match claim {
        Value::Bool(it) => Some(*it),
        Value::String(it) if it == "true" => Some(true),
        Value::String(it) if it == "false" => Some(false),
        _ => None,
    }
}

/// The developer of an account that was not seen before: one whose confirmed address it is, or a new one.
async fn join(
    portals: &Portals,
    visit: &PortalContext,
    seen: &ProviderClaims<'_>,
) -> Result<Developer, LoginInterruption> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let mail = seen.mail.clone().filter(|_| seen.is_verified != Some(false));
    let mail = mail.ok_or(Refusal::NoMail)?;
    let known = portals.people.by_mail(portal, &mail, now).await?;
    let developer = match known {
        Some(known) => known,
        None => new_developer(portals, visit, (seen, mail), now).await?,
    };
    claim(portals, visit, developer, seen).await
}

/// A new developer. Without a confirmed address a mail has to ask for it.
async fn new_developer(
    portals: &Portals,
    visit: &PortalContext,
    (seen, mail): (&ProviderClaims<'_>, String),
    now: SystemTime,
) -> Result<Developer, LoginInterruption> {
    let (portal, rules) = (&visit.portal.name, &visit.portal.sign_up);
    may_join(rules, &mail, false).map_err(|_| Refusal::NotWelcome)?;
    if seen.is_verified != Some(true) {
        // An address that only the person has typed there is of no domain.
        if !rules.domains.is_empty() {
            return Err(Refusal::NoMail.into());
        }
        portals.need_mail()?;
        visit.link_url()?;
    }
    // People choose their names at providers, too.
    let name = seen.name.map(|it| it.chars().take(MAX_NAME).collect::<String>());
    let name = name.and_then(|it| checked_name(&it).ok());
    let developer = Developer {
        id: random_id()?,
        name: name.unwrap_or_else(|| mail.clone()),
        mail,
        password: None,
        state: DeveloperState::Registered,
        groups: BTreeSet::new(),
        provided: BTreeSet::new(),
        second_factor: None,
        created: seconds(now),
        decided: None,
    };
    let account = Account {
        developer: developer.id.clone(),
        is_verified: false,
    };
    // Before the developer: an account without one is of no use.
    portals
        .people
        .put_account(portal, &seen.mark, &account, now)
        .await?;
    if !portals.people.add(portal, &developer, now).await? {
        return Err(Refusal::OtherAccount.into());
    }
    portals
        .queue_webhooks(visit, "developer.registered", &developer, now)
        .await?;
    Ok(developer)
}

/// Joins an account to the developer who has its address, if the provider says whose address it is. Else the owner of the
/// address is asked, if the developer came with this very account.
async fn claim(
    portals: &Portals,
    visit: &PortalContext,
    developer: Developer,
    seen: &ProviderClaims<'_>,
) -> Result<Developer, LoginInterruption> {
    let (now, portal, people) = (SystemTime::now(), &visit.portal.name, &portals.people);
    if seen.is_verified != Some(true) || seen.mail.as_ref() != Some(&developer.mail) {
        let own = people.by_account(portal, &seen.mark, now).await?;
        let is_own = own.is_some_and(|(it, _)| it.id == developer.id);
        if !is_own || developer.state != DeveloperState::Registered {
            return Err(Refusal::OtherAccount.into());
        }
        portals.need_mail()?;
        take_turn(portals, visit, now)?;
        let of = (
            UnconfirmedCredential::Account(seen.mark.clone()),
            seen.with.as_str(),
        );
        send_confirm(portals, visit, &developer, of, now).await?;
        return Err(Refusal::NotConfirmed.into());
    }
    // What came before the address was confirmed does not belong to this person: other accounts, and a password.
    people
        .remove_accounts(portal, &developer.id, |it| !it.is_verified, now)
        .await?;
    let confirm = |it: &mut Developer| match it.state {
        DeveloperState::Registered => {
            it.password = None;
            confirm_step(portals, visit, it, now)
        }
        _ => Ok(Vec::new()),
    };
    let developer = people.change(portal, &developer.id, now, confirm).await?;
    portals.notify();
    let account = Account {
        developer: developer.id.clone(),
        is_verified: true,
    };
    people.put_account(portal, &seen.mark, &account, now).await?;
    Ok(developer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_login_leads_to_a_page_of_the_portal_only() {
        for (wanted, expected) in [
            (None, "/apps"),
            (Some("/apis/shop?x=1"), "/apis/shop?x=1"),
            (Some("//evil.test"), "/apps"),
            (Some("https://evil.test"), "/apps"),
            (Some("/\\evil.test"), "/apps"),
            (Some("/a\r\nset-cookie: x"), "/apps"),
            (Some("/\t/evil.test"), "/apps"),
            (Some("/\u{7f}/evil.test"), "/apps"),
        ] {
            assert_eq!(safe_return(wanted), expected, "{wanted:?}");
        }
    }

    #[test]
    fn only_a_provider_that_says_so_confirms_an_address() {
        for (claim, expected) in [
            (json!(true), Some(true)),
            (json!("true"), Some(true)),
            (json!(false), Some(false)),
            (json!("false"), Some(false)),
            (Value::Null, None),
            (json!(1), None),
            (json!("yes"), None),
        ] {
            assert_eq!(verified(&claim), expected, "{claim}");
        }
    }
}
