//! Personal tokens of a developer: made, listed and revoked. A token is in the answer that makes it, and nowhere else. A call with
//! a token may do none of it ([`super::operation::Operation::by_session`]). Who has taken over a session makes none: the password
//! is asked for, or a sign-in that has just been.

use super::account_common::{notify_of_change, prove_password, wrong};
use super::account_shapes::{NewToken, TokenLine, TokenList};
use super::operation::{Operation, Shared};
use super::signed_in::developer;
use crate::cookie;
use crate::people::{Developer, DeveloperToken, MAX_TOKEN_DAYS, checked_name};
use crate::state::{PortalContext, Portals};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use std::time::SystemTime;
use weir_control::api::Json;
use weir_control::api::Problem;
use weir_model::unix_time::seconds;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            "/portal/v1/account/tokens",
            ("listTokens", "Lists your personal tokens"),
            list,
        )
        .by_session()
        .answers::<TokenList>(),
        Operation::post(
            "/portal/v1/account/tokens",
            (
                "createToken",
                "Creates a personal token for programs that call this API in your name; it is shown only once",
            ),
            make,
        )
        .by_session()
        .body::<NewToken>()
        .status(StatusCode::CREATED)
        .answers::<TokenLine>(),
        Operation::delete(
            "/portal/v1/account/tokens/{id}",
            ("revokeToken", "Revokes a personal token immediately"),
            revoke,
        )
        .by_session(),
    ];
    Operation::tagged("Account", operations)
}

/// For how many seconds after an identity provider asked the developer a token can be made.
const FRESH_SESSION: u64 = 600;

/// A token as its developer sees it.
fn line(token: DeveloperToken, ends: Option<SystemTime>, text: Option<String>) -> TokenLine {
    TokenLine {
        id: token.id,
        name: token.name,
        created: token.created,
        last_used: token.last_used,
        ends: ends.map_or(0, seconds),
        token: text,
    }
}

/// The personal tokens of a developer.
pub async fn token_lines(
    portals: &Portals,
    visit: &PortalContext,
    developer: &str,
    now: SystemTime,
) -> Result<Vec<TokenLine>, Problem> {
    let found = portals.people.tokens(&visit.portal.name, developer, now).await?;
    Ok(found
        .into_iter()
        .map(|it| line(it.value, it.ends, None))
        .collect())
}

async fn list(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
) -> Result<Json<TokenList>, Problem> {
    let now = SystemTime::now();
    let developer = developer(&portals, &visit, now).await?;
    let items = token_lines(&portals, &visit, &developer.id, now).await?;
    Ok(Json(TokenList { items }))
}

async fn make(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    headers: HeaderMap,
    Json(wanted): Json<NewToken>,
) -> Result<(StatusCode, Json<TokenLine>), Problem> {
    let now = SystemTime::now();
    let developer = developer(&portals, &visit, now).await?;
    let name = checked_name(&wanted.name).map_err(|expected| wrong("name", expected))?;
    if !(1..=MAX_TOKEN_DAYS).contains(&wanted.days) {
        return Err(wrong("days", format!("expected 1 to {MAX_TOKEN_DAYS} days")));
    }
    prove(&portals, &visit, &headers, (&developer, wanted.password), now).await?;
    let (portal, about) = (&visit.portal.name, (name.as_str(), wanted.days));
    let made = portals.people.make_token(portal, &developer.id, about, now);
    let (text, token, ends) = made.await?;
    let what = format!("the personal token {name} was made");
    notify_of_change(&portals, &visit, &developer, &what).await;
    Ok((StatusCode::CREATED, Json(line(token, Some(ends), Some(text)))))
}

/// Asks for the password; of who has none, that the identity provider has just asked.
async fn prove(
    portals: &Portals,
    visit: &PortalContext,
    headers: &HeaderMap,
    (developer, password): (&Developer, Option<String>),
    now: SystemTime,
) -> Result<(), Problem> {
    if developer.password.is_some() {
        let given = ("password", password.unwrap_or_default());
        return prove_password(portals, visit, developer, given, now).await;
    }
    let cookie = cookie::get(headers, visit.is_secure()).unwrap_or_default();
    let session = portals.people.session(&visit.portal.name, &cookie, now).await?;
    match session
        .and_then(|it| it.asked)
        .is_some_and(|it| seconds(now) < it + FRESH_SESSION)
    {
        true => Ok(()),
        false => {
            let detail = "sign in again through your identity provider: you can create a token within ten minutes \
                after that";
            Err(Problem::forbidden(detail).of_type("fresh-sign-in-needed"))
        }
    }
}

async fn revoke(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let developer = developer(&portals, &visit, now).await?;
    let revoked = portals
        .people
        .revoke_tokens(portal, &developer.id, |it| it.id == id, now);
    match revoked.await? {
        0 => Err(Problem::not_found("this token")),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}
