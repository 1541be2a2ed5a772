//! Connections to brokers, each with the request that is under way on it.

use super::sasl::{self, Scram};
use super::wire::{self, Reader, Writer};
use crate::dialer::Dialer;
use crate::halves::{ReadHalf, WriteHalf};
use std::collections::HashMap;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_plugin::{KafkaCluster, LogSasl, SaslMechanism};

/// Most bytes of an answer that has no records.
pub const MAX_ANSWER: usize = 4 << 20;
/// Connections that are kept at most.
const MAX_CONNECTIONS: usize = 32;

/// A broker's name or address, and its port.
pub type Address = (String, u16);

/// Connections that are kept between two requests.
#[derive(Default)]
pub struct Brokers(HashMap<Address, BrokerConnection>);

pub struct BrokerConnection {
    read: ReadHalf,
    write: WriteHalf,
    correlation: i32,
}

impl Brokers {
    /// Whether there is a connection to this broker that was used before.
    pub fn knows(&self, broker: &Address) -> bool {
        self.0.contains_key(broker)
    }

    /// A connection to a broker, one that was kept if there is one.
    pub async fn take(
        &mut self,
        dialer: Dialer<'_>,
        cluster: &KafkaCluster,
        broker: &Address,
    ) -> io::Result<BrokerConnection> {
        if let Some(connection) = self.0.remove(broker)
            && !connection.read.is_dead()
        {
            return Ok(connection);
        }
        let (host, port) = broker;
        let (read, write) = dialer.connect(host, *port, cluster.tls).await?;
        let mut connection = BrokerConnection {
            read,
            write,
            correlation: 0,
        };
        if let Some(user) = &cluster.sasl {
            connection.authenticate(user).await?;
        }
        Ok(connection)
    }

    pub fn keep(&mut self, broker: Address, connection: BrokerConnection) {
        if self.0.len() >= MAX_CONNECTIONS {
            self.0.clear();
        }
        self.0.insert(broker, connection);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Sends a request, which `make` makes for its number, and gives what `read` makes of the answer.
    pub async fn ask<T>(
        &mut self,
        (dialer, cluster): (Dialer<'_>, &KafkaCluster),
        broker: &Address,
        most: usize,
        make: impl Fn(i32) -> io::Result<Vec<u8>>,
        read: impl FnOnce(&[u8]) -> io::Result<T>,
    ) -> io::Result<T> {
        let is_kept = self.knows(broker);
        let mut connection = self.take(dialer, cluster, broker).await?;
        let answer = match connection.exchange(&make, most).await {
            // An idle connection may have been closed meanwhile.
            Err(_) if is_kept => {
                connection = self.take(dialer, cluster, broker).await?;
                connection.exchange(&make, most).await?
            }
            answer => answer?,
        };
        let read = read(&answer)?;
        self.keep(broker.clone(), connection);
        Ok(read)
    }
}

impl BrokerConnection {
    /// The number of the next request.
    pub fn next(&mut self) -> i32 {
        self.correlation = self.correlation.wrapping_add(1);
        self.correlation
    }

    pub async fn write(&mut self, request: &[u8]) -> io::Result<()> {
        self.write.write_all(request).await?;
        self.write.flush().await
    }

    /// The body of the answer to a request.
    pub async fn answer(&mut self, correlation: i32, most: usize) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.read.read_i32().await?).unwrap_or(0);
        if !(4..=most).contains(&length) {
            return Err(wire::broken("an answer has an invalid length"));
        }
        let mut answer = vec![0; length];
        self.read.read_exact(&mut answer).await?;
        match Reader(&answer).i32()? == correlation {
            true => Ok(answer.split_off(4)),
            false => Err(wire::broken("an answer is for another request")),
        }
    }

    async fn exchange(
        &mut self,
        make: &impl Fn(i32) -> io::Result<Vec<u8>>,
        most: usize,
    ) -> io::Result<Vec<u8>> {
        let correlation = self.next();
        self.write(&make(correlation)?).await?;
        self.answer(correlation, most).await
    }

    async fn authenticate(&mut self, user: &LogSasl) -> io::Result<()> {
        let correlation = self.next();
        let mut request = Writer::request(wire::SASL_HANDSHAKE, correlation);
        request.text(sasl::name(user.mechanism));
        self.write(&request.finish()?).await?;
        let code = Reader(&self.answer(correlation, MAX_ANSWER).await?).i16()?;
        if code != 0 {
            return Err(wire::refused("the mechanism", code));
        }
        if user.mechanism == SaslMechanism::Plain {
            return self.send(&sasl::plain(user)).await.map(drop);
        }
        let mut random = [0; 24];
        aws_lc_rs::rand::fill(&mut random).map_err(io::Error::other)?;
        let scram = Scram::new(user, &random);
        let first = self.send(&scram.first()).await?;
        let (last, expected) = scram.last(&first)?;
        expected.check(&self.send(&last).await?)
    }

    /// Sends a message of the mechanism; gives the broker's.
    async fn send(&mut self, message: &[u8]) -> io::Result<Vec<u8>> {
        let correlation = self.next();
        let mut request = Writer::request(wire::SASL_AUTHENTICATE, correlation);
        request.bytes(message)?;
        self.write(&request.finish()?).await?;
        let answer = self.answer(correlation, MAX_ANSWER).await?;
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
