//! Which route takes which call: every kind of pattern and condition, and precedence among them.

mod common;

use common::{call, routes_of, snapshot};
use serde_json::{Value, json};
use weir_snapshot::{Mismatch, Verdict};

/// Matches, then calls with the position of the match that takes each.
fn check(matches: &[Value], calls: &[(&str, Option<u32>)]) {
    let snapshot = snapshot(routes_of(matches));
    for (text, wanted) in calls {
        let mut exchange = call(text);
        let found = snapshot.tables[0].find(&mut exchange);
        assert_eq!(found.map(|it| it.route), *wanted, "{text}");
        let explained = snapshot.tables[0].explain(&mut exchange);
        let winner = explained.first().filter(|it| it.verdict == Verdict::Wins);
        assert_eq!(winner.map(|it| it.route), *wanted, "{text}: {explained:?}");
    }
}

#[test]
fn paths() {
    check(
        &[
            json!({"path": "=/exact"}),
            json!({"path": "/segments"}),
            json!({"path": "/prefix*"}),
            json!({"path": "/users/{id}"}),
            json!({"path": "/users/{id}/posts/{post}"}),
            json!({"path": "/files/{path*}"}),
            json!({"path": r"~/v\d+/things$"}),
            json!({"path": "/users/me"}),
            json!({"path": "/slash/"}),
        ],
        &[
            ("GET h/exact", Some(0)),
            ("GET h/exact/", None),
            ("GET h/exactly", None),
            ("GET h/segments", Some(1)),
            ("GET h/segments/", Some(1)),
            ("GET h/segments/x", Some(1)),
            ("GET h/segmentsx", None),
            ("GET h/segment", None),
            ("GET h/prefix", Some(2)),
            ("GET h/prefixed/x", Some(2)),
            ("GET h/users/1", Some(3)),
            ("GET h/users/", None),
            ("GET h/users/1/", None),
            ("GET h/users/1/posts/2", Some(4)),
            ("GET h/users//posts/2", None),
            ("GET h/users/me", Some(7)),
            ("GET h/users/me/posts/3", Some(7)),
            ("GET h/files/", Some(5)),
            ("GET h/files/a/b", Some(5)),
            ("GET h/files", None),
            ("GET h/v12/things", Some(6)),
            ("GET h/v12/thingsx", None),
            ("GET h/vx/things", None),
            ("GET h/slash/x", Some(8)),
            ("GET h/slash", None),
            ("GET h/EXACT", None),
            ("OPTIONS h", None),
        ],
    );
}

/// Text next to a parameter in its segment is part of the pattern, and makes it the more specific one.
#[test]
fn parameters_that_share_a_segment() {
    check(
        &[
            json!({"path": "/files/{name}"}),
            json!({"path": "/files/{name}.json"}),
            json!({"path": "/v1.0/{name}"}),
            json!({"path": "/v1.0/{name}:cancel"}),
            json!({"path": "/a-{x}-b"}),
            json!({"path": "/two/{x}-{y}/end"}),
            json!({"path": "/two/{x}/end"}),
        ],
        &[
            ("GET h/files/a", Some(0)),
            ("GET h/files/a.json", Some(1)),
            ("GET h/files/.json", Some(0)),
            ("GET h/files/a.jsonx", Some(0)),
            ("GET h/files/axjson", Some(0)),
            ("GET h/files/a/b.json", None),
            ("GET h/files/a.json/", None),
            ("GET h/v1.0/7", Some(2)),
            ("GET h/v1.0/7:cancel", Some(3)),
            ("GET h/v1.0/7:cancel:cancel", Some(3)),
            ("GET h/v1.0/:cancel", Some(2)),
            ("GET h/v1x0/7:cancel", None),
            ("GET h/a-1-b", Some(4)),
            ("GET h/a--b", None),
            ("GET h/a-1-bc", None),
            ("GET h/two/1-2/end", Some(5)),
            ("GET h/two/12/end", Some(6)),
            ("GET h/two/-2/end", Some(6)),
        ],
    );
}

#[test]
fn hosts() {
    check(
        &[
            json!({"hosts": ["a.com", "b.com:8443"]}),
            json!({"hosts": ["*.a.com"]}),
            json!({"hosts": ["*.x.a.com"]}),
            json!({"hosts": ["www.*"]}),
            json!({"hosts": ["c.com:80", "d.com:443"]}),
            json!({"path": "/any"}),
        ],
        &[
            ("GET a.com/", Some(0)),
            ("GET a.com:81/", Some(0)),
            ("GET b.com/", None),
            ("GET b.com:8443/", Some(0)),
            ("GET y.a.com/", Some(1)),
            ("GET y.x.a.com/", Some(2)),
            ("GET x.a.com/", Some(1)),
            ("GET .a.com/", None),
            ("GET www.org/", Some(3)),
            ("GET www./", None),
            ("GET www.a.com/", Some(1)),
            ("GET c.com/", Some(4)),
            ("GET c.com:80/", Some(4)),
            ("GET c.com:81/", None),
            ("GET d.com/", None),
            ("GET d.com/ | sni:", Some(4)),
            ("GET z.org/", None),
            ("GET z.org/any", Some(5)),
            ("GET /any", Some(5)),
        ],
    );
}

#[test]
fn further_conditions() {
    check(
        &[
            json!({"path": "/m", "methods": ["GET", "PURGE"]}),
            json!({"path": "/m", "methods": ["MKCOL"]}),
            json!({"path": "/h", "headers": [{"name": "X-Tenant", "values": ["one", "two"]}]}),
            json!({"path": "/h", "headers": [{"name": "x-tenant", "regex": "^t[0-9]+$"}]}),
            json!({"path": "/p", "headers": [{"name": "x-tenant"}]}),
            json!({"path": "/n", "remote_addrs": ["10.0.0.0/8", "::1/128"]}),
            json!({"path": "/s", "snis": ["s.com", "*.t.com"]}),
            json!({"path": "/w", "when": ["arg_a", "==", "1"]}),
        ],
        &[
            ("GET h/m", Some(0)),
            ("PURGE h/m", Some(0)),
            ("MKCOL h/m", Some(1)),
            ("POST h/m", None),
            ("COPY h/m", None),
            ("get h/m", None),
            ("GET h/h", None),
            ("GET h/h | x-tenant: TWO", Some(2)),
            ("GET h/h | x-tenant: three | x-tenant: one", Some(2)),
            ("GET h/h | x-tenant: t12", Some(3)),
            ("GET h/h | x-tenant: t", None),
            ("GET h/p | X-TENANT: ", Some(4)),
            ("GET h/p", None),
            ("GET h/n | client: 10.1.2.3", Some(5)),
            ("GET h/n | client: ::ffff:10.1.2.3", Some(5)),
            ("GET h/n | client: ::1", Some(5)),
            ("GET h/n | client: 11.1.2.3", None),
            ("GET h/s", Some(6)),
            ("GET h/s | sni: s.com", Some(6)),
            ("GET h/s | sni: S.COM.", Some(6)),
            ("GET h/s | sni: a.t.com", Some(6)),
            ("GET h/s | sni: t.com", None),
            ("GET h/s | sni: ", None),
            ("GET h/w?a=1", Some(7)),
            ("GET h/w?a=2", None),
        ],
    );
}

#[test]
fn precedence_goes_over_hosts_and_paths() {
    check(
        &[
            json!({"path": "/a", "precedence": 3}),
            json!({"path": "/a/b/c", "precedence": 1}),
            json!({"hosts": ["h"], "path": "/a", "precedence": 2}),
            json!({"hosts": ["h"], "path": "=/a", "methods": ["POST"], "precedence": 4}),
            json!({"path": "/a", "precedence": 3}),
            json!({"path": "~/a/.*z", "precedence": 9}),
        ],
        &[
            ("GET h/a", Some(0)),
            ("POST h/a", Some(3)),
            ("GET h/a/b/c", Some(0)),
            ("GET h/a/b/z", Some(5)),
            ("GET x/a", Some(0)),
        ],
    );
    // Without numbers the more specific goes first, whatever the order, and host by host.
    check(
        &[
            json!({}),
            json!({"path": "/a"}),
            json!({"path": "/a", "methods": ["GET"]}),
            json!({"path": "/a/{x}"}),
            json!({"path": "=/a/b"}),
            json!({"hosts": ["*.com", "x.com"]}),
            json!({"hosts": ["y.com"]}),
        ],
        &[
            ("GET h/", Some(0)),
            ("POST h/a", Some(1)),
            ("GET h/a", Some(2)),
            ("GET h/a/c", Some(3)),
            ("GET h/a/b", Some(4)),
            ("GET x.com/a/b", Some(5)),
            ("GET y.com/a/b", Some(6)),
        ],
    );
}

#[test]
fn lengths_and_captures() {
    let matches = [
        (json!({"path": "=/e"}), "/e", 2, vec![]),
        (json!({"path": "/s"}), "/s/x", 2, vec![]),
        (json!({"path": "/p*"}), "/px", 2, vec![]),
        (json!({"path": "*"}), "/x", 0, vec![]),
        (
            json!({"path": "/t/{a}/{b}"}),
            "/t/1/22",
            7,
            vec![("a", "1"), ("b", "22")],
        ),
        (
            json!({"path": "/t/{a}.x/b-{c}-{d}"}),
            "/t/1.x.x/b-2-3-4",
            16,
            vec![("a", "1.x"), ("c", "2-3"), ("d", "4")],
        ),
        (
            json!({"path": "/t/{a}/{b*}"}),
            "/t/1/2/3",
            5,
            vec![("a", "1"), ("b", "2/3")],
        ),
        (json!({"path": "~/r/x?"}), "/r/xyz", 4, vec![]),
        (
            json!({"path": r"~/r/(?<id>\d+)(/x)?(/y)?"}),
            "/r/12/y/z",
            7,
            vec![("1", "12"), ("id", "12"), ("3", "/y")],
        ),
        (
            json!({"path": "~/ü/(?<any>.)"}),
            "/ü/é",
            5,
            vec![("1", "\u{fffd}"), ("any", "\u{fffd}")],
        ),
        (json!({"path": r"~/(\p{Greek})"}), "/β", 3, vec![("1", "β")]),
    ];
    for (route_match, path, matched_len, captures) in matches {
        let snapshot = snapshot(routes_of(std::slice::from_ref(&route_match)));
        let mut exchange = call(&format!("GET h{path}"));
        // What an earlier search left behind is not kept.
        exchange.captures.push(("old".into(), Vec::new()));
        let found = snapshot.tables[0].find(&mut exchange).expect("found");
        assert_eq!(found.matched_len, matched_len, "{route_match}");
        let found: Vec<_> = exchange
            .captures
            .iter()
            .map(|(name, value)| (name.as_ref(), String::from_utf8_lossy(value).into_owned()))
            .collect();
        let wanted: Vec<_> = captures
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        assert_eq!(found, wanted, "{route_match}");
    }
}

#[test]
fn near_misses_are_explained() {
    let snapshot = snapshot(routes_of(&[
        json!({"path": "/api", "methods": ["POST"]}),
        json!({"path": "/api"}),
        json!({"path": "/ap*"}),
        json!({"hosts": ["x.com"], "path": "/api"}),
        json!({"path": "=/api/"}),
        json!({"path": "/other"}),
        json!({"path": "~/api$", "headers": [{"name": "a"}, {"name": "b"}], "remote_addrs": ["10.0.0.0/8"]}),
        json!({"hosts": ["h:81"], "snis": ["x"], "when": ["arg_a", "==", "1"]}),
    ]));
    let explained = snapshot.tables[0].explain(&mut call("GET h/api | a: 1 | sni: h"));
    let header = |name: &str| Mismatch::Header(name.to_owned());
    let verdicts: Vec<_> = explained
        .into_iter()
        .map(|it| (it.route, it.host, it.verdict))
        .collect();
    let any = || "*".to_owned();
    assert_eq!(
        verdicts,
        [
            (1, any(), Verdict::Wins),
            (2, any(), Verdict::LowerPrecedence),
            (3, "x.com".to_owned(), Verdict::Fails(vec![Mismatch::Host])),
            (4, any(), Verdict::Fails(vec![Mismatch::Path])),
            (0, any(), Verdict::Fails(vec![Mismatch::Method])),
            (
                6,
                any(),
                Verdict::Fails(vec![header("b"), Mismatch::RemoteAddress])
            ),
            (
                7,
                "h".to_owned(),
                Verdict::Fails(vec![
                    Mismatch::Port(81),
                    Mismatch::ServerName,
                    Mismatch::Condition
                ])
            ),
        ]
    );
}

#[test]
fn dialects_have_tables_of_their_own() {
    let route = |name: &str, dialect: &str| json!({"name": name, "dialect": dialect, "match": [{"path": "/a"}], "to": {"respond": {"status": 503, "before_plugins": true}}});
    let snapshot = snapshot(json!({
        "routes": [route("a", "kong"), route("b", "native"), route("a", "native"), route("c", "kong")]
    }));
    let found: Vec<_> = snapshot
        .tables
        .iter()
        .map(|table| {
            (
                table.dialect.as_str(),
                table.find(&mut call("GET h/a")).map(|it| it.route),
            )
        })
        .collect();
    assert_eq!(found, [("kong", Some(0)), ("native", Some(1))]);
}

/// Routes that say that they are the last stand behind those of all dialects. One that refuses calls keeps its place, also with
/// the lowest precedence: no other route takes its calls.
#[test]
fn last_routes_stand_behind_all_dialects() {
    let route = |name: &str, dialect: &str, status: u16, last: bool| {
        json!({
            "name": name, "dialect": dialect, "match": [{"path": "/a*", "precedence": 0}],
            "to": {"respond": {"status": status, "before_plugins": true, "last": last}},
        })
    };
    let snapshot = snapshot(json!({
        "routes": [route("none", "native", 404, true), route("guarded", "native", 503, false), route("open", "kong", 200, false)]
    }));
    let found = snapshot.tables.iter().map(|table| {
        let found = table.find(&mut call("GET h/a"));
        (table.dialect.as_str(), found.map(|it| it.route))
    });
    let found: Vec<_> = found.collect();
    assert_eq!(
        found,
        [("native", Some(1)), ("kong", Some(2)), ("native", Some(0))]
    );
}
