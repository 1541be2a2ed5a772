//! Which changes are events, who may know of them, and their words.

use super::*;
use serde_json::{Value, json};

fn kinds(key: &str, before: Value, after: Value) -> Vec<String> {
    let bytes = |value: &Value| (!value.is_null()).then(|| value.to_string().into_bytes());
    let (before, after) = (bytes(&before), bytes(&after));
    let found = of(key, before.as_deref(), after.as_deref());
    found.into_iter().map(|it| it.kind).collect()
}

#[test]
fn changes_become_events() {
    let subscription = |state: &str, more: Value| {
        let mut value = json!({"id": "s", "application": "shop", "publication": "pets/1/test", "plan": "gold", "state": state});
        value
            .as_object_mut()
            .expect("a map")
            .extend(more.as_object().cloned().unwrap_or_default());
        value
    };
    let of_subscriptions = "apis/subscriptions/s";
    for (key, before, after, expected) in [
        (
            of_subscriptions,
            Value::Null,
            subscription("pending", json!({})),
            vec!["subscription.requested"],
        ),
        (
            of_subscriptions,
            subscription("pending", json!({})),
            subscription("accepted", json!({})),
            vec!["subscription.accepted"],
        ),
        (
            of_subscriptions,
            subscription("paused", json!({})),
            subscription("accepted", json!({})),
            vec!["subscription.resumed"],
        ),
        (
            of_subscriptions,
            subscription("accepted", json!({})),
            subscription("accepted", json!({"noticed": 7, "ends": 9})),
            vec!["subscription.ending"],
        ),
        (
            of_subscriptions,
            subscription("accepted", json!({})),
            subscription("accepted", json!({"plan": "silver"})),
            vec!["subscription.moved"],
        ),
        (
            of_subscriptions,
            subscription("accepted", json!({})),
            subscription("accepted", json!({"request": "x"})),
            vec![],
        ),
    ] {
        assert_eq!(kinds(key, before, after), expected, "{key}");
    }
}

#[test]
fn changes_of_keys_approvals_plans_and_publications_become_events() {
    let approval = |state: &str| json!({"id": "a", "publication": "pets/1/test", "state": state});
    let publication = |actions: &[&str]| {
        let history: Vec<Value> = actions
            .iter()
            .enumerate()
            .map(|(at, it)| json!({"action": it, "at": at}))
            .collect();
        json!({"api": "pets", "version": "1", "environment": "test", "history": history})
    };
    for (key, before, after, expected) in [
        (
            "apis/credentials/c",
            Value::Null,
            json!({"id": "c"}),
            vec!["credential.created"],
        ),
        (
            "apis/credentials/c",
            Value::Null,
            json!({"id": "c", "replaces": "b"}),
            vec!["credential.rotated"],
        ),
        // A trial key is no news, nor is its end.
        (
            "apis/credentials/c",
            Value::Null,
            json!({"id": "c", "trial": true}),
            vec![],
        ),
        (
            "apis/credentials/c",
            json!({"id": "c", "trial": true}),
            json!({"id": "c", "trial": true, "revoked": 1}),
            vec![],
        ),
        (
            "apis/credentials/c",
            json!({"id": "c", "trial": true}),
            Value::Null,
            vec![],
        ),
        (
            "apis/credentials/c",
            json!({"id": "c"}),
            json!({"id": "c", "revoked": 1}),
            vec!["credential.revoked"],
        ),
        (
            "apis/approvals/a",
            Value::Null,
            approval("open"),
            vec!["approval.requested"],
        ),
        (
            "apis/approvals/a",
            approval("open"),
            approval("granted"),
            vec!["approval.granted"],
        ),
        (
            "apis/plans/pets/1/gold",
            json!({"name": "gold"}),
            json!({"name": "gold", "state": "published"}),
            vec!["plan.published"],
        ),
        (
            "apis/publications/pets/1/test",
            publication(&["publish"]),
            publication(&["publish", "canary", "canary taken back"]),
            vec!["publication.canary-started", "publication.canary-taken-back"],
        ),
        (
            "apis/publications/pets/1/test",
            publication(&["publish", "canary"]),
            publication(&["publish", "canary", "canary rolled back"]),
            vec!["publication.canary-taken-back"],
        ),
        (
            "apis/publications/pets/1/test",
            publication(&["publish"]),
            Value::Null,
            vec!["publication.removed"],
        ),
        ("native/routes/r", Value::Null, json!({}), vec![]),
        ("apis/plans/x", Value::Null, json!("no plan"), vec![]),
    ] {
        assert_eq!(kinds(key, before, after), expected, "{key}");
    }
}

/// Approvals, canaries and the names of operators are none of the developers' business.
#[test]
fn developers_are_notified_of_what_concerns_them() {
    for (kind, is_sent, note) in [
        ("subscription.rejected", true, "why"),
        ("credential.revoked", true, "why"),
        ("publication.deprecated", true, ""),
        ("publication.canary-started", false, ""),
        ("publication.rolled-back", false, ""),
        ("approval.requested", false, ""),
        ("plan.published", false, ""),
        ("developer.registered", false, ""),
    ] {
        let event = Event {
            note: "why".to_owned(),
            ..Event::new(kind)
                .of_publication("pets/1/test")
                .with("by", "root")
                .with("hash", "abc")
        };
        let found = for_application(&event);
        assert_eq!(found.is_some(), is_sent, "{kind}");
        if let Some(found) = found {
            assert_eq!(
                (found.get("by"), found.get("hash"), found.get("api")),
                ("", "", "pets")
            );
            assert_eq!(found.note, note, "{kind}");
        }
    }
    let revoked = Event::new("credential.revoked")
        .of_publication("pets/1/test")
        .with("prefix", "abcd");
    let (title, text) = notice_to_application(&revoked).expect("a notice");
    assert_eq!(
        (title.as_str(), text.as_str()),
        ("A key was revoked", "The key abcd… for pets 1 is good no longer.")
    );
}

#[test]
fn notices_for_people_are_sentences() {
    let event = Event::new("subscription.ending")
        .of_publication("pets/1/test")
        .with("application", "shop")
        .with("days", "1");
    let (subject, text) = mail_to_application(&event).expect("a mail");
    assert_eq!(subject, "Subscription to pets 1 ends in one day");
    assert!(
        text.starts_with("It ends in one day: the subscription of shop to pets 1 (test)."),
        "{text}"
    );
    let (subject, _) = mail_to_application(&event.clone().with("ends", "1750000000")).expect("a mail");
    assert_eq!(
        subject,
        "Subscription to pets 1 ends on Sun, 15 Jun 2025 15:06:40 GMT"
    );
    assert_eq!(mail_to_owner(&event), None);
    assert_eq!(mail_to_application(&Event::new("publication.published")), None);
}
