//! Scripts that Admin APIs run in a Redis of plugins, once there is a gateway.

use crate::status::Status;
use std::sync::Arc;
use weir_plugin::RedisCall;
use weir_plugins::proxy_cache::RedisScripts;

/// The gateway's way to every Redis.
pub struct GatewayScripts(pub Arc<Status>);

impl RedisScripts for GatewayScripts {
    fn run(&self, call: RedisCall) -> Option<(Vec<i64>, Vec<Vec<u8>>)> {
        self.0.gateway()?.run_script(call)
    }
}
