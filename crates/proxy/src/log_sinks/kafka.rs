//! A producer for Kafka: looks up the leaders of a topic's partitions, and gives records to them.
//!
//! One request is under way at a time, over connections that are kept. What a broker refuses as it does not lead the
//! partition any more, or what fails on a connection that had been idle, is tried once more with fresh knowledge; all
//! further retries are the queue's.

use super::context::SinkContext;
use crate::kafka::batch;
use crate::kafka::connection::{Address, Brokers, MAX_ANSWER};
use crate::kafka::wire::{self, Topology};
use std::io;
use std::time::{Duration, Instant, SystemTime};
use weir_model::unix_time;
use weir_plugin::LogKafka;

/// How long it counts what brokers have said about partitions.
const REFRESH: Duration = Duration::from_secs(60);
/// The state that is kept between two messages.
#[derive(Default)]
pub struct Producer {
    topology: Option<(Topology, Instant)>,
    brokers: Brokers,
    /// Records without a key go to one partition after another.
    turn: usize,
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
        let now_ms = unix_time::millis(SystemTime::now());
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
        self.brokers.clear();
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
        let is_kept = self.brokers.knows(&leader);
        let mut connection = self
            .brokers
            .take(sink_context.dialer(), &topic.cluster, &leader)
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
            let answer = connection.answer(correlation, MAX_ANSWER).await.map_err(failed)?;
            match wire::read_produce(&answer).map_err(SendError::For)? {
                0 => {}
                code @ (3 | 5 | 6) => return Err(SendError::Stale(wire::refused("a message", code))),
                code => {
                    self.brokers.keep(leader, connection);
                    return Err(SendError::Refused(wire::refused("a message", code)));
                }
            }
        }
        self.brokers.keep(leader, connection);
        Ok(())
    }

    /// Looks up the topic's partitions, unless they are known.
    async fn learn(&mut self, sink_context: &SinkContext, topic: &LogKafka) -> io::Result<()> {
        let is_known = |(_, since): &(Topology, Instant)| since.elapsed() < REFRESH;
        if self.topology.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let mut last = io::Error::from(io::ErrorKind::NotConnected);
        for broker in &topic.cluster.brokers {
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
        broker: &Address,
    ) -> io::Result<Topology> {
        let cluster = (sink_context.dialer(), &topic.cluster);
        let ask = |correlation| wire::ask_metadata(&topic.topic, correlation);
        self.brokers
            .ask(cluster, broker, MAX_ANSWER, ask, wire::read_metadata)
            .await
    }

    /// The partition for the next records, and its leader.
    fn choose(&mut self, topic: &LogKafka) -> io::Result<(i32, Address)> {
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
}
