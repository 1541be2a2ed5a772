//! The health of upstreams as Admin APIs report it: what this process' own gateway knows.

use crate::status::Status;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_control::api::health as native;
use weir_dialect::{AddressHealth, CheckCounts, HealthSource, HealthState, TargetHealth, UpstreamHealth};
use weir_proxy::health::{
    self as gateway, AddressReport, HealthSelector, SetHealthError, Status as TargetStatus, TargetReport,
    UpstreamReport,
};

/// The health of upstreams, once there is a gateway.
pub struct Health(pub Arc<Status>);

impl HealthSource for Health {
    fn upstream(&self, upstream: &str) -> Option<UpstreamHealth> {
        let report = self.0.gateway()?.upstream_health(upstream)?;
        (report.status != TargetStatus::ChecksOff).then(|| health_of(&report))
    }

    fn mark(
        &self,
        upstream: &str,
        target: &str,
        address: Option<&str>,
        is_healthy: bool,
    ) -> Result<(), String> {
        let Some(gateway) = self.0.gateway() else {
            return Ok(());
        };
        let (host, port) = split(target).ok_or("expected a target with its port")?;
        let address = match address {
            None => None,
            Some(text) => Some(address_of(text, port).ok_or("expected an address")?),
        };
        let which = HealthSelector {
            upstream,
            host,
            port,
            address,
        };
        match gateway.set_health(&which, is_healthy) {
            // If nothing is checked, or nothing is served yet, a mark could change nothing.
            Ok(()) | Err(SetHealthError::ChecksOff | SetHealthError::NoUpstream) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl native::HealthSource for Health {
    fn upstreams(&self) -> Vec<native::UpstreamHealth> {
        let report = self.0.gateway().map(|gateway| gateway.health());
        let upstreams = report.map(|report| report.upstreams).unwrap_or_default();
        upstreams.iter().map(in_native).collect()
    }

    fn upstream(&self, name: &str) -> Option<native::UpstreamHealth> {
        self.0.gateway()?.upstream_health(name).as_ref().map(in_native)
    }
}

fn in_native(report: &UpstreamReport) -> native::UpstreamHealth {
    let address = |known: &AddressReport| native::AddressHealth {
        address: known.address.to_string(),
        status: status_of(known.status),
        successes: known.health.successes.into(),
        http_failures: known.health.http_failures.into(),
        tcp_failures: known.health.tcp_failures.into(),
        timeouts: known.health.timeouts.into(),
    };
    let target = |known: &TargetReport| native::TargetHealth {
        host: known.host.clone(),
        port: known.port,
        weight: known.weight,
        status: status_of(known.status),
        addresses: known.addresses.iter().map(address).collect(),
    };
    native::UpstreamHealth {
        name: report.name.clone(),
        status: status_of(report.status),
        healthy_percent: report.healthy_percent,
        targets: report.targets.iter().map(target).collect(),
    }
}

fn status_of(status: gateway::Status) -> native::HealthStatus {
    match status {
        gateway::Status::Healthy => native::HealthStatus::Healthy,
        gateway::Status::Unhealthy => native::HealthStatus::Unhealthy,
        gateway::Status::DnsError => native::HealthStatus::DnsError,
        gateway::Status::ChecksOff => native::HealthStatus::Unchecked,
    }
}

/// The health of an upstream, be it checked or not.
pub fn health_of(report: &UpstreamReport) -> UpstreamHealth {
    UpstreamHealth {
        state: state_of(report.status),
        targets: report.targets.iter().map(target_of).collect(),
    }
}

fn state_of(status: TargetStatus) -> HealthState {
    match status {
        TargetStatus::Healthy => HealthState::Healthy,
        TargetStatus::Unhealthy | TargetStatus::DnsError => HealthState::Unhealthy,
        TargetStatus::ChecksOff => HealthState::Unchecked,
    }
}

fn target_of(target: &TargetReport) -> TargetHealth {
    TargetHealth {
        host: target.host.clone(),
        port: target.port,
        is_resolved: target.status != TargetStatus::DnsError,
        addresses: (target.addresses.iter())
            .map(|known| address(target, known))
            .collect(),
    }
}

fn address(target: &TargetReport, known: &AddressReport) -> AddressHealth {
    AddressHealth {
        ip: known.address.ip().to_string(),
        port: known.address.port(),
        weight: target.weight,
        state: state_of(known.status),
        checks: known.health.state.as_str(),
        counts: CheckCounts {
            success: known.health.successes.into(),
            http_failure: known.health.http_failures.into(),
            tcp_failure: known.health.tcp_failures.into(),
            timeout_failure: known.health.timeouts.into(),
        },
    }
}

/// The host, without brackets, and the port of a target.
fn split(target: &str) -> Option<(&str, u16)> {
    let (host, port) = target.rsplit_once(':')?;
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    Some((host, port.parse().ok()?))
}

/// An address with a port, or with the target's.
fn address_of(text: &str, port: u16) -> Option<SocketAddr> {
    let plain = || text.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    text.parse()
        .ok()
        .or_else(|| Some(SocketAddr::new(plain()?, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_addresses_are_read() {
        for (target, parts) in [
            ("127.0.0.1:80", Some(("127.0.0.1", 80))),
            ("[::1]:8000", Some(("::1", 8000))),
            ("api.test:80", Some(("api.test", 80))),
            ("api.test", None),
            ("api.test:x", None),
        ] {
            assert_eq!(split(target), parts, "{target}");
        }
        for (text, address) in [
            ("127.0.0.1", Some("127.0.0.1:80")),
            ("127.0.0.1:81", Some("127.0.0.1:81")),
            ("::1", Some("[::1]:80")),
            ("[::1]:81", Some("[::1]:81")),
            ("api.test", None),
        ] {
            let read = address_of(text, 80).map(|it| it.to_string());
            assert_eq!(read.as_deref(), address, "{text}");
        }
    }
}
