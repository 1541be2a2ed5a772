//! `weir developer`: erasing a developer of a portal of a running Weir.

use super::{address, encoded, make, run_and_print};
use crate::args::{DeveloperArgs, DeveloperCommand, RemoteArgs};
use crate::command_output::CommandOutput;
use serde_json::Value;
use weir_control::http::{ClientRequest, Method};

/// Looks after developers.
pub fn developer(args: &DeveloperArgs) -> CommandOutput {
    let DeveloperCommand::Erase {
        developer,
        portal,
        dry_run,
        remote,
    } = &args.command;
    let all = format!("/api/v1/portals/{}/developers", encoded(portal));
    let id = match developer.contains('@') {
        false => developer.clone(),
        true => match id_of(remote, &all, developer) {
            Ok(id) => id,
            Err(refused) => return refused,
        },
    };
    let mut call = ClientRequest {
        method: Method::POST,
        ..ClientRequest::get(address(remote, &format!("{all}/{}/erase", encoded(&id))))
    };
    if *dry_run {
        call = call.header("weir-dry-run", "true");
    }
    let verb = if *dry_run { "would be erased" } else { "erased" };
    run_and_print(remote, call, |answer| text(verb, answer))
}

/// The id of the developer with a mail address.
fn id_of(remote: &RemoteArgs, all: &str, mail: &str) -> Result<String, CommandOutput> {
    let mail = mail.to_lowercase();
    let found = make(
        remote,
        ClientRequest::get(address(remote, &format!("{all}?q={}", encoded(&mail)))),
    )?;
    let found: Value = serde_json::from_slice(&found).unwrap_or_default();
    let mut items = found["items"].as_array().into_iter().flatten();
    let id = items.find(|it| it["mail"] == mail.as_str());
    let id = id.and_then(|it| it["id"].as_str()).map(str::to_owned);
    id.ok_or_else(|| {
        CommandOutput::failed(
            1,
            format!("weir: there is no developer with the address {mail}\n"),
        )
    })
}

/// The erased things, a line for each kind.
fn text(verb: &str, erased: &Value) -> String {
    let names = |field: &str| {
        let names = erased[field].as_array().into_iter().flatten();
        let names: Vec<&str> = names.filter_map(Value::as_str).collect();
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        }
    };
    format!(
        "{verb}: the account\napplications: {}\nsubscriptions: {}\nkeys: {}\nteams left: {}\nlinks: {}\nmessages: {}\nnames in analytics: {}\n",
        names("applications"),
        erased["subscriptions"],
        erased["credentials"],
        names("teams"),
        erased["links"],
        erased["messages"],
        erased["names"],
    )
}
