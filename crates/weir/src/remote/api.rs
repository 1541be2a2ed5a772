//! `weir api`: the life of an API through a running Weir's own API. `lint` needs no server.

use super::{address, answer, encoded, make, text};
use crate::args::{
    ApiArgs, ApiCommand, LevelArg, LintArgs, LintOutput, OnServer, Output, PublicationArgs, RemoteArgs,
    ReviewArgs, StepArgs, VersionArgs,
};
use crate::command_output::CommandOutput;
use serde_json::{Map, Value, json};
use std::path::Path;
use weir_apis::call_tests::TestReport;
use weir_apis::lint::{self, Options, Ruleset};
use weir_apis::openapi::Description;
use weir_apis::{Finding, Level, naming, openapi, postman};
use weir_control::http::{ClientRequest, Method, StatusCode};

/// Runs a command.
pub fn api(args: &ApiArgs) -> CommandOutput {
    let done = match &args.command {
        ApiCommand::New {
            api,
            file,
            version,
            on,
        } => new(api, file, version.as_deref(), on),
        ApiCommand::Lint(args) => lint(args),
        ApiCommand::Diff {
            of,
            from,
            to,
            file,
            on,
        } => {
            let version = format!(
                "/api/v1/apis/{}/versions/{}",
                encoded(&of.api),
                encoded(&of.version)
            );
            diff(&version, (*from, *to), file.as_deref(), on)
        }
        ApiCommand::Review(args) => review(args),
        ApiCommand::Test {
            of,
            revision,
            published,
            runtime,
            names,
            output,
            remote,
        } => {
            let body = json!({ "environment": of.environment, "revision": revision, "published": published, "names": names });
            run_tests(of, body, runtime.as_deref(), *output, remote)
        }
        ApiCommand::Publish {
            of,
            revision,
            runtime,
            take_over,
            step,
            on,
        } => step_body(step, *revision, runtime.as_deref()).and_then(|mut body| {
            body.insert("take_over".to_owned(), (*take_over).into());
            publish(of, "", body, step.dry_run, on)
        }),
        ApiCommand::Promote {
            of,
            to,
            runtime,
            step,
            on,
        } => step_body(step, None, runtime.as_deref()).and_then(|mut body| {
            body.insert("to".to_owned(), to.as_str().into());
            publish(of, "/promote", body, step.dry_run, on)
        }),
        ApiCommand::Rollback {
            of,
            revision,
            step,
            on,
        } => {
            step_body(step, *revision, None).and_then(|body| publish(of, "/rollback", body, step.dry_run, on))
        }
        ApiCommand::Deprecate {
            of,
            since,
            sunset,
            link,
            successor,
            enforce,
            note,
            dry_run,
            on,
        } => deprecation(since.as_deref(), sunset.as_deref()).and_then(|mut body| {
            for (name, value) in [("link", link), ("successor", successor)] {
                if let Some(value) = value {
                    body.insert(name.to_owned(), value.as_str().into());
                }
            }
            body.insert("enforce".to_owned(), (*enforce).into());
            body.insert("note".to_owned(), note.as_str().into());
            deprecate(of, body, *dry_run, on)
        }),
        ApiCommand::Remove {
            of,
            force,
            dry_run,
            remote,
        } => remove(of, *force, *dry_run, remote),
    };
    done.unwrap_or_else(|failed| failed)
}

type CommandResult = Result<CommandOutput, CommandOutput>;

fn read(file: &Path) -> Result<String, CommandOutput> {
    std::fs::read_to_string(file)
        .map_err(|error| CommandOutput::failed(2, format!("{}: cannot be read: {error}\n", file.display())))
}

fn path_of(of: &PublicationArgs, step: &str) -> String {
    format!(
        "/api/v1/publications/{}/{}/{}{step}",
        encoded(&of.api),
        encoded(&of.version),
        encoded(&of.environment)
    )
}

fn call(
    remote: &RemoteArgs,
    method: Method,
    path: &str,
    body: Option<&Value>,
    dry_run: bool,
) -> ClientRequest {
    let url = address(remote, path);
    let call = match body {
        Some(body) => ClientRequest::json(method, url, body),
        None => ClientRequest {
            method,
            ..ClientRequest::get(url)
        },
    };
    match dry_run {
        true => call.header("weir-dry-run", "true"),
        false => call,
    }
}

/// Asks for a review, takes that back, or says what came of it.
fn review(args: &ReviewArgs) -> CommandResult {
    let (remote, VersionArgs { api, version }) = (&args.on.remote, &args.of);
    let path = format!(
        "/api/v1/apis/{}/versions/{}/review",
        encoded(api),
        encoded(version)
    );
    let reason = args.reason.as_deref().unwrap_or_default();
    let decided = match (args.approve, args.ask_changes) {
        (true, _) => Some("approved"),
        (_, true) => Some("changes-asked"),
        _ => None,
    };
    let asked = match decided {
        Some(state) => {
            let body = json!({ "state": state, "reason": reason });
            call(
                remote,
                Method::POST,
                &format!("{path}/decision"),
                Some(&body),
                false,
            )
        }
        None if args.withdraw => call(remote, Method::DELETE, &path, None, false),
        None => {
            let body = json!({ "reason": reason });
            call(remote, Method::POST, &path, Some(&body), false)
        }
    };
    let body = make(remote, asked)?;
    Ok(CommandOutput::succeeded(printed(&args.on, &body, |answer| {
        let state = answer["state"].as_str().unwrap_or("no longer in review");
        format!("draft of {api} {version}: {}\n", state.replace('-', " "))
    })))
}

/// The output for a good answer: the answer as it came, or a text made of it.
fn printed(on: &OnServer, body: &[u8], text: impl Fn(&Value) -> String) -> String {
    match on.output {
        Output::Json => String::from_utf8_lossy(body).into_owned() + "\n",
        Output::Text => text(&serde_json::from_slice(body).unwrap_or_default()),
    }
}

/// Makes an API and a version, or changes the draft of a version that exists.
fn new(api: &str, file: &Path, version: Option<&str>, on: &OnServer) -> CommandResult {
    let text = read(file)?;
    let remote = &on.remote;
    // What is wrong with the document is told before an API is made for it.
    let Document { value, findings, .. } = Document::read(file, &text)?;
    if let Err(found) = &findings {
        return Err(CommandOutput {
            code: 1,
            ..unreadable(file, found)
        });
    }
    let refuse = |message: &str| CommandOutput::failed(2, format!("weir api: {message}\n"));
    let version = match version {
        Some(version) => version.to_owned(),
        None => naming::version_of(&value)
            .map_err(|message| refuse(&format!("{message}, or give --api-version")))?
            .ok_or_else(|| refuse("the document has no version in info.version: give --api-version"))?,
    };
    let of_api = format!("/api/v1/apis/{}", encoded(api));
    let is_new = !is_there(remote, &of_api)?;
    if is_new {
        make(
            remote,
            call(remote, Method::PUT, &of_api, Some(&json!({})), false),
        )?;
    }
    let versions = format!("{of_api}/versions");
    let one = format!("{versions}/{}", encoded(&version));
    let exists = !is_new && is_there(remote, &one)?;
    let (method, path) = match exists {
        true => (Method::PUT, one),
        false => (Method::POST, format!("{versions}?version={}", encoded(&version))),
    };
    let upload = ClientRequest {
        body: text.into_bytes(),
        ..call(remote, method, &path, None, false)
    }
    .header("content-type", "text/plain");
    let body = make(remote, upload).map_err(|refused| match is_new {
        // What was made for the document goes with it.
        true => match make(remote, call(remote, Method::DELETE, &of_api, None, false)) {
            Ok(_) => refused,
            Err(_) => CommandOutput {
                stderr: format!(
                    "{}weir api: the API '{api}' was created without a version\n",
                    refused.stderr
                ),
                ..refused
            },
        },
        false => refused,
    })?;
    let verb = if exists { "draft of" } else { "new version" };
    Ok(CommandOutput::succeeded(printed(on, &body, |answer| {
        let count = |field: &str| answer[field].as_array().map_or(0, Vec::len);
        format!(
            "{verb} {version} of {api}: {} operations, {} findings\n",
            count("operations"),
            count("findings")
        )
    })))
}

/// Whether there is something at a path.
fn is_there(remote: &RemoteArgs, path: &str) -> Result<bool, CommandOutput> {
    let (status, body) = answer(remote, call(remote, Method::GET, path, None, false))?;
    match status {
        StatusCode::NOT_FOUND => Ok(false),
        status if status.is_success() => Ok(true),
        status => {
            let problem = serde_json::from_slice(&body).unwrap_or_default();
            Err(CommandOutput::failed(1, text::problem(status.as_u16(), &problem)))
        }
    }
}

/// A document of a file, as a server takes it.
struct Document {
    value: Value,
    /// The text: of a Postman collection, that of the OpenAPI document that it becomes.
    text: String,
    is_collection: bool,
    /// The description with what of a collection it does not have; or why it is none.
    findings: Result<(Description, Vec<Finding>), Vec<Finding>>,
}

impl Document {
    fn read(file: &Path, text: &str) -> Result<Self, CommandOutput> {
        let refuse = |found: &dyn std::fmt::Display| {
            CommandOutput::failed(1, format!("{}: {found}\n", file.display()))
        };
        let value = match openapi::parse(text) {
            Ok(value) => value,
            Err(found) => {
                return Ok(Self {
                    value: Value::Null,
                    text: text.to_owned(),
                    is_collection: false,
                    findings: Err(vec![found]),
                });
            }
        };
        if !postman::is_collection(&value) {
            return Ok(Self {
                value,
                text: text.to_owned(),
                is_collection: false,
                findings: openapi::read(text).map(|it| (it, Vec::new())),
            });
        }
        let made = postman::convert(&value).map_err(|message| refuse(&message))?;
        let text = serde_json::to_string_pretty(&made.document).map_err(|error| refuse(&error))?;
        Ok(Self {
            findings: openapi::read(&text).map(|it| (it, made.findings)),
            value: made.document,
            text,
            is_collection: true,
        })
    }
}

fn lint(args: &LintArgs) -> CommandResult {
    let text = read(&args.file)?;
    let ruleset = match &args.rules {
        Some(file) => Ruleset::parse(&read(file)?).map_err(|found| unreadable(file, &found))?,
        None => Ruleset::default(),
    };
    let options = Options {
        base_path: args.base_path.as_deref(),
    };
    let document = Document::read(&args.file, &text)?;
    let findings = match document.findings {
        Ok((description, mut findings)) => {
            openapi::locate(&document.text, &mut findings);
            findings.extend(lint::run(&document.text, &description, &ruleset, options));
            findings
        }
        Err(found) => found,
    };
    let fails = match args.fail_on {
        LevelArg::Error => Level::Error,
        LevelArg::Warn => Level::Warn,
        LevelArg::Info => Level::Info,
        LevelArg::Hint => Level::Hint,
    };
    let name = args.file.display().to_string();
    let stdout = match args.output {
        LintOutput::Text => findings.iter().map(|it| format!("{name}:{it}\n")).collect(),
        LintOutput::Json => {
            let value = json!({ "file": name, "findings": findings });
            serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
        }
        LintOutput::Junit => lint::junit(&name, &findings, fails),
    };
    let stderr = match document.is_collection {
        true => format!(
            "{name}: a Postman collection: lines and columns are those of the OpenAPI document that it becomes\n"
        ),
        false => String::new(),
    };
    Ok(CommandOutput {
        stdout,
        stderr,
        code: u8::from(findings.iter().any(|it| it.level <= fails)),
    })
}

fn unreadable(file: &Path, found: &[Finding]) -> CommandOutput {
    let lines = found.iter().map(|it| format!("{}:{it}\n", file.display()));
    CommandOutput::failed(2, lines.collect::<String>())
}

fn diff(
    version: &str,
    (from, to): (Option<u32>, Option<u32>),
    file: Option<&Path>,
    on: &OnServer,
) -> CommandResult {
    let remote = &on.remote;
    let (body, pointer) = match file {
        Some(file) => {
            let upload = ClientRequest {
                body: read(file)?.into_bytes(),
                ..call(remote, Method::PUT, version, None, true)
            };
            (
                make(remote, upload.header("content-type", "text/plain"))?,
                "/diff",
            )
        }
        None => {
            let from = match from {
                Some(from) => from,
                None => newest(remote, version)?,
            };
            let path = format!("{version}/diff?from={from}&to={}", to.unwrap_or(0));
            (make(remote, call(remote, Method::GET, &path, None, false))?, "")
        }
    };
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    let found = answer.pointer(pointer).cloned().unwrap_or_default();
    let stdout = match on.output {
        Output::Json => format!("{found}\n"),
        Output::Text => found["text"].as_str().unwrap_or_default().to_owned(),
    };
    Ok(CommandOutput {
        stdout,
        code: u8::from(found["breaking"] == true),
        ..CommandOutput::default()
    })
}

fn newest(remote: &RemoteArgs, version: &str) -> Result<u32, CommandOutput> {
    let body = make(remote, call(remote, Method::GET, version, None, false))?;
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    match answer["last_revision"].as_u64() {
        Some(number) if number > 0 => Ok(number as u32),
        _ => Err(CommandOutput::failed(
            1,
            "weir api: there is no revision yet: publish one, or give --from\n",
        )),
    }
}

/// The body of a publish, as the console's wizard sends it.
fn step_body(
    step: &StepArgs,
    revision: Option<u32>,
    runtime: Option<&Path>,
) -> Result<Map<String, Value>, CommandOutput> {
    let mut body = Map::new();
    body.insert("note".to_owned(), step.note.as_str().into());
    body.insert("force".to_owned(), step.force.into());
    if let Some(revision) = revision {
        body.insert("revision".to_owned(), revision.into());
    }
    if let Some(approval) = &step.approval {
        body.insert("approval".to_owned(), approval.as_str().into());
    }
    if let Some(reason) = &step.override_tests {
        body.insert("override_tests".to_owned(), reason.as_str().into());
    }
    if let Some(file) = runtime {
        body.insert("runtime".to_owned(), json_of(file)?);
    }
    Ok(body)
}

fn json_of(file: &Path) -> Result<Value, CommandOutput> {
    serde_json::from_str(&read(file)?)
        .map_err(|error| CommandOutput::failed(2, format!("{}: not JSON: {error}\n", file.display())))
}

/// Runs the tests of a version.
fn run_tests(
    of: &PublicationArgs,
    mut body: Value,
    runtime: Option<&Path>,
    output: LintOutput,
    remote: &RemoteArgs,
) -> CommandResult {
    if let Some(file) = runtime {
        body["runtime"] = json_of(file)?;
    }
    let path = format!(
        "/api/v1/apis/{}/versions/{}/tests/run",
        encoded(&of.api),
        encoded(&of.version)
    );
    let answer = make(remote, call(remote, Method::POST, &path, Some(&body), false))?;
    let report: TestReport = serde_json::from_slice(&answer).map_err(|error| {
        CommandOutput::failed(2, format!("weir api: the answer is not a report: {error}\n"))
    })?;
    let stdout = match output {
        LintOutput::Text => test_lines(&report),
        LintOutput::Json => String::from_utf8_lossy(&answer).into_owned() + "\n",
        LintOutput::Junit => weir_apis::call_tests::junit(&report),
    };
    Ok(CommandOutput {
        stdout,
        code: u8::from(report.failed > 0),
        ..CommandOutput::default()
    })
}

/// A line for each test, and one for each thing that differs.
fn test_lines(report: &TestReport) -> String {
    let mut text = String::new();
    for it in &report.results {
        let sign = if it.passed { "ok  " } else { "FAIL" };
        text.push_str(&format!("{sign} {}: {}\n", it.name, it.call));
        for difference in &it.differences {
            text.push_str(&format!("     {difference}\n"));
        }
    }
    text.push_str(&format!(
        "{} passed, {} failed in {}\n",
        report.passed, report.failed, report.publication
    ));
    text
}

fn publish(
    of: &PublicationArgs,
    step: &str,
    body: Map<String, Value>,
    dry_run: bool,
    on: &OnServer,
) -> CommandResult {
    let body = Value::Object(body);
    let (status, answered) = answer(
        &on.remote,
        call(&on.remote, Method::POST, &path_of(of, step), Some(&body), dry_run),
    )?;
    let changes = |answer: &Value| answer["text"].as_str().unwrap_or_default().to_owned();
    if status.is_success() {
        return Ok(CommandOutput::succeeded(printed(on, &answered, changes)));
    }
    // A dry run tells what would change, and all that refuses it.
    let problem: Value = serde_json::from_slice(&answered).unwrap_or_default();
    let text = match problem["refused"].as_array() {
        Some(all) => all.iter().map(|it| text::problem(status.as_u16(), it)).collect(),
        None => text::problem(status.as_u16(), &problem),
    };
    let stdout = match problem["text"].is_string() {
        true => printed(on, &answered, changes),
        false => String::new(),
    };
    Err(CommandOutput {
        stdout,
        ..CommandOutput::failed(1, text)
    })
}

/// A date such as `2026-12-01`, or seconds since 1970.
fn time(flag: &str, text: &str) -> Result<u64, CommandOutput> {
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    let when = weir_analytics::query::TimePoint::Text(format!("{text}T00:00:00Z"));
    weir_analytics::query::time::read(flag, &when, 0).map_err(|_| {
        let message = format!("expected a date such as 2026-12-01 in --{flag}, found '{text}'");
        CommandOutput::failed(2, format!("weir api: {message}\n"))
    })
}

fn deprecation(since: Option<&str>, sunset: Option<&str>) -> Result<Map<String, Value>, CommandOutput> {
    let mut body = Map::new();
    for (flag, date) in [("since", since), ("sunset", sunset)] {
        if let Some(date) = date {
            body.insert(flag.to_owned(), time(flag, date)?.into());
        }
    }
    Ok(body)
}

fn deprecate(of: &PublicationArgs, body: Map<String, Value>, dry_run: bool, on: &OnServer) -> CommandResult {
    let path = path_of(of, "/deprecation");
    let body = make(
        &on.remote,
        call(
            &on.remote,
            Method::PUT,
            &path,
            Some(&Value::Object(body)),
            dry_run,
        ),
    )?;
    Ok(CommandOutput::succeeded(printed(on, &body, |answer| {
        format!(
            "{}/{}/{} is deprecated\n",
            answer["api"].as_str().unwrap_or_default(),
            answer["version"].as_str().unwrap_or_default(),
            answer["environment"].as_str().unwrap_or_default()
        )
    })))
}

fn remove(of: &PublicationArgs, force: bool, dry_run: bool, remote: &RemoteArgs) -> CommandResult {
    let body = json!({ "force": force });
    make(
        remote,
        call(remote, Method::DELETE, &path_of(of, ""), Some(&body), dry_run),
    )?;
    let done = if dry_run { "would be removed" } else { "is removed" };
    Ok(CommandOutput::succeeded(format!(
        "{}/{}/{} {done}\n",
        of.api, of.version, of.environment
    )))
}
