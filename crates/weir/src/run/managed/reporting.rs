//! Reports of this gateway to a control plane, and the control plane's answers.

use super::resources::is_local;
use crate::run::plan::{Management, Origin};
use crate::run::proxy::{Starter, first_address};
use crate::status::Status;
use std::sync::Arc;
use weir_control::api::Gateways;
use weir_control::drain_state::DrainState;
use weir_control::follow::OpenStore;
use weir_control::report::{ReportTarget, ReporterInfo};
use weir_control::shared_limits::{LimitTarget, sync_limits};
use weir_dialect::DEFAULT_ENVIRONMENT;
use weir_plugin::SharedCounts;

/// This gateway as its reports describe it: name, address, version, environments.
pub fn reporter(starter: &Starter<'_>, gateway: &weir_proxy::Gateway) -> ReporterInfo {
    let mut environments = starter.args.management.environment.clone();
    if environments.is_empty() {
        environments.push(DEFAULT_ENVIRONMENT.to_owned());
    }
    ReporterInfo {
        name: starter.gateway_name(gateway),
        address: first_address(gateway),
        version: env!("CARGO_PKG_VERSION"),
        environments,
        started: std::time::SystemTime::now(),
    }
}

/// The receiver of this gateway's reports.
pub fn report_target(management: &Management, store: &OpenStore, gateways: Gateways) -> ReportTarget {
    match &management.origin {
        Origin::Control { url, token } => ReportTarget::Control {
            url: url.clone(),
            token: token.clone(),
        },
        Origin::Store(_) if is_local(&management.origin) => ReportTarget::Here(gateways, store.clone()),
        Origin::Store(_) => ReportTarget::Store(store.clone()),
    }
}

/// Settles limits that are for all gateways, until the process ends.
pub fn spawn_limit_sync(reporter: &ReporterInfo, target: LimitTarget, counts: Vec<Arc<dyn SharedCounts>>) {
    tokio::spawn(sync_limits(reporter.name.clone(), target, counts));
}

/// With whom this gateway settles limits that are for all gateways.
pub fn limit_target(management: &Management, gateways: &Gateways, reporter: &ReporterInfo) -> LimitTarget {
    let environments = reporter.environments.clone();
    match &management.origin {
        Origin::Control { url, token } => LimitTarget::Control {
            url: url.clone(),
            token: token.clone(),
            environments,
        },
        Origin::Store(_) if is_local(&management.origin) => {
            let exchange = gateways.limits(environments);
            exchange.map_or(LimitTarget::Nowhere, LimitTarget::Here)
        }
        Origin::Store(_) => LimitTarget::Nowhere,
    }
}

/// Takes this gateway out, or back.
pub fn drain(
    drain_state: DrainState,
    reporter: &ReporterInfo,
    status: &Arc<Status>,
) -> impl Fn(bool) + Send + Sync + use<> {
    let (name, status) = (reporter.name.clone(), Arc::clone(status));
    move |is_drained| {
        // Who sees that it is out may end it at once.
        drain_state.keep(&name, is_drained);
        status.set_drained(is_drained);
    }
}
