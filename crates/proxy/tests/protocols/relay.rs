//! Between a client of QUIC and a gateway: holds back what the gateway answers, and remembers what has passed.

use super::support::TIMEOUT;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The first bits of a packet that asks a client to prove its address (RFC 9000, section 17.2.5).
const RETRY: u8 = 0xf0;

#[derive(Default)]
struct State {
    client: Option<SocketAddr>,
    /// What the gateway has answered, while that is held back.
    held: Option<Vec<Vec<u8>>>,
    from_client: Vec<Vec<u8>>,
    was_retried: bool,
}

/// A relay for one client.
pub struct Relay {
    pub address: SocketAddr,
    front: UdpSocket,
    gateway: SocketAddr,
    state: Arc<Mutex<State>>,
}

fn socket() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

impl Relay {
    pub fn to(gateway: SocketAddr) -> Self {
        let (front, back) = (socket(), socket());
        back.connect(gateway).unwrap();
        let relay = Self {
            address: front.local_addr().unwrap(),
            front,
            gateway,
            state: Arc::default(),
        };
        let (front, to_gateway, state) = (
            relay.front.try_clone().unwrap(),
            back.try_clone().unwrap(),
            relay.state(),
        );
        std::thread::spawn(move || {
            let mut space = [0; 65_536];
            while let Ok((count, client)) = front.recv_from(&mut space) {
                let mut state = state.lock().unwrap();
                state.client = Some(client);
                state.from_client.push(space[..count].to_vec());
                // A gateway that is gone refuses it.
                let _sent = to_gateway.send(&space[..count]);
            }
        });
        let (front, state) = (relay.front.try_clone().unwrap(), relay.state());
        std::thread::spawn(move || {
            let mut space = [0; 65_536];
            while let Ok(count) = back.recv(&mut space) {
                let mut state = state.lock().unwrap();
                state.was_retried |= space[0] & RETRY == RETRY;
                let client = state.client;
                match (&mut state.held, client) {
                    (Some(held), _) => held.push(space[..count].to_vec()),
                    (None, Some(client)) => drop(front.send_to(&space[..count], client)),
                    (None, None) => {}
                }
            }
        });
        relay
    }

    fn state(&self) -> Arc<Mutex<State>> {
        Arc::clone(&self.state)
    }

    /// Holds back what the gateway answers from now on.
    pub fn hold(&self) {
        self.state.lock().unwrap().held = Some(Vec::new());
    }

    /// Releases what was held back.
    pub fn release(&self) {
        let mut state = self.state.lock().unwrap();
        for datagram in state.held.take().unwrap_or_default() {
            let client = state.client.expect("a client");
            drop(self.front.send_to(&datagram, client));
        }
    }

    /// Whether the client was asked to prove its address.
    pub fn was_retried(&self) -> bool {
        self.state.lock().unwrap().was_retried
    }

    /// Sends what the client has sent once more, from another address, until it is taken for a connection of its own:
    /// the gateway may still know the first one.
    pub fn send_again(&self) {
        let socket = socket();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let deadline = Instant::now() + TIMEOUT;
        loop {
            for datagram in &self.state.lock().unwrap().from_client {
                socket.send_to(datagram, self.gateway).unwrap();
            }
            if socket.recv(&mut [0; 65_536]).is_ok() {
                return;
            }
            assert!(Instant::now() < deadline, "there is no answer");
        }
    }
}
