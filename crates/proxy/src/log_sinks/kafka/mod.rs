//! A producer for Kafka: looks up the leaders of a topic's partitions, and gives records to them.
//!
//! One request is under way at a time, over connections that are kept. What a broker refuses as it does not lead the
//! partition any more, or what fails on a connection that had been idle, is tried once more with fresh knowledge; all
//! further retries are the queue's.

mod batch;
pub mod fuzzing;
mod sasl;
mod wire;

use super::connect::{resolve, tls};
use super::context::SinkContext;
use crate::halves::{ReadHalf, WriteHalf};
use crate::pool::dial;
use sasl::Scram;
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_plugin::{LogKafka, LogSasl, SaslMechanism};
use wire::{Reader, Topology, Writer};

/// Most bytes of an answer that are read.
const MAX_ANSWER: usize = 4 << 20;
/// How long it counts what brokers have said about partitions.
const REFRESH: Duration = Duration::from_secs(60);
/// Connections that are kept at most.
const MAX_CONNECTIONS: usize = 32;

/// The state that is kept between two messages.
#[derive(Default)]
pub struct Producer {
    topology: Option<(Topology, Instant)>,
    connections: HashMap<(String, u16), BrokerConnection>,
    /// Records without a key go to one partition after another.
    turn: usize,
}

struct BrokerConnection {
    read: ReadHalf,
    write: WriteHalf,
    correlation: i32,
}

/// Why a message was not taken.
enum SendError {
    /// With fresh knowledge it may be.
    Stale(io::Error),
    /// The broker refuses it.
    Refused(io::Error),
    For(io::Error),
}

impl Producer {
    /// Sends a message to the topic.
    ///
    /// # Errors
    /// When no broker has taken it.
    pub async fn send(
        &mut self,
        sink_context: &SinkContext,
        topic: &LogKafka,
        message: &[u8],
    ) -> io::Result<()> {
        let values: Vec<&[u8]> = match topic.each_line {
            true => message
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
                .collect(),
            false => vec![message],
        };
        if values.is_empty() {
            return Ok(());
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.map_or(0, |since| since.as_millis() as u64);
        let batch = batch::batch(&values, topic.key.as_deref(), now_ms)?;
        match self.try_once(sink_context, topic, &batch).await {
            Err(SendError::Stale(_)) => {
                self.topology = None;
                match self.try_once(sink_context, topic, &batch).await {
                    Ok(()) => Ok(()),
                    Err(SendError::Refused(error)) => Err(error),
                    Err(SendError::Stale(error) | SendError::For(error)) => Err(self.give_up(error)),
                }
            }
            Err(SendError::Refused(error)) => Err(error),
            Err(SendError::For(error)) => Err(self.give_up(error)),
            Ok(()) => Ok(()),
        }
    }

    /// Whatever was known may be why it went wrong.
    fn give_up(&mut self, error: io::Error) -> io::Error {
        self.topology = None;
        self.connections.clear();
        error
    }

    async fn try_once(
        &mut self,
        sink_context: &SinkContext,
        topic: &LogKafka,
        batch: &[u8],
    ) -> Result<(), SendError> {
        self.learn(sink_context, topic).await.map_err(SendError::For)?;
        let (partition, leader) = self.choose(topic).map_err(SendError::Stale)?;
        let is_kept = self.connections.contains_key(&leader);
        let mut connection = self
            .take(sink_context, topic, &leader)
            .await
            .map_err(SendError::Stale)?;
        let timeout_ms = i32::try_from(topic.timeout.as_millis()).unwrap_or(i32::MAX);
        let correlation = connection.next();
        let request = wire::ask_produce(
            &topic.topic,
            partition,
            topic.acks,
            timeout_ms,
            batch,
            correlation,
        )
        .map_err(SendError::For)?;
        // An idle connection may have been closed meanwhile.
        let failed = |error| {
            if is_kept {
                SendError::Stale(error)
            } else {
                SendError::For(error)
            }
        };
        connection.write(&request).await.map_err(failed)?;
        if topic.acks != 0 {
            let answer = connection.answer(correlation).await.map_err(failed)?;
            match wire::read_produce(&answer).map_err(SendError::For)? {
                0 => {}
                code @ (3 | 5 | 6) => return Err(SendError::Stale(wire::refused("a message", code))),
                code => {
                    self.keep(leader, connection);
                    return Err(SendError::Refused(wire::refused("a message", code)));
                }
            }
        }
        self.keep(leader, connection);
        Ok(())
    }

    /// Looks up the topic's partitions, unless they are known.
    async fn learn(&mut self, sink_context: &SinkContext, topic: &LogKafka) -> io::Result<()> {
        let is_known = |(_, since): &(Topology, Instant)| since.elapsed() < REFRESH;
        if self.topology.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let mut last = io::Error::from(io::ErrorKind::NotConnected);
        for broker in &topic.brokers {
            match self.ask(sink_context, topic, broker).await {
                Ok(topology) => {
                    self.topology = Some((topology, Instant::now()));
                    return Ok(());
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn ask(
        &mut self,
        sink_context: &SinkContext,
        topic: &LogKafka,
        broker: &(String, u16),
    ) -> io::Result<Topology> {
        let mut connection = self.take(sink_context, topic, broker).await?;
        let correlation = connection.next();
        let request = wire::ask_metadata(&topic.topic, correlation)?;
        connection.write(&request).await?;
        let topology = wire::read_metadata(&connection.answer(correlation).await?)?;
        self.keep(broker.clone(), connection);
        Ok(topology)
    }

    /// The partition for the next records, and its leader.
    fn choose(&mut self, topic: &LogKafka) -> io::Result<(i32, (String, u16))> {
        let Some((topology, _)) = &self.topology else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let partitions = &topology.partitions;
        let led = |partition: &(i32, i32)| {
            let leader = topology.brokers.iter().find(|(id, ..)| *id == partition.1)?;
            Some((partition.0, (leader.1.clone(), leader.2)))
        };
        let chosen = match &topic.key {
            Some(key) => partitions
                .get(batch::partition_of(key, partitions.len()))
                .and_then(led),
            None => {
                self.turn = self.turn.wrapping_add(1);
                let start = self.turn % partitions.len().max(1);
                let in_turn = partitions[start..].iter().chain(&partitions[..start]);
                in_turn.filter_map(led).next()
            }
        };
        chosen.ok_or_else(|| io::Error::other("the partition has no leader"))
    }

    /// A connection to a broker, one that was kept if there is one.
    async fn take(
        &mut self,
        sink_context: &SinkContext,
        topic: &LogKafka,
        broker: &(String, u16),
    ) -> io::Result<BrokerConnection> {
        if let Some(connection) = self.connections.remove(broker)
            && !connection.read.is_dead()
        {
            return Ok(connection);
        }
        let (host, port) = broker;
        let address = resolve(sink_context, host, *port).await?;
        let rules = topic.tls.map(|verify| tls(sink_context, host, verify));
        let (read, write) = dial(address, rules.transpose()?).await?;
        let mut connection = BrokerConnection {
            read,
            write,
            correlation: 0,
        };
        if let Some(user) = &topic.sasl {
            connection.introduce(user).await?;
        }
        Ok(connection)
    }

    fn keep(&mut self, broker: (String, u16), connection: BrokerConnection) {
        if self.connections.len() >= MAX_CONNECTIONS {
            self.connections.clear();
        }
        self.connections.insert(broker, connection);
    }
}

impl BrokerConnection {
    fn next(&mut self) -> i32 {
        self.correlation = self.correlation.wrapping_add(1);
        self.correlation
    }

    async fn write(&mut self, request: &[u8]) -> io::Result<()> {
        self.write.write_all(request).await?;
        self.write.flush().await
    }

    /// The body of the answer to a request.
    async fn answer(&mut self, correlation: i32) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.read.read_i32().await?).unwrap_or(0);
        if !(4..=MAX_ANSWER).contains(&length) {
            return Err(wire::broken("an answer has no good length"));
        }
        let mut answer = vec![0; length];
        self.read.read_exact(&mut answer).await?;
        match Reader(&answer).i32()? == correlation {
            true => Ok(answer.split_off(4)),
            false => Err(wire::broken("an answer is for another request")),
        }
    }

    async fn introduce(&mut self, user: &LogSasl) -> io::Result<()> {
        let correlation = self.next();
        let mut request = Writer::request(wire::SASL_HANDSHAKE, correlation);
        request.text(sasl::name(user.mechanism));
        self.write(&request.finish()?).await?;
        let code = Reader(&self.answer(correlation).await?).i16()?;
        if code != 0 {
            return Err(wire::refused("the mechanism", code));
        }
        if user.mechanism == SaslMechanism::Plain {
            return self.say(&sasl::plain(user)).await.map(drop);
        }
        let mut random = [0; 24];
        aws_lc_rs::rand::fill(&mut random).map_err(io::Error::other)?;
        let scram = Scram::new(user, &random);
        let first = self.say(&scram.first()).await?;
        let (last, expected) = scram.last(&first)?;
        expected.check(&self.say(&last).await?)
    }

    /// Sends a message of the mechanism; gives the broker's.
    async fn say(&mut self, message: &[u8]) -> io::Result<Vec<u8>> {
        let correlation = self.next();
        let mut request = Writer::request(wire::SASL_AUTHENTICATE, correlation);
        request.bytes(message)?;
        self.write(&request.finish()?).await?;
        let answer = self.answer(correlation).await?;
        let mut reader = Reader(&answer);
        match reader.i16()? {
            0 => {
                reader.text()?;
                Ok(reader.bytes()?.to_vec())
            }
            code => Err(wire::refused("the user", code)),
        }
    }
}
