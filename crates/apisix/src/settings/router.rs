//! The name of the router that finds routes (`apisix.router.http`); how it works stands in `translate/matching.rs`.

/// Which of APISIX's routers finds routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Router {
    /// `radixtree_host_uri`, the default: hosts first, then paths.
    #[default]
    RadixtreeHostUri,
    /// `radixtree_uri`: paths first; hosts are a condition like others.
    RadixtreeUri,
    /// `radixtree_uri_with_parameter`: likewise, with `:name` and `*name` in paths.
    RadixtreeUriWithParameter,
}
