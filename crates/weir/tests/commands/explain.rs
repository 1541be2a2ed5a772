//! `weir explain`.

use super::{APISIX, KONG, SHOP, assert_says, folder, weir};

#[test]
fn explain_shows_route_reasons_and_chain() {
    let folder = folder(&[("shop.yaml", SHOP)]);
    for (call, text) in [
        (
            "GET http://localhost/orders/7",
            "\
GET http://localhost/orders/7 from 127.0.0.1

Route orders (native), shop.yaml:6
  takes it by path /orders, methods GET or POST
  and sends it to service shop, upstream pool (2 targets)

Not these
  all (path /), shop.yaml:18
    it holds too, but is less specific
  order (path /orders/{id}, host *.example.com), shop.yaml:15
    the host is another one

Plugins
  1. key-auth (shared 'keys'), shop.yaml:35
       refuses this call with 401: the call carries no credential
  2. rate-limit when [\"arg_free\",\"!\",\"==\",\"yes\"], shop.yaml:11
",
        ),
        (
            "DELETE http://localhost/orders",
            "\
DELETE http://localhost/orders from 127.0.0.1

Route all (native), shop.yaml:18
  takes it by path /
  and sends it to service shop, upstream pool (2 targets)

Not these
  orders (path /orders, methods GET or POST), shop.yaml:6
    the method is not among the route's

No plugins
",
        ),
        (
            "GET http://localhost/secure",
            "\
GET http://localhost/secure from 127.0.0.1

Route secure (native), shop.yaml:24
  takes it by path /secure
  The gateway answers 426 in the native dialect: the route accepts only calls over TLS

Not these
  all (path /), shop.yaml:18
    it holds too, but is less specific

No plugins
",
        ),
        (
            "GET http://localhost/../x",
            "\
GET http://localhost/../x from 127.0.0.1

No route
  The gateway answers 400 in the native dialect: the path leads above the root, holds a broken escape, or can be read in two ways

No plugins
",
        ),
    ] {
        assert_says(&folder, &["explain", "-c", "shop.yaml", call], text, "", 0);
    }
}

#[test]
fn explain_goes_through_the_dialects_in_order() {
    let folder = folder(&[("kong.yml", KONG), ("apisix.yaml", APISIX)]);
    let call = [
        "explain",
        "-c",
        "kong.yml",
        "-c",
        "apisix.yaml",
        "http://localhost/hello",
    ];
    let output = weir(folder.path(), &call);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "Route hello (kong), kong.yml\n",
        "Not these\n  hi (path /h*), apisix.yaml\n    it holds too, but kong routes are looked at first\n",
        "Plugins\n  1. key-auth (",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

/// The plugin of the file is named, not only what stands in for it.
#[test]
fn explain_names_plugins_that_are_not_served() {
    let text = KONG.replace(
        "      - name: key-auth\n",
        "      - name: pre-function\n        config: {access: [return]}\n",
    );
    let global = KONG.to_owned() + "plugins: [{name: pre-function, config: {access: [return]}}]\n";
    for (text, line) in [(text, 9), (global, 13)] {
        let folder = folder(&[("kong.yml", &text)]);
        let output = weir(
            folder.path(),
            &["explain", "-c", "kong.yml", "http://localhost/hello"],
        );
        let stdout = String::from_utf8_lossy(&output.stdout);
        let named = format!("kong.yml:{line}: pre-function there is not served, so calls are refused\n");
        assert!(stdout.contains(&named), "{named}: {stdout}");
        assert!(stdout.contains("answers this call with 503"), "{stdout}");
    }
}

#[test]
fn explain_speaks_json_too() {
    let folder = folder(&[("shop.yaml", SHOP)]);
    let call = [
        "explain",
        "-c",
        "shop.yaml",
        "/off",
        "-H",
        "Host: a.example.com",
        "--client",
        "10.0.0.1",
        "--json",
    ];
    let output = weir(folder.path(), &call);
    let stdout: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(stdout["client"], "10.0.0.1");
    assert_eq!(stdout["route"]["name"], "off");
    assert_eq!(stdout["answer"]["status"], 503);
    assert_eq!(stdout["others"][0]["name"], "all");
    assert_eq!(stdout["plugins"], serde_json::json!([]));
}

#[test]
fn secrets_are_not_shown() {
    let text = SHOP.replace("upstream: pool", "url: http://user:s3cret@127.0.0.1/");
    let folder = folder(&[("shop.yaml", &text)]);
    let output = weir(folder.path(), &["explain", "-c", "shop.yaml", "/x"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("s3cret"));
}
