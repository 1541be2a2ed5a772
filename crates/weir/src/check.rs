//! `weir check` and `weir convert`: what a configuration is worth, and the same in `weir.yaml`. Nothing is served.

use crate::args::{CheckArgs, ConvertArgs, ConvertTarget};
use crate::command_output::CommandOutput;
use crate::load::{Loaded, UnreadableFile, load};
use weir_control::secrets::Policy;
use weir_model::Severity;
use weir_plugins::logger::LogFolder;
use weir_snapshot::PersistentState;

/// Reports for every file whether it is good.
pub fn check(args: &CheckArgs) -> CommandOutput {
    match load(
        &args.files,
        args.routers,
        Policy::Look,
        &weir_plugins::registry_with(LogFolder::new(args.log_dir.clone())),
        &PersistentState::default(),
    ) {
        Ok(loaded) => checked(&loaded, args.strict),
        Err(unreadable) => unread(&unreadable),
    }
}

fn checked(loaded: &Loaded, is_strict: bool) -> CommandOutput {
    let is_bad = is_strict && loaded.severity().is_some();
    let mut outcome = CommandOutput {
        stderr: loaded.report(),
        code: code_of(loaded).max(u8::from(is_bad)),
        ..CommandOutput::default()
    };
    if outcome.code == 0 {
        for source in &loaded.sources {
            let counted = |count: usize, noun: &str| match count {
                1 => format!("1 {noun}"),
                count => format!("{count} {noun}s"),
            };
            outcome.stdout.push_str(&format!(
                "{}: ok ({}, {})\n",
                source.file,
                counted(source.count("routes") + source.count("stream_routes"), "route"),
                counted(source.count("services"), "service"),
            ));
        }
    }
    outcome
}

/// Prints the configuration in another form.
pub fn convert(args: &ConvertArgs) -> CommandOutput {
    // The one form there is.
    let ConvertTarget::Weir = args.to;
    let loaded = match load(
        &args.files,
        args.routers,
        Policy::Serve,
        &weir_plugins::registry(),
        &PersistentState::default(),
    ) {
        Ok(loaded) => loaded,
        Err(unreadable) => return unread(&unreadable),
    };
    CommandOutput {
        stdout: loaded
            .good
            .as_ref()
            .map_or_else(String::new, |(model, _)| weir_native::print(model)),
        stderr: loaded.report(),
        code: code_of(&loaded),
    }
}

/// The exit status for a configuration: 1 as soon as something of it would not be served.
pub fn code_of(loaded: &Loaded) -> u8 {
    u8::from(loaded.severity() >= Some(Severity::Dropped) || loaded.good.is_none())
}

/// The outcome when a file cannot be read.
pub fn unread(unreadable: &UnreadableFile) -> CommandOutput {
    CommandOutput::failed(2, format!("{unreadable}\n"))
}
