//! Sending a message to a target, over a connection that is kept if the target has connections.

use super::broker::BrokerLink;
use super::connect::{resolve, tls};
use super::context::SinkContext;
use super::file::{self, LogOutput};
use super::grpc::Channel;
use super::kafka::Producer;
use crate::buffer::Inbox;
use crate::halves::{ReadHalf, WriteHalf};
use crate::pool::{UpstreamConnection, dial};
use crate::subrequest::{self, SubrequestError};
use crate::timer::Timer;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::io::AsyncWriteExt;
use tokio::net::{UdpSocket, UnixDatagram};
use weir_http1::HeadSlot;
use weir_model::unix_time;
use weir_plugin::{LogAuthorization, LogFile, LogHttp, LogSigner, LogSink, SubrequestResponse};

/// The longest that a datagram may take to be sent.
const DATAGRAM_TIMEOUT: Duration = Duration::from_secs(3);
/// Most bytes of an answer that are read.
const MAX_ANSWER: usize = 1 << 20;

/// Sends messages to one target.
pub struct Sender {
    sink: LogSink,
    file: Option<LogOutput>,
    http: Option<Box<UpstreamConnection>>,
    grpc: Option<Channel>,
    kafka: Producer,
    broker: Option<BrokerLink>,
    tcp: Option<(ReadHalf, WriteHalf)>,
    udp: Option<UdpSocket>,
}

impl Sender {
    /// Sends nothing yet.
    pub fn new(sink: &LogSink) -> Self {
        Self {
            sink: sink.clone(),
            file: None,
            http: None,
            grpc: None,
            kafka: Producer::default(),
            broker: None,
            tcp: None,
            udp: None,
        }
    }

    /// The target as it is logged: no path and no header, which may hold secrets.
    pub fn name(&self) -> String {
        match &self.sink {
            LogSink::File { file, .. } => file::name(file),
            LogSink::Local { path } => path.clone(),
            LogSink::Http(http) => format!("{}:{}", http.host, http.port),
            LogSink::Grpc(grpc) => format!("{}:{}", grpc.host, grpc.port),
            LogSink::Kafka(kafka) => format!("the topic {}", kafka.topic),
            LogSink::Rocketmq(broker) => broker.name.clone(),
            LogSink::Tcp { host, port, .. } | LogSink::Udp { host, port, .. } => format!("{host}:{port}"),
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When the target has not taken it.
    pub async fn send(&mut self, sink_context: &SinkContext, message: &Arc<Vec<u8>>) -> io::Result<()> {
        match self.sink.clone() {
            LogSink::File { file, reopen } => self.append(file, reopen, Arc::clone(message)).await,
            LogSink::Http(http) => {
                let mut connection = self.http.take();
                let sent = async {
                    let header = match &http.signer {
                        None => String::new(),
                        Some(signer) => authorization(sink_context, signer).await?,
                    };
                    let sent = post(sink_context, &http, &header, &mut connection, message);
                    good(sent.await?.status)
                };
                let sent = within(http.timeout, sent).await;
                self.http = connection;
                sent
            }
            LogSink::Grpc(grpc) => {
                let kept = self.grpc.take();
                let sent = super::grpc::call(sink_context, &grpc, kept, message);
                self.grpc = Some(within(grpc.timeout, sent).await?);
                Ok(())
            }
            LogSink::Kafka(topic) => {
                // What is under way when the time is over is gone with the connection.
                let mut producer = std::mem::take(&mut self.kafka);
                let sent = async {
                    let sent = producer.send(sink_context, &topic, message).await;
                    Ok((producer, sent))
                };
                let (producer, sent) = within(topic.timeout, sent).await?;
                self.kafka = producer;
                sent
            }
            LogSink::Rocketmq(broker) => {
                let kept = self.broker.take();
                let mut link = kept.unwrap_or_else(|| BrokerLink::new(broker.protocol.producer()));
                let sent = async {
                    let sent = link.send(sink_context, &broker, message).await;
                    Ok((link, sent))
                };
                let (link, sent) = within(broker.timeout, sent).await?;
                self.broker = Some(link);
                sent
            }
            LogSink::Tcp {
                host,
                port,
                tls,
                timeout,
            } => {
                let kept = self.tcp.take();
                let sent = write(sink_context, (&host, port), tls, kept, message);
                self.tcp = Some(within(timeout, sent).await?);
                Ok(())
            }
            LogSink::Udp {
                host,
                port,
                line_bytes,
            } => {
                let datagrams = datagrams(message, line_bytes);
                within(
                    DATAGRAM_TIMEOUT,
                    self.throw(sink_context, &host, port, &datagrams),
                )
                .await
            }
            LogSink::Local { path } => {
                let sent = async { UnixDatagram::unbound()?.send_to(message, path).await };
                within(DATAGRAM_TIMEOUT, sent).await.map(drop)
            }
        }
    }

    /// Appends to a file, on a thread that may wait for the disk.
    async fn append(&mut self, file: LogFile, reopen: bool, message: Arc<Vec<u8>>) -> io::Result<()> {
        let open = self.file.take().filter(|_| !reopen);
        let written = tokio::task::spawn_blocking(move || {
            let mut open = match open {
                Some(open) => open,
                None => file::open(&file)?,
            };
            open.append(&message)?;
            Ok::<LogOutput, io::Error>(open)
        });
        let file = written.await.map_err(io::Error::other)??;
        self.file = (!reopen).then_some(file);
        Ok(())
    }

    async fn throw(
        &mut self,
        sink_context: &SinkContext,
        host: &str,
        port: u16,
        datagrams: &[&[u8]],
    ) -> io::Result<()> {
        let address = resolve(sink_context, host, port).await?;
        let own: IpAddr = match address.is_ipv4() {
            true => Ipv4Addr::UNSPECIFIED.into(),
            false => Ipv6Addr::UNSPECIFIED.into(),
        };
        let has_kind = |socket: &UdpSocket| socket.local_addr().is_ok_and(|it| it.is_ipv4() == own.is_ipv4());
        let socket = match self.udp.take().filter(has_kind) {
            Some(socket) => socket,
            None => UdpSocket::bind(SocketAddr::new(own, 0)).await?,
        };
        for datagram in datagrams {
            socket.send_to(datagram, address).await?;
        }
        self.udp = Some(socket);
        Ok(())
    }
}

/// The datagrams of a message: all of it, or its lines, as many together as fit.
fn datagrams(message: &[u8], line_bytes: Option<usize>) -> Vec<&[u8]> {
    let Some(most) = line_bytes else {
        return vec![message];
    };
    let mut datagrams = Vec::new();
    let (mut start, mut end) = (0, 0);
    for line in message.split(|byte| *byte == b'\n') {
        let line_end = end + line.len();
        if end > start && line_end - start > most {
            datagrams.push(&message[start..end - 1]);
            start = end;
        }
        end = line_end + 1;
    }
    // The end is one behind where another line feed would be.
    datagrams.push(&message[start..end - 1]);
    datagrams.retain(|datagram| !datagram.is_empty());
    datagrams
}

async fn within<T>(time: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let done = tokio::time::timeout(time, work).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// The line that shows who a request is from. A token that it takes is fetched first.
async fn authorization(sink_context: &SinkContext, signer: &LogSigner) -> io::Result<String> {
    let now_ms = unix_time::millis(SystemTime::now());
    let signer = signer.authorizer();
    for _ in 0..2 {
        match signer.authorize(now_ms) {
            LogAuthorization::Header(value) => return Ok(format!("Authorization: {value}\r\n")),
            LogAuthorization::Fail(reason) => return Err(io::Error::other(reason)),
            LogAuthorization::Ask(server, body) => {
                let answer = post(sink_context, &server, "", &mut None, &body).await?;
                signer.take(answer.status, &answer.body, now_ms);
            }
        }
    }
    Err(io::Error::other("no token was given"))
}

/// Sends a request with one more header and reads its answer; what can be used again is left in `kept`.
async fn post(
    sink_context: &SinkContext,
    http: &LogHttp,
    header: &str,
    kept: &mut Option<Box<UpstreamConnection>>,
    body: &[u8],
) -> io::Result<SubrequestResponse> {
    let mut message = Vec::with_capacity(http.head.len() + header.len() + body.len() + 40);
    message.extend_from_slice(&http.head);
    message.extend_from_slice(header.as_bytes());
    message.extend_from_slice(b"Content-Length: ");
    message.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
    message.extend_from_slice(b"\r\n\r\n");
    message.extend_from_slice(body);
    let buffers = &sink_context.buffers;
    if let Some(mut connection) = kept.take().filter(|it| !it.read.is_dead() && it.inbox.is_empty()) {
        match subrequest::exchange(buffers, &mut connection, &message, MAX_ANSWER).await {
            Ok((answer, keeps)) => {
                *kept = Some(connection).filter(|_| keeps);
                return Ok(answer);
            }
            // The server may have closed the connection just before.
            Err(SubrequestError::BeforeAnswer(_)) => {}
            Err(SubrequestError::InAnswer(error)) => return Err(error),
        }
    }
    let address = resolve(sink_context, &http.host, http.port).await?;
    let rules = http.tls.map(|verify| tls(sink_context, &http.host, verify));
    let (read, write) = dial(address, rules.transpose()?).await?;
    let mut connection = Box::new(UpstreamConnection {
        read,
        write: Some(write),
        inbox: Inbox::default(),
        last_head: HeadSlot::default(),
        timer: Timer::new(Instant::now(), http.timeout),
        calls: 0,
        open: None,
        home: None,
    });
    match subrequest::exchange(buffers, &mut connection, &message, MAX_ANSWER).await {
        Ok((answer, keeps)) => {
            *kept = Some(connection).filter(|_| keeps);
            Ok(answer)
        }
        Err(SubrequestError::BeforeAnswer(error) | SubrequestError::InAnswer(error)) => Err(error),
    }
}

fn good(status: u16) -> io::Result<()> {
    match status {
        200..300 => Ok(()),
        _ => Err(io::Error::other(format!("it has answered with status {status}"))),
    }
}

/// Writes a message to a TCP server, over the connection that was kept if it is still good.
async fn write(
    sink_context: &SinkContext,
    (host, port): (&str, u16),
    rules: Option<(String, bool)>,
    kept: Option<(ReadHalf, WriteHalf)>,
    message: &[u8],
) -> io::Result<(ReadHalf, WriteHalf)> {
    let mut halves = match kept.filter(|(read, _)| !read.is_dead()) {
        Some(halves) => halves,
        None => {
            let address = resolve(sink_context, host, port).await?;
            let rules = rules.map(|(name, verify)| tls(sink_context, &name, verify));
            dial(address, rules.transpose()?).await?
        }
    };
    halves.1.write_all(message).await?;
    halves.1.flush().await?;
    Ok(halves)
}
