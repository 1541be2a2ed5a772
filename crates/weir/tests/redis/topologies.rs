//! Passwords, databases, TLS, sentinels and clusters.

use crate::support::{CLOSED_PORT, Gateway, Redis, Upstream, free_port, is_installed, native, until};
use std::cell::Cell;
use std::fmt::Write as _;

/// Long enough for a machine that is busy with other tests: none of these is about time.
const TIMEOUTS: &str = "connect_timeout_ms: 30000, timeout_ms: 30000";

fn limit(redis: &str, count: usize) -> String {
    format!(
        "rate-limit: {{limits: [{{count: {count}, per: day}}], store: {{redis: {{{redis}, {TIMEOUTS}}}, on_unavailable: refuse}}}}"
    )
}

#[test]
fn users_passwords_and_databases() {
    if !is_installed() {
        return;
    }
    let upstream = Upstream::start("");
    let redis = Redis::start(&["--requirepass", "geheim"]);
    redis.ask("AUTH geheim\nACL SETUSER weir on >dort ~* +@all");
    for (options, statuses) in [
        ("password: geheim", [200, 429]),
        ("password: geheim, database: 3", [200, 429]),
        ("username: weir, password: dort", [200, 429]),
        ("password: falsch", [500, 500]),
        ("username: weir, password: geheim", [500, 500]),
        ("database: 0", [500, 500]),
        ("password: geheim, database: 99", [500, 500]),
    ] {
        let options = format!(
            "host: localhost, port: {}, prefix: '{}', {options}",
            redis.port,
            free_port()
        );
        let gateway = Gateway::start(&native(&upstream, &limit(&options, 1)));
        let got = [gateway.call("/"), gateway.call("/")];
        assert_eq!(got, statuses, "{options}: {}", gateway.log());
        assert!(!gateway.log().contains("geheim"), "{}", gateway.log());
    }
}

#[test]
fn over_tls() {
    if !is_installed() {
        return;
    }
    let upstream = Upstream::start("");
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(["redis.example".to_owned()]).expect("made");
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let certificate = certificate.display().to_string();
    let key = key.display().to_string();
    let options = [
        "--port",
        "0",
        "--tls-port",
        "PORT",
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &certificate,
        "--tls-auth-clients",
        "no",
    ];
    let redis = Redis::start_in(folder, &options);
    let trust = [("SSL_CERT_FILE", certificate.clone())];
    type Environment<'e> = &'e [(&'e str, String)];
    let cases: [(&str, Environment, u16); 5] = [
        ("tls: {server_name: redis.example}", &trust, 200),
        ("tls: {}", &trust, 500),
        ("tls: {server_name: redis.example}", &[], 500),
        ("tls: {verify: false}", &[], 200),
        ("database: 0", &trust, 500),
    ];
    for (tls, environment, status) in cases {
        let options = format!("host: 127.0.0.1, port: {}, {tls}", redis.port);
        let gateway = Gateway::with(&native(&upstream, &limit(&options, 100)), environment);
        assert_eq!(gateway.call("/"), status, "{tls}: {}", gateway.log());
    }
}

/// A sentinel that looks after the master `weir` on a port, and knows of its replica.
pub fn sentinel(port: u16, replica: &Redis) -> Redis {
    let folder = tempfile::tempdir().expect("a folder");
    let configuration = folder.path().join("sentinel.conf");
    let text = format!(
        "sentinel monitor weir 127.0.0.1 {port} 1\nsentinel down-after-milliseconds weir 300\nsentinel failover-timeout weir 2000\n"
    );
    std::fs::write(&configuration, text).expect("written");
    let configuration = configuration.display().to_string();
    // A server takes its file before its options.
    let sentinel = Redis::start_sentinel(folder, &configuration);
    until("the sentinel knows the replica", || {
        sentinel
            .ask("SENTINEL replicas weir")
            .contains(&replica.port.to_string())
    });
    sentinel
}

/// A cluster of three that have a third of the slots each.
pub fn cluster() -> Vec<Redis> {
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
    let nodes: Vec<Redis> = (0..3).map(|_| Redis::start(&options)).collect();
    let ranges = [(0, 5460), (5461, 10_922), (10_923, 16_383)];
    for (node, (first, last)) in nodes.iter().zip(ranges) {
        assert_eq!(
            node.ask(&format!("CLUSTER ADDSLOTSRANGE {first} {last}")),
            "+OK\r\n"
        );
        for other in &nodes {
            node.ask(&format!("CLUSTER MEET 127.0.0.1 {}", other.port));
        }
    }
    until("the cluster is whole", || {
        let is_whole = |node: &Redis| {
            let info = node.ask("CLUSTER INFO");
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        };
        nodes.iter().all(is_whole)
    });
    nodes
}

#[test]
fn sentinels_name_the_master() {
    if !is_installed() {
        return;
    }
    let upstream = Upstream::start("");
    let mut master = Redis::start(&[]);
    let port = master.port.to_string();
    let replica = Redis::start(&["--replicaof", &format!("127.0.0.1 {port}")]);
    until("the replica follows", || {
        replica.ask("ROLE").contains("connected")
    });
    let sentinel = sentinel(master.port, &replica);
    let options = format!(
        "sentinel: {{master: weir, sentinels: ['127.0.0.1:{}', '127.0.0.1:{}']}}",
        CLOSED_PORT, sentinel.port
    );
    let document = native(&upstream, &limit(&options, 20));
    let gateways = [Gateway::start(&document), Gateway::start(&document)];
    assert_eq!(gateways[0].call("/"), 200, "{}", gateways[0].log());
    until("the replica has the count", || {
        replica.ask("DBSIZE").starts_with(":1")
    });
    master.kill();
    // Calls are refused until the other one is master; from then on they are counted on there.
    let passed = Cell::new(1);
    until("all workers have found the new master", || {
        let statuses: Vec<u16> = (0..24).map(|call| gateways[call % 2].call("/")).collect();
        let count = statuses.iter().filter(|status| **status == 200).count();
        passed.set(passed.get() + count);
        statuses.iter().all(|status| *status == 429)
    });
    assert_eq!(passed.get(), 20, "what was counted before is known");
}

#[test]
fn clusters_have_each_key_somewhere() {
    if !is_installed() {
        return;
    }
    let upstream = Upstream::start("");
    let nodes = cluster();
    // One known node is enough, and one that is away does not matter.
    let options = format!(
        "cluster: ['127.0.0.1:{}', '127.0.0.1:{}']",
        CLOSED_PORT, nodes[1].port
    );
    let plugin = format!(
        "rate-limit: {{limits: [{{count: 2, per: day}}, {{count: 9, per: {{sliding-seconds: 600}}}}], by: {{header: X-Who}}, store: {{redis: {{{options}, {TIMEOUTS}}}, on_unavailable: refuse}}}}"
    );
    let document = native(&upstream, &plugin);
    let gateways = [Gateway::start(&document), Gateway::start(&document)];
    let mut log = String::new();
    let call_all = |log: &mut String| {
        for who in 0..30 {
            for call in 0..4 {
                let (status, _) = gateways[call % 2].get("/", &format!("X-Who: {who}\r\n"));
                let expected = if call < 2 { 200 } else { 429 };
                if status != expected {
                    let _is_written = writeln!(log, "{who}, call {call}: {status}");
                }
            }
        }
    };
    call_all(&mut log);
    assert!(log.is_empty(), "{log}{}", gateways[0].log());
    for node in &nodes {
        assert!(!node.ask("DBSIZE").starts_with(":0"), "every node has some keys");
        node.ask("FLUSHALL");
    }
    // The slots of the first move to the third: the cluster redirects the gateways.
    let id = |node: &Redis| {
        node.ask("CLUSTER MYID")
            .lines()
            .nth(1)
            .unwrap_or_default()
            .to_owned()
    };
    let third = id(&nodes[2]);
    // Of two that claim a slot the one with the greater epoch has it, so no node may have a greater one than the third:
    // it has to know the epochs of all before it takes the next one.
    let epoch = |node: &Redis| {
        let info = node.ask("CLUSTER INFO");
        let mut lines = info.lines();
        let own = lines.find_map(|line| line.strip_prefix("cluster_my_epoch:"));
        own.unwrap_or_default().to_owned()
    };
    until("the third knows all epochs, and no two nodes have one", || {
        let known = nodes[2].ask("CLUSTER NODES");
        let is_known = |node: &Redis| {
            let mut lines = known.lines();
            let line = lines.find(|line| line.starts_with(&id(node)));
            line.and_then(|line| line.split(' ').nth(6)) == Some(&epoch(node))
        };
        let mut epochs: Vec<_> = nodes.iter().map(epoch).collect();
        epochs.sort();
        epochs.dedup();
        epochs.len() == nodes.len() && nodes.iter().all(is_known)
    });
    nodes[2].ask("CLUSTER BUMPEPOCH");
    for node in [&nodes[2], &nodes[0], &nodes[1]] {
        let mut commands = String::new();
        for slot in 0..=5460 {
            let _is_written = writeln!(commands, "CLUSTER SETSLOT {slot} NODE {third}");
        }
        node.ask(&commands);
    }
    until("all nodes agree", || {
        let agrees = |node: &Redis| {
            let table = node.ask("CLUSTER NODES");
            let mut lines = table.lines();
            lines.any(|line| line.contains(&third) && line.contains(" 0-5460"))
        };
        nodes.iter().all(agrees)
    });
    call_all(&mut log);
    assert!(log.is_empty(), "{log}{}", gateways[0].log());
    assert!(nodes[0].ask("DBSIZE").starts_with(":0"));
}
