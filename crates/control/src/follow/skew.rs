//! Neighbours of other versions: what the stream of a control plane and the file of the last known good documents say
//! about their form, and what a reader makes of it.
//!
//! Both begin with a head that names the version of the form and of the program that writes. Readers pass over fields
//! that they do not know. What a reader must not pass over is named under `requires`: one that does not know a name
//! there refuses the whole and says so.

use serde::Deserialize;
use serde_json::{Value, json};

/// The version of the form that this program writes, and the newest that it asks for.
pub const VERSION: u64 = 1;
/// The names of what a reader has to understand, beyond the first form, that this program understands. None so far.
const UNDERSTOOD: [&str; 0] = [];

/// A writer's description of itself and its form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Head {
    /// The version of the form.
    pub version: u64,
    /// The version of the program.
    pub program: String,
    /// What a reader has to understand.
    pub requires: Vec<String>,
}

impl Head {
    /// This program's description of itself.
    pub fn own() -> Value {
        json!({ "version": VERSION, "program": env!("CARGO_PKG_VERSION"), "requires": UNDERSTOOD })
    }

    /// Whether what follows can be understood.
    ///
    /// # Errors
    /// Checks for what is missing here, in words for the operator. `what` is the thing that is read.
    pub fn check(&self, what: &str) -> Result<(), String> {
        let missing: Vec<String> = (self.requires.iter())
            .filter(|name| !UNDERSTOOD.contains(&name.as_str()))
            .map(|name| format!("'{name}'"))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let by = match self.program.as_str() {
            "" => String::new(),
            program => format!(" of Weir {program}"),
        };
        Err(format!(
            "{what}{by} requires {}, which Weir {} does not know: upgrade this one",
            missing.join(", "),
            env!("CARGO_PKG_VERSION"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_older_and_newer_writers_are_read() {
        for (head, refusal) in [
            ("{}", None),
            (r#"{"version":1,"program":"0.1.0","requires":[]}"#, None),
            (
                r#"{"version":9,"program":"9.0.0","requires":[],"other":{"a":1}}"#,
                None,
            ),
            (
                r#"{"version":9,"program":"9.0.0","requires":["deltas","zstd"]}"#,
                Some("the stream of Weir 9.0.0 requires 'deltas', 'zstd', which Weir "),
            ),
        ] {
            let read: Head = serde_json::from_str(head).expect("a head");
            match (read.check("the stream"), refusal) {
                (Ok(()), None) => {}
                (Err(reason), Some(words)) => assert!(reason.starts_with(words), "{reason}"),
                (outcome, _) => panic!("{head}: {outcome:?}"),
            }
        }
        let own: Head = serde_json::from_value(Head::own()).expect("a head");
        assert_eq!((own.version, own.check("it")), (VERSION, Ok(())));
    }
}
