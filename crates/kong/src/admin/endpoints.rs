//! `/endpoints`: the paths of the Admin API.

use crate::document::entity_type::{ENTITY_TYPES, EntityType, entity_type};
use crate::schema::Kind;
use std::collections::BTreeSet;

/// Paths that stand for no entity.
const OTHERS: &[&str] = &[
    "/",
    "/acme",
    "/acme/certificates",
    "/acme/certificates/{certificates}",
    "/cache",
    "/cache/{key}",
    "/clustering/data-planes",
    "/clustering/status",
    "/config",
    "/debug/cluster/log-level/{log_level}",
    "/debug/node/log-level",
    "/debug/node/log-level/{log_level}",
    "/endpoints",
    "/filter-chains",
    "/filter-chains/{filter_chains}",
    "/filter-chains/{filter_chains}/route",
    "/filter-chains/{filter_chains}/service",
    "/graphql-proxy-cache-advanced",
    "/graphql-proxy-cache-advanced/{cache_key}",
    "/graphql-proxy-cache-advanced/{plugin_id}/caches/{cache_key}",
    "/jwt-signer/jwks/{jwt_signer_jwks}/rotate",
    "/metrics",
    "/plugins/enabled",
    "/plugins/schema/{name}",
    "/proxy-cache",
    "/proxy-cache/{cache_key}",
    "/proxy-cache/{plugin_id}/caches/{cache_key}",
    "/proxy-cache-advanced",
    "/proxy-cache-advanced/{cache_key}",
    "/proxy-cache-advanced/{plugin_id}/caches/{cache_key}",
    "/routes/{routes}/filter-chains",
    "/routes/{routes}/filter-chains/{filter_chains}",
    "/routes/{routes}/filters/all",
    "/routes/{routes}/filters/disabled",
    "/routes/{routes}/filters/enabled",
    "/schemas/filters/{name}",
    "/schemas/plugins/validate",
    "/schemas/plugins/{name}",
    "/schemas/vaults/validate",
    "/schemas/vaults/{name}",
    "/schemas/{db_entity_name}/validate",
    "/schemas/{name}",
    "/services/{services}/filter-chains",
    "/services/{services}/filter-chains/{filter_chains}",
    "/status",
    "/status/dns",
    "/tags",
    "/tags/{tags}",
    "/timers",
    "/upstreams/{upstreams}/health",
    "/upstreams/{upstreams}/targets/all",
    "/upstreams/{upstreams}/targets/{targets}/healthy",
    "/upstreams/{upstreams}/targets/{targets}/unhealthy",
    "/upstreams/{upstreams}/targets/{targets}/{address}/healthy",
    "/upstreams/{upstreams}/targets/{targets}/{address}/unhealthy",
    "/vault-auth/{vault_auth_vaults}/credentials/token/{access_token}",
    "/vault-auth/{vault_auth_vaults}/credentials/{consumers}",
];

/// All paths, a parent before what is below it.
pub(super) fn endpoints() -> Vec<String> {
    let mut paths: BTreeSet<Vec<String>> = OTHERS.iter().map(|path| segments(path)).collect();
    for entity_type in ENTITY_TYPES {
        paths.extend(of_family(entity_type).iter().map(|path| segments(path)));
    }
    paths
        .into_iter()
        .map(|segments| format!("/{}", segments.join("/")))
        .collect()
}

/// The first segments of paths that stand for no entity.
pub(super) fn first_segments() -> impl Iterator<Item = &'static str> {
    OTHERS
        .iter()
        .filter_map(|path| path.split('/').nth(1))
        .filter(|first| !first.is_empty())
}

fn segments(path: &str) -> Vec<String> {
    path.split('/').skip(1).map(str::to_owned).collect()
}

fn of_family(of: &EntityType) -> Vec<String> {
    let list = format!("/{}", of.path);
    let member = format!("{list}/{{{}}}", of.name);
    let mut paths = Vec::new();
    for field in of.record.fields {
        if let Kind::Foreign(target) = field.kind
            && let Some(parent) = entity_type(target)
        {
            let below = format!("/{}/{{{}}}/{}", parent.path, parent.name, of.nested_path);
            paths.push(format!("{below}/{{{}}}", of.name));
            paths.push(below);
            paths.push(format!("{member}/{}", field.name));
        }
    }
    paths.extend([list, member]);
    paths
}
