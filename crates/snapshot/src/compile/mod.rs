//! From the model to a snapshot: references are checked, filters built, routes indexed. Nothing is served here.

mod cache;
mod chains;
mod compiled;
mod health;
mod routes;
mod services;
mod settings;
mod streams;
mod traffic;
mod upstreams;
mod url;

use crate::persistent_state::PersistentState;
use crate::table::RouteTable;
use crate::tls::{AdHocClientTls, CertificateRequestNames, ServerTls, check_acme};
use crate::{Route, Snapshot};
pub use cache::CompileCache;

use chains::Chains;
use routes::RouteCompiler;
use services::Services;
use std::io::Write;
use std::sync::{Arc, OnceLock};
use weir_flow::hash_bytes;
use weir_model::{Diagnostic, DialectName, DocPath, Model, Route as ModelRoute, RouteTarget, Severity};
use weir_plugin::Registry;

/// Compiles a model with the plugins of `registry`. Gives the snapshot and what is worth a look.
///
/// # Errors
/// All that is wrong with the model; paths lead into its text form.
pub fn compile(
    model: &Model,
    registry: &Registry,
    persistent: &PersistentState,
) -> Result<(Snapshot, Vec<Diagnostic>), Vec<Diagnostic>> {
    recompile(
        model,
        hash(model),
        registry,
        persistent,
        &mut CompileCache::default(),
    )
}

/// Recompiles incrementally. Items that are the same `Arc` as last time are reused, and their warnings are not
/// repeated. `hash` becomes the snapshot's.
///
/// # Errors
/// As [`compile`].
pub fn recompile(
    model: &Model,
    hash: u64,
    registry: &Registry,
    persistent: &PersistentState,
    cache: &mut CompileCache,
) -> Result<(Snapshot, Vec<Diagnostic>), Vec<Diagnostic>> {
    cache.begin(model);
    let mut diagnostics = model.validate();
    let mut chains = Chains::new(model, registry, cache.known(), &mut diagnostics);
    let (services, upstreams) = Services::compile(model, persistent, cache, &mut diagnostics);
    let tables = tables(model, persistent, &mut diagnostics);
    let settings = settings::compile(model, &mut diagnostics);
    let mut compiler = RouteCompiler::new(&services, cache, &mut diagnostics);
    let routes: Vec<Arc<Route>> = (model.routes.iter().enumerate())
        .map(|(index, route)| compiler.route(index, route, &mut chains))
        .collect();
    let streams = streams::compile(model, registry, &services, &mut chains, &mut diagnostics);
    let place = || DocPath::root().field("unmatched");
    let unmatched = chains.chain(&model.unmatched, model.dialect, "unmatched", &place);
    let consumers = chains.take_identities();
    let (found, known) = chains.finish();
    diagnostics.extend(found);
    let destinations = routes::destinations(&services, &known.destinations);
    let gateway_logs = known.gateway_logs();
    cache.learn(known);
    let mut tls = ServerTls::compile(&model.certificates, persistent.server_tls(), &mut diagnostics);
    let asking = (model.routes.iter().zip(&routes))
        .filter(|(_, made)| made.chain.requests_client_certificate)
        .map(|(route, _)| route);
    tls.ask(
        CertificateRequestNames::of(asking),
        &model.certificates,
        persistent.server_tls(),
    );
    tls.add_challenges(&model.tls_challenges);
    check_acme(&model.acme, &mut diagnostics);
    if diagnostics.iter().any(|it| it.severity == Severity::Error) {
        persistent.prune();
        return Err(diagnostics);
    }
    cache.end(model, &upstreams);
    persistent.prune();
    let snapshot = Snapshot {
        dialect: model.dialect,
        tables,
        routes,
        streams,
        upstreams,
        unmatched,
        consumers,
        destinations,
        settings,
        tls,
        ad_hoc_tls: AdHocClientTls::new(persistent.roots()),
        gateway_logs,
        hash,
        names: OnceLock::new(),
    };
    Ok((snapshot, diagnostics))
}

/// A table for each dialect, and behind all of them one for each dialect's routes that only tell why nothing is there.
fn tables(model: &Model, persistent: &PersistentState, diagnostics: &mut Vec<Diagnostic>) -> Vec<RouteTable> {
    let mut wanted: Vec<(bool, DialectName)> = Vec::new();
    for route in &model.routes {
        let place = (is_last(route), route.dialect);
        if !wanted.contains(&place) {
            wanted.push(place);
        }
    }
    wanted.sort_by_key(|(is_last, _)| *is_last);
    let table = |place: (bool, DialectName)| {
        let routes = model.routes.iter().enumerate();
        let routes: Vec<_> = routes
            .filter(|(_, route)| (is_last(route), route.dialect) == place)
            .map(|(index, route)| (index, &**route))
            .collect();
        RouteTable::build(place.1, &routes, persistent, diagnostics)
    };
    wanted.into_iter().map(table).collect()
}

/// Whether a route stands behind those of all dialects. It says so itself: a route that refuses calls, because it cannot be
/// served, keeps its place.
fn is_last(route: &ModelRoute) -> bool {
    matches!(&route.target, RouteTarget::Respond(it) if it.last)
}

/// The hash of a model's text form. It is hashed as it is written, so that a large one never lies in memory whole.
pub fn hash(model: &Model) -> u64 {
    let mut hash = TextHash::default();
    serde_json::to_writer(&mut hash, model).expect("invariant: every model has a text form");
    hash.fold();
    hash.value
}

/// Hashes what is written to it, in pieces.
struct TextHash {
    value: u64,
    /// The hash so far, then text that is not in it yet.
    piece: Box<[u8]>,
    /// How much of the piece is written.
    written: usize,
}

impl Default for TextHash {
    fn default() -> Self {
        Self {
            value: 0,
            piece: vec![0; 16 * 1024].into(),
            written: 0,
        }
    }
}

impl TextHash {
    fn fold(&mut self) {
        self.value = hash_bytes(&self.piece[..self.written]);
        let value = self.value.to_le_bytes();
        self.piece[..value.len()].copy_from_slice(&value);
        self.written = value.len();
    }

    #[cold]
    fn write_over(&mut self, mut text: &[u8]) -> std::io::Result<()> {
        while !text.is_empty() {
            let taken = self.write(text)?;
            text = &text[taken..];
        }
        Ok(())
    }
}

impl Write for TextHash {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let room = &mut self.piece[self.written..];
        let taken = text.len().min(room.len());
        room[..taken].copy_from_slice(&text[..taken]);
        self.written += taken;
        if self.written == self.piece.len() {
            self.fold();
        }
        Ok(taken)
    }

    // A text form is written in very many pieces of a byte or two.
    #[inline(always)]
    fn write_all(&mut self, text: &[u8]) -> std::io::Result<()> {
        let end = self.written + text.len();
        if end >= self.piece.len() {
            return self.write_over(text);
        }
        self.piece[self.written..end].copy_from_slice(text);
        self.written = end;
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
