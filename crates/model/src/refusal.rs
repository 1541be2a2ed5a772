//! Refusing calls in the place of what cannot be served.
//!
//! A route that lacks a plugin must not serve calls without it, and must not go away either: another route that asks for
//! less could take its calls. So it stays, and refuses them. **What it is not**: it decides nothing about which plugins may be
//! missed.

use crate::{ChainStep, Model, PluginRef, Route, RouteTarget, StreamRoute};
use std::collections::HashSet;
use std::sync::Arc;

/// The status of calls that are refused because the gateway cannot serve them as it is told to.
const REFUSED: u16 = 503;

impl Route {
    /// Has the gateway refuse all calls of the route before any plugin runs.
    pub fn refuse_calls(&mut self) {
        self.target = RouteTarget::respond_before_plugins(REFUSED);
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
pub struct LostPlugins {
    /// Ids of shared plugins.
    pub plugins: HashSet<String>,
    /// Ids of tables.
    pub tables: HashSet<String>,
}

impl LostPlugins {
    fn is_needed_by(&self, step: &ChainStep) -> bool {
        let is_own = matches!(&step.plugin, Some(PluginRef::Shared(id)) if self.plugins.contains(id));
        is_own || step.consumer_overrides.iter().any(|id| self.tables.contains(id))
    }
}

impl Model {
    /// Takes plugins and tables out. Routes that ask for one of them refuse their calls; calls that match no route run
    /// through no plugin.
    pub fn take_out(&mut self, mut lost: LostPlugins) {
        self.plugins.retain(|it| !lost.plugins.contains(&it.id));
        let tables = &mut lost.tables;
        self.consumer_tables.retain(|table| {
            if table
                .instances
                .values()
                .flatten()
                .any(|id| lost.plugins.contains(id))
            {
                tables.insert(table.id.clone());
            }
            !tables.contains(&table.id)
        });
        for route in &mut self.routes {
            if route.plugins.iter().any(|step| lost.is_needed_by(step)) {
                let route = Arc::make_mut(route);
                route.refuse_calls();
                route.plugins.retain(|step| !lost.is_needed_by(step));
            }
        }
        for route in &mut self.stream_routes {
            if route.plugins.iter().any(|step| lost.is_needed_by(step)) {
                route.refuse_sessions();
            }
        }
        if self.unmatched.iter().any(|step| lost.is_needed_by(step)) {
            self.unmatched.clear();
        }
    }
}
