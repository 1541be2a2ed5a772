//! Refuses calls in place of configurations that cannot be served.
//!
//! A route that lacks a plugin must not serve calls without it, and must not disappear either: another route with fewer
//! plugins could take its calls. So it stays, and refuses them. **What it is not**: it does not decide which plugins
//! may be skipped; its callers do.

use crate::{
    Certificate, ChainStep, ClientCertificate, ForwardedHeaders, Model, PathRewrite, PluginInstance,
    PluginRef, Route, RouteTarget, StreamRoute, UpstreamHost,
};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// The status of calls that are refused because the gateway cannot serve them as configured.
const REFUSED: u16 = 503;

impl Route {
    /// Has the gateway refuse all calls of the route before any plugin runs.
    pub fn refuse_calls(&mut self) {
        self.target = RouteTarget::respond_before_plugins(REFUSED);
    }

    /// The same for a route whose own fields are wrong. What is left of it says which calls it takes, and who it is.
    pub fn refuse_all(&mut self) {
        self.refuse_calls();
        self.https_only_status = None;
        self.grpc_only_status = None;
        self.path = PathRewrite::default();
        self.upstream_host = UpstreamHost::default();
        self.forwarded = ForwardedHeaders::default();
        self.response_headers.clear();
        self.request_headers.clear();
        self.connect = false;
        self.plugins.clear();
    }
}

impl Certificate {
    /// Has the gateway end all handshakes for the certificate's names: clients must show a certificate that none can
    /// have. Without the entry, another could take its names that asks clients for none.
    pub fn refuse_handshakes(&mut self) {
        self.key_pairs.clear();
        self.ocsp_stapling = None;
        self.client = Some(ClientCertificate {
            authorities: String::new(),
            optional: false,
            exempt_paths: Vec::new(),
        });
    }

    /// Whether it is one whose handshakes are refused: it has nothing to show, and no authority for what clients show.
    pub fn refuses_handshakes(&self) -> bool {
        let names_nobody = |client: &ClientCertificate| {
            client.authorities.is_empty() && !client.optional && client.exempt_paths.is_empty()
        };
        self.key_pairs.is_empty() && self.client.as_ref().is_some_and(names_nobody)
    }
}

impl StreamRoute {
    /// Has the gateway close all sessions of the route.
    pub fn refuse_sessions(&mut self) {
        self.service = None;
        self.plugins.clear();
    }
}

/// Plugins and tables of consumers that cannot be served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnservablePlugins {
    /// Ids of shared plugins without which no call is served.
    pub plugins: HashSet<String>,
    /// Ids of shared plugins that calls may pass without.
    pub skippable: HashSet<String>,
    /// Ids of tables.
    pub tables: HashSet<String>,
}

impl UnservablePlugins {
    /// These plugins; `is_skippable` says of a plugin's name whether calls may pass without it.
    pub fn of<'p>(
        plugins: impl IntoIterator<Item = &'p PluginInstance>,
        is_skippable: impl Fn(&str) -> bool,
    ) -> Self {
        let mut lost = Self::default();
        for plugin in plugins {
            let ids = match is_skippable(&plugin.name) {
                true => &mut lost.skippable,
                false => &mut lost.plugins,
            };
            ids.insert(plugin.id.clone());
        }
        lost
    }

    fn has_plugin(&self, id: &str) -> bool {
        self.plugins.contains(id) || self.skippable.contains(id)
    }

    /// Whether the step's plugin, or all of a table, is lost.
    fn is_needed_by(&self, step: &ChainStep) -> bool {
        let is_own = matches!(&step.plugin, Some(PluginRef::Shared(id)) if self.plugins.contains(id));
        is_own || step.consumer_overrides.iter().any(|id| self.tables.contains(id))
    }

    fn names_skippable(&self, step: &ChainStep) -> bool {
        matches!(&step.plugin, Some(PluginRef::Shared(id)) if self.skippable.contains(id))
    }
}

/// Takes steps out of a chain. Returns whether calls must not pass without one of them; `is_skippable` says of a plugin's name
/// whether they may.
pub fn remove_steps(
    steps: &mut Vec<ChainStep>,
    positions: &HashSet<usize>,
    is_skippable: impl Fn(&str) -> bool,
) -> bool {
    let (mut at, mut is_needed) = (0, false);
    steps.retain_mut(|step| {
        at += 1;
        if !positions.contains(&(at - 1)) {
            return true;
        }
        is_needed |= !matches!(&step.plugin, Some(PluginRef::Inline(it)) if is_skippable(&it.name));
        step.plugin = None;
        !step.consumer_overrides.is_empty()
    });
    is_needed
}

/// What refuses the calls that come to it, in the place of a lost plugin.
fn refusal(id: String) -> PluginInstance {
    PluginInstance {
        id,
        name: "request-termination".to_owned(),
        config: serde_json::json!({ "status": REFUSED }),
        when: None,
        on_refusal: None,
        workspace: None,
        state: None,
        placeholder_for: None,
    }
}

impl Model {
    /// Takes plugins and tables out. Routes that use one of them refuse their calls; if it is a consumer's plugin, only
    /// that consumer's calls are refused. Plugins that may be skipped are just left out. Calls that match no route run
    /// through no plugin.
    pub fn remove_plugins(&mut self, lost: &UnservablePlugins) {
        self.plugins.retain(|it| !lost.has_plugin(&it.id));
        self.consumer_tables.retain(|it| !lost.tables.contains(&it.id));
        // Tables that hold refusals.
        let mut refusing = HashSet::new();
        let mut refusals = BTreeSet::new();
        for table in &mut self.consumer_tables {
            let is_skippable =
                |id: &Option<String>| id.as_ref().is_some_and(|id| lost.skippable.contains(id));
            table.instances.retain(|_, id| !is_skippable(id));
            for id in table.instances.values().flatten() {
                if lost.plugins.contains(id) {
                    refusals.insert(id.clone());
                    refusing.insert(table.id.clone());
                }
            }
        }
        self.plugins.extend(refusals.into_iter().map(refusal));
        let refuses = |step: &ChainStep| step.consumer_overrides.iter().any(|id| refusing.contains(id));
        // Where no request comes by, a refusal would refuse nothing.
        let is_needed = |step: &ChainStep| lost.is_needed_by(step) || step.response_only && refuses(step);
        let without_skippable = |steps: &mut Vec<ChainStep>| {
            steps.retain_mut(|step| {
                let is_out = lost.names_skippable(step);
                if is_out {
                    step.plugin = None;
                }
                !is_out || !step.consumer_overrides.is_empty()
            });
        };
        for route in &mut self.routes {
            let is_touched = |step: &ChainStep| is_needed(step) || lost.names_skippable(step);
            if !route.plugins.iter().any(is_touched) {
                continue;
            }
            let route = Arc::make_mut(route);
            if route.plugins.iter().any(is_needed) {
                route.refuse_calls();
                route.plugins.retain(|step| !is_needed(step));
            }
            without_skippable(&mut route.plugins);
        }
        for route in &mut self.stream_routes {
            if route.plugins.iter().any(|step| lost.is_needed_by(step)) {
                route.refuse_sessions();
            }
            // Sessions have no consumers, and refusals of calls do not work on them.
            for step in &mut route.plugins {
                step.consumer_overrides.retain(|id| !refusing.contains(id));
            }
            without_skippable(&mut route.plugins);
        }
        if self.unmatched.iter().any(is_needed) {
            self.unmatched.clear();
        }
        without_skippable(&mut self.unmatched);
    }
}
