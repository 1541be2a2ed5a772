//! Three gateways and a control plane on etcd. Without etcd, nothing is tested.

use crate::ports::free_port;
use crate::support::{Call, Weir, status_of, until, upstream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;
use weir_store::{Change, CommitError, Key, Transaction};

/// A running etcd.
pub struct Etcd(Child);

impl Etcd {
    pub fn start(folder: &Path, port: u16, peers: u16) -> Option<Self> {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let command = Command::new("etcd")
            .args(["--data-dir", "etcd", "--log-level", "error"])
            .args([
                "--listen-client-urls",
                &url(port),
                "--advertise-client-urls",
                &url(port),
            ])
            .args([
                "--listen-peer-urls",
                &url(peers),
                "--initial-advertise-peer-urls",
                &url(peers),
            ])
            .args(["--initial-cluster", &format!("default={}", url(peers))])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        command.ok().map(Self)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// Writes, past every Admin API, what no dialect takes.
fn break_into(location: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let store = weir_store::open(location).await.expect("open");
        let (_, mut expected) = store.read("").await.expect("documents");
        let broken = [
            ("kong/default/routes/no-id", "{}"),
            ("apisix/routes/1", "{\"uri\": 1}"),
            ("native/cats/tom", "\u{1}"),
        ];
        let change = |(key, value): &(&str, &str)| {
            Change::put(Key::new(key).expect("a key"), value.as_bytes().to_vec())
        };
        let transaction = Transaction {
            author: "stranger".to_owned(),
            note: "by hand".to_owned(),
            time: SystemTime::now(),
            changes: broken.iter().map(change).collect(),
        };
        // Gateways leave their reports there meanwhile.
        while let Err(error) = store.commit(transaction.clone(), expected).await {
            match error {
                CommitError::Conflict { current } => expected = current,
                other => panic!("{other}"),
            }
        }
    });
}

#[test]
fn gateways_on_etcd_converge_and_outlive_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (port, peers) = (free_port(), free_port());
    let Some(etcd) = Etcd::start(folder.path(), port, peers) else {
        return;
    };
    let server = upstream("a").to_string();
    let store = format!("etcd://127.0.0.1:{port}");
    let plane = Weir::start(
        folder.path(),
        &[
            "--role",
            "control",
            "--store",
            &store,
            "--kong-admin",
            "127.0.0.1:0",
            "--console",
            "127.0.0.1:0",
        ],
    );
    let gateway = |name: &str| {
        Weir::start(
            folder.path(),
            &[
                "--role", "gateway", "--store", &store, "--data", name, "--name", name,
            ],
        )
    };
    let mut gateways: Vec<Weir> = ["a", "b", "c"].map(gateway).into();
    let put = |path: &str| {
        let body = format!("{{\"url\": \"http://{server}\"}}");
        Call::new("PUT", &plane.kong(), "/services/s")
            .body(&body)
            .attempt()?;
        let body = format!("{{\"paths\": [\"{path}\"]}}");
        Call::new("PUT", &plane.kong(), "/services/s/routes/r")
            .body(&body)
            .attempt()
    };
    put("/one").expect("an answer").expect(200);
    for gateway in &gateways {
        until("the write is served", || {
            status_of(&gateway.proxy(), "/one") == Some(200)
        });
    }
    until("all are listed, with one hash", || {
        let list = Call::get(&plane.console(), "/gateways").make().json();
        let items = list["items"].as_array().expect("a list").clone();
        items.len() == 3
            && items
                .iter()
                .all(|it| it["hash"] == list["hash"] && it["lag_revisions"] == 0)
    });
    break_into(&store);
    for gateway in &gateways {
        until("broken documents are named", || {
            let status = Call::get(&gateway.status(), "/status").make().json();
            let skipped = status["store"]["skipped"].to_string();
            ["kong/default/routes/no-id", "apisix/routes/1", "native/cats/tom"]
                .iter()
                .all(|it| skipped.contains(it))
        });
        assert_eq!(
            status_of(&gateway.proxy(), "/one"),
            Some(200),
            "the rest is served"
        );
    }
    let kept = folder.path().join("b/last-known-good");
    until("it is kept", || {
        std::fs::read_to_string(&kept).is_ok_and(|text| text.contains("/one"))
    });

    drop(etcd);
    for gateway in &gateways {
        assert_eq!(status_of(&gateway.proxy(), "/one"), Some(200), "etcd is away");
    }
    gateways.remove(1).kill();
    gateways.push(gateway("b"));
    assert_eq!(
        status_of(&gateways[2].proxy(), "/one"),
        Some(200),
        "the last known good is served"
    );

    let _etcd = Etcd::start(folder.path(), port, peers).expect("it was there before");
    until("writes are taken again", || {
        put("/two").is_some_and(|answer| answer.status == 200)
    });
    for gateway in &gateways {
        until("the new write is served", || {
            status_of(&gateway.proxy(), "/two") == Some(200)
        });
        until("all serve the same", || gateway.hash() == plane.hash());
    }
}
