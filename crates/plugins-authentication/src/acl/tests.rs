//! `acl` as its users see it.

use super::*;
use serde_json::json;
use weir_plugin::RouteInfo;
use weir_plugins_testkit::*;

/// A call of this method by this caller, who has a credential unless the name ends in `?`.
fn call(line: &str, caller: &str) -> Exchange {
    let mut exchange = exchange();
    prepare(
        &mut exchange,
        line,
        &[("X-Groups", "spoof"), ("x_groups", "spoof")],
    );
    exchange.route = Some(Arc::new(RouteInfo {
        name: "r".into(),
        service: "s".into(),
        ..RouteInfo::default()
    }));
    exchange.identity = match caller {
        "" => None,
        caller => Some(match caller.strip_suffix('?') {
            Some(anonymous) => identity(anonymous, None),
            None => identity(caller, Some("c")),
        }),
    };
    exchange
}

#[test]
fn calls_pass_by_who_makes_them() {
    let blue = json!({"allow": [{"of": {"label": "team"}, "values": ["red", "blue"]}]});
    let not_blue = json!({"deny": [{"of": {"label": "team"}, "values": ["blue"]}]});
    let strict =
        json!({"allow": [{"of": {"label": "team"}, "values": ["red"]}], "anonymous_must_have": true});
    let names = json!({
        "allow": [{"of": "consumer", "values": ["ALICE"]}],
        "deny": [{"of": "consumer", "values": ["BOB"]}],
    });
    let group = json!({"require": "consumer-group", "deny": [{"of": "consumer-group", "values": ["free"]}]});
    let route = json!({"require": "route", "allow": [{"of": "route", "values": ["r"]}]});
    let service = json!({"require": "service", "allow": [{"of": "service", "values": ["x"]}]});
    let methods =
        json!({"methods": [{"of": "ALICE", "methods": ["GET"]}, {"of": "BOB", "methods": ["PUT"]}]});
    for (config, line, caller, expected) in [
        (&blue, "GET /", "alice", "continue"),
        (&blue, "GET /", "alice?", "continue"),
        (&blue, "GET /", "bob", "forbidden 403"),
        (&blue, "GET /", "bob?", "forbidden 403"),
        (&blue, "GET /", "", "Missing"),
        (&not_blue, "GET /", "alice", "forbidden 403"),
        (&not_blue, "GET /", "bob", "continue"),
        (&not_blue, "GET /", "", "Missing"),
        (&strict, "GET /", "bob?", "Missing"),
        (&strict, "GET /", "bob", "forbidden 403"),
        (&strict, "GET /", "alice?", "forbidden 403"),
        (&names, "GET /", "alice", "continue"),
        (&names, "GET /", "bob", "forbidden 403"),
        (&names, "GET /", "guest", "forbidden 403"),
        (&group, "GET /", "alice", "continue"),
        (&group, "GET /", "bob", "Missing"),
        (&route, "GET /", "", "continue"),
        (&service, "GET /", "", "forbidden 403"),
        (&methods, "GET /", "alice", "continue"),
        (&methods, "POST /", "alice", "forbidden 403"),
        (&methods, "GET /", "bob", "forbidden 403"),
        (&methods, "PUT /", "bob", "continue"),
        (&methods, "DELETE /", "guest", "continue"),
        (&example(include_str!("mod.rs")), "GET /", "alice", "continue"),
    ] {
        let filter = build(&Acl, config).expect("valid");
        let outcome = filter.on_request(&mut call(line, caller));
        assert_eq!(word(&outcome), expected, "{config} {line} {caller}");
    }
}

#[test]
fn a_label_of_the_route_goes_before_the_name_of_its_service() {
    let allow = json!({"require": "service", "allow": [{"of": "service", "values": ["1"]}]});
    let deny = json!({"require": "service", "deny": [{"of": "service", "values": ["1"]}]});
    for (config, label, expected) in [
        (&allow, "1", "continue"),
        (&allow, "2", "forbidden 403"),
        (&allow, "", "Missing"),
        (&deny, "1", "forbidden 403"),
        (&deny, "", "Missing"),
    ] {
        let mut exchange = call("GET /", "");
        exchange.route = Some(Arc::new(RouteInfo {
            service: "routes/r".into(),
            labels: [("service_id".to_owned(), label.to_owned())].into(),
            ..RouteInfo::default()
        }));
        let outcome = build(&Acl, config).expect("valid").on_request(&mut exchange);
        assert_eq!(word(&outcome), expected, "{config} {label}");
    }
}

#[test]
fn upstreams_are_told() {
    let config = json!({
        "deny": [{"of": "consumer", "values": ["x"]}],
        "tell": {"header": "X-Groups", "label": "team"},
    });
    let filter = build(&Acl, &config).expect("valid");
    for (caller, told) in [("alice", &["X-Groups: blue"][..]), ("bob", &[])] {
        let mut exchange = call("GET /", caller);
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        assert_eq!(lines(&exchange.request.headers), told, "{caller}");
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, places) in [
        (json!({}), &[""][..]),
        (
            json!({"deny": [{"of": "consumer", "values": []}], "status": 1, "tell": {"header": "", "label": "l"}}),
            &["status", "tell"],
        ),
        (json!({"deny": [{"of": "consumer"}]}), &["deny[0]"]),
    ] {
        assert_eq!(refused_at(&Acl, &config), places, "{config}");
    }
}
