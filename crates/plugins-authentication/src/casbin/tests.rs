//! `casbin` as its users see it, with the models of Casbin's documentation.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

fn model(rule: &str, roles: &str, effect: &str, matcher: &str) -> String {
    format!(
        "[request_definition]\nr = sub, obj, act\n\n[policy_definition]\np = {rule}\n{roles}\
         [policy_effect]\ne = {effect}\n[matchers]\nm = {matcher}\n"
    )
}

fn allowed(filter: &Arc<dyn Filter>, user: Option<&str>, line: &str) -> bool {
    let mut call = exchange();
    prepare(&mut call, line, &[]);
    if let Some(user) = user {
        call.request.headers.append(b"user", user.as_bytes());
    }
    match filter.on_request(&mut call) {
        Outcome::Continue => true,
        Outcome::Refuse(refusal) => {
            assert_eq!(
                (refusal.status, refusal.message.as_deref()),
                (403, Some("Access Denied"))
            );
            false
        }
        outcome => panic!("{outcome:?}"),
    }
}

fn filter(model: &str, policy: &str) -> Arc<dyn Filter> {
    let config = json!({"user_header": "user", "model": model, "policy": policy});
    build(&Casbin, &config).expect("valid")
}

const SOME: &str = "some(where (p.eft == allow))";

#[test]
fn roles_and_paths_decide() {
    let matcher =
        "(g(r.sub, p.sub) || keyMatch(r.sub, p.sub)) && keyMatch(r.obj, p.obj) && keyMatch(r.act, p.act)";
    let model = model("sub, obj, act", "[role_definition]\ng = _, _\n", SOME, matcher);
    let policy = "p, *, /, GET\np, admin, *, *\n# a remark\ng, alice, admin\ng, bob, editor\ng, editor, writer\np, writer, /texts/*, PUT\n";
    let filter = filter(&model, policy);
    for (user, line, expected) in [
        (None, "GET /", true),
        (None, "GET /a", false),
        (Some("carol"), "GET /", true),
        (Some("carol"), "PUT /texts/1", false),
        (Some("alice"), "DELETE /anything", true),
        (Some("admin"), "DELETE /anything", true),
        (Some("bob"), "PUT /texts/1", true),
        (Some("bob"), "GET /texts/1", false),
        (Some("editor"), "PUT /texts/1", true),
    ] {
        assert_eq!(allowed(&filter, user, line), expected, "{user:?} {line}");
    }
    let mut twice = exchange();
    prepare(&mut twice, "GET /", &[("user", "alice"), ("user", "carol")]);
    assert_eq!(word(&filter.on_request(&mut twice)), "forbidden 403");
}

#[test]
fn effects_of_several_rules() {
    let matcher = "r.sub == p.sub && keyMatch(r.obj, p.obj) && r.act == p.act";
    let policy = "p, a, /x, GET, allow\np, a, /x/1, GET, deny\np, a, /x*, GET, allow\np, a, /y, GET, deny\n";
    for (effect, expected) in [
        (SOME, [true, true, false, false]),
        ("!some(where (p.eft == deny))", [true, false, false, true]),
        (
            "some(where (p.eft == allow)) && !some(where (p.eft == deny))",
            [true, false, false, false],
        ),
        ("priority(p.eft) || deny", [true, false, false, false]),
    ] {
        let filter = filter(&model("sub, obj, act, eft", "", effect, matcher), policy);
        let found =
            ["/x", "/x/1", "/y", "/z"].map(|path| allowed(&filter, Some("a"), &format!("GET {path}")));
        assert_eq!(found, expected, "{effect}");
    }
}

#[test]
fn functions_match_as_they_are_described() {
    for (function, pattern, value, expected) in [
        ("keyMatch", "/foo/*", "/foo/bar/baz", true),
        ("keyMatch", "/foo", "/foo/bar", false),
        ("keyMatch2", "/a/:id/b", "/a/1/b", true),
        ("keyMatch2", "/a/:id/b", "/a/1/2/b", false),
        ("keyMatch2", "/a/:id", "/a/", false),
        ("keyMatch2", "/a/*", "/a/1/2", true),
        ("keyMatch2", "/a.c", "/abc", false),
        ("keyMatch3", "/a/{id}/b", "/a/1/b", true),
        ("keyMatch3", "/a/{id}", "/a/1/2", false),
        ("keyMatch4", "/p/{id}/c/{id}", "/p/1/c/1", true),
        ("keyMatch4", "/$p/{id}", "/$p/1", true),
        ("keyMatch4", "/$p/{id}", "/p/1", false),
        ("keyMatch4", "/p$/{id}/$", "/p$/1/$", true),
        ("keyMatch4", "/p${id}", "/p$1", true),
        ("keyMatch4", "/p/{id}/c/{id}", "/p/1/c/2", false),
        ("keyMatch5", "/p/{id}", "/p/1", true),
        ("regexMatch", "^/a/[0-9]+$", "/a/12", true),
        ("regexMatch", "^/a/[0-9]+$", "/a/b", false),
        ("regexMatch", "[", "[", false),
        ("globMatch", "/a/*", "/a/b", true),
        ("globMatch", "/a/*", "/a/b/c", false),
        ("ipMatch", "10.0.0.0/8", "/10.0.0.1", false),
    ] {
        let matcher = format!("{function}(r.obj, p.obj)");
        let filter = filter(
            &model("sub, obj, act", "", SOME, &matcher),
            &format!("p, a, {pattern}, GET"),
        );
        assert_eq!(
            allowed(&filter, None, &format!("GET {value}")),
            expected,
            "{function} {pattern} {value}"
        );
    }
    let matcher = r#"r.act in ("GET", 'HEAD') && !(r.sub != "a") && ipMatch(r.sub, p.sub) == false"#;
    let broken =
        json!({"user_header": "user", "model": model("sub, obj, act", "", SOME, matcher), "policy": ""});
    assert_eq!(refused_at(&Casbin, &broken), ["model"]);
    let filter = filter(
        &model("sub, obj, act", "", SOME, matcher.rsplit_once(" && ").unwrap().0),
        "p, a, b, c",
    );
    assert!(allowed(&filter, Some("a"), "HEAD /") && !allowed(&filter, Some("a"), "PUT /"));
    assert!(!allowed(&filter, Some("b"), "GET /"));
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    let good = model("sub, obj, act", "", SOME, "r.sub == p.sub");
    let with = |from: &str, to: &str| good.replace(from, to);
    for (header, model, policy, place) in [
        ("a b", good.clone(), "", "user_header"),
        ("u", with("r = sub, obj, act", "r = sub"), "", "model"),
        ("u", with("r.sub == p.sub", ""), "", "model"),
        ("u", with("r.sub == p.sub", "r.sub == p.x"), "", "model"),
        ("u", with("r.sub == p.sub", "r.sub == p.sub &&"), "", "model"),
        ("u", with("r.sub == p.sub", "nothing(r.sub, p.sub)"), "", "model"),
        ("u", with("r.sub == p.sub", "g(r.sub, p.sub, r.obj)"), "", "model"),
        ("u", with("r.sub == p.sub", &"(".repeat(100)), "", "model"),
        ("u", with(SOME, "any"), "", "model"),
        (
            "u",
            with("[matchers]", "[role_definition]\ng = _, _, _\n[matchers]"),
            "",
            "model",
        ),
        ("u", good.clone(), "p, a", "policy"),
        ("u", good.clone(), "g, a, b", "policy"),
    ] {
        let config = json!({"user_header": header, "model": model, "policy": policy});
        assert_eq!(refused_at(&Casbin, &config), [place], "{config}");
    }
    assert!(build(&Casbin, &example(include_str!("mod.rs"))).is_ok());
}
