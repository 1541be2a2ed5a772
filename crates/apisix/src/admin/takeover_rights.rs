//! Refuses a write that would take calls or server names from other workspaces, unless the caller may write in all of
//! them.

use super::AdminOptions;
use super::call::ApiCall;
use super::response::{ApiResponse, Outcome};
use super::state::AdminState;
use super::takeover_detection::{Reading, takes_calls};
use super::write::ChangePlan;
use axum::http::StatusCode;
use serde_json::Value;
use weir_dialect::{DEFAULT_WORKSPACE, ForeignRoutes};
use weir_model::{HostPattern, server_names_may_overlap};

/// Checks that the routes of a plan take no calls of another workspace's route, and that its certificates have no new
/// server name of another workspace's certificate or route. Names that a certificate has already stay, so that it can be
/// renewed.
///
/// # Errors
/// One does, and the caller may not write everywhere; or what others serve is not known yet.
pub(super) fn check(
    call: &ApiCall,
    plan: &ChangePlan,
    state: &AdminState,
    options: &AdminOptions,
) -> Outcome<()> {
    let Some(others) = options.others.as_deref().filter(|_| call.is_confined) else {
        return Ok(());
    };
    let has_calls = plan.changes.iter().any(|(key, value)| {
        let mut sections = ["routes/", "stream_routes/", "services/"].into_iter();
        value.is_some() && sections.any(|section| key.starts_with(section))
    });
    if has_calls && !others.are_known() {
        return Err(not_known());
    }
    let reading = Reading {
        router: options.router,
        settings: options.settings,
    };
    if has_calls && takes_calls(plan, state, reading, others) {
        return Err(ApiResponse::error(
            StatusCode::CONFLICT,
            "the route would take calls of another workspace, in which you may not write",
        ));
    }
    let written = plan.changes.iter().filter(|(key, _)| key.starts_with("ssls/"));
    let mut names = written
        .filter_map(|(key, value)| Some((state.get(key), value.as_ref()?)))
        .flat_map(|(old, value)| {
            let is_old = move |name: &str| old.is_some_and(|it| server_names(&it.value).any(|it| it == name));
            server_names(value).filter(move |name| !is_old(name))
        });
    let Some(first) = names.next() else {
        return Ok(());
    };
    if !others.are_known() {
        return Err(not_known());
    }
    match std::iter::once(first)
        .chain(names)
        .find(|name| is_taken(name, others))
    {
        Some(name) => Err(ApiResponse::error(
            StatusCode::CONFLICT,
            format!("the server name {name} may be one of another workspace, in which you may not write"),
        )),
        None => Ok(()),
    }
}

fn not_known() -> ApiResponse {
    ApiResponse::error(
        StatusCode::SERVICE_UNAVAILABLE,
        "what other dialects serve is not known yet; try again in a moment",
    )
}

/// The names of a certificate.
fn server_names(ssl: &Value) -> impl Iterator<Item = &str> {
    let list = ssl["snis"].as_array().into_iter().flatten();
    list.chain([&ssl["sni"]]).filter_map(Value::as_str)
}

/// Whether a certificate or route that may be another workspace's has this name.
fn is_taken(name: &str, others: &dyn ForeignRoutes) -> bool {
    // A certificate for all names is shown where there is none for the name itself.
    let Some(pattern) = HostPattern::parse(name).ok().filter(|it| *it != HostPattern::Any) else {
        return false;
    };
    let own = [name.to_owned()];
    let is_other = |workspace: &str| workspace != DEFAULT_WORKSPACE;
    others.any_server_names(crate::NAME, &mut |names, workspace| {
        let mut names = names.iter().filter(|it| *it != "*");
        is_other(workspace) && names.any(|it| server_names_may_overlap(&own, std::slice::from_ref(it)))
    }) || others.any(crate::NAME, &mut |matches, owner| {
        is_other(owner.workspace) && matches.iter().any(|it| it.is_for_server_name(&pattern))
    }) || others.any_stream(crate::NAME, &mut |route, owner| {
        is_other(owner.workspace) && route.is_for_server_name(&pattern)
    })
}
