//! Routes that no listener of this process reaches: they are configured, and never get a call.

use crate::args::RunArgs;
use weir_model::{Model, StreamProtocol, StreamRoute};
use weir_snapshot::StreamTransport;

/// Routes that a note names at most.
const MAX_NAMED: usize = 10;

/// The kinds of listeners of this process.
#[derive(Debug, Clone, Default)]
pub struct ListenerKinds {
    has_plain: bool,
    has_tls: bool,
    streams: Vec<StreamTransport>,
}

impl ListenerKinds {
    /// Those that the flags open.
    pub fn of(args: &RunArgs) -> Self {
        Self {
            has_plain: !args.listen().is_empty(),
            has_tls: !args.listen_tls().is_empty(),
            streams: (args.streams.listen_stream.iter())
                .map(|it| it.transport)
                .collect(),
        }
    }

    /// A note for each kind of listener that routes need and that there is not.
    pub fn notes(&self, model: &Model) -> Vec<String> {
        let streams: Vec<&str> = (model.stream_routes.iter())
            .filter(|it| !self.reaches(it))
            .map(|it| it.name.as_str())
            .collect();
        let has_any = self.has_plain || self.has_tls;
        let (mut any, mut tls) = (Vec::new(), Vec::new());
        for route in &model.routes {
            if !has_any {
                any.push(route.name.as_str());
            } else if route.https_only_status.is_some() && !self.has_tls {
                tls.push(route.name.as_str());
            }
        }
        let all = [
            (any, "--listen or --listen-tls"),
            (tls, "--listen-tls"),
            (streams, "--listen-stream with their protocols"),
        ];
        (all.into_iter().filter(|(names, _)| !names.is_empty()))
            .map(|(names, flag)| note(&names, flag))
            .collect()
    }

    /// Whether a listener for streams has sessions of the route.
    fn reaches(&self, route: &StreamRoute) -> bool {
        self.streams.iter().any(|transport| {
            let has = |protocol| route.protocols.contains(&protocol);
            route.protocols.is_empty()
                || match transport {
                    StreamTransport::Tcp => has(StreamProtocol::Tcp),
                    StreamTransport::Tls => has(StreamProtocol::Tls) || has(StreamProtocol::TlsPassthrough),
                    StreamTransport::Udp => has(StreamProtocol::Udp),
                }
        })
    }
}

fn note(names: &[&str], flag: &str) -> String {
    let named = names[..names.len().min(MAX_NAMED)].join("', '");
    let more = match names.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("warning: no listener has calls for '{named}'{more}: give {flag}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn routes_without_a_listener_are_named() {
        let route = |name: &str, status: Option<u16>| json!({"name": name, "match": [], "to": {"service": "s"}, "https_only_status": status});
        let stream = |name: &str, protocols: &[&str]| json!({"name": name, "protocols": protocols});
        let model = Model {
            routes: serde_json::from_value(json!([route("a", None), route("b", Some(426))])).expect("routes"),
            stream_routes: serde_json::from_value(json!([
                stream("any", &[]),
                stream("tcp", &["tcp"]),
                stream("udp", &["udp"]),
                stream("through", &["tls-passthrough"]),
            ]))
            .expect("stream routes"),
            ..Model::default()
        };
        let (tcp, tls, udp) = (StreamTransport::Tcp, StreamTransport::Tls, StreamTransport::Udp);
        let no_tls = "warning: no listener has calls for 'b': give --listen-tls";
        let of_streams = |names| {
            format!("warning: no listener has calls for {names}: give --listen-stream with their protocols")
        };
        for ((has_plain, has_tls, streams), expected) in [
            ((true, true, vec![tcp, tls, udp]), vec![]),
            ((true, false, vec![tcp, tls, udp]), vec![no_tls.to_owned()]),
            (
                (true, true, vec![]),
                vec![of_streams("'any', 'tcp', 'udp', 'through'")],
            ),
            ((true, true, vec![tcp, udp]), vec![of_streams("'through'")]),
            (
                (false, false, vec![tcp, tls, udp]),
                vec!["warning: no listener has calls for 'a', 'b': give --listen or --listen-tls".to_owned()],
            ),
        ] {
            let kinds = ListenerKinds {
                has_plain,
                has_tls,
                streams,
            };
            assert_eq!(kinds.notes(&model), expected, "{kinds:?}");
        }
        let names: Vec<String> = (0..12).map(|it| it.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(note(&names, "--listen").contains("'9' and 2 more: give --listen"));
    }
}
