//! What upstreams, services and routes say of traffic beside balancing and health: checked and made ready.

use crate::persistent_state::PersistentState;
use crate::traffic::{StickySessions, UpstreamHedge, UpstreamOverload, UpstreamTraffic};
use std::collections::BTreeMap;
use weir_flow::balancer::{Balancer, TargetSpec, Zones};
use weir_flow::hash_bytes;
use weir_flow::hedge::HedgeDelay;
use weir_flow::overload::{self, OverloadRules};
use weir_flow::retry_budget::BudgetRules;
use weir_flow::slow_start::SlowStart;
use weir_model::{self as model, BalancingAlgorithm, Diagnostic, DocPath, Service, Upstream};
use weir_plugin::headers;

/// Reports what cannot be served as it is written.
pub(super) fn check(upstream: &Upstream, place: &DocPath, diagnostics: &mut Vec<Diagnostic>) {
    let mut fault = |path: &[&str], message: String| {
        let place = path
            .iter()
            .fold(place.clone(), |place, field| place.field(*field));
        diagnostics.push(Diagnostic::error(place, message));
    };
    if let Some(slow_start) = &upstream.slow_start {
        check_slow_start(upstream.algorithm, slow_start, &mut fault);
    }
    if let Some(zones) = &upstream.zones {
        check_zones(upstream, zones, &mut fault);
    }
    if let Some(sticky) = &upstream.sticky {
        check_sticky(sticky, &mut fault);
    }
    if upstream.sticky.is_some() && upstream.hedge.is_some() {
        let message =
            "cannot be combined with 'sticky', because a copy goes to another target; remove one of them";
        fault(&["hedge"], message.to_owned());
    }
    if let Some(hedge) = &upstream.hedge {
        check_hedge(upstream, hedge, &mut fault);
    }
    if let Some(limit) = &upstream.adaptive_concurrency {
        check_limit(limit, &mut fault);
    }
    if upstream.scheme.is_stream() {
        for (field, is_given) in [
            ("sticky", upstream.sticky.is_some()),
            ("hedge", upstream.hedge.is_some()),
            ("adaptive_concurrency", upstream.adaptive_concurrency.is_some()),
        ] {
            if is_given {
                let word = upstream.scheme.as_str();
                fault(
                    &[field],
                    format!("expected an upstream for calls, found one of {word}"),
                );
            }
        }
    }
}

fn check_slow_start(
    algorithm: BalancingAlgorithm,
    slow_start: &model::SlowStart,
    fault: &mut impl FnMut(&[&str], String),
) {
    if algorithm == BalancingAlgorithm::ConsistentHashing {
        let message =
            "cannot be combined with consistent-hashing, where each key has its target; remove one of them";
        fault(&["slow_start"], message.to_owned());
    }
    if !(1..=100).contains(&slow_start.min_percent) {
        let message = format!(
            "expected a percentage from 1 to 100, found {}",
            slow_start.min_percent
        );
        fault(&["slow_start", "min_percent"], message);
    }
    if !(0.01..=100.0).contains(&slow_start.aggression) {
        let message = format!(
            "expected a number from 0.01 to 100, found {}",
            slow_start.aggression
        );
        fault(&["slow_start", "aggression"], message);
    }
}

fn check_zones(upstream: &Upstream, zones: &model::ZoneAwareness, fault: &mut impl FnMut(&[&str], String)) {
    if upstream.targets.iter().all(|target| target.zone.is_none()) {
        let message = "no target has a 'zone'; give the targets zones, or leave this out";
        fault(&["zones"], message.to_owned());
    }
    for (zone, share) in &zones.shares {
        if !upstream
            .targets
            .iter()
            .any(|target| target.zone.as_ref() == Some(zone))
        {
            fault(
                &["zones", "shares", zone],
                format!("no target is in the zone '{zone}'"),
            );
        } else if *share > MAX_SHARE {
            fault(
                &["zones", "shares", zone],
                format!("expected a share up to {MAX_SHARE}, found {share}"),
            );
        }
    }
}

/// The largest share of a zone.
const MAX_SHARE: u32 = 1_000_000;

fn check_sticky(sticky: &model::StickySessions, fault: &mut impl FnMut(&[&str], String)) {
    if !headers::is_name(sticky.cookie.as_bytes()) {
        let name = sticky.cookie.escape_debug();
        fault(
            &["sticky", "cookie"],
            format!("expected the name of a cookie, found '{name}'"),
        );
    }
    if sticky.path.contains(|it: char| it == ';' || it.is_control()) {
        let path = sticky.path.escape_debug();
        fault(
            &["sticky", "path"],
            format!("expected a path without ';' and control characters, found '{path}'"),
        );
    }
    if sticky.attributes.contains(char::is_control) {
        fault(
            &["sticky", "attributes"],
            "expected attributes of a cookie".to_owned(),
        );
    }
}

fn check_hedge(upstream: &Upstream, hedge: &model::Hedge, fault: &mut impl FnMut(&[&str], String)) {
    if upstream.scheme.is_http2() {
        let word = upstream.scheme.as_str();
        fault(
            &["hedge"],
            format!("expected an upstream of http or https, found one of {word}"),
        );
    }
    if !(50..=99).contains(&hedge.percentile) {
        let message = format!("expected a percentile from 50 to 99, found {}", hedge.percentile);
        fault(&["hedge", "percentile"], message);
    }
    if !(1..=100).contains(&hedge.percent) {
        let message = format!("expected a percentage from 1 to 100, found {}", hedge.percent);
        fault(&["hedge", "percent"], message);
    }
}

fn check_limit(limit: &model::AdaptiveConcurrency, fault: &mut impl FnMut(&[&str], String)) {
    let field = "adaptive_concurrency";
    for (name, value) in [("min", limit.min), ("max", limit.max), ("initial", limit.initial)] {
        if value == 0 {
            fault(&[field, name], "expected at least 1, found 0".to_owned());
        }
    }
    if limit.max < limit.min {
        let message = format!("expected at least the min of {}, found {}", limit.min, limit.max);
        fault(&[field, "max"], message);
    }
    if !(101..=1_000).contains(&limit.tolerance_percent) {
        let message = format!(
            "expected a percentage from 101 to 1000, found {}",
            limit.tolerance_percent
        );
        fault(&[field, "tolerance_percent"], message);
    }
    if !(10..=60_000).contains(&limit.window_ms) {
        let message = format!("expected 10 to 60000 milliseconds, found {}", limit.window_ms);
        fault(&[field, "window_ms"], message);
    }
    if limit.probe_ms < 1_000 {
        let message = format!("expected at least 1000 milliseconds, found {}", limit.probe_ms);
        fault(&[field, "probe_ms"], message);
    }
}

/// Reports statuses that no answer to be tried again can have.
pub(super) fn check_retry_statuses(
    service: &Service,
    place: &dyn Fn() -> DocPath,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for (index, status) in service.retry_statuses.iter().enumerate() {
        if !(400..=599).contains(status) {
            let place = place().field("retry_statuses").index(index);
            let message = format!("expected a status from 400 to 599, found {status}");
            diagnostics.push(Diagnostic::error(place, message));
        }
    }
}

/// The balancer with slow start and zones, as far as the upstream has them and the gateway is in one of its zones.
pub(super) fn balancer(upstream: &Upstream, balancer: Balancer, own_zone: Option<&str>) -> Balancer {
    let balancer = match upstream.slow_start {
        Some(_) => balancer.with_slow_start(),
        None => balancer,
    };
    let zones = upstream.zones.as_ref().zip(own_zone);
    match zones.and_then(|(zones, own)| numbered(upstream, zones, own)) {
        Some(zones) => balancer.with_zones(zones),
        None => balancer,
    }
}

/// The zones as numbers; `None`: the gateway is in none of them.
fn numbered(upstream: &Upstream, zones: &model::ZoneAwareness, own: &str) -> Option<Zones> {
    let mut numbers: BTreeMap<&str, u16> = BTreeMap::new();
    for zone in upstream
        .targets
        .iter()
        .filter_map(|target| target.zone.as_deref())
    {
        numbers.insert(zone, 0);
    }
    for (number, place) in (0..).zip(numbers.values_mut()) {
        *place = number;
    }
    let own = *numbers.get(own)?;
    let share = |zone: &str| match zones.shares.is_empty() {
        true => 1,
        false => zones.shares.get(zone).copied().unwrap_or(0),
    };
    let of = upstream.targets.iter().map(|target| {
        let zone = target.zone.as_deref()?;
        numbers.get(zone).copied()
    });
    Some(Zones {
        of: of.collect(),
        own,
        shares: numbers.keys().map(|zone| share(zone)).collect(),
    })
}

/// What few upstreams have; `None`: this one has nothing of it.
pub(super) fn compile(
    upstream: &Upstream,
    specs: &[TargetSpec],
    persistent: &PersistentState,
) -> Option<Box<UpstreamTraffic>> {
    let name = upstream.name.as_str();
    let traffic = UpstreamTraffic {
        slow_start: upstream.slow_start.map(|slow_start| SlowStart {
            window_ms: slow_start.window_ms,
            min_percent: slow_start.min_percent,
            aggression: slow_start.aggression,
        }),
        sticky: upstream.sticky.as_ref().map(|sticky| StickySessions {
            cookie: sticky.cookie.as_bytes().to_vec(),
            attributes: cookie_attributes(sticky).into_bytes(),
            values: specs.iter().map(|spec| cookie_value(&spec.id)).collect(),
        }),
        hedge: upstream.hedge.map(|hedge| UpstreamHedge {
            delay: match hedge.after_ms {
                Some(after_ms) => HedgeDelay::AfterMs(after_ms),
                None => HedgeDelay::Percentile(hedge.percentile),
            },
            rules: BudgetRules {
                percent: hedge.percent,
                burst: hedge.burst,
            },
            state: persistent.hedge(name),
        }),
        overload: upstream.adaptive_concurrency.map(|limit| {
            let rules = overload_rules(&limit);
            UpstreamOverload {
                rules,
                limit: persistent.limit(name, &rules),
            }
        }),
    };
    let UpstreamTraffic {
        slow_start,
        sticky,
        hedge,
        overload,
    } = &traffic;
    let has_some = slow_start.is_some() || sticky.is_some() || hedge.is_some() || overload.is_some();
    has_some.then(|| Box::new(traffic))
}

fn overload_rules(limit: &model::AdaptiveConcurrency) -> OverloadRules {
    OverloadRules {
        min: limit.min,
        max: limit.max,
        initial: limit.initial,
        tolerance_percent: limit.tolerance_percent,
        window_ms: limit.window_ms,
        probe_ms: limit.probe_ms,
    }
}

/// What stands behind a cookie's value.
fn cookie_attributes(sticky: &model::StickySessions) -> String {
    let mut text = format!("; Path={}", sticky.path);
    if let Some(max_age) = sticky.max_age_s {
        text.push_str(&format!("; Max-Age={max_age}"));
    }
    if !sticky.attributes.is_empty() {
        text.push_str("; ");
        text.push_str(&sticky.attributes);
    }
    text
}

/// A value that does not reveal the target's address to clients in plain text.
fn cookie_value(target: &str) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let hash = hash_bytes(format!("sticky\0{target}").as_bytes());
    std::array::from_fn(|place| DIGITS[(hash >> (60 - 4 * place) & 15) as usize])
}

/// The priority of a route's calls.
pub(super) fn priority(priority: model::Priority) -> overload::Priority {
    match priority {
        model::Priority::Critical => overload::Priority::Critical,
        model::Priority::High => overload::Priority::High,
        model::Priority::Normal => overload::Priority::Normal,
        model::Priority::Low => overload::Priority::Low,
    }
}
