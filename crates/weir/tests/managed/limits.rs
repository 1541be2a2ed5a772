//! One limit over several gateways without a Redis: they synchronise their counts through the control plane.

use crate::support::{Call, Weir, server, until};
use std::time::Duration;

const LIMIT: u64 = 3_000;
/// Between calls that ask again and again: each of them counts.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls as this caller: what is left of the limit; `None`: nothing.
fn call(gateway: &Weir, who: &str) -> Option<u64> {
    let answer = Call::get(&gateway.proxy(), "/").header("X-Who", who).make();
    if answer.status == 429 {
        return None;
    }
    let left = answer.expect(200).header("X-RateLimit-Remaining-Year");
    Some(left.expect("it is told").parse().expect("a number"))
}

fn plane(folder: &std::path::Path, console: &str) -> Weir {
    Weir::start(
        folder,
        &[
            "--role",
            "control",
            "--data",
            "control",
            "--console",
            console,
            "--kong-admin",
            "127.0.0.1:0",
        ],
    )
}

fn configure(admin: &str) {
    let upstream = server(|_| (200, "ok".to_owned()));
    let post = |path: &str, body: serde_json::Value| {
        Call::new("POST", admin, path)
            .body(&body.to_string())
            .make()
            .expect(201);
    };
    let url = format!("http://{upstream}");
    post("/services", serde_json::json!({"name": "s", "url": url}));
    post("/services/s/routes", serde_json::json!({"paths": ["/"]}));
    let limit = serde_json::json!({
        "year": LIMIT, "policy": "cluster", "limit_by": "header", "header_name": "X-Who",
    });
    post(
        "/plugins",
        serde_json::json!({"name": "rate-limiting", "config": limit}),
    );
}

#[test]
fn gateways_settle_what_they_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let control = plane(folder.path(), "127.0.0.1:0");
    let console = control.console();
    configure(&control.kong());
    let url = format!("http://{console}");
    let flags = ["--role", "gateway", "--control", &url];
    let gateways = [(); 3].map(|()| Weir::start(folder.path(), &flags));
    for gateway in &gateways {
        let asks = || {
            let call = Call::get(&gateway.proxy(), "/").header("X-Who", "first");
            call.attempt()
                .is_some_and(|it| it.header("X-RateLimit-Remaining-Year").is_some())
        };
        until("the limit is served", asks);
    }
    for left in (1_000..LIMIT).rev() {
        assert_eq!(call(&gateways[0], "a"), Some(left));
    }
    // The second one hears of it. As the first one counts no more, nothing passes beyond the limit.
    let mut passed = 0;
    until("the second gateway knows", || {
        std::thread::sleep(PAUSE);
        passed += 1;
        call(&gateways[1], "a") == Some(1_000 - passed)
    });
    while call(&gateways[1], "a").is_some() {
        passed += 1;
    }
    assert_eq!(passed, 1_000);
    for gateway in [&gateways[0], &gateways[2]] {
        until("all gateways refuse", || {
            std::thread::sleep(PAUSE);
            call(gateway, "a").is_none()
        });
    }
    // Without the control plane, each lets its share pass of what begins then.
    control.kill();
    let mut number = 0;
    let mut second_call = |gateway: &Weir| {
        std::thread::sleep(PAUSE);
        number += 1;
        let who = format!("caller-{number}");
        call(gateway, &who);
        call(gateway, &who)
    };
    for gateway in &gateways {
        until("it has a third", || second_call(gateway) == Some(LIMIT / 3 - 2));
        assert_eq!(call(gateway, "a"), None, "it goes on with what it knows");
    }
    let _control = plane(folder.path(), &console);
    for gateway in &gateways {
        until("there is contact again", || {
            second_call(gateway) == Some(LIMIT - 2)
        });
        assert_eq!(call(gateway, "a"), None);
    }
}

#[test]
fn a_plugin_of_kong_that_is_made_again_goes_on_counting() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["--data", "data", "--kong-admin", "127.0.0.1:0"];
    let weir = Weir::start(folder.path(), &flags);
    let (admin, upstream) = (weir.kong(), server(|_| (200, "ok".to_owned())));
    let make = |path: &str, body: serde_json::Value| {
        let call = Call::new("POST", &admin, path);
        let answer = call.body(&body.to_string()).make().expect(201);
        answer.json()["id"].as_str().expect("an id").to_owned()
    };
    make(
        "/services",
        serde_json::json!({"name": "s", "url": format!("http://{upstream}")}),
    );
    let route = make("/services/s/routes", serde_json::json!({"paths": ["/"]}));
    let plugins = format!("/routes/{route}/plugins");
    let limit = serde_json::json!({"name": "rate-limiting", "config": {"year": 1_000, "limit_by": "ip"}});
    let left = || {
        let answer = Call::get(&weir.proxy(), "/").attempt()?;
        answer
            .header("X-RateLimit-Remaining-Year")
            .and_then(|it| it.parse::<u64>().ok())
    };
    let mut seen = None;
    let first = make(&plugins, limit.clone());
    until("it limits", || {
        seen = left();
        seen.is_some()
    });
    let before = seen;
    let path = format!("{plugins}/{first}");
    Call::new("DELETE", &admin, &path).make().expect(204);
    until("it is gone", || left().is_none());
    assert_ne!(first, make(&plugins, limit));
    until("it limits again", || {
        seen = left();
        seen.is_some()
    });
    assert!(seen < before, "{seen:?} after {before:?}");
}
