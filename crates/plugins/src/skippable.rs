//! Plugins that calls may pass without. **What it is not**: what a dialect's own plugins are called, of which the catalogue
//! has none.

/// Without these, calls get the same answers of the same servers, and the same callers are let in: they report calls,
/// or save work.
const SKIPPABLE: [&str; 10] = [
    "circuit-breaker",
    "compression",
    "logger",
    "mirror",
    "prometheus",
    "proxy-cache",
    "request-buffering",
    "skywalking",
    "statsd",
    "tracing",
];

/// Whether calls may be served without a plugin of the catalogue that cannot be served. All others decide who gets in, what
/// is asked for or who answers: if one is missing, calls are refused.
pub fn is_skippable(plugin: &str) -> bool {
    SKIPPABLE.contains(&plugin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_plugins() {
        let registry = crate::registry();
        for name in SKIPPABLE {
            assert!(registry.get(name).is_some(), "{name}");
        }
        assert!(SKIPPABLE.is_sorted());
    }
}
