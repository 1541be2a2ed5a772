//! Whose turn it is, what is remembered, and which configuration holds.

use super::resolved_name::ResolvedName;
use super::*;
use name_server::NameServer;

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../tests/support/name_server.rs"]
mod name_server;

fn endpoint(last: u8, port: Option<u16>, weight: u32, priority: i32) -> Endpoint {
    Endpoint {
        ip: [127, 0, 0, last].into(),
        port,
        weight,
        priority,
    }
}

fn address(last: u8, port: u16) -> SocketAddr {
    ([127, 0, 0, last], port).into()
}

#[test]
fn addresses_are_picked_by_weight_health_and_what_was_tried() {
    let now = Instant::now();
    let endpoints = vec![
        endpoint(1, None, 3, 0),
        endpoint(2, Some(81), 1, 0),
        endpoint(3, None, 1, -1),
    ];
    let all = [address(1, 80), address(2, 81), address(3, 80)];
    // `(tried, unhealthy, how often each is picked in 8 turns)`
    let cases: [(Option<usize>, &[usize], [usize; 3]); 6] = [
        (None, &[], [6, 2, 0]),
        (Some(0), &[], [0, 8, 0]),
        (None, &[0], [0, 8, 0]),
        (None, &[0, 1], [0, 0, 8]),
        (Some(2), &[0, 1], [0, 0, 8]),
        (None, &[0, 1, 2], [6, 2, 0]),
    ];
    for (tried, unhealthy, expected) in cases {
        let mut answer = ResolvedName::new(endpoints.clone(), now, 7);
        let mut counts = [0; 3];
        for _ in 0..8 {
            let picked = answer.pick(80, tried.map(|index| all[index]), |it| {
                !unhealthy.iter().any(|index| all[*index] == it)
            });
            let index = all.iter().position(|it| Some(*it) == picked);
            counts[index.expect("one of them")] += 1;
        }
        assert_eq!(counts, expected, "tried {tried:?}, unhealthy {unhealthy:?}");
    }
    let mut nothing = ResolvedName::new(Vec::new(), now, 7);
    assert_eq!(nothing.pick(80, None, |_| true), None);
}

#[tokio::test(flavor = "local")]
async fn dns_forgets_names_that_are_not_asked_for() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let server = silent.local_addr().expect("bound");
    let resolver = Resolver::new(NameServers::Fixed(vec![server]), 1);
    let now = Instant::now();
    for text in ["127.0.0.1", "127.0.0.2"] {
        let found = resolver.resolve(text, now).await;
        assert_eq!(found.map(|ip| ip.to_string()).as_deref(), Ok(text));
    }
    let later = now + UNUSED - Duration::from_millis(1);
    resolver.resolve("127.0.0.2", later).await.expect("known");
    let count = || resolver.names[0].borrow().len();
    resolver.refresh(later);
    assert_eq!(count(), 2);
    resolver.refresh(now + UNUSED);
    assert_eq!(count(), 1);
    resolver.refresh(later + UNUSED);
    assert_eq!(count(), 0);
}

#[tokio::test(flavor = "local")]
async fn an_old_answer_will_do_unless_it_has_just_not_done() {
    let names = NameServer::start();
    let resolver = Resolver::new(NameServers::Fixed(vec![names.address]), 1);
    let wanted = |tried: Option<SocketAddr>| DnsQuery {
        name: "api.test",
        port: 80,
        srv: false,
        is_again: tried.is_some(),
        tried,
    };
    names.set_addresses("api.test", 1, &[[127, 0, 0, 2].into()]);
    let now = Instant::now();
    let (old, new) = (address(2, 80), address(3, 80));
    assert_eq!(
        resolver.address(wanted(None), now, |_| true).await.ok(),
        Some(old)
    );
    names.set_addresses("api.test", 1, &[[127, 0, 0, 3].into()]);
    names.hold();
    let later = now + 3 * MIN_TTL;
    assert_eq!(
        resolver.address(wanted(None), later, |_| true).await.ok(),
        Some(old)
    );
    names.release();
    assert_eq!(
        resolver.address(wanted(Some(old)), later, |_| true).await.ok(),
        Some(new)
    );
}

#[test]
fn a_configuration_is_read_once_it_can_be_and_when_it_changes() {
    let file = std::env::temp_dir().join(format!("weir-dns-{}.conf", std::process::id()));
    let system = System::new(NameServers::File(file.clone()));
    assert_eq!(
        system.servers_after_a_while(),
        ["127.0.0.1"],
        "as everywhere where nothing is said"
    );
    for (seconds, text, servers) in [
        (1, "nameserver 192.0.2.1\n", vec!["192.0.2.1"]),
        (
            2,
            "nameserver 192.0.2.2\nnameserver 192.0.2.3\n",
            vec!["192.0.2.2", "192.0.2.3"],
        ),
        (3, "search example.test\n", vec!["127.0.0.1"]),
    ] {
        std::fs::write(&file, text).expect("written");
        let written = std::fs::File::options().append(true).open(&file).expect("there");
        let time = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        written.set_modified(time).expect("changed");
        assert_eq!(system.servers_after_a_while(), servers, "{text}");
    }
    std::fs::remove_file(&file).expect("removed");
    assert_eq!(system.servers_after_a_while(), ["127.0.0.1"]);
}
