//! Mails and webhooks of a started Weir, with a real mail server and a receiver that checks signatures.

use crate::support::{until, upstream};
use crate::weir::Weir;
use crate::{Plane, petstore, tools};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A mail server in a process of its own.
struct Sink {
    child: Child,
    port: u16,
    mails: Arc<Mutex<Vec<Value>>>,
}

impl Sink {
    /// `None`: the machine lacks it.
    fn start() -> Option<Self> {
        let python = "/usr/bin/python3";
        let has_it = Command::new(python).args(["-c", "import aiosmtpd"]).output();
        if !has_it.is_ok_and(|it| it.status.success()) {
            tools::report_missing("python3-aiosmtpd");
            return None;
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/apis/smtp_sink.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let port = lines
            .next()
            .expect("a line")
            .expect("readable")
            .parse()
            .expect("a port");
        let mails: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = Arc::clone(&mails);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mail = serde_json::from_str(&line).expect("JSON");
                kept.lock().expect("not poisoned").push(mail);
            }
        });
        Some(Self { child, port, mails })
    }

    fn subjects(&self) -> Vec<String> {
        let mails = self.mails.lock().expect("not poisoned");
        mails
            .iter()
            .filter_map(|it| Some(it["subject"].as_str()?.to_owned()))
            .collect()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// A webhook as it came: headers in small letters, and the body.
#[derive(Debug, Clone)]
struct Hooked {
    head: String,
    body: String,
}

impl Hooked {
    fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines();
        lines
            .find_map(|it| it.strip_prefix(&format!("{name}: ")))
            .unwrap_or_default()
    }
}

/// A server that takes webhooks while it is up, and answers 503 else.
fn receiver() -> (SocketAddr, Arc<Mutex<Vec<Hooked>>>, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let (got, is_up): (Arc<Mutex<Vec<Hooked>>>, _) = (Arc::default(), Arc::new(AtomicBool::new(true)));
    let (kept, up) = (Arc::clone(&got), Arc::clone(&is_up));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _gone = take(stream, &kept, &up);
        }
    });
    (address, got, is_up)
}

fn take(stream: TcpStream, got: &Mutex<Vec<Hooked>>, up: &AtomicBool) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line == "\r\n" {
            break;
        }
        let (name, value) = line.trim_end().split_once(": ").unwrap_or((line.trim_end(), ""));
        let name = name.to_ascii_lowercase();
        if name == "content-length" {
            length = value.parse().ok()?;
        }
        head.push_str(&format!("{name}: {value}\n"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut writer = stream;
    let is_up = up.load(Ordering::SeqCst);
    let status = if is_up { "204 X" } else { "503 X" };
    writer
        .write_all(format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n").as_bytes())
        .ok()?;
    if is_up {
        let body = String::from_utf8(body).ok()?;
        got.lock().expect("not poisoned").push(Hooked { head, body });
    }
    Some(())
}

fn offered(plane: &Plane) {
    plane
        .put("/api/v1/apis/pets", json!({"contacts": ["owner@example.com"]}))
        .expect(200);
    plane.version(&petstore());
    plane
        .put(
            "/api/v1/apis/pets/versions/1.0.0/plans/gold",
            json!({"state": "published", "validation": "manual"}),
        )
        .expect(201);
    plane
        .put(
            "/api/v1/applications/shop",
            json!({"mails": ["shop@example.com"]}),
        )
        .expect(201);
    plane.publish("test", upstream("pets"));
}

#[test]
fn people_get_mails_about_their_subscriptions() {
    let Some(sink) = Sink::start() else {
        return;
    };
    let url = format!("smtp://127.0.0.1:{}", sink.port);
    let plane = Plane::with(&[
        "--environment",
        "test",
        "--smtp",
        &url,
        "--mail-from",
        "Weir <weir@example.com>",
    ]);
    offered(&plane);
    let wanted =
        json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold", "request": "please"});
    let id = plane.post("/api/v1/subscriptions", wanted).expect(201).json()["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    until("the owner is told", || {
        sink.subjects()
            .iter()
            .any(|it| it == "shop asks for a subscription to pets 1.0.0")
    });
    let state = format!("/api/v1/subscriptions/{id}/state");
    plane.post(&state, json!({"state": "accepted"})).expect(200);
    plane
        .post(
            &state,
            json!({"state": "paused", "reason": "the invoice is open"}),
        )
        .expect(200);
    until("the application is told", || {
        sink.subjects()
            .iter()
            .any(|it| it == "Subscription to pets 1.0.0 paused")
    });
    let mails = sink.mails.lock().expect("not poisoned").clone();
    let paused = mails
        .iter()
        .find(|it| it["subject"] == "Subscription to pets 1.0.0 paused")
        .expect("a mail");
    assert_eq!(paused["to"], json!(["shop@example.com"]));
    assert!(
        paused["text"]
            .as_str()
            .is_some_and(|it| it.contains("the invoice is open")),
        "{paused}"
    );
    // The sink has a mail a moment before the control plane notes that it was delivered.
    until("the delivery is noted", || {
        plane
            .get("/api/v1/deliveries?state=delivered")
            .expect(200)
            .body
            .contains("shop@example.com")
    });
    let listed = plane.get("/api/v1/deliveries?state=delivered").expect(200);
    assert!(!listed.body.contains("invoice"), "{listed:?}");
    let once: Vec<String> = sink.subjects();
    assert_eq!(
        once.iter().filter(|it| it.contains("accepted")).count(),
        1,
        "{once:?}"
    );
    // Who removes a publication that is subscribed to is told first, and then the subscribers.
    let publication = "/api/v1/publications/pets/1.0.0/test";
    let refused = plane.call("DELETE", publication, &json!({})).make().expect(409);
    assert!(
        refused
            .body
            .contains("one subscription depends on pets/1.0.0/test"),
        "{refused:?}"
    );
    assert_eq!(refused.json()["type"], "urn:weir:problem:subscribers");
    let remove = ["remove", "pets", "1.0.0", "test"];
    let (code, _, stderr) = plane.api(&remove);
    assert!(
        code == Some(1) && stderr.contains("one subscription depends"),
        "{stderr}"
    );
    plane.get(publication).expect(200);
    let (code, stdout, _) = plane.api(&[&remove[..], &["--force"]].concat());
    assert_eq!((code, stdout.as_str()), (Some(0), "pets/1.0.0/test is removed\n"));
    plane.get(publication).expect(404);
    until("the application is told", || {
        sink.subjects().iter().any(|it| it == "pets 1.0.0 is removed")
    });
}

/// The application `shop` with a quota of five calls and a webhook, and `club`, which subscribes to a product. Gives
/// the key of the shop.
fn with_quotas(plane: &Plane, receiver: SocketAddr) -> String {
    plane.version(&petstore());
    // Of all windows a month ends the most seldom while this runs.
    let plan = || json!({"state": "published", "limits": [{"count": 5, "per": "month"}]});
    plane
        .put("/api/v1/apis/pets/versions/1.0.0/plans/gold", plan())
        .expect(201);
    plane.publish("test", upstream("pets"));
    let product = json!({"state": "published", "publications": {"pets/1.0.0/test": []}});
    plane.put("/api/v1/products/bundle", product).expect(201);
    plane
        .put("/api/v1/products/bundle/plans/gold", plan())
        .expect(201);
    for (name, mail) in [("shop", "shop@example.com"), ("club", "club@example.com")] {
        plane
            .put(&format!("/api/v1/applications/{name}"), json!({"mails": [mail]}))
            .expect(201);
    }
    let hook = json!({"url": format!("http://{receiver}/shop"), "events": ["quota.*"]});
    plane
        .put("/api/v1/applications/shop/webhooks/ci", hook)
        .expect(201);
    let wanted = json!({"application": "club", "product": "bundle", "plan": "gold"});
    plane.post("/api/v1/subscriptions", wanted).expect(201);
    let wanted = json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold"});
    let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
    made["credential"]["key"].as_str().expect("a key").to_owned()
}

/// Each level of a quota is notified once, by mail and by webhook. Subscribers to a product get notifications about its
/// APIs.
#[test]
fn developers_are_notified_of_quotas_and_of_apis_of_their_products() {
    let Some(sink) = Sink::start() else {
        return;
    };
    let (address, got, _) = receiver();
    let url = format!("smtp://127.0.0.1:{}", sink.port);
    let flags = [
        "--environment",
        "test",
        "--smtp",
        &url,
        "--mail-from",
        "Weir <weir@example.com>",
        "--portal-webhook-allow",
        "127.0.0.0/8",
    ];
    let plane = Plane::with(&flags);
    let key = with_quotas(&plane, address);
    // A key that is not known yet counts nothing.
    until("the key is good", || {
        plane.status("/v1/pets", Some(&key)) == Some(200)
    });
    let call = || assert_eq!(plane.status("/v1/pets", Some(&key)), Some(200));
    (0..3).for_each(|_| call());
    let near = "80 % of the quota of pets 1.0.0 is used";
    until("80 % are told", || sink.subjects().iter().any(|it| it == near));
    call();
    assert_eq!(plane.status("/v1/pets", Some(&key)), Some(429));
    let reached = "The quota of pets 1.0.0 is used up";
    until("100 % are told", || {
        sink.subjects().iter().any(|it| it == reached)
    });
    until("the webhook knows both", || got.lock().expect("whole").len() == 2);
    let mut bodies: Vec<Value> = got
        .lock()
        .expect("whole")
        .iter()
        .map(|it| serde_json::from_str(&it.body).expect("JSON"))
        .collect();
    // Two that wait at once come in any order.
    bodies.sort_by_key(|it| it["type"].to_string());
    for (body, kind, used) in [
        (&bodies[0], "quota.near", "4"),
        (&bodies[1], "quota.reached", "5"),
    ] {
        let about = &body["data"]["about"];
        assert_eq!(
            (&body["type"], &about["used"]),
            (&json!(kind), &json!(used)),
            "{body:#}"
        );
        assert_eq!(
            (&about["application"], &about["limit"], &about["per"]),
            (&json!("shop"), &json!("5"), &json!("month")),
            "{body:#}"
        );
    }
    plane
        .put(
            "/api/v1/publications/pets/1.0.0/test/deprecation",
            json!({"since": 1_750_000_000}),
        )
        .expect(200);
    let heard = |who: &str| {
        let mails = sink.mails.lock().expect("whole").clone();
        let is_it = |it: &&Value| it["to"] == json!([who]) && it["subject"] == "pets 1.0.0 is deprecated";
        mails.iter().filter(is_it).count()
    };
    until("both hear of the end", || {
        heard("club@example.com") == 1 && heard("shop@example.com") == 1
    });
    let subjects = sink.subjects();
    for subject in [near, reached] {
        assert_eq!(
            subjects.iter().filter(|it| *it == subject).count(),
            1,
            "{subjects:?}"
        );
    }
}

/// A report that is sent now, and an alert, each with a link to the console.
#[test]
fn reports_and_alerts_come_by_mail() {
    let Some(sink) = Sink::start() else {
        return;
    };
    let url = format!("smtp://127.0.0.1:{}", sink.port);
    let plane = Plane::with(&[
        "--smtp",
        &url,
        "--mail-from",
        "Weir <weir@example.com>",
        "--console-url",
        "https://console.example.com/",
        "--analytics-interval",
        "1",
    ]);
    let report = json!({
        "title": "Week", "board": "overview", "to": ["team@example.com"],
        "schedule": {"every": "week", "time_zone": "Europe/Berlin"},
    });
    let made = plane.post("/api/v1/reports", report.clone()).expect(201).json();
    assert!(made["id"] == "week" && made["next"].is_u64(), "{made}");
    plane.post("/api/v1/reports", report).expect(409);
    let wrong = json!({"title": "X", "board": "gone", "to": ["a@b"], "schedule": {"every": "week"}});
    let problem = plane.post("/api/v1/reports", wrong).expect(422);
    assert!(problem.body.contains("there is no board 'gone'"), "{problem:?}");
    let shown = plane
        .get("/api/v1/reports/week/preview?period=current")
        .expect(200);
    assert!(shown.body.contains("data:image/png;base64,"), "{}", shown.body);
    let sent = plane
        .post(
            "/api/v1/reports/week/send",
            json!({"period": "current", "to": ["ann@example.com"]}),
        )
        .expect(202);
    assert_eq!(sent.json()["to"], json!(["ann@example.com"]));
    let rule = json!({
        "name": "Silence", "metric": "calls", "operator": "<", "threshold": 1, "period": "2m", "no_data": "zero",
        "channels": [{"kind": "mail", "to": "ops@example.com"}],
    });
    plane.post("/api/v1/alerts", rule).expect(201);
    let mail = |subject: &str| {
        let mails = sink.mails.lock().expect("not poisoned").clone();
        let is_it = |it: &&Value| it["subject"].as_str().is_some_and(|it| it.starts_with(subject));
        mails.iter().find(is_it).cloned()
    };
    until("the report has come", || mail("Week: ").is_some());
    let report = mail("Week: ").expect("a mail");
    let parts: Vec<&str> = report["parts"]
        .as_array()
        .expect("parts")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for part in ["text/plain", "text/html", "image/png", "text/csv"] {
        assert!(parts.contains(&part), "{part}: {report}");
    }
    let text = report["text"].as_str().expect("a text");
    assert!(
        text.contains("https://console.example.com/ui/analytics"),
        "{text}"
    );
    until("the alert has come", || mail("Silence started").is_some());
    let alert = mail("Silence started").expect("a mail");
    let text = alert["text"].as_str().expect("a text");
    assert!(
        text.contains("Silence started: Calls is 0, limit 1")
            && text.contains("https://console.example.com/ui/alerts"),
        "{text}"
    );
    // It ends with the first call. For each change there was one mail.
    assert_eq!(plane.status("/nowhere", None), Some(404));
    until("its end has come", || mail("Silence ended").is_some());
    let mails = sink.mails.lock().expect("not poisoned").clone();
    let subjects = mails.iter().filter_map(|it| it["subject"].as_str());
    let of_alert: Vec<&str> = subjects.filter(|it| it.starts_with("Silence")).collect();
    assert_eq!(of_alert.len(), 2, "{of_alert:?}");
}

/// 37
#[test]
fn webhooks_are_signed_and_wait_for_their_receiver() {
    let (address, got, is_up) = receiver();
    let plane = Plane::with(&["--environment", "test", "--webhook-allow", "127.0.0.0/8"]);
    let hook = json!({"url": format!("http://{address}/weir"), "events": ["publication.*"]});
    let made = plane.put("/api/v1/hooks/ci", hook.clone()).expect(201).json();
    let secret = made["secret"].as_str().expect("a secret").to_owned();
    let shown = plane.put("/api/v1/hooks/ci", hook).expect(200);
    assert!(
        secret.starts_with("whsec_") && !shown.body.contains(&secret),
        "{shown:?}"
    );
    assert!(!plane.get("/api/v1/hooks").body.contains(&secret));
    is_up.store(false, Ordering::SeqCst);
    offered(&plane);
    until("an attempt has failed", || {
        plane.get("/api/v1/deliveries?state=waiting").body.contains("503")
    });
    // Another process goes on with it.
    is_up.store(true, Ordering::SeqCst);
    let waiting = plane.get("/api/v1/deliveries?state=waiting").json();
    let id = waiting["items"][0]["id"].as_str().expect("an id").to_owned();
    plane
        .post(&format!("/api/v1/deliveries/{id}/retry"), json!({}))
        .expect(202);
    until("it has arrived", || {
        plane.get("/api/v1/deliveries?state=delivered").body.contains(&id)
    });
    let all = got.lock().expect("not poisoned").clone();
    let [hooked] = all.as_slice() else {
        panic!("{all:?}");
    };
    let body: Value = serde_json::from_str(&hooked.body).expect("JSON");
    assert_eq!(
        (&body["type"], &body["data"]["about"]["api"]),
        (&json!("publication.published"), &json!("pets"))
    );
    let timestamp: u64 = hooked.header("webhook-timestamp").parse().expect("a time");
    assert_eq!(hooked.header("webhook-id"), id);
    let expected = weir_control::outbox::sign(&secret, &id, timestamp, &hooked.body);
    assert_eq!(hooked.header("webhook-signature"), expected);
}

#[test]
fn webhooks_do_not_reach_the_operators_network() {
    let (address, got, _) = receiver();
    let plane = Plane::start();
    plane
        .put("/api/v1/hooks/ci", json!({"url": format!("http://{address}/")}))
        .expect(201);
    offered(&plane);
    until("it is refused", || {
        plane.get("/api/v1/deliveries").body.contains("is not public")
    });
    assert!(got.lock().expect("not poisoned").is_empty());
    let bad = json!({"url": "ftp://example.com", "events": ["plan.*", "plan.sold"]});
    let refused = plane.put("/api/v1/hooks/bad", bad).expect(422).json();
    let places = ["url", "events[1]"].map(|it| json!(it));
    assert_eq!([0, 1].map(|it| refused["errors"][it]["path"].clone()), places);
}

/// A webhook shows no answer, a fetched document does: networks of webhooks are not opened for reading.
#[test]
fn documents_are_read_where_their_own_flag_allows() {
    let url = format!("http://{}/openapi.yaml", upstream("a document"));
    for (flag, status, part) in [
        (None, 400, "--document-allow"),
        (Some("--webhook-allow"), 400, "--document-allow"),
        (Some("--portal-webhook-allow"), 400, "--document-allow"),
        (Some("--document-allow"), 200, "a document"),
    ] {
        let flags: Vec<&str> = flag.into_iter().flat_map(|flag| [flag, "127.0.0.0/8"]).collect();
        let plane = Plane::with(&flags);
        let answer = plane.post("/api/v1/documents/fetch", json!({ "url": url }));
        let answer = answer.expect(status);
        assert!(answer.body.contains(part), "{flag:?}: {answer:?}");
    }
}

/// 27: an end that has come is acted on while nothing else changes.
#[test]
fn a_subscription_ends_by_itself() {
    let plane = Plane::start();
    plane.version(&petstore());
    plane
        .put(
            "/api/v1/apis/pets/versions/1.0.0/plans/gold",
            json!({"state": "published"}),
        )
        .expect(201);
    plane.put("/api/v1/applications/shop", json!({})).expect(201);
    plane.publish("test", upstream("pets"));
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    let wanted =
        json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "gold", "ends": now + 4});
    for (starts, ends) in [(now - 20, now - 10), (now + 20, now + 10)] {
        let mut never = wanted.clone();
        (never["starts"], never["ends"]) = (starts.into(), ends.into());
        let refused = plane.post("/api/v1/subscriptions", never).expect(422).json();
        assert_eq!(refused["errors"][0]["path"], "ends");
    }
    let made = plane
        .post("/api/v1/subscriptions", wanted.clone())
        .expect(201)
        .json();
    let key = made["credential"]["key"].as_str().expect("a key").to_owned();
    until("the key is good", || {
        plane.status("/v1/pets", Some(&key)) == Some(200)
    });
    until("it has ended", || {
        plane.status("/v1/pets", Some(&key)) == Some(403)
    });
    let refused = plane.through("/v1/pets", Some(&key)).expect("an answer");
    assert!(refused.body.contains("has ended"), "{refused:?}");
    let id = made["id"].as_str().expect("an id");
    until("its state says so", || {
        plane.get(&format!("/api/v1/subscriptions/{id}")).json()["state"] == "expired"
    });
    // It is opened again by another end, as the refusal of a second one says.
    let mut second = wanted;
    second["ends"] = (now + 3_600).into();
    let refused = plane.post("/api/v1/subscriptions", second).expect(409).json();
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("a new end in 'ends'"), "{detail}");
    let state = |body| plane.post(&format!("/api/v1/subscriptions/{id}/state"), body);
    state(json!({"state": "accepted"})).expect(422);
    state(json!({"state": "accepted", "ends": now + 3_600})).expect(200);
    until("the key is good again", || {
        plane.status("/v1/pets", Some(&key)) == Some(200)
    });
}

#[test]
fn wrong_flags_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (flags, part) in [
        (
            &["--smtp", "http://localhost", "--mail-from", "a@example.com"][..],
            "expected smtp://",
        ),
        (
            &["--smtp", "smtp://localhost", "--mail-from", "no address"],
            "expected an address",
        ),
        (&["--smtp", "smtp://localhost"], "--mail-from"),
        (&["--webhook-allow", "here"], "--webhook-allow"),
        (&["--document-allow", "here"], "--document-allow"),
    ] {
        let flags = [&["--data", "data", "--console", "127.0.0.1:0"], flags].concat();
        let output = Weir::command(folder.path(), &flags)
            .stderr(Stdio::piped())
            .output()
            .expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains(part),
            "{flags:?}: {stderr}"
        );
    }
}
