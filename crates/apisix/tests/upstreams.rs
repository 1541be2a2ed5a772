//! Upstreams of the list of upstreams: which APISIX leaves out. How they are translated is not here.

use serde_json::json;
use weir_apisix::{Options, translate};
use weir_model::Severity;

#[test]
fn upstreams_of_the_list_are_left_out_if_they_cannot_be_used() {
    for (fields, fault) in [
        (json!({"type": "chash", "key": "remote_addr"}), None),
        (json!({"type": "chash", "key": "arg_user"}), None),
        (json!({"type": "chash", "hash_on": "consumer"}), None),
        (
            json!({"type": "chash", "hash_on": "vars_combinations", "key": "$arg_a$uri"}),
            None,
        ),
        (json!({"type": "chash"}), Some("missing key")),
        (
            json!({"type": "chash", "key": "nope"}),
            Some("invalid configuration: failed to match pattern"),
        ),
        (
            json!({"type": "chash", "hash_on": "header", "key": "a b"}),
            Some("invalid configuration: failed to match pattern"),
        ),
        (json!({"pass_host": "rewrite", "upstream_host": "a.test"}), None),
        (
            json!({"pass_host": "rewrite"}),
            Some("`upstream_host` can't be empty when `pass_host` is `rewrite`"),
        ),
    ] {
        let mut upstream = json!({"id": "u", "nodes": {"127.0.0.1:1980": 1}});
        let given = fields.as_object().expect("a map").clone();
        upstream.as_object_mut().expect("a map").extend(given);
        let document = json!({"upstreams": [upstream], "routes": [{"uri": "/", "upstream_id": "u"}]});
        let (_, diagnostics) =
            translate(&document, &Options::default()).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"));
        let left_out = diagnostics
            .iter()
            .find(|it| it.severity == Severity::Dropped && it.path.to_string() == "upstreams[0]");
        match (fault, left_out) {
            (Some(fault), Some(found)) => assert!(found.message.starts_with(fault), "{found:?}"),
            (None, None) => {}
            _ => panic!("{fields}: {diagnostics:?}"),
        }
    }
}
