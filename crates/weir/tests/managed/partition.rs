//! Three gateways on etcd, each over a relay that can be cut: whatever ends or is cut off, the others lose no call,
//! what was committed stays, and all come to serve the same. Without etcd, nothing is tested.

use crate::cluster::Etcd;
use crate::ports::free_port;
use crate::support::{Call, Weir, status_of, until, upstream};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Carries connections to a port of this machine, until it is cut.
struct Relay {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    carried: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let relay = Self {
            address: listener.local_addr().expect("bound"),
            is_cut: Arc::default(),
            carried: Arc::default(),
        };
        let (is_cut, carried) = (Arc::clone(&relay.is_cut), Arc::clone(&relay.carried));
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if let Ok(far) = TcpStream::connect(("127.0.0.1", port)) {
                    let mut carried = carried.lock().expect("whole");
                    // A client that connects to a relay that is cut hears nothing, and is not refused.
                    if !is_cut.load(Ordering::Acquire) {
                        carry(&near, &far);
                        carry(&far, &near);
                    }
                    carried.extend([near, far]);
                }
            }
        });
        relay
    }

    /// What is carried stops, and nothing new is carried.
    fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
        self.end_all();
    }

    /// New connections are carried again.
    fn heal(&self) {
        self.is_cut.store(false, Ordering::Release);
        self.end_all();
    }

    fn end_all(&self) {
        for stream in self.carried.lock().expect("whole").drain(..) {
            let _ended = stream.shutdown(Shutdown::Both);
        }
    }

    fn store(&self) -> String {
        format!("etcd://{}", self.address)
    }
}

fn carry(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (
        from.try_clone().expect("a handle"),
        to.try_clone().expect("a handle"),
    );
    std::thread::spawn(move || {
        let mut piece = [0; 16 * 1024];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            if to.write_all(&piece[..length]).is_err() {
                break;
            }
        }
        let _ended = to.shutdown(Shutdown::Both);
        let _ended = from.shutdown(Shutdown::Both);
    });
}

/// Calls a gateway again and again.
struct Calling {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    caller: JoinHandle<u64>,
}

impl Calling {
    fn at(proxy: String) -> Self {
        let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&made));
        let caller = std::thread::spawn(move || {
            let mut lost = 0;
            while !stopped.load(Ordering::Acquire) {
                lost += u64::from(status_of(&proxy, "/one") != Some(200));
                counted.fetch_add(1, Ordering::Release);
            }
            lost
        });
        Self { stop, made, caller }
    }

    /// Waits until more calls were made.
    fn go_on(&self) {
        let before = self.made.load(Ordering::Acquire);
        until("calls go on", || self.made.load(Ordering::Acquire) > before + 3);
    }

    /// How many calls were lost.
    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Release);
        self.caller.join().expect("no panic")
    }
}

fn plane(folder: &Path, store: &str) -> Weir {
    let flags = [
        "--role",
        "control",
        "--store",
        store,
        "--kong-admin",
        "127.0.0.1:0",
    ];
    Weir::start(folder, &flags)
}

fn gateway(folder: &Path, relay: &Relay, name: &str) -> Weir {
    let store = relay.store();
    let flags = [
        "--role", "gateway", "--store", &store, "--data", name, "--name", name,
    ];
    Weir::start(folder, &flags)
}

/// Commits a route; whether it was answered.
fn put(plane: &Weir, server: SocketAddr, path: &str) -> bool {
    let name = path.trim_start_matches('/');
    let service = format!("{{\"url\": \"http://{server}\"}}");
    let route = format!("{{\"paths\": [\"{path}\"]}}");
    let attempt = |path: &str, body: &str| {
        let answer = Call::new("PUT", &plane.kong(), path).body(body).attempt();
        answer.is_some_and(|answer| answer.status == 200)
    };
    attempt("/services/s", &service) && attempt(&format!("/services/s/routes/{name}"), &route)
}

fn serves(gateway: &Weir, path: &str) -> bool {
    status_of(&gateway.proxy(), path) == Some(200)
}

#[test]
fn whatever_ends_the_others_lose_nothing_and_all_converge() {
    let data = tempfile::tempdir().expect("a folder");
    let folder = data.path();
    let (port, peers) = (free_port(), free_port());
    let Some(etcd) = Etcd::start(folder, port, peers) else {
        return;
    };
    let server = upstream("a");
    let store = format!("etcd://127.0.0.1:{port}");
    let relays = [Relay::to(port), Relay::to(port), Relay::to(port)];
    let mut control = plane(folder, &store);
    let a = gateway(folder, &relays[0], "a");
    let b = gateway(folder, &relays[1], "b");
    let c = gateway(folder, &relays[2], "c");
    assert!(put(&control, server, "/one"));
    for one in [&a, &b, &c] {
        until("the first route is served", || serves(one, "/one"));
    }
    let calling = [Calling::at(a.proxy()), Calling::at(b.proxy())];
    let all_go_on = || calling.iter().for_each(Calling::go_on);

    relays[0].cut();
    assert!(put(&control, server, "/two"));
    until("gateways that are not cut off serve it", || {
        serves(&b, "/two") && serves(&c, "/two")
    });
    assert!(!serves(&a, "/two"), "it is cut off");
    all_go_on();

    // The control plane ends right after an answer, and another takes its place.
    assert!(put(&control, server, "/three"));
    control.kill();
    all_go_on();
    control = plane(folder, &store);
    let routes = Call::get(&control.kong(), "/routes").make().expect(200).json();
    assert_eq!(routes["data"].as_array().map(Vec::len), Some(3), "{routes}");
    until("what was answered is served", || serves(&b, "/three"));

    // A gateway ends, and so does the store; it comes back while both store and control plane are away.
    let kept = folder.join("c/last-known-good");
    until("it is kept", || {
        std::fs::read_to_string(&kept).is_ok_and(|text| text.contains("/three"))
    });
    c.kill();
    all_go_on();
    drop(etcd);
    control.kill();
    all_go_on();
    let c = gateway(folder, &relays[2], "c");
    assert!(
        serves(&c, "/one") && serves(&c, "/three"),
        "the last known good is served"
    );

    let _etcd = Etcd::start(folder, port, peers).expect("it was there before");
    let control = plane(folder, &store);
    until("writes are taken again", || put(&control, server, "/four"));
    until("gateways that are not cut off serve it", || {
        serves(&b, "/four") && serves(&c, "/four")
    });
    all_go_on();
    relays[0].heal();
    until("the one that was cut off serves all", || {
        ["/two", "/three", "/four"].iter().all(|path| serves(&a, path))
    });
    for one in [&a, &b, &c] {
        until("all serve the same", || one.hash() == control.hash());
    }
    let [of_a, of_b] = calling.map(Calling::end);
    assert_eq!((of_a, of_b), (0, 0), "lost calls");
}
