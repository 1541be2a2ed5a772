//! `weir explain`: what would happen to a call, by files, a store or a Weir that runs. What is said is found by
//! [`weir_control::explain`].

mod config_source;
mod running;
mod text;

use crate::args::ExplainArgs;
use crate::check::unread;
use crate::command_output::CommandOutput;
use crate::load::{Loaded, load};
use config_source::ConfigSource;
use weir_control::explain::{ExplainedCall, Explainer, Explanation};
use weir_control::secrets::Policy;
use weir_dialect::DEFAULT_ENVIRONMENT;
use weir_snapshot::PersistentState;

/// Explains a call.
pub fn explain(args: &ExplainArgs) -> CommandOutput {
    let call = match ExplainedCall::parse(&args.call, &args.headers, args.client) {
        Ok(call) => ExplainedCall {
            sni: args.sni.clone(),
            consumer: args.consumer.clone(),
            ..call
        },
        Err(message) => return CommandOutput::failed(2, format!("weir explain: {message}\n")),
    };
    let source = ConfigSource::of(&args.stored);
    if let Some(ConfigSource::Store(..)) = &source
        && !args.config.is_empty()
    {
        return CommandOutput::failed(2, format!("weir explain: {BOTH}\n"));
    }
    let explained = match &source {
        Some(source) => explain_stored(args, source, &call),
        None => return explain_files(args, &call),
    };
    explained.unwrap_or_else(|error| CommandOutput::failed(2, format!("weir explain: {error:#}\n")))
}

/// Why files are not explained together with a store.
const BOTH: &str = "a store is explained without files: leave out -c and WEIR_CONFIG, or ask the Weir that serves \
                    both with --control";
/// What is missing if a running Weir cannot be asked itself.
const WITHOUT_FILES: &str = "note: files that the running Weir serves were not checked: use a user who may read the configuration, and at most one --environment\n";

/// By files.
fn explain_files(args: &ExplainArgs, call: &ExplainedCall) -> CommandOutput {
    let loaded = load(
        &args.config,
        args.routers,
        Policy::Look,
        &weir_plugins::registry(),
        &PersistentState::default(),
    );
    match loaded {
        Ok(loaded) => explain_loaded(&loaded, call, args.json).0,
        Err(unreadable) => unread(&unreadable),
    }
}

/// By a store, or by all that a running Weir serves.
fn explain_stored(
    args: &ExplainArgs,
    source: &ConfigSource<'_>,
    call: &ExplainedCall,
) -> anyhow::Result<CommandOutput> {
    source.check(&args.environment)?;
    let mut notes = String::new();
    if let ConfigSource::Control(url, stored) = source {
        if !args.config.is_empty() {
            notes.push_str("note: the files of the running Weir are used, not those of -c or WEIR_CONFIG\n");
        }
        let asked = match args.environment.as_slice() {
            [] => running::ask((url, stored.token.as_deref()), call, None)?,
            [one] => running::ask((url, stored.token.as_deref()), call, Some(one))?,
            _ => None,
        };
        if let Some(answer) = asked {
            let mut output = render_explanation(&answer.explanation, args.json);
            output.stderr = answer.report() + &notes;
            if answer.has_note() {
                let served = "nothing is published in the environments that it serves";
                output.stderr.push_str(&other_environments(source, served));
            }
            return Ok(output);
        }
        notes.push_str(WITHOUT_FILES);
    }
    let loaded = source.load(args.routers, args.environment.clone())?;
    let (mut output, has_route) = explain_loaded(&loaded, call, args.json);
    output.stderr.push_str(&notes);
    if !has_route && args.environment.is_empty() {
        let looked_at = format!("only publications in '{DEFAULT_ENVIRONMENT}' were checked");
        output.stderr.push_str(&other_environments(source, &looked_at));
    }
    Ok(output)
}

/// A hint at the environments that there are; empty: there are none.
fn other_environments(source: &ConfigSource<'_>, reason: &str) -> String {
    match source.environments() {
        Ok(Some(names)) if !names.is_empty() => format!(
            "note: {reason}: name another one with --environment: {}\n",
            names.join(", ")
        ),
        _ => String::new(),
    }
}

/// The explanation, and whether a route takes the call.
fn explain_loaded(loaded: &Loaded, call: &ExplainedCall, is_json: bool) -> (CommandOutput, bool) {
    let Some((model, snapshot)) = &loaded.good else {
        return (CommandOutput::failed(1, loaded.report()), true);
    };
    let explanation = Explainer {
        model,
        snapshot,
        dialects: loaded.dialects(),
        registry: &weir_plugins::registry(),
        place: &|path| loaded.place_of(path),
    }
    .explain(call);
    let output = CommandOutput {
        stderr: loaded.report(),
        ..render_explanation(&explanation, is_json)
    };
    (output, explanation.route.is_some())
}

fn render_explanation(explanation: &Explanation, is_json: bool) -> CommandOutput {
    CommandOutput::succeeded(match is_json {
        true => {
            serde_json::to_string_pretty(explanation).map_or_else(|error| error.to_string(), |it| it + "\n")
        }
        false => text::render(explanation),
    })
}
