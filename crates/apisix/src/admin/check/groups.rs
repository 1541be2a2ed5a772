//! Groups of `limit-count`: those that share counters must be configured alike.

use super::{CheckContext, Kind};
use crate::plugins::limit_count;
use serde_json::Value;

const PLUGIN: &str = "limit-count";
/// The kinds of documents that can have the plugin.
const KINDS: [Kind; 6] = [
    Kind::Route,
    Kind::Service,
    Kind::PluginConfig,
    Kind::GlobalRule,
    Kind::ConsumerGroup,
    Kind::Consumer,
];

/// Checks a document that has been found good by itself against the others with its group.
///
/// # Errors
/// In APISIX's words, if one is configured in another way. The original remembers the first configuration of a group for
/// as long as it runs; here the one that is replaced does not count.
pub fn check(kind: Kind, id: Option<&str>, document: &Value, around: CheckContext<'_>) -> Result<(), String> {
    let (Some(state), Some(own)) = (around.state, limit(document)) else {
        return Ok(());
    };
    let group = own.get("group");
    if group.is_none() {
        return Ok(());
    }
    let own = filled(own);
    for other_kind in KINDS {
        let others = state.of_kind(other_kind);
        for other in others.filter(|other| other_kind != kind || Some(other.id()) != id) {
            let theirs = limit(&other.value).filter(|theirs| theirs.get("group") == group);
            if theirs.is_some_and(|theirs| filled(theirs) != own) {
                return Err(format!(
                    "failed to check the configuration of plugin {PLUGIN} err: group conf mismatched"
                ));
            }
        }
    }
    Ok(())
}

fn limit(document: &Value) -> Option<&Value> {
    document.get("plugins")?.get(PLUGIN)
}

/// A configuration with its defaults, without what is said about the plugin itself.
fn filled(config: &Value) -> Value {
    let mut config = config.clone();
    // Both have been found good.
    let _is_good = limit_count::shape().check(&mut config);
    if let Some(fields) = config.as_object_mut() {
        fields.remove("_meta");
    }
    config
}
