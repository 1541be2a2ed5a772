//! A consumer: knows who leads the partitions of its topics and from where on each is read, and keeps offsets for a
//! group.
//!
//! It joins no group. It reads all partitions, and stores offsets as a client outside of the group's protocol does,
//! which brokers allow while the group has no members.

use super::connection::{Address, Brokers, MAX_ANSWER};
use super::consumer_wire::{self, Fetched, PartitionResults, TopicPartition, all_good};
use super::records::{FetchBudget, MAX_DECOMPRESSED_IN_ALL, size_of};
use super::wire::{self, Topology, refused};
use crate::dialer::Dialer;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use weir_plugin::{KafkaCluster, KafkaEvents, KafkaPartition, KafkaRead, KafkaSource, KafkaStart};

/// How long it counts what brokers have said about partitions.
const REFRESH: Duration = Duration::from_secs(60);
/// Most bytes of an answer with records: a batch can be larger than what was asked for.
const MAX_FETCHED: usize = 16 << 20;
/// How long one of several leaders may wait for records while others have some.
const SLICE: Duration = Duration::from_millis(500);
/// The pause before a broker is asked again that was not ready.
const PAUSE: Duration = Duration::from_millis(100);
/// How often it is asked again at most.
const ATTEMPTS: usize = 10;
/// How often the partitions are looked up again for one read.
const LOOKUPS: usize = 3;
/// Consumers that a worker keeps.
const MAX_KEPT: usize = 64;

/// What is kept between two reads.
#[derive(Default)]
pub struct Consumer {
    brokers: Brokers,
    topology: Option<(BTreeMap<String, Topology>, Instant)>,
    /// The broker that keeps the group's offsets.
    coordinator: Option<Address>,
    /// The offset that is read next in each partition.
    positions: BTreeMap<TopicPartition, i64>,
    /// Places whose positions are not stored yet.
    unstored: BTreeSet<TopicPartition>,
    /// Where the list of partitions begins next time, so that none is always the last.
    turn: usize,
}

/// How a consumer reaches brokers, and what it reads.
#[derive(Clone, Copy)]
pub struct ReadContext<'r> {
    pub dialer: Dialer<'r>,
    pub read: &'r KafkaRead,
}

impl<'r> ReadContext<'r> {
    fn cluster(self) -> (Dialer<'r>, &'r KafkaCluster) {
        (self.dialer, &self.read.source.cluster)
    }
}

/// A stream of records that can begin.
pub struct OpenEvents {
    /// Knows from where on it reads.
    pub consumer: Consumer,
    pub events: Box<KafkaEvents>,
}

/// What came of asking all leaders once.
#[derive(Default)]
struct Round {
    found: Vec<KafkaPartition>,
    records: usize,
    bytes: usize,
    /// There is nothing at the positions of these: what was there is deleted.
    lost: Vec<TopicPartition>,
    /// Some are led by another broker.
    is_stale: bool,
}

impl Consumer {
    /// Finds out from where on the group reads.
    ///
    /// # Errors
    /// If the brokers do not say.
    pub async fn open(&mut self, context: ReadContext<'_>) -> io::Result<()> {
        self.learn(context).await?;
        self.positions.clear();
        self.unstored.clear();
        let places = self.places();
        if context.read.source.keeps_offsets {
            let group = &context.read.group;
            let asked: Vec<&TopicPartition> = places.iter().collect();
            let ask = |correlation| consumer_wire::ask_stored(group, &asked, correlation);
            let stored = self.ask_group(context, ask, consumer_wire::read_stored).await?;
            let known: BTreeSet<&TopicPartition> = places.iter().collect();
            let is_known = |place: &TopicPartition| known.contains(place);
            let stored = stored
                .into_iter()
                .filter(|(place, offset)| *offset >= 0 && is_known(place));
            self.positions.extend(stored);
        }
        let mut lookups = 0;
        loop {
            let Err(error) = self.begin_new(context).await else {
                return Ok(());
            };
            self.refresh_metadata(error, &mut lookups).await?;
            self.learn(context).await?;
        }
    }

    /// Prepares another attempt after an error that other leaders may have caused.
    async fn refresh_metadata(&mut self, error: io::Error, lookups: &mut usize) -> io::Result<()> {
        *lookups += 1;
        let is_final = matches!(
            error.kind(),
            io::ErrorKind::Unsupported | io::ErrorKind::InvalidData | io::ErrorKind::PermissionDenied
        );
        if is_final || *lookups > LOOKUPS {
            return Err(error);
        }
        self.topology = None;
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }

    /// The next records. Waits for so long if there are none.
    ///
    /// # Errors
    /// If the brokers cannot be reached or refuse, or `Unsupported` if records cannot be read.
    pub async fn fetch(
        &mut self,
        context: ReadContext<'_>,
        wait: Duration,
    ) -> io::Result<Vec<KafkaPartition>> {
        let deadline = Instant::now() + wait;
        let mut lookups = 0;
        loop {
            self.learn(context).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            let asked = match self.begin_new(context).await {
                Ok(()) => self.ask_leaders(context, left).await,
                Err(error) => Err(error),
            };
            let error = match asked {
                Ok(round) => {
                    // These begin again, also if others have records.
                    for place in &round.lost {
                        self.positions.remove(place);
                    }
                    if !round.found.is_empty() {
                        self.turn = self.turn.wrapping_add(1);
                        if round.is_stale {
                            self.topology = None;
                        }
                        return Ok(round.found);
                    }
                    if !round.is_stale && round.lost.is_empty() {
                        match Instant::now() >= deadline {
                            true => return Ok(Vec::new()),
                            false => continue,
                        }
                    }
                    refused("records", if round.is_stale { 6 } else { 1 })
                }
                Err(error) => error,
            };
            self.refresh_metadata(error, &mut lookups).await?;
        }
    }

    /// Stores how far the group has come.
    ///
    /// # Errors
    /// If the brokers do not take it.
    pub async fn store(&mut self, context: ReadContext<'_>) -> io::Result<()> {
        let unstored = std::mem::take(&mut self.unstored);
        if !context.read.source.keeps_offsets || unstored.is_empty() {
            return Ok(());
        }
        let offsets: Vec<(TopicPartition, i64)> = unstored
            .into_iter()
            .filter_map(|place| self.positions.get(&place).map(|offset| (place.clone(), *offset)))
            .collect();
        let offsets: Vec<(&TopicPartition, i64)> =
            offsets.iter().map(|(place, offset)| (place, *offset)).collect();
        let group = &context.read.group;
        let ask = |correlation| consumer_wire::ask_commit(group, &offsets, correlation);
        self.ask_group(context, ask, consumer_wire::read_commit).await?;
        Ok(())
    }

    /// Looks up the partitions of the topics, unless they are known.
    async fn learn(&mut self, context: ReadContext<'_>) -> io::Result<()> {
        let is_known = |(_, since): &(BTreeMap<String, Topology>, Instant)| since.elapsed() < REFRESH;
        if self.topology.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let mut found = BTreeMap::new();
        for topic in &context.read.source.topics {
            let ask = |correlation| wire::ask_metadata(topic, correlation);
            let topology = self.ask_any(context, ask, wire::read_metadata).await?;
            found.insert(topic.clone(), topology);
        }
        self.topology = Some((found, Instant::now()));
        let places: BTreeSet<TopicPartition> = self.places().into_iter().collect();
        self.positions.retain(|place, _| places.contains(place));
        Ok(())
    }

    /// Asks one broker after another of those that the configuration names.
    async fn ask_any<T>(
        &mut self,
        context: ReadContext<'_>,
        ask: impl Fn(i32) -> io::Result<Vec<u8>>,
        read: impl Fn(&[u8]) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut last = io::Error::from(io::ErrorKind::NotConnected);
        for broker in &context.read.source.cluster.brokers {
            let asked = self
                .brokers
                .ask(context.cluster(), broker, MAX_ANSWER, &ask, &read);
            match asked.await {
                Ok(offset) => return Ok(offset),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Asks the broker that keeps the group's offsets. One that is not ready yet is asked again: a cluster that has
    /// never kept any takes a moment.
    async fn ask_group<T>(
        &mut self,
        context: ReadContext<'_>,
        ask: impl Fn(i32) -> io::Result<Vec<u8>>,
        read: impl Fn(&[u8]) -> io::Result<PartitionResults<T>>,
    ) -> io::Result<Vec<(TopicPartition, T)>> {
        let is_unready = |code: i16| (14..=16).contains(&code);
        for _ in 0..ATTEMPTS {
            let broker = match self.coordinator.take() {
                Some(broker) => broker,
                None => {
                    let group = &context.read.group;
                    let ask = |correlation| consumer_wire::ask_coordinator(group, correlation);
                    match self
                        .ask_any(context, ask, consumer_wire::read_coordinator)
                        .await?
                    {
                        (0, broker) => broker,
                        (code, _) if is_unready(code) => {
                            tokio::time::sleep(PAUSE).await;
                            continue;
                        }
                        (code, _) => return Err(refused("the group", code)),
                    }
                }
            };
            let asked = self
                .brokers
                .ask(context.cluster(), &broker, MAX_ANSWER, &ask, &read);
            let results = asked.await?;
            if results.iter().any(|(_, code, _)| is_unready(*code)) {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            self.coordinator = Some(broker);
            return all_good(results, "the group");
        }
        Err(io::Error::other("no broker keeps the group's offsets"))
    }

    /// Finds out where to begin in partitions that have no position.
    async fn begin_new(&mut self, context: ReadContext<'_>) -> io::Result<()> {
        let mut places = self.places();
        places.retain(|place| !self.positions.contains_key(place));
        if places.is_empty() {
            return Ok(());
        }
        let time = match context.read.source.start {
            KafkaStart::Latest => -1,
            KafkaStart::Earliest => -2,
        };
        for (leader, places) in self.by_leader(&places) {
            let places: Vec<&TopicPartition> = places.iter().collect();
            let known: BTreeSet<&TopicPartition> = places.iter().copied().collect();
            let ask = |correlation| consumer_wire::ask_offsets(time, &places, correlation);
            let read = consumer_wire::read_offsets;
            let asked = self
                .brokers
                .ask(context.cluster(), &leader, MAX_ANSWER, ask, read);
            for (place, offset) in all_good(asked.await?, "the beginning")? {
                if known.contains(&place) {
                    self.unstored.insert(place.clone());
                    self.positions.insert(place, offset);
                }
            }
        }
        Ok(())
    }

    /// Asks each leader once for records, and moves on behind those that have come.
    async fn ask_leaders(&mut self, context: ReadContext<'_>, wait: Duration) -> io::Result<Round> {
        let mut places = self.places();
        places.retain(|place| self.positions.contains_key(place));
        let first = self.turn % places.len().max(1);
        places.rotate_left(first);
        let leaders = self.by_leader(&places);
        if leaders.is_empty() {
            return Err(io::Error::other("no partition has a leader"));
        }
        let wait = match leaders.len() {
            1 => wait,
            count => (wait / count as u32).min(SLICE),
        };
        let source = &context.read.source;
        let mut round = Round::default();
        for (leader, places) in leaders {
            let room = FetchBudget {
                records: source.max_records.saturating_sub(round.records),
                bytes: source.max_bytes.saturating_sub(round.bytes),
                decompressed: MAX_DECOMPRESSED_IN_ALL,
            };
            if room.records == 0 || room.bytes == 0 {
                break;
            }
            let offsets: Vec<(&TopicPartition, i64)> = places
                .iter()
                .filter_map(|place| self.positions.get(place).map(|offset| (place, *offset)))
                .collect();
            let wait = if round.found.is_empty() {
                wait
            } else {
                Duration::ZERO
            };
            let wait_ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
            let max_bytes = i32::try_from(room.bytes).unwrap_or(i32::MAX);
            let ask = |correlation| consumer_wire::ask_fetch(&offsets, max_bytes, wait_ms, correlation);
            let known: BTreeMap<&TopicPartition, i64> = offsets.iter().copied().collect();
            let offset_of = |place: &TopicPartition| known.get(place).copied();
            let read = |answer: &[u8]| consumer_wire::read_fetch(answer, room, offset_of);
            let asked = self
                .brokers
                .ask(context.cluster(), &leader, MAX_FETCHED, ask, read);
            let results = asked.await?;
            self.take(results, &mut round)?;
        }
        Ok(round)
    }

    fn take(&mut self, results: PartitionResults<Fetched>, round: &mut Round) -> io::Result<()> {
        for (place, code, Fetched { found, next }) in results {
            match code {
                0 => {
                    if self.positions.insert(place.clone(), next) != Some(next) {
                        self.unstored.insert(place);
                    }
                    if !found.records.is_empty() {
                        round.records += found.records.len();
                        round.bytes += found.records.iter().map(size_of).sum::<usize>();
                        round.found.push(found);
                    }
                }
                1 => round.lost.push(place),
                3 | 5 | 6 => round.is_stale = true,
                code => return Err(refused("records", code)),
            }
        }
        Ok(())
    }

    /// All partitions.
    fn places(&self) -> Vec<TopicPartition> {
        let topics = self.topology.iter().flat_map(|(topics, _)| topics);
        let places = |(topic, topology): (&String, &Topology)| {
            let topic = topic.clone();
            let partitions: Vec<i32> = topology.partitions.iter().map(|(id, _)| *id).collect();
            partitions.into_iter().map(move |id| (topic.clone(), id))
        };
        topics.flat_map(places).collect()
    }

    /// The leaders of places. Those without one are left out.
    fn by_leader(&self, places: &[TopicPartition]) -> Vec<(Address, Vec<TopicPartition>)> {
        let mut leaders: Vec<(Address, Vec<TopicPartition>)> = Vec::new();
        let led = |place: &TopicPartition| {
            let topology = self.topology.as_ref()?.0.get(&place.0)?;
            // They are sorted.
            let found = topology.partitions.binary_search_by_key(&place.1, |(id, _)| *id);
            let (_, leader) = topology.partitions.get(found.ok()?)?;
            let broker = topology.brokers.iter().find(|(id, ..)| id == leader)?;
            Some((broker.1.clone(), broker.2))
        };
        for place in places {
            let Some(leader) = led(place) else { continue };
            match leaders.iter_mut().find(|(known, _)| *known == leader) {
                Some((_, places)) => places.push(place.clone()),
                None => leaders.push((leader, vec![place.clone()])),
            }
        }
        leaders
    }
}

/// A consumer that a worker keeps: for which source, and which group.
type CachedConsumer = (Weak<KafkaSource>, String, Consumer);

/// The consumers that a worker keeps for the next call, with their connections.
#[derive(Default)]
pub struct ConsumerCache(RefCell<Vec<CachedConsumer>>);

impl ConsumerCache {
    /// One that was kept, or a new one.
    pub fn take(&self, read: &KafkaRead) -> Consumer {
        let mut kept = self.0.borrow_mut();
        let is_same = |(source, group, _): &CachedConsumer| {
            *group == read.group && std::ptr::eq(source.as_ptr(), Arc::as_ptr(&read.source))
        };
        match kept.iter().position(is_same) {
            Some(place) => kept.swap_remove(place).2,
            None => Consumer::default(),
        }
    }

    /// Closes the connections of those that are of former configurations.
    pub fn prune(&self) {
        self.0
            .borrow_mut()
            .retain(|(source, ..)| source.strong_count() > 0);
    }

    /// Keeps one, unless there are enough.
    pub fn keep(&self, read: &KafkaRead, consumer: Consumer) {
        self.prune();
        let mut kept = self.0.borrow_mut();
        if kept.len() < MAX_KEPT {
            kept.push((Arc::downgrade(&read.source), read.group.clone(), consumer));
        }
    }
}
