//! Names of a workspace's resources that no other workspace has.

use super::name_in;
use weir_model::{Route, RouteTarget, Service, Upstream};

/// Gives a service of a workspace a name of its own.
pub fn tell_service_apart(service: &mut Service, workspace: &str) {
    prefix(&mut service.name, workspace);
    if let Some(upstream) = &mut service.upstream {
        prefix(upstream, workspace);
    }
}

/// Gives an upstream of a workspace a name of its own.
pub fn tell_upstream_apart(upstream: &mut Upstream, workspace: &str) {
    prefix(&mut upstream.name, workspace);
    let checks = upstream.checks.as_mut();
    if let Some(owner) = checks.and_then(|checks| checks.shared_with.as_mut()) {
        prefix(owner, workspace);
    }
}

/// A route, without its chain, under a name of its own where it is one of a workspace.
pub fn told_apart(mut route: Route, workspace: Option<&str>) -> Route {
    if let Some(workspace) = workspace {
        prefix(&mut route.name, workspace);
        if let RouteTarget::Service(service) = &mut route.target {
            prefix(service, workspace);
        }
    }
    route
}

fn prefix(name: &mut String, workspace: &str) {
    *name = name_in(workspace, name);
}
