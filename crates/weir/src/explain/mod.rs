//! `weir explain`: what would happen to a call. The route that takes it and why, why the near ones do not, and
//! the plugins that would work on it.

mod call;
mod chain;
mod stored;
mod text;

use crate::args::ExplainArgs;
use crate::check::unread;
use crate::dialects;
use crate::load::{Loaded, load};
use crate::outcome::CommandOutput;
use call::Call;
use chain::PluginStep;
use serde::Serialize;
use stored::Place;
use weir_control::secrets::Policy;
use weir_model::{DialectName, DocPath, HostPattern, Model, Respond, Route, RouteMatch, RouteTarget};
use weir_plugin::{Exchange, system_clock};
use weir_snapshot::{MatchExplanation, PersistentState, Snapshot, Verdict};

/// Explains a call.
pub fn explain(args: &ExplainArgs) -> CommandOutput {
    let call = match Call::parse(&args.call, &args.headers, args.client) {
        Ok(call) => call,
        Err(message) => return CommandOutput::failed(2, format!("weir explain: {message}\n")),
    };
    let loaded = match Place::of(&args.stored) {
        Some(place) => match place.load(args.routers) {
            Ok(loaded) => loaded,
            Err(error) => return CommandOutput::failed(2, format!("weir explain: {error:#}\n")),
        },
        None => {
            let registry = weir_plugins::registry();
            match load(
                &args.config,
                args.routers,
                Policy::Look,
                &registry,
                &PersistentState::default(),
            ) {
                Ok(loaded) => loaded,
                Err(unreadable) => return unread(&unreadable),
            }
        }
    };
    let Some((model, snapshot)) = &loaded.good else {
        return CommandOutput::failed(1, loaded.report());
    };
    let explanation = Explainer {
        loaded: &loaded,
        model,
        snapshot,
    }
    .explain(&call);
    let stdout = match args.json {
        true => {
            serde_json::to_string_pretty(&explanation).map_or_else(|error| error.to_string(), |it| it + "\n")
        }
        false => text::render(&explanation),
    };
    CommandOutput {
        stdout,
        stderr: loaded.report(),
        code: 0,
    }
}

/// What would happen to a call.
#[derive(Debug, Serialize)]
struct Explanation {
    /// The call: method and URL.
    call: String,
    /// The client's address.
    client: String,
    /// The route that takes it; `None`: none does.
    route: Option<Winner>,
    /// A status that the gateway answers with before any plugin works, and why.
    answer: Option<Answer>,
    /// Routes that nearly took it, the nearest first.
    others: Vec<Other>,
    /// The plugins, in the order in which they work on the request.
    plugins: Vec<PluginStep>,
    /// Places in `plugins` (from 1), in the order in which they work on the response.
    response_order: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct Winner {
    name: String,
    dialect: DialectName,
    /// Where it stands: a file, and a line where that is known.
    at: Option<String>,
    /// The conditions by which it takes the call.
    by: String,
    /// Where the call goes.
    to: String,
}

#[derive(Debug, Serialize)]
struct Answer {
    status: u16,
    /// In whose words.
    dialect: DialectName,
    because: String,
}

#[derive(Debug, Serialize)]
struct Other {
    name: String,
    dialect: DialectName,
    at: Option<String>,
    by: String,
    /// Why it does not take the call.
    because: Vec<String>,
}

struct Explainer<'l> {
    loaded: &'l Loaded,
    model: &'l Model,
    snapshot: &'l Snapshot,
}

impl Explainer<'_> {
    fn explain(&self, call: &Call) -> Explanation {
        let mut exchange = Exchange::new(system_clock, 1);
        call.fill(&mut exchange.request);
        let mut explanation = Explanation {
            call: call.to_string(),
            client: call.client.to_string(),
            route: None,
            answer: None,
            others: Vec::new(),
            plugins: Vec::new(),
            response_order: Vec::new(),
        };
        let mut winner = None;
        for table in &self.snapshot.tables {
            let request = &mut exchange.request;
            let form = dialects::renderer(self.loaded.dialects(), table.dialect).normal_form();
            if form.apply(&request.raw_path, &mut request.path).is_err() {
                if winner.is_none() {
                    let because =
                        "the path leads above the root, holds a broken escape, or can be read in two ways"
                            .to_owned();
                    explanation.answer = Some(Answer {
                        status: 400,
                        dialect: table.dialect,
                        because,
                    });
                }
                break;
            }
            for explained in table.explain(&mut exchange) {
                match (&explained.verdict, &winner) {
                    (Verdict::Wins, None) => winner = Some(explained),
                    _ => explanation.others.push(self.other(&explained, winner.as_ref())),
                }
            }
        }
        match winner {
            Some(winner) => self.explain_route(&winner, call, &mut explanation),
            None => self.explain_unmatched(&mut explanation),
        }
        explanation
    }

    fn explain_route(&self, winner: &MatchExplanation, call: &Call, explanation: &mut Explanation) {
        let index = winner.route as usize;
        let route = &self.model.routes[index];
        explanation.route = Some(Winner {
            name: route.name.clone(),
            dialect: route.dialect,
            at: self.place_of_route(winner.route),
            by: conditions(route, winner.match_index),
            to: self.target(route),
        });
        explanation.answer = match (route.https_only_status, &route.target) {
            (Some(status), _) if !call.is_tls => Some(Answer {
                status,
                dialect: route.dialect,
                because: "the route takes calls over TLS only".to_owned(),
            }),
            _ if route.grpc_only_status.is_some() && !call.is_grpc() => Some(Answer {
                status: route.grpc_only_status.unwrap_or_default(),
                dialect: route.dialect,
                because: "the route takes gRPC only".to_owned(),
            }),
            (_, RouteTarget::Respond(respond)) if respond.before_plugins => Some(Answer {
                status: respond.status,
                dialect: route.dialect,
                because: "the route leads nowhere".to_owned(),
            }),
            _ => None,
        };
        if explanation.answer.is_none() {
            let place = DocPath::root().field("routes").index(index).field("plugins");
            let compiled = &self.snapshot.routes[index].chain;
            (explanation.plugins, explanation.response_order) = self.chain(&route.plugins, compiled, &place);
        }
    }

    fn explain_unmatched(&self, explanation: &mut Explanation) {
        if explanation.answer.is_some() {
            return;
        }
        explanation.answer = Some(Answer {
            status: 404,
            dialect: self.snapshot.dialect,
            because: "no route takes it".to_owned(),
        });
        let place = DocPath::root().field("unmatched");
        (explanation.plugins, explanation.response_order) =
            self.chain(&self.model.unmatched, &self.snapshot.unmatched, &place);
    }

    fn other(&self, explained: &MatchExplanation, winner: Option<&MatchExplanation>) -> Other {
        let route = &self.model.routes[explained.route as usize];
        let because = match &explained.verdict {
            Verdict::Fails(mismatches) => mismatches.iter().map(ToString::to_string).collect(),
            Verdict::Wins | Verdict::LowerPrecedence => vec![self.lower(explained, winner)],
        };
        Other {
            name: route.name.clone(),
            dialect: route.dialect,
            at: self.place_of_route(explained.route),
            by: conditions(route, explained.match_index),
            because,
        }
    }

    /// Why a route that holds goes behind the winner.
    fn lower(&self, explained: &MatchExplanation, winner: Option<&MatchExplanation>) -> String {
        let route = &self.model.routes[explained.route as usize];
        let Some(winner) = winner else {
            return "it holds too, but goes behind".to_owned();
        };
        let first = &self.model.routes[winner.route as usize];
        if first.dialect != route.dialect {
            return format!(
                "it holds too, but {} routes are looked at first",
                first.dialect.as_str()
            );
        }
        if winner.route == explained.route {
            return "another match of the same route goes first".to_owned();
        }
        let (higher, lower) = (Precedence::of(first, winner), Precedence::of(route, explained));
        if higher.value == lower.value {
            "it holds too, but comes later in the document".to_owned()
        } else if higher.is_given && lower.is_given {
            format!(
                "it holds too, but its precedence is {} against {}",
                lower.value, higher.value
            )
        } else {
            "it holds too, but is less specific".to_owned()
        }
    }

    fn place_of_route(&self, index: u32) -> Option<String> {
        self.loaded
            .place_of(&DocPath::root().field("routes").index(index as usize))
    }

    fn target(&self, route: &Route) -> String {
        let name = match &route.target {
            RouteTarget::Service(name) => name,
            RouteTarget::Respond(Respond {
                status,
                before_plugins,
            }) => {
                let unless = if *before_plugins {
                    ""
                } else {
                    " unless a plugin answers"
                };
                return format!("nowhere: {status}{unless}");
            }
        };
        let service = self.model.services.iter().find(|service| service.name == *name);
        match service.map(|service| (&service.url, &service.upstream)) {
            Some((Some(url), _)) => format!("service {name}, {}", without_user(url)),
            Some((None, Some(upstream))) => format!("service {name}, {}", self.upstream(upstream)),
            _ => format!("service {name}"),
        }
    }

    fn upstream(&self, name: &str) -> String {
        let upstream = self.model.upstreams.iter().find(|upstream| upstream.name == name);
        match upstream.map(|upstream| upstream.targets.as_slice()) {
            Some([only]) => format!("upstream {name} ({}:{})", only.host, only.port),
            Some(targets) => format!("upstream {name} ({} targets)", targets.len()),
            None => format!("upstream {name}"),
        }
    }
}

/// What decides between two matches that hold.
struct Precedence {
    value: u64,
    /// Whether the document gives it.
    is_given: bool,
}

impl Precedence {
    fn of(route: &Route, explained: &MatchExplanation) -> Self {
        let Some(found) = route.matches.get(explained.match_index) else {
            return Self {
                value: 0,
                is_given: false,
            };
        };
        let is_this = |host: &&HostPattern| {
            let text = host.to_string();
            text == explained.host || text.starts_with(&format!("{}:", explained.host))
        };
        let host = found.hosts.iter().find(is_this).unwrap_or(&HostPattern::Any);
        Self {
            value: found.precedence.unwrap_or_else(|| found.default_precedence(host)),
            is_given: found.precedence.is_some(),
        }
    }
}

/// A URL may hold a password.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    match rest[..authority_end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

/// The conditions of one of a route's matches.
fn conditions(route: &Route, match_index: usize) -> String {
    let Some(found) = route.matches.get(match_index) else {
        return "no condition".to_owned();
    };
    let RouteMatch {
        hosts,
        path,
        methods,
        headers,
        remote_addrs,
        snis,
        when,
        precedence: _,
    } = found;
    let mut parts = vec![format!("path {path}")];
    let mut list = |noun: &str, items: Vec<String>| match items.as_slice() {
        [] => {}
        [only] => parts.push(format!("{noun} {only}")),
        items => parts.push(format!("{noun}s {}", items.join(" or "))),
    };
    list("host", hosts.iter().map(ToString::to_string).collect());
    list("method", methods.clone());
    for header in headers {
        list("header", vec![header.name.clone()]);
    }
    list("client", remote_addrs.iter().map(ToString::to_string).collect());
    list("server name", snis.clone());
    if let Some(when) = when {
        parts.push(format!("condition {}", when.to_value()));
    }
    parts.join(", ")
}
