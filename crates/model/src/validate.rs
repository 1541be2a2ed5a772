//! Checks that need the whole model: names are unique and every reference leads somewhere.

use crate::stream::is_server_name;
use crate::{ChainStep, Diagnostic, DialectName, DocPath, Model, PluginRef, RouteTarget, StreamProtocol};
use std::collections::HashSet;
use std::hash::Hash;

impl Model {
    /// What does not fit together in this model. Empty: it can be compiled.
    pub fn validate(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let names = Names {
            services: unique(
                &mut found,
                "services",
                "name",
                self.services.iter().map(|it| it.name.as_str()),
            ),
            upstreams: unique(
                &mut found,
                "upstreams",
                "name",
                self.upstreams.iter().map(|it| it.name.as_str()),
            ),
            plugins: unique(
                &mut found,
                "plugins",
                "id",
                self.plugins.iter().map(|it| it.id.as_str()),
            ),
            tables: unique(
                &mut found,
                "consumer_tables",
                "id",
                self.consumer_tables.iter().map(|it| it.id.as_str()),
            ),
        };
        unique(
            &mut found,
            "routes",
            "name",
            self.routes.iter().map(|it| (it.dialect, it.name.as_str())),
        );
        unique(
            &mut found,
            "stream_routes",
            "name",
            self.stream_routes.iter().map(|it| (it.dialect, it.name.as_str())),
        );
        unique(
            &mut found,
            "consumers",
            "id",
            self.consumers.iter().map(|it| (it.dialect, it.id.as_str())),
        );
        self.check_services(&names, &mut found);
        self.check_routes(&names, &mut found);
        self.check_stream_routes(&names, &mut found);
        self.check_tables(&names, &mut found);
        self.check_acme(&mut found);
        names.check_chain(&self.unmatched, &DocPath::root().field("unmatched"), &mut found);
        found
    }

    fn check_services(&self, names: &Names<'_>, found: &mut Vec<Diagnostic>) {
        for (index, service) in self.services.iter().enumerate() {
            // Made only when there is something to report: paths allocate, and there may be very many.
            let place = || DocPath::root().field("services").index(index);
            match (&service.url, &service.upstream) {
                (Some(_), Some(_)) | (None, None) => {
                    found.push(Diagnostic::error(
                        place(),
                        "expected exactly one of 'url' and 'upstream'",
                    ));
                }
                (None, Some(upstream)) if !names.upstreams.contains(upstream.as_str()) => {
                    let message = format!("no upstream is named '{upstream}'");
                    found.push(Diagnostic::error(place().field("upstream"), message));
                }
                _ => {}
            }
        }
    }

    fn check_routes(&self, names: &Names<'_>, found: &mut Vec<Diagnostic>) {
        for (index, route) in self.routes.iter().enumerate() {
            let place = || DocPath::root().field("routes").index(index);
            if let RouteTarget::Service(service) = &route.target
                && !names.services.contains(service.as_str())
            {
                let message = format!("no service is named '{service}'");
                found.push(Diagnostic::error(place().field("service"), message));
            }
            if route.matches.is_empty() {
                found.push(Diagnostic::error(
                    place().field("match"),
                    "expected at least one match",
                ));
            }
            if !route.plugins.is_empty() {
                names.check_chain(&route.plugins, &place().field("plugins"), found);
            }
        }
    }

    fn check_stream_routes(&self, names: &Names<'_>, found: &mut Vec<Diagnostic>) {
        for (index, route) in self.stream_routes.iter().enumerate() {
            let place = || DocPath::root().field("stream_routes").index(index);
            if let Some(service) = &route.service
                && !names.services.contains(service.as_str())
            {
                let message = format!("no service is named '{service}'");
                found.push(Diagnostic::error(place().field("service"), message));
            }
            for (at, name) in route.snis.iter().enumerate() {
                if !is_server_name(name) {
                    let message =
                        format!("expected a server name, or '*.' and the rest of one, found '{name}'");
                    found.push(Diagnostic::error(place().field("snis").index(at), message));
                }
            }
            let has = |protocol| route.protocols.contains(&protocol);
            if route.mqtt.is_some() && (has(StreamProtocol::Udp) || has(StreamProtocol::TlsPassthrough)) {
                let message =
                    "expected tcp and tls alone: nothing else shows the CONNECT of a session of MQTT";
                found.push(Diagnostic::error(place().field("protocols"), message));
            }
            if route.udp_responses == Some(0) {
                let message = "expected a number of datagrams from 1 on, found 0";
                found.push(Diagnostic::error(place().field("udp_responses"), message));
            }
            if route.idle_timeout_ms == Some(0) {
                let message = "expected milliseconds from 1 on, found 0";
                found.push(Diagnostic::error(place().field("idle_timeout_ms"), message));
            }
            names.check_chain(&route.plugins, &place().field("plugins"), found);
        }
    }

    fn check_tables(&self, names: &Names<'_>, found: &mut Vec<Diagnostic>) {
        for (index, table) in self.consumer_tables.iter().enumerate() {
            for (consumer, instance) in &table.instances {
                if let Some(instance) = instance
                    && !names.plugins.contains(instance.as_str())
                {
                    let place = DocPath::root()
                        .field("consumer_tables")
                        .index(index)
                        .field("instances");
                    let message = format!("no plugin instance has the id '{instance}'");
                    found.push(Diagnostic::error(place.field(consumer), message));
                }
            }
        }
    }
}

struct Names<'m> {
    services: HashSet<&'m str>,
    upstreams: HashSet<&'m str>,
    plugins: HashSet<&'m str>,
    tables: HashSet<&'m str>,
}

impl Names<'_> {
    fn check_chain(&self, chain: &[ChainStep], place: &DocPath, found: &mut Vec<Diagnostic>) {
        for (index, step) in chain.iter().enumerate() {
            if let Some(PluginRef::Shared(id)) = &step.plugin
                && !self.plugins.contains(id.as_str())
            {
                let message = format!("no plugin instance has the id '{id}'");
                found.push(Diagnostic::error(place.index(index).field("use"), message));
            }
            for table in &step.consumer_overrides {
                if !self.tables.contains(table.as_str()) {
                    let message = format!("no consumer table has the id '{table}'");
                    found.push(Diagnostic::error(place.index(index).field("overrides"), message));
                }
            }
        }
    }
}

/// A name as it is shown in a diagnostic.
trait Name: Copy + Eq + Hash {
    fn text(&self) -> &str;
}

impl Name for &str {
    fn text(&self) -> &str {
        self
    }
}

impl Name for (DialectName, &str) {
    fn text(&self) -> &str {
        self.1
    }
}

fn unique<N: Name>(
    found: &mut Vec<Diagnostic>,
    list: &str,
    field: &str,
    names: impl Iterator<Item = N>,
) -> HashSet<N> {
    let mut seen = HashSet::with_capacity(names.size_hint().0);
    for (index, name) in names.enumerate() {
        let place = || DocPath::root().field(list).index(index).field(field);
        if name.text().is_empty() {
            found.push(Diagnostic::error(place(), format!("expected a {field}")));
        } else if !seen.insert(name) {
            found.push(Diagnostic::error(
                place(),
                format!("the {field} '{}' is taken", name.text()),
            ));
        }
    }
    seen
}
