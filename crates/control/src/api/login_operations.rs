//! The operations of logins, of a caller's own account, of identity providers, and of events for browsers.

use super::operation::Operation;
use super::shapes::{
    CurrentUser, IdentityProvider, List, LoggedIn, LoggedOut, LoginOptions, NewToken, SessionState,
    TokenState,
};
use super::{current_user, events, openid_login, session};
use crate::access::Action;
use axum::http::StatusCode;

/// All of them.
pub fn operations() -> Vec<Operation> {
    let groups = [of_login(), of_callers(), of_providers(), of_events()];
    groups.into_iter().flatten().collect()
}

fn of_login() -> Vec<Operation> {
    const SESSION: &str = "/api/v1/session";
    let own = Action::Own;
    let operations = [
        Operation::get("/api/v1/session/options", "getLoginOptions", own, session::options)
            .about("Session", "Reads how people may log in")
            .public()
            .answers::<LoginOptions>(),
        Operation::post(SESSION, "logIn", own, session::log_in)
            .about("Session", "Logs in with name and password, or with a token")
            .description(
                "The answer sets the cookie of the session, and ends the session that the browser had. After five wrong \
                 passwords each further attempt has to wait longer: 429 with `Retry-After`. Without TLS, only from this machine.",
            )
            .public()
            .body::<session::LoginRequest>()
            .status(StatusCode::CREATED)
            .answers::<LoggedIn>(),
        Operation::delete(SESSION, "logOut", own, session::log_out)
            .about("Session", "Ends the session of this call, on every control plane")
            .headers(&["Origin"])
            .status(StatusCode::OK)
            .answers::<LoggedOut>(),
        Operation::get("/api/v1/session/openid/{name}", "startOpenidLogin", own, openid_login::start)
            .about("Session", "Sends a browser to an identity provider to log in")
            .public()
            .query::<openid_login::LoginStart>()
            .status(StatusCode::SEE_OTHER),
        Operation::get(
            "/api/v1/session/openid/{name}/callback",
            "finishOpenidLogin",
            own,
            openid_login::callback,
        )
        .about("Session", "Takes a browser back from an identity provider, and begins its session")
        .description("It leads to the console. If the login has failed, `login_error` says why.")
        .public()
        .query::<crate::access::openid::engine::Callback>()
        .ignoring_unknown_parameters()
        .status(StatusCode::SEE_OTHER),
    ];
    operations.into()
}

fn of_callers() -> Vec<Operation> {
    const TOKENS: &str = "/api/v1/me/tokens";
    let own = Action::Own;
    let operations = [
        Operation::get("/api/v1/me", "getMe", own, current_user::read)
            .about("Me", "Reads the caller")
            .answers::<CurrentUser>(),
        Operation::put(
            "/api/v1/me/password",
            "setMyPassword",
            own,
            current_user::set_password,
        )
        .about("Me", "Changes the caller's password, and ends the other sessions")
        .body::<current_user::PasswordChange>()
        .status(StatusCode::NO_CONTENT),
        Operation::get(
            "/api/v1/me/sessions",
            "listMySessions",
            own,
            current_user::list_sessions,
        )
        .about("Me", "Lists the caller's sessions, the oldest first")
        .answers::<List<SessionState>>(),
        Operation::delete(
            "/api/v1/me/sessions/{id}",
            "endMySession",
            own,
            current_user::end_session,
        )
        .about("Me", "Ends a session of the caller"),
        Operation::get(TOKENS, "listMyTokens", own, current_user::list_tokens)
            .about("Me", "Lists the caller's personal tokens, the oldest first")
            .answers::<List<TokenState>>(),
        Operation::post(TOKENS, "createMyToken", own, current_user::make_token)
            .about(
                "Me",
                "Creates a personal token for a program that acts as the caller",
            )
            .description(
                "It has at most the rights that its user has at the time of the call. From a session, the user's \
                 password is required; without a password, the session must be younger than ten minutes.",
            )
            .body::<current_user::TokenRequest>()
            .status(StatusCode::CREATED)
            .answers::<NewToken>(),
        Operation::delete(
            "/api/v1/me/tokens/{id}",
            "removeMyToken",
            own,
            current_user::remove_token,
        )
        .about("Me", "Removes a personal token of the caller"),
    ];
    operations.into()
}

fn of_providers() -> Vec<Operation> {
    const ALL: &str = "/api/v1/identity-providers";
    const ONE: &str = "/api/v1/identity-providers/{name}";
    let manage = Action::UsersManage;
    let operations = [
        Operation::get(ALL, "listIdentityProviders", manage, openid_login::list)
            .about("Access", "Lists identity providers, without their secrets")
            .answers::<List<IdentityProvider>>(),
        Operation::put(ONE, "putIdentityProvider", manage, openid_login::put)
            .about(
                "Access",
                "Creates or replaces an identity provider (OpenID Connect)",
            )
            .headers(&["If-Match", "If-None-Match", "Weir-Dry-Run"])
            .body::<openid_login::ProviderRequest>()
            .answers::<IdentityProvider>(),
        Operation::delete(ONE, "removeIdentityProvider", manage, openid_login::remove)
            .about(
                "Access",
                "Removes an identity provider; the sessions of its users end",
            )
            .headers(&["If-Match", "Weir-Dry-Run"]),
    ];
    operations.into()
}

fn of_events() -> Vec<Operation> {
    vec![
        Operation::get("/api/v1/events", "followEvents", Action::Own, events::follow)
            .about(
                "Events",
                "Streams events (server-sent events): commits, publications, gateways, alerts",
            )
            .description("Callers receive only events that they may read. At most 16 streams per caller.")
            .headers(&["Last-Event-ID"])
            .query::<events::EventsQuery>()
            .answers_of("text/event-stream", None),
    ]
}
