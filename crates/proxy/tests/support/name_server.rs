//! A name server on the loopback whose every record a test decides.

use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, SRV};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::str::FromStr;
use std::sync::{Arc, Mutex};

/// A name server; it answers until the test's process ends.
pub struct NameServer {
    pub address: SocketAddr,
    socket: Arc<UdpSocket>,
    zone: Arc<Mutex<Zone>>,
}

#[derive(Default)]
struct Zone {
    records: HashMap<(String, RecordType), Vec<(u32, RData)>>,
    asked: Vec<(String, RecordType)>,
    is_down: bool,
    /// The answers that wait, while it thinks.
    held: Option<Vec<(Vec<u8>, SocketAddr)>>,
}

impl NameServer {
    pub fn start() -> Self {
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let server = Self {
            address: socket.local_addr().unwrap(),
            socket: Arc::clone(&socket),
            zone: Arc::default(),
        };
        let zone = Arc::clone(&server.zone);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok((count, peer)) = socket.recv_from(&mut buffer) {
                let Ok(request) = Message::from_vec(&buffer[..count]) else {
                    continue;
                };
                let mut zone = zone.lock().unwrap();
                let Some(answer) = zone.answer(&request) else {
                    continue;
                };
                let answer = answer.to_vec().unwrap();
                match &mut zone.held {
                    Some(held) => held.push((answer, peer)),
                    None => {
                        socket.send_to(&answer, peer).unwrap();
                    }
                }
            }
        });
        server
    }

    fn zone(&self) -> std::sync::MutexGuard<'_, Zone> {
        self.zone.lock().unwrap()
    }

    /// The addresses of a name from now on, with a TTL in seconds.
    pub fn set_addresses(&self, name: &str, ttl: u32, addresses: &[Ipv4Addr]) {
        let records = addresses.iter().map(|it| (ttl, RData::A(A(*it)))).collect();
        let place = (name.to_owned(), RecordType::A);
        self.zone().records.insert(place, records);
    }

    /// The services of a name from now on: priority, weight, port and target each.
    pub fn set_services(&self, name: &str, ttl: u32, services: &[(u16, u16, u16, &str)]) {
        let record = |(priority, weight, port, target): &(u16, u16, u16, &str)| {
            let target = Name::from_str(&format!("{target}.")).unwrap();
            (ttl, RData::SRV(SRV::new(*priority, *weight, *port, target)))
        };
        let records = services.iter().map(record).collect();
        let place = (name.to_owned(), RecordType::SRV);
        self.zone().records.insert(place, records);
    }

    /// Whether it keeps silent.
    pub fn set_down(&self, is_down: bool) {
        self.zone().is_down = is_down;
    }

    /// Has it think from now on.
    pub fn hold(&self) {
        self.zone().held = Some(Vec::new());
    }

    /// Has it answer, also what it was asked meanwhile.
    pub fn release(&self) {
        for (answer, peer) in self.zone().held.take().into_iter().flatten() {
            self.socket.send_to(&answer, peer).unwrap();
        }
    }

    /// How often it was asked for records of this kind.
    pub fn times_asked(&self, name: &str, kind: RecordType) -> usize {
        let zone = self.zone();
        let asked = zone.asked.iter().filter(|it| it.0 == name && it.1 == kind);
        asked.count()
    }
}

impl Zone {
    fn answer(&mut self, request: &Message) -> Option<Message> {
        let query = request.queries.first()?.clone();
        let name = query.name().to_ascii().trim_end_matches('.').to_ascii_lowercase();
        self.asked.push((name.clone(), query.query_type()));
        if self.is_down {
            return None;
        }
        let mut answer = Message::response(request.metadata.id, request.metadata.op_code);
        answer.metadata.message_type = MessageType::Response;
        answer.metadata.recursion_desired = true;
        answer.metadata.recursion_available = true;
        answer.add_query(query.clone());
        match self.records.get(&(name, query.query_type())) {
            Some(records) => {
                for (ttl, data) in records {
                    answer.add_answer(Record::from_rdata(query.name().clone(), *ttl, data.clone()));
                }
            }
            None => answer.metadata.response_code = ResponseCode::NXDomain,
        }
        Some(answer)
    }
}
