//! A producer for RocketMQ: asks a name server where the queues of a topic are, and gives messages to their brokers,
//! one queue after another. It does no I/O.
//!
//! A message that a broker cannot take now, or that fails on the way to it, is sent once more after another look-up;
//! all further retries are the queue's.

use super::RocketmqTarget;
use super::wire::{self, BrokerResponse, Route};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use weir_plugin::{LogProducer, LogStep};

/// How long it counts what name servers have said about a topic.
const REFRESH_MS: u64 = 30_000;
/// Queues that a topic gets which a broker makes when the first message comes.
const NEW_QUEUES: u32 = 4;
/// A topic does not exist.
const NO_TOPIC: i64 = 17;
/// The message is taken; after the first, the broker did not wait for its disk or for a copy elsewhere.
const TAKEN: [i64; 4] = [0, 10, 11, 12];
/// Another broker may take it: an error or too much work in this one, no service, no permission to write, no such topic,
/// and a queue that another broker leads.
const ELSEWHERE: [i64; 6] = [1, 2, 14, 16, NO_TOPIC, 501];

/// Gives messages to the topic.
pub struct Producer {
    target: Arc<RocketmqTarget>,
    /// Where the topic is, and until when that counts.
    route: Option<(Route, u64)>,
    /// Queues take turns.
    turn: usize,
    /// The number of the last request.
    number: i32,
    /// The name server that is asked first.
    nameserver: usize,
    message: Message,
    state: State,
}

#[derive(Default)]
struct Message {
    body: Vec<u8>,
    now_ms: u64,
    unique: String,
    /// It is given to a broker for the second time.
    is_again: bool,
}

enum State {
    /// A name server is asked; so many have not answered.
    Routing {
        failed: usize,
        topic: &'static str,
    },
    /// A broker is given the message.
    Sending,
    Taken,
    Failed(String),
}

/// The topic of the configuration itself.
const OWN: &str = "";

impl Producer {
    /// Knows nothing yet.
    pub fn new(target: Arc<RocketmqTarget>) -> Self {
        Self {
            target,
            route: None,
            turn: 0,
            number: 0,
            nameserver: 0,
            message: Message::default(),
            state: State::Taken,
        }
    }

    fn request(
        &mut self,
        code: i32,
        fields: BTreeMap<&'static str, String>,
        (host, port): (String, u16),
    ) -> LogStep {
        self.number = self.number.wrapping_add(1);
        let body: &[u8] = match code {
            wire::SEND_MESSAGE => &self.message.body,
            _ => b"",
        };
        let user = self.target.credentials.as_ref();
        LogStep::Ask {
            host,
            port,
            request: wire::request(code, self.number, fields, body, user),
        }
    }

    fn learn(&mut self) {
        self.route = None;
        self.state = State::Routing {
            failed: 0,
            topic: OWN,
        };
    }

    /// With fresh knowledge, and to the next queue.
    fn send_again(&mut self) {
        self.message.is_again = true;
        self.learn();
    }

    fn send(&mut self) -> LogStep {
        self.turn = self.turn.wrapping_add(1);
        let chosen = self.route.as_ref().and_then(|(route, _)| route.queue(self.turn));
        let Some((broker, queue)) = chosen else {
            return self.give_up("the topic has no queue that can be written to".to_owned());
        };
        let target = &self.target;
        let mut properties = String::new();
        let named = [("KEYS", target.key.as_deref()), ("TAGS", target.tag.as_deref())];
        let fixed = [
            ("UNIQ_KEY", Some(self.message.unique.as_str())),
            ("WAIT", Some("true")),
        ];
        for (name, value) in named.into_iter().chain(fixed) {
            if let Some(value) = value {
                properties.extend([name, "\u{1}", value, "\u{2}"]);
            }
        }
        let fields = BTreeMap::from([
            ("a", target.group.clone()),
            ("b", target.topic.clone()),
            ("c", wire::DEFAULT_TOPIC.to_owned()),
            ("d", NEW_QUEUES.to_string()),
            ("e", queue.to_string()),
            ("f", "0".to_owned()),
            ("g", self.message.now_ms.to_string()),
            ("h", "0".to_owned()),
            ("i", properties),
            ("j", "0".to_owned()),
            ("k", "false".to_owned()),
            ("l", "0".to_owned()),
            ("m", "false".to_owned()),
            ("n", broker.name.clone()),
        ]);
        let server = (broker.host.clone(), broker.port);
        self.request(wire::SEND_MESSAGE, fields, server)
    }

    fn give_up(&mut self, reason: String) -> LogStep {
        self.route = None;
        self.state = State::Failed(reason.clone());
        LogStep::Failed(reason)
    }

    /// The next name server is asked, unless all have been.
    fn next_nameserver(&mut self, failed: usize, topic: &'static str, reason: String) {
        self.nameserver = self.nameserver.wrapping_add(1);
        self.state = match failed + 1 < self.target.nameservers.len() {
            true => State::Routing {
                failed: failed + 1,
                topic,
            },
            false => State::Failed(reason),
        };
    }

    fn take_route(&mut self, answer: &BrokerResponse<'_>, failed: usize, topic: &'static str) {
        match answer.code {
            0 => match Route::parse(answer.body) {
                Some(mut route) => {
                    if topic != OWN {
                        for broker in &mut route.0 {
                            broker.queues = broker.queues.min(NEW_QUEUES);
                        }
                    }
                    self.route = Some((route, self.message.now_ms.saturating_add(REFRESH_MS)));
                    self.state = State::Sending;
                }
                None => self.next_nameserver(failed, topic, "a name server's answer cannot be read".into()),
            },
            // A broker that makes topics makes this one.
            NO_TOPIC if topic == OWN => {
                self.state = State::Routing {
                    failed,
                    topic: wire::DEFAULT_TOPIC,
                };
            }
            _ => self.next_nameserver(failed, topic, refused("to say where the topic is", answer)),
        }
    }

    fn take_receipt(&mut self, answer: &BrokerResponse<'_>) {
        match answer.code {
            code if TAKEN.contains(&code) => self.state = State::Taken,
            code if ELSEWHERE.contains(&code) && !self.message.is_again => self.send_again(),
            _ => {
                self.give_up(refused("the message", answer));
            }
        }
    }
}

/// What a server has refused, and why.
fn refused(what: &str, answer: &BrokerResponse<'_>) -> String {
    // Remarks can be whole stack traces.
    let first = answer.remark.lines().next().unwrap_or_default();
    let remark: String = first.chars().take(200).collect();
    format!("a server has refused {what} with code {}: {remark}", answer.code)
}

impl LogProducer for Producer {
    fn begin(&mut self, message: &[u8], now_ms: u64, unique: [u8; 16]) {
        let unique = unique.iter().map(|byte| format!("{byte:02X}")).collect();
        self.message = Message {
            body: message.to_vec(),
            now_ms,
            unique,
            is_again: false,
        };
        match &self.route {
            Some((_, until)) if now_ms < *until => self.state = State::Sending,
            _ => self.learn(),
        }
    }

    fn next(&mut self) -> LogStep {
        match &self.state {
            State::Taken => LogStep::Done,
            State::Failed(reason) => LogStep::Failed(reason.clone()),
            State::Sending => self.send(),
            State::Routing { topic, .. } => {
                let topic = match *topic {
                    OWN => self.target.topic.clone(),
                    other => other.to_owned(),
                };
                let servers = &self.target.nameservers;
                let Some(server) = servers.get(self.nameserver % servers.len().max(1)) else {
                    return LogStep::Failed("there is no name server".to_owned());
                };
                let server = (server.host.clone(), server.port);
                let fields =
                    BTreeMap::from([("topic", topic), ("acceptStandardJsonOnly", "true".to_owned())]);
                self.request(wire::GET_ROUTE, fields, server)
            }
        }
    }

    fn take(&mut self, answer: &[u8]) -> bool {
        let answer = match wire::answer(answer) {
            Some(answer) if answer.is_answer && answer.number == i64::from(self.number) => answer,
            Some(_) => return false,
            None => {
                self.fail(&io::Error::other("an answer cannot be read"));
                return true;
            }
        };
        match self.state {
            State::Routing { failed, topic } => self.take_route(&answer, failed, topic),
            State::Sending => self.take_receipt(&answer),
            State::Taken | State::Failed(_) => {}
        }
        true
    }

    fn fail(&mut self, error: &io::Error) {
        match self.state {
            State::Routing { failed, topic } => {
                self.next_nameserver(failed, topic, format!("no name server has answered: {error}"));
            }
            State::Sending if !self.message.is_again => self.send_again(),
            State::Sending => {
                self.give_up(format!("the broker has not answered: {error}"));
            }
            State::Taken | State::Failed(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Nameserver;
    use super::*;
    use serde_json::{Value, json};

    fn producer() -> Producer {
        let nameserver = |host: &str| Nameserver {
            host: host.into(),
            port: 9876,
        };
        Producer::new(Arc::new(RocketmqTarget {
            nameservers: vec![nameserver("n1"), nameserver("n2")],
            topic: "calls".into(),
            tag: Some("t".into()),
            ..RocketmqTarget::default()
        }))
    }

    fn answer(number: i32, code: i64, body: &str) -> Vec<u8> {
        let header = json!({"code": code, "opaque": number, "flag": 1, "remark": "why\nat x"}).to_string();
        let length = (header.len() as u32).to_be_bytes();
        [&length[..], header.as_bytes(), body.as_bytes()].concat()
    }

    /// A step in short: who is asked what, of which topic, and for which queue.
    fn step(producer: &mut Producer) -> String {
        match producer.next() {
            LogStep::Done => "done".into(),
            LogStep::Failed(reason) => reason,
            LogStep::Ask { host, request, .. } => {
                let length = u32::from_be_bytes(request[4..8].try_into().expect("four")) as usize;
                let header: Value = serde_json::from_slice(&request[8..8 + length]).expect("JSON");
                let field = |name: &str| header["extFields"][name].as_str().unwrap_or("-").to_owned();
                match header["code"].as_i64() {
                    Some(105) => format!("{host}: where is {}", field("topic")),
                    _ => format!("{host}: {} {}", field("b"), field("e")),
                }
            }
        }
    }

    fn route(host: &str) -> String {
        json!({
            "brokerDatas": [{"brokerName": "b", "brokerAddrs": {"0": format!("{host}:10911")}}],
            "queueDatas": [{"brokerName": "b", "perm": 6, "writeQueueNums": 8}],
        })
        .to_string()
    }

    /// Runs a message against the servers' answers; no answer means that the server is unavailable.
    fn run(producer: &mut Producer, answers: &[Option<(i64, &str)>]) -> Vec<String> {
        producer.begin(b"m", 1_000, [7; 16]);
        let mut steps = vec![step(producer)];
        for reply in answers {
            match reply {
                Some((code, body)) => {
                    let stale = answer(producer.number - 1, 0, "");
                    assert!(!producer.take(&stale), "an answer to something else");
                    let bytes = answer(producer.number, *code, body);
                    assert!(producer.take(&bytes));
                }
                None => producer.fail(&io::ErrorKind::ConnectionRefused.into()),
            }
            steps.push(step(producer));
        }
        steps
    }

    #[test]
    fn messages_find_their_brokers() {
        let (b1, b2) = (route("b1"), route("b2"));
        for (answers, expected) in [
            (
                vec![Some((0, b1.as_str())), Some((0, ""))],
                vec!["n1: where is calls", "b1: calls 1", "done"],
            ),
            // A name server is away, and the topic is new.
            (
                vec![None, Some((17, "")), Some((0, &b1)), Some((10, ""))],
                vec![
                    "n1: where is calls",
                    "n2: where is calls",
                    "n2: where is TBW102",
                    "b1: calls 1",
                    "done",
                ],
            ),
            (
                vec![Some((0, &b1)), Some((13, ""))],
                vec![
                    "n1: where is calls",
                    "b1: calls 1",
                    "a server has refused the message with code 13: why",
                ],
            ),
            (
                vec![Some((0, "no JSON")), Some((0, "{}"))],
                vec![
                    "n1: where is calls",
                    "n2: where is calls",
                    "the topic has no queue that can be written to",
                ],
            ),
        ] {
            assert_eq!(run(&mut producer(), &answers), expected);
        }
        // Cached routes may be old: they are looked up once more.
        let mut producer = producer();
        run(&mut producer, &[Some((0, &b1)), Some((0, ""))]);
        assert_eq!(
            run(&mut producer, &[None, Some((0, &b2)), Some((2, ""))]),
            [
                "b1: calls 2",
                "n1: where is calls",
                "b2: calls 3",
                "a server has refused the message with code 2: why",
            ]
        );
        // After a failure nothing counts any more.
        assert_eq!(run(&mut producer, &[]), ["n1: where is calls"]);
    }
}
