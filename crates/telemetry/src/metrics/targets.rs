//! The health of upstream targets, read from its source at each scrape.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Most targets that have a sample of their own in one scrape; the others are counted only.
pub(super) const MAX_TARGETS: usize = 1_000;

/// How one address of a target stands.
#[derive(Debug, Clone, Copy)]
pub struct TargetSample<'s> {
    /// The upstream's name.
    pub upstream: &'s str,
    /// The target's host as configured.
    pub target: &'s str,
    /// The address.
    pub address: SocketAddr,
    /// Whether it is healthy.
    pub is_healthy: bool,
}

/// The source of targets' health.
pub trait TargetSource: Send + Sync {
    /// Shows every address of every target whose health is checked.
    fn visit(&self, visit: &mut dyn FnMut(TargetSample<'_>));

    /// Shows every upstream whose calls in flight are bounded: its name, the bound, and how many there are.
    fn visit_limits(&self, visit: &mut dyn FnMut(&str, u32, u32));
}

/// The targets of one scrape.
#[derive(Debug, Default)]
pub(super) struct TargetScrape {
    /// The first of them, by upstream, target and address. One that is configured twice is there once.
    pub(super) samples: BTreeMap<[String; 3], bool>,
    pub(super) healthy: u64,
    pub(super) unhealthy: u64,
    /// By upstream: how many calls may be in flight, and how many are.
    pub(super) limits: BTreeMap<String, (u32, u32)>,
}

impl TargetScrape {
    pub(super) fn of(source: &dyn TargetSource) -> Self {
        let mut scrape = Self::default();
        source.visit(&mut |sample| {
            match sample.is_healthy {
                true => scrape.healthy += 1,
                false => scrape.unhealthy += 1,
            }
            if scrape.samples.len() < MAX_TARGETS {
                let labels = [
                    sample.upstream.to_owned(),
                    sample.target.to_owned(),
                    sample.address.to_string(),
                ];
                scrape.samples.insert(labels, sample.is_healthy);
            }
        });
        source.visit_limits(&mut |upstream, limit, inflight| {
            if scrape.limits.len() < MAX_TARGETS {
                scrape.limits.insert(upstream.to_owned(), (limit, inflight));
            }
        });
        scrape
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Registry, RegistryOptions};
    use std::sync::Arc;

    struct ManyTargets(u16);

    impl TargetSource for ManyTargets {
        fn visit(&self, visit: &mut dyn FnMut(TargetSample<'_>)) {
            for port in 1..=self.0 {
                visit(TargetSample {
                    upstream: "up",
                    target: "host",
                    address: ([127, 0, 0, 1], port).into(),
                    is_healthy: port != 1,
                });
            }
        }

        fn visit_limits(&self, visit: &mut dyn FnMut(&str, u32, u32)) {
            visit("up", 20, 3);
        }
    }

    #[test]
    fn targets_are_reported_up_to_a_bound() {
        for (count, samples) in [(0, 0), (2, 2), (1_500, MAX_TARGETS)] {
            let registry = Registry::new(RegistryOptions::default());
            registry.observe_targets(Arc::new(ManyTargets(count)));
            let mut text = String::new();
            registry.render(&mut text).expect("a string takes all");
            let lines = text
                .lines()
                .filter(|line| line.starts_with("weir_upstream_target_healthy{"));
            assert_eq!(lines.count(), samples, "{count}");
            assert!(
                text.contains("weir_upstream_concurrency_limit{upstream=\"up\"} 20\n"),
                "{text}"
            );
            assert!(
                text.contains("weir_upstream_concurrency{upstream=\"up\"} 3\n"),
                "{text}"
            );
            if count > 0 {
                let first =
                    "weir_upstream_target_healthy{upstream=\"up\",target=\"host\",address=\"127.0.0.1:1\"} 0";
                assert!(text.contains(first), "{text}");
                let sum = format!("weir_upstream_targets{{health=\"healthy\"}} {}", count - 1);
                assert!(
                    text.contains(&sum) && text.contains("weir_upstream_targets{health=\"unhealthy\"} 1")
                );
            }
        }
    }
}
