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
fn groups_that_other_plugins_have_found_are_judged() {
    let rules = |of: &str| {
        json!({
            "allow": [{"of": {"label": "team"}, "values": ["red", "admins"]}],
            "authenticated_groups": {"of": of, "header": "X-Authenticated-Groups"},
            "label_header": {"header": "X-Groups", "label": "team", "if_empty": true},
        })
    };
    let (without, everybody) = (rules("without-credential"), rules("everybody"));
    let mut denied = json!({"deny": [{"of": {"label": "team"}, "values": ["admins"]}]});
    denied["authenticated_groups"] = json!({"of": "without-credential"});
    let fact = json!({
        "require": "authenticated-group",
        "allow": [{"of": "authenticated-group", "values": ["admins"]}],
    });
    for (config, caller, groups, expected, header) in [
        (
            &without,
            "",
            Some(&["staff", "admins"][..]),
            "continue",
            &["X-Authenticated-Groups: staff, admins"][..],
        ),
        (&without, "", Some(&["staff"]), "forbidden 403", &[]),
        (&without, "", Some(&[]), "forbidden 403", &[]),
        (&without, "", None, "Missing", &[]),
        // Somebody is known, who is in no group and no consumer.
        (&without, "somebody", None, "forbidden 403", &[]),
        (&without, "bob", Some(&["admins"]), "forbidden 403", &[]),
        (
            &without,
            "bob?",
            Some(&["admins"]),
            "continue",
            &["X-Authenticated-Groups: admins"],
        ),
        (
            &everybody,
            "bob",
            Some(&["admins"]),
            "continue",
            &["X-Authenticated-Groups: admins"],
        ),
        (&denied, "", Some(&["admins"]), "forbidden 403", &[]),
        (&denied, "", Some(&["staff"]), "continue", &[]),
        (&fact, "", Some(&["admins"]), "continue", &[]),
        (&fact, "bob", Some(&["staff"]), "forbidden 403", &[]),
        (&fact, "alice", None, "Missing", &[]),
    ] {
        let is_somebody = caller == "somebody";
        let mut exchange = call("GET /", if is_somebody { "" } else { caller });
        if is_somebody {
            exchange.add_fingerprint(b"cn=somebody");
        }
        exchange
            .request
            .headers
            .append(b"X_Authenticated-Groups", b"forged");
        if let Some(groups) = groups {
            let groups: Vec<String> = groups.iter().map(|it| (*it).to_owned()).collect();
            authenticated_groups::note(&mut exchange, groups);
        }
        let filter = build(&Acl, config).expect("valid");
        let outcome = filter.on_request(&mut exchange);
        assert_eq!(word(&outcome), expected, "{config} {caller} {groups:?}");
        let names_header = config["authenticated_groups"]["header"].is_string();
        if expected == "continue" && names_header {
            assert_eq!(lines(&exchange.request.headers), header, "{config} {caller}");
        }
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
fn upstreams_get_the_label() {
    let config = json!({
        "deny": [{"of": "consumer", "values": ["x"]}],
        "label_header": {"header": "X-Groups", "label": "team"},
    });
    let filter = build(&Acl, &config).expect("valid");
    for (caller, headers) in [("alice", &["X-Groups: blue"][..]), ("bob", &[])] {
        let mut exchange = call("GET /", caller);
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        assert_eq!(lines(&exchange.request.headers), headers, "{caller}");
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (config, places) in [
        (json!({}), &[""][..]),
        (
            json!({"deny": [{"of": "consumer", "values": []}], "status": 1, "label_header": {"header": "", "label": "l"}}),
            &["status", "label_header"],
        ),
        (json!({"deny": [{"of": "consumer"}]}), &["deny[0]"]),
        (
            json!({
                "deny": [{"of": "consumer", "values": []}],
                "authenticated_groups": {"of": "everybody", "header": "a b"},
            }),
            &["authenticated_groups.header"],
        ),
    ] {
        assert_eq!(refused_at(&Acl, &config), places, "{config}");
    }
}
