//! Backends: names in a revision, addresses in a publication.

use super::Renderer;
use crate::entities::{Backend, Canary, Revision};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The fields of a service about its backend: `url`, or `upstream` with `path`; and `tls`.
pub type Upstreams = BTreeMap<String, Map<String, Value>>;

impl Renderer<'_> {
    /// Upstream documents, and what services say about each backend.
    pub fn backends(&mut self) -> Upstreams {
        let runtime = &self.input.publication.runtime;
        let mut upstreams = Upstreams::new();
        for (name, backend) in &runtime.backends {
            let place = format!("runtime.backends.{name}");
            if let Some(fields) = self.backend(name, backend, place) {
                upstreams.insert(name.clone(), fields);
            }
        }
        upstreams
    }

    /// The fields of services of a canary's candidate about each backend.
    pub fn backends_of_canary(
        &mut self,
        stable: &Upstreams,
        canary: &Canary,
        candidate: &Revision,
    ) -> Upstreams {
        let mut upstreams = stable.clone();
        for (name, backend) in &canary.backends {
            let place = format!("canary.backends.{name}");
            if !candidate.components.iter().any(|it| it.backend == *name) {
                self.fault(place, format!("no component has a backend '{name}'"));
            } else if let Some(fields) = self.backend(&format!("{name}.canary"), backend, place) {
                upstreams.insert(name.clone(), fields);
            }
        }
        upstreams
    }

    fn backend(&mut self, name: &str, backend: &Backend, place: String) -> Option<Map<String, Value>> {
        let mut fields = Map::new();
        match (&backend.url, backend.targets.as_slice()) {
            (Some(url), []) => {
                let url = self.resolved(url, &place)?;
                if !url.contains("://") {
                    self.fault(
                        format!("{place}.url"),
                        format!("expected http://host:port/path or https://…, found '{url}'"),
                    );
                    return None;
                }
                fields.insert("url".to_owned(), url.trim_end_matches('/').into());
            }
            (None, [_, ..]) => {
                let mut targets = Vec::new();
                for target in &backend.targets {
                    let host = self.resolved(&target.host, &place)?;
                    targets.push(json!({ "host": host, "port": target.port, "weight": target.weight }));
                }
                let id = format!("{}.{name}", self.name);
                let mut upstream = json!({ "name": id, "targets": targets });
                if let Some(scheme) = &backend.scheme {
                    upstream["scheme"] = scheme.as_str().into();
                }
                if let Some(checks) = &backend.checks {
                    upstream["checks"] = checks.clone();
                }
                self.document("upstreams", id.clone(), upstream);
                fields.insert("upstream".to_owned(), id.into());
                if let Some(path) = &backend.path {
                    fields.insert("path".to_owned(), path.as_str().into());
                }
            }
            (Some(_), [_, ..]) => {
                self.fault(place, "expected either 'url' or 'targets', not both");
                return None;
            }
            (None, []) => {
                self.fault(place, "expected 'url' (one server) or 'targets' (several)");
                return None;
            }
        }
        if let Some(tls) = &backend.tls {
            fields.insert("tls".to_owned(), tls.clone());
        }
        Some(fields)
    }

    /// The text with `${NAME}` replaced by what the publication, then what the environment says.
    fn resolved(&mut self, text: &str, place: &str) -> Option<String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${") {
            out.push_str(before);
            let Some((name, behind)) = behind.split_once('}') else {
                self.fault(place, format!("expected '}}' after '${{' in '{text}'"));
                return None;
            };
            let own = self.input.publication.runtime.variables.get(name);
            match own.or_else(|| self.input.environment.variables.get(name)) {
                Some(value) => out.push_str(value),
                None => {
                    let message =
                        format!("no variable is named '{name}', neither here nor in the environment");
                    self.fault(place, message);
                    return None;
                }
            }
            rest = behind;
        }
        out.push_str(rest);
        Some(out)
    }
}
