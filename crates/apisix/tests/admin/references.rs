//! References: what must be there, what must not be removed, and what two must not have in common.

use crate::api::Api;

#[tokio::test]
async fn what_is_referred_to_is_there() {
    Api::open()
        .await
        .play(
            r#"
PUT routes/1 {"uri": "/", "upstream_id": 1} -> 400 {"error_msg": "failed to fetch upstream info by upstream id [1], response code: 404"}
PUT routes/1 {"uri": "/", "service_id": "s"} -> 400 {"error_msg": "failed to fetch service info by service id [s], response code: 404"}
PUT routes/1 {"uri": "/", "plugins": {}, "plugin_config_id": "p"} -> 400 {"error_msg": "failed to fetch plugin config info by plugin config id [p], response code: 404"}
PUT services/1 {"upstream_id": 1} -> 400 {"error_msg": "failed to fetch upstream info by upstream id [1], response code: 404"}
PUT consumers {"username": "a", "group_id": "g"} -> 400 {"error_msg": "failed to fetch consumer group info by consumer group id [g], response code: 404"}
PUT stream_routes/1 {"upstream_id": 1} -> 400 {"error_msg": "failed to fetch upstream info by upstream id [1], response code: 404"}
PUT stream_routes/1 {"protocol": {"name": "redis", "superior_id": "1"}} -> 400 {"error_msg": "stream route can not set itself as superior_id"}
PUT stream_routes/2 {"protocol": {"name": "redis", "superior_id": "1"}} -> 400 {"error_msg": "failed to fetch stream routes[1], response code: 404"}
PUT upstreams/1 {"nodes": {}} -> 201
PUT routes/1 {"uri": "/", "upstream_id": 1} -> 201
"#,
        )
        .await;
}

#[tokio::test]
async fn what_is_in_use_stays() {
    Api::open()
        .await
        .play(
            r#"
PUT upstreams/u {"nodes": {}} -> 201
PUT services/s {"upstream_id": "u"} -> 201
PUT plugin_configs/p {"plugins": {}} -> 201
PUT consumer_groups/g {"plugins": {}} -> 201
PUT consumers {"username": "jack", "group_id": "g"} -> 201
PUT routes/r {"uri": "/", "service_id": "s", "plugin_config_id": "p"} -> 201
DELETE upstreams/u -> 400 {"error_msg": "can not delete this upstream, service [s] is still using it now"}
DELETE services/s -> 400 {"error_msg": "can not delete this service directly, route [r] is still using it now"}
DELETE plugin_configs/p -> 400 {"error_msg": "can not delete this plugin config, route [r] is still using it now"}
DELETE consumer_groups/g -> 400 {"error_msg": "can not delete this consumer group, consumer [jack] is still using it now"}
DELETE plugin_configs/p?force=true -> 200 {"deleted": "1"}
DELETE routes/r -> 200
DELETE services/s -> 200
PUT routes/r {"uri": "/", "plugins": {"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream_id": "u"}]}]}}} -> 201
DELETE upstreams/u -> 400 {"error_msg": "can not delete this upstream, plugin in route [r] is still using it now"}
DELETE routes/r -> 200
DELETE upstreams/u -> 200
"#,
        )
        .await;
}

#[tokio::test]
async fn nothing_is_given_twice() {
    Api::open()
        .await
        .play(
            r#"
PUT consumers {"username": "jack", "plugins": {"key-auth": {"key": "a"}}} -> 201
PUT consumers {"username": "jack", "plugins": {"key-auth": {"key": "a"}}} -> 200
PUT consumers {"username": "jill", "plugins": {"key-auth": {"key": "a"}}} -> 400 {"error_msg": "duplicate key of plugin key-auth found with consumer: jack"}
PUT consumers {"username": "jill"} -> 201
PUT consumers/jill/credentials/c {"plugins": {"key-auth": {"key": "b"}}} -> 201
PUT consumers/jill/credentials/c {"plugins": {"key-auth": {"key": "b"}}} -> 200
PUT consumers/jill/credentials/d {"plugins": {"key-auth": {"key": "b"}}} -> 400 {"error_msg": "duplicate key of plugin key-auth found with credential: c of consumer: jill"}
PUT consumers/jill/credentials/d {"plugins": {"cors": {}}} -> 400 {"error_msg": "only supports auth type plugins in consumer credential"}
PUT global_rules/1 {"plugins": {"cors": {}}} -> 201
PUT global_rules/1 {"plugins": {"cors": {}}} -> 200
PUT global_rules/2 {"plugins": {"cors": {}}} -> 400 {"error_msg": "plugin 'cors' already exists in global rule with id '1'"}
PUT services/1 {} -> 201
PUT routes/g1 {"uri": "/1", "plugins": {"limit-count": {"count": 2, "time_window": 60, "group": "g"}}} -> 201
PUT routes/g2 {"uri": "/2", "plugins": {"limit-count": {"count": 2, "time_window": 60, "group": "g", "policy": "local", "_meta": {"priority": 1}}}} -> 201
PUT routes/g3 {"uri": "/3", "plugins": {"limit-count": {"count": 3, "time_window": 60, "group": "g"}}} -> 400 {"error_msg": "failed to check the configuration of plugin limit-count err: group conf mismatched"}
PUT services/g {"plugins": {"limit-count": {"count": 2, "time_window": 61, "group": "g"}}} -> 400 {"error_msg": "failed to check the configuration of plugin limit-count err: group conf mismatched"}
PUT routes/g2 {"uri": "/2", "plugins": {"limit-count": {"count": 3, "time_window": 60, "group": "h"}}} -> 200
PUT routes/g1 {"uri": "/1", "plugins": {"limit-count": {"count": 4, "time_window": 60, "group": "g"}}} -> 200
POST services/1/graphql_cost_decorations {"field_path": "Query.a"} -> 201
POST services/1/graphql_cost_decorations {"field_path": "Query.a"} -> 400
"#,
        )
        .await;
}
