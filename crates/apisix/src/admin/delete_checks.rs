//! Whether a document may be removed: nothing may refer to it.

use super::kind::Kind;
use super::references::split_upstreams;
use super::state::{AdminState, DocumentEntry};
use crate::document::id_text;
use serde_json::Value;

/// Checks that no other document refers to one.
///
/// # Errors
/// In APISIX's words, which name the one that does.
pub fn check(state: &AdminState, kind: Kind, key: &str) -> Result<(), String> {
    let by = |of: Kind| {
        state
            .referrers(key)
            .find(move |entry| Kind::of_key(&entry.key) == Some(of))
    };
    match kind {
        Kind::Upstream => check_upstream(state, key),
        Kind::Service => {
            let words = "can not delete this service directly,";
            refuse(words, "route", by(Kind::Route))?;
            refuse(words, "stream_route", by(Kind::StreamRoute))
        }
        Kind::PluginConfig => refuse("can not delete this plugin config,", "route", by(Kind::Route)),
        Kind::ConsumerGroup => refuse(
            "can not delete this consumer group,",
            "consumer",
            by(Kind::Consumer),
        ),
        Kind::Proto => {
            let words = "can not delete this proto,";
            refuse(words, "route", by(Kind::Route))?;
            refuse(words, "service", by(Kind::Service))
        }
        Kind::StreamRoute => match by(Kind::StreamRoute) {
            Some(other) => Err(format!(
                "can not delete this stream route directly, stream route [{}] is still using it as superior_id",
                other.id()
            )),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn refuse<E: AsRef<DocumentEntry>>(words: &str, what: &str, other: Option<E>) -> Result<(), String> {
    match other {
        Some(other) => Err(format!(
            "{words} {what} [{}] is still using it now",
            other.as_ref().id()
        )),
        None => Ok(()),
    }
}

/// Upstreams may be named by a document itself or by a plugin in it.
fn check_upstream(state: &AdminState, key: &str) -> Result<(), String> {
    let id = key.rsplit('/').next().unwrap_or_default();
    for (kind, what, names_upstreams) in [
        (Kind::Route, "route", true),
        (Kind::Service, "service", true),
        (Kind::PluginConfig, "plugin_config", false),
        (Kind::Consumer, "consumer", false),
        (Kind::ConsumerGroup, "consumer_group", false),
        (Kind::GlobalRule, "global_rules", false),
    ] {
        let mut others = state
            .referrers(key)
            .filter(|entry| Kind::of_key(&entry.key) == Some(kind));
        let found = others.find_map(|other| {
            let by_plugin = other
                .value
                .get("plugins")
                .and_then(|plugins| plugins.get("traffic-split"))
                .is_some_and(|split| split_upstreams(split).any(|own| is_id(own, id)));
            let itself = names_upstreams && other.value.get("upstream_id").is_some_and(|own| is_id(own, id));
            (by_plugin || itself).then_some((other, by_plugin))
        });
        match found {
            Some((other, true)) => {
                refuse("can not delete this upstream, plugin in", what, Some(other))?;
            }
            Some((other, false)) => refuse("can not delete this upstream,", what, Some(other))?,
            None => {}
        }
    }
    Ok(())
}

fn is_id(value: &Value, id: &str) -> bool {
    id_text(value).as_deref() == Some(id)
}
