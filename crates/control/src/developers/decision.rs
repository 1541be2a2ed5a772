//! Decisions of administrators about developers: which decision is possible in which state, its outcome, and the mail
//! that the developer gets as a mail. No I/O; time is an argument.

use super::names::greeting;
use super::store::{AdminDecision, Developer, DeveloperState};
use axum::http::StatusCode;

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Lets in a developer who waits, or who was refused before.
    Approve,
    /// Does not let in a developer who waits.
    Refuse,
    /// Takes away the way in.
    Suspend,
    /// Restores it.
    Resume,
}

use DeveloperState::{Active, Confirmed, Refused, Registered, Suspended};

/// A state in words.
fn words(state: DeveloperState) -> &'static str {
    match state {
        Registered => "has not confirmed the mail address yet",
        Confirmed => "waits for approval",
        Active => "is active",
        Suspended => "is suspended",
        Refused => "was refused",
    }
}

impl Decision {
    /// The state that it leads to, and those from which it is possible.
    fn step(self) -> (DeveloperState, &'static [DeveloperState]) {
        match self {
            Self::Approve => (Active, &[Confirmed, Refused]),
            Self::Refuse => (Refused, &[Confirmed]),
            Self::Suspend => (Suspended, &[Active]),
            Self::Resume => (Active, &[Suspended]),
        }
    }

    /// Whether a reason has to be said.
    pub fn needs_reason(self) -> bool {
        matches!(self, Self::Refuse | Self::Suspend)
    }

    /// The kind of event that it is.
    pub fn event(self) -> &'static str {
        match self {
            Self::Approve => "developer.approved",
            Self::Refuse => "developer.refused",
            Self::Suspend => "developer.suspended",
            Self::Resume => "developer.resumed",
        }
    }

    /// Changes the developer.
    ///
    /// # Errors
    /// It is not possible in this state: the status and the reason.
    pub fn apply(
        self,
        developer: &mut Developer,
        decided: AdminDecision,
    ) -> Result<(), (StatusCode, String)> {
        let (to, from) = self.step();
        if !from.contains(&developer.state) {
            let detail = format!("{} {}", developer.name, words(developer.state));
            return Err((StatusCode::CONFLICT, detail));
        }
        developer.state = to;
        developer.decided = Some(decided);
        Ok(())
    }

    /// The mail to the developer: subject and text. `url` is the portal's, if it is known.
    pub fn mail(self, developer: &Developer, (title, url): (&str, Option<&str>)) -> (String, String) {
        let (subject, outcome) = match self {
            Self::Approve => ("Your account is approved", "is approved. You can sign in now."),
            Self::Refuse => ("Your account is not approved", "is not approved."),
            Self::Suspend => (
                "Your account is suspended",
                "is suspended. Your sessions have ended; the keys of your applications still work.",
            ),
            Self::Resume => (
                "Your account is active again",
                "is active again. You can sign in now.",
            ),
        };
        let mut text = format!(
            "{}\n\nyour account of {title} {outcome}\n",
            greeting(&developer.name)
        );
        let reason = developer.decided.as_ref().map_or("", |it| it.reason.as_str());
        if !reason.is_empty() {
            text += &format!("\nReason: {reason}\n");
        }
        if let Some(url) = url.filter(|_| matches!(self, Self::Approve | Self::Resume)) {
            text += &format!("\nSign in: {url}/login\n");
        }
        (format!("{subject}: {title}"), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn developer(state: DeveloperState) -> Developer {
        Developer {
            id: "0123456789abcdef".to_owned(),
            mail: "ann@example.com".to_owned(),
            name: "Ann".to_owned(),
            password: None,
            state,
            groups: Default::default(),
            provided: Default::default(),
            second_factor: None,
            created: 0,
            decided: None,
        }
    }

    #[test]
    fn decisions_are_possible_in_some_states_only() {
        use Decision::{Approve, Refuse, Resume, Suspend};
        for (decision, possible, to) in [
            (Approve, &[Confirmed, Refused][..], Active),
            (Refuse, &[Confirmed], Refused),
            (Suspend, &[Active], Suspended),
            (Resume, &[Suspended], Active),
        ] {
            for state in [Registered, Confirmed, Active, Suspended, Refused] {
                let mut one = developer(state);
                let decided = AdminDecision {
                    by: "root".to_owned(),
                    at: 7,
                    reason: "because".to_owned(),
                };
                let done = decision.apply(&mut one, decided.clone());
                match possible.contains(&state) {
                    true => {
                        assert_eq!((done, one.state), (Ok(()), to));
                        assert_eq!(one.decided, Some(decided));
                    }
                    false => {
                        assert!(done.is_err(), "{decision:?} {state:?}");
                        assert_eq!(one, developer(state));
                    }
                }
            }
        }
    }

    #[test]
    fn mails_say_what_was_decided_and_why() {
        let mut ann = developer(Confirmed);
        let decided = AdminDecision {
            by: "root".to_owned(),
            at: 7,
            reason: "no contract".to_owned(),
        };
        let _done = Decision::Refuse.apply(&mut ann, decided);
        let (subject, text) = Decision::Refuse.mail(&ann, ("Shop", Some("https://dev.test")));
        assert_eq!(subject, "Your account is not approved: Shop");
        assert!(
            text.contains("Reason: no contract") && !text.contains("/login"),
            "{text}"
        );
        ann.decided = None;
        let (_, text) = Decision::Approve.mail(&ann, ("Shop", Some("https://dev.test")));
        assert!(
            text.contains("https://dev.test/login") && !text.contains("Reason"),
            "{text}"
        );
    }
}
