//! Connections to message brokers whose protocols plugins speak: this sends what a plugin says and reads what comes
//! back. It knows nothing of what is said but that every answer begins with its length in four bytes.

use super::connect::{resolve, tls};
use super::context::SinkContext;
use crate::halves::{ReadHalf, WriteHalf};
use crate::pool::dial;
use std::collections::HashMap;
use std::io;
use std::time::SystemTime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_model::unix_time;
use weir_plugin::{LogBroker, LogProducer, LogStep};

/// Most bytes of an answer that are read.
const MAX_ANSWER: usize = 4 << 20;
/// Connections that are kept at most.
const MAX_CONNECTIONS: usize = 32;
/// Most requests for one message, and most messages of a server that are no answer to one.
const MAX_STEPS: usize = 64;

/// The state that is kept between two messages for one broker.
pub struct BrokerLink {
    producer: Box<dyn LogProducer>,
    connections: HashMap<(String, u16), Connection>,
}

struct Connection {
    read: ReadHalf,
    write: WriteHalf,
}

impl BrokerLink {
    /// Has no connection yet.
    pub fn new(producer: Box<dyn LogProducer>) -> Self {
        Self {
            producer,
            connections: HashMap::new(),
        }
    }

    /// Sends a message to the broker.
    ///
    /// # Errors
    /// When it has not taken it.
    pub async fn send(
        &mut self,
        sink_context: &SinkContext,
        broker: &LogBroker,
        message: &[u8],
    ) -> io::Result<()> {
        let now_ms = unix_time::millis(SystemTime::now());
        let mut unique = [0; 16];
        aws_lc_rs::rand::fill(&mut unique).map_err(io::Error::other)?;
        self.producer.begin(message, now_ms, unique);
        for _ in 0..MAX_STEPS {
            match self.producer.next() {
                LogStep::Done => return Ok(()),
                LogStep::Failed(reason) => return Err(io::Error::other(reason)),
                LogStep::Ask { host, port, request } => {
                    let asked = self.ask(sink_context, broker, (host, port), &request).await;
                    if let Err(error) = asked {
                        self.producer.fail(&error);
                    }
                }
            }
        }
        Err(io::Error::other("the broker's servers send from one to another"))
    }

    async fn ask(
        &mut self,
        sink_context: &SinkContext,
        broker: &LogBroker,
        server: (String, u16),
        request: &[u8],
    ) -> io::Result<()> {
        let kept = self.connections.remove(&server);
        if let Some(mut connection) = kept.filter(|connection| !connection.read.is_dead()) {
            // The server may have closed it meanwhile: then it is asked over another one.
            if let Ok(first) = connection.exchange(request).await {
                return self.read_response(server, connection, first).await;
            }
        }
        let (host, port) = &server;
        let address = resolve(sink_context, host, *port).await?;
        let rules = broker.tls.map(|verify| tls(sink_context, host, verify));
        let (read, write) = dial(address, rules.transpose()?).await?;
        let mut connection = Connection { read, write };
        let first = connection.exchange(request).await?;
        self.read_response(server, connection, first).await
    }

    /// Hears a server until it has answered, and keeps the connection.
    async fn read_response(
        &mut self,
        server: (String, u16),
        mut connection: Connection,
        first: Vec<u8>,
    ) -> io::Result<()> {
        let mut answer = first;
        let mut others = 0;
        while !self.producer.take(&answer) {
            others += 1;
            if others > MAX_STEPS {
                return Err(io::Error::other("a server sends much, and no answer"));
            }
            answer = connection.answer().await?;
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            self.connections.clear();
        }
        self.connections.insert(server, connection);
        Ok(())
    }
}

impl Connection {
    async fn exchange(&mut self, request: &[u8]) -> io::Result<Vec<u8>> {
        self.write.write_all(request).await?;
        self.write.flush().await?;
        self.answer().await
    }

    async fn answer(&mut self) -> io::Result<Vec<u8>> {
        let length = usize::try_from(self.read.read_i32().await?).unwrap_or(0);
        if !(1..=MAX_ANSWER).contains(&length) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "an answer has an invalid length",
            ));
        }
        let mut answer = vec![0; length];
        self.read.read_exact(&mut answer).await?;
        Ok(answer)
    }
}
