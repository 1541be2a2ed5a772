//! Whether a publish to a protected environment goes through: by an approval for exactly this, or by the right to publish there.
//!
//! **What it is not**: asking for approvals and deciding about them is in [`super::approvals`].

use super::entity_snapshot::{self, EntitySnapshot};
use crate::access::{Action, Caller, Scope};
use crate::api::Problem;
use axum::http::StatusCode;
use weir_apis::entities::{Approval, ApprovalState, Environment, Publication, Runtime};

/// Whether an approval is for another runtime than the one that a publish would have.
fn other_runtime(
    approval: &Approval,
    known: Option<&Publication>,
    runtime: &Runtime,
) -> Option<&'static str> {
    match (&approval.runtime, known) {
        (Some(approved), _) if approved != runtime => Some("it was given for another runtime"),
        (None, Some(known)) if known.runtime != *runtime => {
            Some("the runtime has changed since; request one with 'runtime'")
        }
        _ => None,
    }
}

/// The approval by which a publish to a protected environment goes through: what is published, and what would be. `named` is
/// the approval that a publish names, and whether it takes routes over.
pub fn approved(
    snapshot: &EntitySnapshot,
    caller: &Caller,
    environment: &Environment,
    (known, publication): (Option<&Publication>, &Publication),
    named: Option<(&str, bool)>,
) -> Result<Option<String>, Problem> {
    let (id, hash) = (publication.id(), &publication.hash);
    if !environment.protected {
        return Ok(None);
    }
    if let Some((name, takes_over)) = named {
        let approval: Approval = snapshot.get(&entity_snapshot::approval_key(name))?;
        let outdated =
            |detail: String| Problem::new(StatusCode::CONFLICT, detail).of_type("approval-outdated");
        if approval.hash != *hash || approval.publication != id {
            return Err(outdated(format!(
                "approval: {name} is outdated: it is for {} of {}, and this is {hash} of {id}",
                approval.hash, approval.publication
            )));
        }
        if let Some(message) = other_runtime(&approval, known, &publication.runtime) {
            return Err(outdated(format!("approval: {name} is outdated: {message}")));
        }
        // Who repeats a publish that was made gets the same answer. Whatever would change anything asks for an approval of
        // its own.
        let is_there = known == Some(publication) && !takes_over;
        if approval.used.is_some() && !is_there {
            return Err(outdated(format!(
                "approval: {name} is already used: an approval is good for one publish; request another one"
            )));
        }
        let why = match approval.state {
            ApprovalState::Granted => return Ok(Some(name.to_owned())),
            ApprovalState::Open => "is not decided yet",
            ApprovalState::Refused => "was refused",
            ApprovalState::Withdrawn => "was withdrawn by the person who asked for it",
            ApprovalState::Outdated => "is outdated: its content has changed since; ask for another one",
        };
        return Err(outdated(format!("approval: {name} {why}")));
    }
    match caller.can(
        Action::ApisPublishProtected,
        &Scope::Environment(environment.name.clone()),
    ) {
        true => Ok(None),
        false => Err(Problem::forbidden(format!(
            "approval: {} is protected: request an approval of {hash} (POST /api/v1/approvals), and publish with it",
            environment.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Role;
    use serde_json::json;
    use weir_apis::entities::{Canary, CanaryKey};
    use weir_store::{Document, Key, Revision as StoreRevision};

    /// The defect: an approval that was used went through whenever its hash was there again, and ended what went on there.
    #[test]
    fn an_approval_is_for_one_publish() {
        let environment = Environment {
            name: "prod".to_owned(),
            protected: true,
            ..Environment::default()
        };
        let wanted = Publication {
            api: "a".to_owned(),
            version: "1".to_owned(),
            environment: "prod".to_owned(),
            revision: 2,
            hash: "h2".to_owned(),
            ..Publication::default()
        };
        let canary = Canary {
            revision: 3,
            backends: std::collections::BTreeMap::new(),
            share: 100,
            by: CanaryKey::Address,
            when: None,
            steps: Vec::new(),
            guards: Vec::new(),
            started: 0,
        };
        let before = Publication {
            revision: 1,
            hash: "h1".to_owned(),
            ..wanted.clone()
        };
        let same_content = Publication {
            revision: 1,
            ..wanted.clone()
        };
        let in_canary = Publication {
            canary: Some(canary),
            ..wanted.clone()
        };
        for (known, used, takes_over, expected) in [
            (None, None, false, true),
            (Some(&before), None, false, true),
            (Some(&in_canary), None, false, true),
            (Some(&wanted), Some(7), false, true),
            (Some(&wanted), Some(7), true, false),
            (Some(&before), Some(7), false, false),
            (Some(&same_content), Some(7), false, false),
            (Some(&in_canary), Some(7), false, false),
            (None, Some(7), false, false),
        ] {
            let approval = Approval {
                publication: wanted.id(),
                hash: "h2".to_owned(),
                state: ApprovalState::Granted,
                used,
                ..Approval::default()
            };
            let snapshot = EntitySnapshot::new(vec![Document {
                key: Key::new(&entity_snapshot::approval_key("x")).expect("a key"),
                value: json!(approval).to_string().into_bytes().into(),
                created: StoreRevision(1),
                modified: StoreRevision(1),
            }]);
            let caller = Caller::Key(Role::Read);
            let named = Some(("x", takes_over));
            let found = approved(&snapshot, &caller, &environment, (known, &wanted), named);
            assert_eq!(found.is_ok(), expected, "{known:?} {used:?} {takes_over}");
        }
    }

    /// The defect: a refusal named the state as the program does.
    #[test]
    fn an_approval_that_is_not_granted_says_why_in_plain_words() {
        let environment = Environment {
            protected: true,
            ..Environment::default()
        };
        for (state, expected) in [
            (ApprovalState::Open, "approval: x is not decided yet"),
            (ApprovalState::Refused, "approval: x was refused"),
            (
                ApprovalState::Withdrawn,
                "approval: x was withdrawn by the person who asked for it",
            ),
            (
                ApprovalState::Outdated,
                "approval: x is outdated: its content has changed since; ask for another one",
            ),
        ] {
            let publication = Publication::default();
            let approval = Approval {
                publication: publication.id(),
                state,
                ..Approval::default()
            };
            let snapshot = EntitySnapshot::new(vec![Document {
                key: Key::new(&entity_snapshot::approval_key("x")).expect("a key"),
                value: json!(approval).to_string().into_bytes().into(),
                created: StoreRevision(1),
                modified: StoreRevision(1),
            }]);
            let (caller, named) = (Caller::Key(Role::Read), Some(("x", false)));
            let refused = approved(&snapshot, &caller, &environment, (None, &publication), named);
            let message = refused.expect_err("it is not granted").to_string();
            assert_eq!(message, expected);
        }
    }
}
