//! What becomes of calls whose plugin asks another server that is down, slow, or answers rubbish: they are refused,
//! those of other routes go on as ever, and both without a reload once the server is well.

use crate::directory::{echo, until};
use crate::ports::free_port;
use crate::weir::Weir;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long plugins wait for an answer.
const TIMEOUT_MS: u64 = 300;

/// How a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Well,
    /// Nothing listens.
    Down,
    /// It takes connections and says nothing.
    Silent,
    /// It says what belongs to no protocol.
    Noise,
    /// It closes connections at once.
    Closing,
    /// A good head, and a body that is not JSON.
    Rubbish,
    /// It says that it has failed.
    Failing,
}

const ILL: [Health; 6] = [
    Health::Down,
    Health::Silent,
    Health::Noise,
    Health::Closing,
    Health::Rubbish,
    Health::Failing,
];

/// A plugin that asks a server.
struct CallingPlugin {
    name: &'static str,
    /// Its configuration; `@PORT@` is the server's port.
    config: Value,
    /// What a good call brings.
    headers: &'static str,
    /// What the server answers when it is well.
    answer: &'static [u8],
    /// The statuses that callers may get while it is not well.
    refusals: &'static [u16],
}

/// A good answer over HTTP.
macro_rules! http {
    ($body:literal) => {
        concat!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
            $body
        )
        .as_bytes()
    };
}

fn asking() -> Vec<CallingPlugin> {
    let http = json!({"timeout_ms": TIMEOUT_MS});
    let at = |path: &str| format!("http://127.0.0.1:@PORT@{path}");
    vec![
        CallingPlugin {
            name: "openid-connect",
            config: json!({
                "discovery": at(""), "introspection_endpoint": at("/introspect"), "methods": ["introspection"],
                "client_id": "c", "client_secret": "s", "introspection_seconds": 1, "http": http,
            }),
            headers: "Authorization: Bearer t\r\n",
            answer: http!(r#"{"active": true, "sub": "ada"}"#),
            refusals: &[401, 503],
        },
        CallingPlugin {
            name: "opa",
            config: json!({"url": at("/v1/data/d"), "http": http}),
            headers: "",
            answer: http!(r#"{"result": {"allow": true}}"#),
            refusals: &[403, 503],
        },
        CallingPlugin {
            name: "forward-auth",
            config: json!({"url": at("/check"), "timeout_ms": TIMEOUT_MS}),
            headers: "",
            answer: http!("{}"),
            refusals: &[403, 500, 503],
        },
        CallingPlugin {
            name: "authz-keycloak",
            config: json!({"token_endpoint": at("/token"), "client_id": "c", "permissions": ["p"], "http": http}),
            headers: "Authorization: Bearer t\r\n",
            answer: http!(r#"{"result": true}"#),
            refusals: &[403, 500, 503],
        },
        CallingPlugin {
            name: "wolf-rbac",
            config: json!({"http": http}),
            headers: "x-rbac-token: V1#shop#t\r\n",
            answer: http!(
                r#"{"ok": true, "data": {"userInfo": {"id": 7, "username": "ada", "nickname": "A"}}}"#
            ),
            refusals: &[401, 500, 503],
        },
        CallingPlugin {
            name: "safeline-waf",
            config: json!({"nodes": [{"host": "127.0.0.1", "port": "@PORT@"}], "timeout_ms": TIMEOUT_MS}),
            headers: "",
            answer: b"\xc1\x01\0\0\0.",
            refusals: &[500],
        },
        CallingPlugin {
            name: "vault-auth",
            config: json!({"vault": {"address": at(""), "mount": "callers", "token": "root"}, "cache_seconds": 1, "http": http}),
            headers: "access-token: a1\r\nsecret-token: s1\r\n",
            answer: http!(
                r#"{"data": {"access_token": "a1", "secret_token": "s1", "consumer": {"id": "shop"}, "created_at": 1}}"#
            ),
            refusals: &[401, 500, 503],
        },
        CallingPlugin {
            name: "upstream-oauth",
            config: json!({"token_endpoint": at("/token"), "client_id": "c", "client_secret": "s", "default_seconds": 6, "http": http}),
            headers: "",
            answer: http!(r#"{"access_token": "t"}"#),
            refusals: &[502],
        },
        CallingPlugin {
            name: "ldap-auth",
            config: json!({
                "host": "127.0.0.1", "port": "@PORT@", "base_dn": "dc=x", "attribute": "uid",
                "cache_seconds": 0, "timeout_ms": TIMEOUT_MS,
            }),
            headers: "Authorization: Basic YTpi\r\n",
            // The first message of a connection, a bind, has succeeded.
            answer: b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00",
            refusals: &[401, 500],
        },
    ]
}

/// A server on a port of its own that behaves as ordered.
struct Partner {
    port: u16,
    health: Arc<Mutex<Health>>,
    runs: Option<Arc<AtomicBool>>,
    good: &'static [u8],
}

impl Partner {
    fn new(good: &'static [u8]) -> Self {
        Self {
            port: free_port(),
            health: Arc::new(Mutex::new(Health::Down)),
            runs: None,
            good,
        }
    }

    /// From now on it is so.
    fn be(&mut self, health: Health) {
        *self.health.lock().expect("no panic") = health;
        match (health, self.runs.take()) {
            (Health::Down, Some(runs)) => {
                runs.store(false, Ordering::SeqCst);
                // The last connection wakes the thread, which then closes its listener.
                let _woken = TcpStream::connect(("127.0.0.1", self.port));
                until("nothing listens", || {
                    TcpStream::connect(("127.0.0.1", self.port)).is_err()
                });
            }
            (Health::Down, None) => {}
            (_, Some(runs)) => self.runs = Some(runs),
            (_, None) => self.runs = Some(self.listen()),
        }
    }

    fn listen(&self) -> Arc<AtomicBool> {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).expect("the port is free");
        let runs = Arc::new(AtomicBool::new(true));
        let (running, health, good) = (Arc::clone(&runs), Arc::clone(&self.health), self.good);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if !running.load(Ordering::SeqCst) {
                    return;
                }
                let health = *health.lock().expect("no panic");
                std::thread::spawn(move || {
                    // Gateways that wait no longer have gone.
                    let _is_answered = answer(stream, health, good);
                });
            }
        });
        runs
    }
}

fn answer(mut stream: TcpStream, health: Health, good: &[u8]) -> std::io::Result<()> {
    if health == Health::Closing {
        return Ok(());
    }
    let mut piece = [0; 16 * 1024];
    if stream.read(&mut piece)? == 0 {
        return Ok(());
    }
    match health {
        Health::Well => stream.write_all(good)?,
        Health::Noise => stream.write_all(&[0xff; 400])?,
        Health::Rubbish => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\": [[\x00")?;
        }
        Health::Failing => stream.write_all(b"HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n")?,
        Health::Silent | Health::Down | Health::Closing => {}
    }
    if health == Health::Silent {
        // Until the other side has had enough.
        while stream.read(&mut piece)? > 0 {}
    }
    Ok(())
}

/// The status of a call.
fn call(address: &str, path: &str, headers: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
        .get(9..12)
        .and_then(|status| status.parse().ok())
        .expect("a status")
}

#[test]
fn calls_are_refused_while_a_partner_is_not_well_and_others_go_on() {
    let asking = asking();
    let mut partners: Vec<Partner> = asking.iter().map(|it| Partner::new(it.answer)).collect();
    let filled = |text: &str, port: u16| {
        let text = text.replace("\"@PORT@\"", &port.to_string());
        text.replace("@PORT@", &port.to_string())
    };
    let mut routes = vec![json!({"name": "open", "paths": ["/open"]})];
    let mut wolf = 0;
    for (plugin, partner) in asking.iter().zip(&partners) {
        let config: Value =
            serde_json::from_str(&filled(&plugin.config.to_string(), partner.port)).expect("JSON");
        let name = plugin.name;
        if name == "wolf-rbac" {
            wolf = partner.port;
        }
        routes.push(json!({"name": name, "paths": [format!("/{name}")], "plugins": [{name: config}]}));
    }
    let document = json!({
        "weir": 1,
        "services": [{"name": "api", "url": format!("http://127.0.0.1:{}", echo()), "routes": routes}],
        "consumers": [{"name": "shop", "credentials": [
            {"wolf-rbac": {"app_id": "shop", "server": format!("http://127.0.0.1:{wolf}")}},
        ]}],
    });
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("weir.yaml"), document.to_string()).expect("written");
    // All of them are down when the gateway starts.
    let weir = Weir::start(folder.path(), &["-c", "weir.yaml"]);
    let proxy = weir.proxy();
    for health in ILL {
        for (plugin, partner) in asking.iter().zip(&mut partners) {
            if (plugin.name, health) == ("forward-auth", Health::Rubbish) {
                // It looks at the status alone.
                continue;
            }
            let path = format!("/{}", plugin.name);
            partner.be(health);
            let what = format!("{} {health:?}", plugin.name);
            // What was found while the server was well is used for some seconds.
            until(&format!("{what}: calls are refused"), || {
                call(&proxy, &path, plugin.headers) != 200
            });
            let start = Instant::now();
            let status = call(&proxy, &path, plugin.headers);
            assert!(plugin.refusals.contains(&status), "{what}: {status}");
            // The time-out, with three tries at most.
            assert!(
                start.elapsed() < Duration::from_secs(5),
                "{what}: {:?}",
                start.elapsed()
            );
            let start = Instant::now();
            assert_eq!(call(&proxy, "/open", ""), 200, "{what}");
            assert!(
                start.elapsed() < Duration::from_secs(2),
                "{what}: other routes wait"
            );
            partner.be(Health::Well);
            until(&format!("{what}: calls go on"), || {
                call(&proxy, &path, plugin.headers) == 200
            });
        }
    }
}
