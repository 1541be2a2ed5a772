//! Gateways that are taken out: each hears so with the answer to its next report, is no longer ready, and says that it drains,
//! until it is taken back. What takes it out is a document of the store, `weir/drains/NAME`, so that it outlives the control
//! plane, and gateways that follow the store by themselves find it there.

use super::fleet::DRAINS;
use super::problem::Problem;
use super::writing::tried;
use super::{Api, is_dry_run};
use crate::access::Caller;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::SystemTime;
use weir_store::{Change, Key, Store, Transaction};

/// Answers `PUT /api/v1/gateways/{name}/drain`.
pub async fn drain(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !api.options.gateways.is_known(&name) {
        return Err(Problem::not_found(format_args!("the gateway '{name}'")));
    }
    set(&api, &caller, (&name, true), &headers).await
}

/// Answers `DELETE /api/v1/gateways/{name}/drain`.
pub async fn undrain(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !api.options.gateways.is_drained(&name) {
        let what = format_args!("the drained gateway '{name}'");
        return Err(Problem::not_found(what));
    }
    set(&api, &caller, (&name, false), &headers).await
}

async fn set(
    api: &Api,
    caller: &Caller,
    (name, is_drained): (&str, bool),
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    if is_dry_run(headers) {
        return Ok(tried(StatusCode::NO_CONTENT));
    }
    if is_drained == api.options.gateways.is_drained(name) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    write(&*api.store, caller, (name, is_drained)).await?;
    // What follows the store is a moment behind.
    api.options.gateways.note_drained(name, is_drained);
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Takes a gateway out, or back. No other document decides whether that is right.
pub async fn write(
    store: &dyn Store,
    caller: &Caller,
    (name, is_drained): (&str, bool),
) -> Result<(), Problem> {
    let key = Key::new(&format!("{DRAINS}{name}")).map_err(|error| Problem::bad(error.to_string()))?;
    let (note, change) = match is_drained {
        true => (
            "takes out",
            Change::Put {
                key,
                value: b"{}".as_slice().into(),
                time_to_live: None,
            },
        ),
        false => ("takes back", Change::Delete { key }),
    };
    let transaction = Transaction {
        author: caller.name(),
        note: format!("{note} the gateway {name}"),
        time: SystemTime::now(),
        changes: vec![change],
    };
    store.append(transaction).await?;
    Ok(())
}
