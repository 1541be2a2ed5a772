//! The kinds of events that there are, and which of them the words of a hook mean.

/// What events are about, and what happens to it.
const KINDS: [(&str, &[&str]); 7] = [
    (
        "publication",
        &[
            "published",
            "rolled-back",
            "deprecated",
            "undeprecated",
            "retired",
            "canary-started",
            "canary-step",
            "canary-aborted",
            "canary-taken-back",
            "disabled",
            "enabled",
            "removed",
        ],
    ),
    (
        "subscription",
        &[
            "requested",
            "accepted",
            "rejected",
            "paused",
            "resumed",
            "stopped",
            "moved",
            "ending",
            "expired",
            "closed",
        ],
    ),
    ("credential", &["created", "rotated", "revoked"]),
    (
        "approval",
        &["requested", "granted", "refused", "withdrawn", "outdated"],
    ),
    ("quota", &["near", "reached"]),
    (
        "developer",
        &[
            "registered",
            "confirmed",
            "created",
            "approved",
            "refused",
            "suspended",
            "resumed",
            "removed",
        ],
    ),
    ("plan", &["staging", "published", "deprecated", "closed"]),
];

/// Whether an event can be meant: `subscription.accepted`, `subscription.*` or `*`. If not, what was expected.
pub fn check(wanted: &str) -> Result<(), String> {
    let kinds = KINDS
        .iter()
        .flat_map(|(about, all)| all.iter().map(move |it| format!("{about}.{it}")));
    let is_meant = match wanted.strip_suffix('*') {
        Some(beginning) => kinds.into_iter().any(|it| it.starts_with(beginning)),
        None => kinds.into_iter().any(|it| it == wanted),
    };
    if is_meant {
        return Ok(());
    }
    let about = wanted.split('.').next().unwrap_or_default();
    let expected = match KINDS.iter().find(|(it, _)| *it == about) {
        Some((about, all)) => format!("'{about}.' with one of {}, or '{about}.*'", all.join(", ")),
        None => {
            let groups: Vec<String> = KINDS.iter().map(|(it, _)| format!("'{it}.*'")).collect();
            format!("one such as 'subscription.accepted', or {}", groups.join(", "))
        }
    };
    Err(format!("there is no event '{wanted}': expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_name_events_that_there_are() {
        for wanted in ["*", "subscription.*", "publication.canary-*", "approval.outdated"] {
            assert_eq!(check(wanted), Ok(()), "{wanted}");
        }
        for (wanted, expected) in [
            ("nope", "'subscription.accepted', or 'publication.*', "),
            ("", "'subscription.accepted', or "),
            (
                "plan.gone",
                "'plan.' with one of staging, published, deprecated, closed, or 'plan.*'",
            ),
            ("plan.gone*", "'plan.*'"),
            ("subscription", "'subscription.' with one of requested, "),
        ] {
            let message = check(wanted).expect_err(wanted);
            assert!(message.contains(expected), "{wanted}: {message}");
        }
    }

    /// The page about webhooks lists them all, and no others.
    #[test]
    fn the_page_names_all_events() {
        let page = include_str!("../../../../docs/mails-and-webhooks.md");
        for (about, all) in KINDS {
            let row = page.lines().find(|it| it.starts_with(&format!("| `{about}.` |")));
            let row = row.unwrap_or_else(|| panic!("no row of {about}"));
            let named: Vec<&str> = row.split('`').skip(3).step_by(2).collect();
            assert_eq!(named, all, "{about}");
        }
    }
}
