//! `weir user`: making, changing and removing users of a running Weir. It prints a new token, and no other secret.

use super::{address, encoded, run_and_print, text};
use crate::args::{RemoteArgs, UserArgs, UserCommand};
use crate::command_output::CommandOutput;
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use weir_control::http::{ClientRequest, Method};

/// Manages users.
pub fn user(args: &UserArgs) -> CommandOutput {
    match &args.command {
        UserCommand::Add {
            name,
            rights,
            password_file,
            without_token,
            remote,
        } => {
            let password = match password_file.as_deref().map(password).transpose() {
                Ok(password) => password,
                Err(refused) => return refused,
            };
            let mut body = json!({ "rights": rights.rights(), "without_token": without_token });
            if let Some(password) = password {
                body["password"] = password.into();
            }
            let call = ClientRequest::json(Method::POST, address(remote, &path_of(name)), &body);
            run_and_print(remote, call, |answer| match answer["token"].as_str() {
                Some(token) => format!("{token}\n"),
                None => String::new(),
            })
        }
        UserCommand::List { remote } => run_and_print(
            remote,
            ClientRequest::get(address(remote, "/api/v1/users")),
            text::users,
        ),
        UserCommand::Rights { name, rights, remote } => {
            let path = format!("{}/rights", path_of(name));
            let body = json!({ "rights": rights.rights() });
            silent(
                remote,
                ClientRequest::json(Method::PUT, address(remote, &path), &body),
            )
        }
        UserCommand::Password { name, file, remote } => {
            let password = match password(file) {
                Ok(password) => password,
                Err(refused) => return refused,
            };
            let path = format!("{}/password", path_of(name));
            let body = json!({ "password": password });
            silent(
                remote,
                ClientRequest::json(Method::PUT, address(remote, &path), &body),
            )
        }
        UserCommand::Logout { name, remote } => delete(remote, &format!("{}/sessions", path_of(name))),
        UserCommand::Remove { name, remote } => delete(remote, &path_of(name)),
    }
}

fn path_of(name: &str) -> String {
    format!("/api/v1/users/{}", encoded(name))
}

fn delete(remote: &RemoteArgs, path: &str) -> CommandOutput {
    let call = ClientRequest {
        method: Method::DELETE,
        ..ClientRequest::get(address(remote, path))
    };
    silent(remote, call)
}

fn silent(remote: &RemoteArgs, call: ClientRequest) -> CommandOutput {
    run_and_print(remote, call, |_| String::new())
}

/// The first line of a file, or of standard input.
fn password(file: &Path) -> Result<String, CommandOutput> {
    let failed = |error| CommandOutput::failed(2, format!("{}: cannot be read: {error}\n", file.display()));
    let source: Box<dyn Read> = match file.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(file).map_err(failed)?),
    };
    let mut line = String::new();
    BufReader::new(source).read_line(&mut line).map_err(failed)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
