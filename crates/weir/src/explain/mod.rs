//! `weir explain`: what would happen to a call, by files, a store or a Weir that runs. What is said is found by
//! [`weir_control::explain`].

mod config_source;
mod text;

use crate::args::ExplainArgs;
use crate::check::unread;
use crate::load::load;
use crate::outcome::CommandOutput;
use config_source::ConfigSource;
use weir_control::explain::{ExplainedCall, Explainer};
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
    let registry = weir_plugins::registry();
    let source = ConfigSource::of(&args.stored);
    let loaded = match &source {
        Some(place) => {
            let loaded = place
                .check(&args.environment)
                .and_then(|()| place.load(args.routers, args.environment.clone()));
            match loaded {
                Ok(loaded) => loaded,
                Err(error) => return CommandOutput::failed(2, format!("weir explain: {error:#}\n")),
            }
        }
        None => match load(
            &args.config,
            args.routers,
            Policy::Look,
            &registry,
            &PersistentState::default(),
        ) {
            Ok(loaded) => loaded,
            Err(unreadable) => return unread(&unreadable),
        },
    };
    let Some((model, snapshot)) = &loaded.good else {
        return CommandOutput::failed(1, loaded.report());
    };
    let explanation = Explainer {
        model,
        snapshot,
        dialects: loaded.dialects(),
        registry: &registry,
        place: &|path| loaded.place_of(path),
    }
    .explain(&call);
    let stdout = match args.json {
        true => {
            serde_json::to_string_pretty(&explanation).map_or_else(|error| error.to_string(), |it| it + "\n")
        }
        false => text::render(&explanation),
    };
    let mut stderr = loaded.report();
    if explanation.route.is_none()
        && args.environment.is_empty()
        && let Some(Ok(Some(names))) = source.map(|it| it.environments())
        && !names.is_empty()
    {
        stderr.push_str(&format!(
            "note: only what is published in '{DEFAULT_ENVIRONMENT}' was looked at: name another one with \
             --environment: {}\n",
            names.join(", ")
        ));
    }
    CommandOutput {
        stdout,
        stderr,
        code: 0,
    }
}
