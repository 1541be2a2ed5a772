//! What can be wrong with a configuration of `rate-limit`.

use super::{Config, CountScope, LimitValue, Per};
use weir_flow::rate_limit::MAX_LIMITS;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_name;

/// All that is wrong, with its places.
pub(super) fn faults(config: &Config) -> Vec<Diagnostic> {
    let root = DocPath::root();
    let mut faults = Vec::new();
    let mut fault = |path: DocPath, message: String| faults.push(Diagnostic::error(path, message));
    if config.limits.is_empty() || config.limits.len() > MAX_LIMITS {
        fault(
            root.field("limits"),
            format!("expected 1 to {MAX_LIMITS} limits, found {}", config.limits.len()),
        );
    }
    if !(200..=599).contains(&config.status) {
        fault(
            root.field("status"),
            format!("expected a status from 200 to 599, found {}", config.status),
        );
    }
    let summary = &config.headers;
    let names = [
        &summary.limit,
        &summary.remaining,
        &summary.reset,
        &summary.retry_after,
    ];
    let mut headers: Vec<_> = names
        .into_iter()
        .flatten()
        .map(|name| (root.field("headers"), name))
        .collect();
    if config.across == CountScope::Gateways && config.store.is_some() {
        fault(
            root.field("across"),
            "expected no `across` together with a `store`: gateways share what is in the store".to_owned(),
        );
    }
    for (index, limit) in config.limits.iter().enumerate() {
        let path = root.field("limits").index(index);
        if config.across == CountScope::Gateways && matches!(limit.per, Per::Seconds(_)) {
            fault(
                path.field("per"),
                "expected a window of the clock or a sliding one with `across: gateways`: `seconds` begin at \
                 each gateway with its first call; use `clock-seconds`"
                    .to_owned(),
            );
        }
        if let Per::Seconds(LimitValue::Number(0))
        | Per::SlidingSeconds(LimitValue::Number(0))
        | Per::ClockSeconds(LimitValue::Number(0)) = limit.per
        {
            fault(path.field("per"), "expected at least 1 second".to_owned());
        }
        let names = [
            &limit.headers.limit,
            &limit.headers.remaining,
            &limit.headers.reset,
        ];
        headers.extend(
            names
                .into_iter()
                .flatten()
                .map(|name| (path.field("headers"), name)),
        );
    }
    for (path, name) in headers {
        if !is_name(name.as_bytes()) {
            fault(path, format!("expected a header name, found {name:?}"));
        }
    }
    faults
}
