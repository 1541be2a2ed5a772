//! Targets that are names: their addresses change, their name server fails, and no call is lost.

use crate::name_server::NameServer;
use crate::server::Server;
use crate::support::{TestGateway, eventually};
use crate::{call, kinds, model_of, status_of};
use hickory_resolver::proto::rr::RecordType;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use weir_proxy::NameServers;
use weir_proxy::health::Status;

/// A service whose one target is a name.
fn named(name: &str, port: u16, fields: Value) -> Value {
    model_of(json!([{"host": name, "port": port}]), fields)
}

fn gateway(model: Value, names: &NameServer) -> TestGateway {
    TestGateway::with(model, |options| {
        options.name_servers = NameServers::Fixed(vec![names.address]);
    })
}

const fn local(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, last)
}

#[test]
fn a_changed_address_is_taken_over_without_a_lost_call() {
    let mut old = Server::on("old", (local(2), 0).into());
    let port = old.address.port();
    let names = NameServer::start();
    names.set_addresses("api.test", 1, &[local(2)]);
    let gateway = gateway(named("api.test", port, json!({})), &names);
    assert_eq!(call(&gateway, "GET"), (200, "old".to_owned()));
    let _new = Server::on("new", (local(3), port).into());
    names.set_addresses("api.test", 1, &[local(3)]);
    eventually("the new address is called", || {
        let (status, name) = call(&gateway, "GET");
        assert_eq!(status, 200);
        name == "new"
    });
    old.kill();
    assert_eq!(kinds(&gateway, 10), [(200, "new".to_owned())]);
    names.set_down(true);
    let asked = names.times_asked("api.test", RecordType::A);
    eventually("the answer's time is over", || {
        call(&gateway, "GET");
        names.times_asked("api.test", RecordType::A) > asked
    });
    assert_eq!(
        kinds(&gateway, 10),
        [(200, "new".to_owned())],
        "the last answer serves on without a name server"
    );
}

#[test]
fn an_address_that_dies_with_its_time_is_left_in_time() {
    let mut old = Server::on("old", (local(4), 0).into());
    let port = old.address.port();
    let names = NameServer::start();
    names.set_addresses("api.test", 1, &[local(4)]);
    let gateway = gateway(named("api.test", port, json!({})), &names);
    let _new = Server::on("new", (local(5), port).into());
    assert_eq!(call(&gateway, "GET").0, 200);
    names.set_addresses("api.test", 1, &[local(5)]);
    old.kill();
    // As long as the answer is good, no other is asked for.
    eventually("the new address is called", || {
        call(&gateway, "GET") == (200, "new".to_owned())
    });
    assert_eq!(kinds(&gateway, 10), [(200, "new".to_owned())]);
}

#[test]
fn service_records_have_ports_weights_and_priorities() {
    let servers = ["often", "seldom", "spare"].map(Server::start);
    let ports = servers.each_ref().map(|it| it.address.port());
    let names = NameServer::start();
    names.set_addresses("a.test", 60, &[local(1)]);
    names.set_services(
        "api.test",
        60,
        &[
            (1, 3, ports[0], "a.test"),
            (1, 1, ports[1], "a.test"),
            (2, 9, ports[2], "a.test"),
        ],
    );
    let gateway = gateway(named("api.test", 9, json!({"srv": true})), &names);
    let answers: Vec<String> = (0..40).map(|_| call(&gateway, "GET").1).collect();
    let count = |name: &str| answers.iter().filter(|it| *it == name).count();
    assert_eq!((count("often"), count("seldom"), count("spare")), (30, 10, 0));
    assert_eq!(names.times_asked("api.test", RecordType::SRV), 1);
}

#[test]
fn a_name_without_services_is_one_of_addresses() {
    let server = Server::start("server");
    let names = NameServer::start();
    names.set_addresses("api.test", 60, &[local(1)]);
    let gateway = gateway(
        named("api.test", server.address.port(), json!({"srv": true})),
        &names,
    );
    assert_eq!(call(&gateway, "GET"), (200, "server".to_owned()));
    assert_eq!(names.times_asked("api.test", RecordType::SRV), 1);
}

#[test]
fn calls_that_wait_for_a_name_ask_once() {
    let server = Server::start("server");
    let names = NameServer::start();
    names.set_addresses("api.test", 60, &[local(1)]);
    names.hold();
    let gateway = gateway(named("api.test", server.address.port(), json!({})), &names);
    let mut clients: Vec<_> = (0..20).map(|_| gateway.connect()).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    eventually("all have come", || {
        gateway.totals().connections_accepted == 20 && names.times_asked("api.test", RecordType::A) == 1
    });
    names.release();
    for client in &mut clients {
        assert_eq!(client.response().unwrap().status(), 200);
    }
    assert_eq!(names.times_asked("api.test", RecordType::A), 1);
}

#[test]
fn each_address_of_a_name_has_its_own_health() {
    let good = Server::on("good", (local(6), 0).into());
    let port = good.address.port();
    let bad = Server::on("bad", (local(7), port).into());
    let names = NameServer::start();
    names.set_addresses("api.test", 1, &[local(6), local(7)]);
    let active = json!({
        "healthy": {"interval_ms": 10, "successes": 1},
        "unhealthy": {"interval_ms": 10, "http_failures": 1},
    });
    let checks = json!({"checks": {"active": active, "when_none_healthy": "refuse"}});
    let gateway = gateway(named("api.test", port, checks), &names);
    eventually("both are called", || kinds(&gateway, 4).len() == 2);
    bad.set_status(500);
    eventually("one of them is out", || {
        let report = gateway.gateway().upstream_health("upstream").unwrap();
        let stand = report.targets[0].addresses.iter().map(|it| it.status);
        stand.collect::<Vec<_>>() == [Status::Healthy, Status::Unhealthy]
    });
    assert_eq!(status_of(&gateway), [Status::Healthy]);
    assert_eq!(kinds(&gateway, 10), [(200, "good".to_owned())]);
    good.set_status(500);
    eventually("all are out", || status_of(&gateway) == [Status::Unhealthy]);
    assert_eq!(call(&gateway, "GET").0, 503);
    good.set_status(200);
    eventually("one is back", || status_of(&gateway) == [Status::Healthy]);
    names.set_addresses("api.test", 1, &[]);
    eventually("the name is gone", || status_of(&gateway) == [Status::DnsError]);
    assert_eq!(
        call(&gateway, "GET"),
        (200, "good".to_owned()),
        "its last addresses serve on"
    );
}

#[test]
fn local_names_need_no_name_server() {
    let server = Server::start("server");
    for srv in [false, true] {
        let model = named("localhost", server.address.port(), json!({"srv": srv}));
        let gateway = TestGateway::with(model, |options| {
            options.name_servers = NameServers::File("/nowhere/resolv.conf".into());
        });
        assert_eq!(call(&gateway, "GET"), (200, "server".to_owned()));
    }
}
