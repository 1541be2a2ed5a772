//! Reading records of Kafka for calls: once, or as a stream that lasts as long as the client.

use crate::dialer::Dialer;
use crate::forward::Background;
use crate::kafka::consumer::{Consumer, OpenEvents, ReadContext};
use crate::outcome::{ConnectionFate, ShortCircuit};
use crate::serve::RequestContext;
use crate::worker::{ConnectionGuard, Worker};
use std::io;
use std::task::Poll;
use std::time::Duration;
use weir_http1::fields::push_header;
use weir_http1::{Framing, chunked};
use weir_plugin::{KafkaAnswer, KafkaEvents, KafkaFailure, KafkaPartition, KafkaRead, RefusalKind};
use weir_snapshot::{Chain, Route};

/// How long a call waits at least until others of its group have read.
const MIN_TURN: Duration = Duration::from_secs(1);

impl RequestContext<'_> {
    /// Reads the next records for a group, as long as the client waits.
    pub async fn read_kafka(&mut self, read: &KafkaRead) -> Result<KafkaAnswer, ShortCircuit> {
        let read_once = read_once(self.worker, read);
        Ok(self.unless_gone(read_once).await?.map_err(|error| note(&error)))
    }

    /// Finds out from where on a stream reads.
    pub async fn open_events(
        &mut self,
        events: Box<KafkaEvents>,
    ) -> Result<Result<OpenEvents, KafkaFailure>, ShortCircuit> {
        let worker = self.worker;
        let opened = self.unless_gone(async {
            let (mut consumer, context) = (Consumer::default(), context(worker, &events.read));
            let open = async {
                consumer.open(context).await?;
                // A client that comes again later goes on from here.
                consumer.store(context).await
            };
            within(events.read.source.timeout, open).await?;
            Ok(consumer)
        });
        let opened = opened.await?.map_err(|error: io::Error| note(&error));
        Ok(opened.map(|consumer| OpenEvents { consumer, events }))
    }

    async fn unless_gone<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ShortCircuit> {
        let (client, worker) = (&mut *self.client, self.worker);
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => client
                .reader
                .poll_closed(context, &worker.runtime)
                .map(|()| Err(ShortCircuit::Gone)),
        })
        .await
    }

    /// Sends a stream of records, after the chain's response work.
    pub async fn send_events(
        &mut self,
        open: OpenEvents,
        chain: &Chain,
        route: Option<&Route>,
    ) -> ConnectionFate {
        let OpenEvents { mut consumer, events } = open;
        self.begin_reply(&events.reply, None);
        self.exchange.merge_response_headers();
        self.run_response_work(chain);
        if self.exchange.response.waits
            && let Err(ShortCircuit::Gone) = Box::pin(self.run_response_waits(chain)).await
        {
            return ConnectionFate::Close;
        }
        // A filter's own answer takes the place of the stream, which is never whole.
        if let Some(body) = self.exchange.response.replaced_body.take() {
            let body = self.exchange.response.filter_whole(body);
            return self.write_reply(&body, route).await;
        }
        let is_stream = self.client.stream().is_some();
        let framing = match is_stream || self.head.minor_version == 0 {
            true => Framing::UntilClose,
            false => Framing::Chunked,
        };
        // Draining ends the stream of a connection; a stream of HTTP/2 is not one by itself.
        let registration = is_stream.then(|| ConnectionGuard::uncounted(self.worker));
        if let Some(registration) = &registration {
            registration.attach().await;
        }
        let mut out = self.worker.runtime.buffers.acquire_output();
        self.write_reply_head(route, &mut out);
        if framing == Framing::Chunked {
            push_header(&mut out, b"Transfer-Encoding", b"chunked");
        }
        let sent = match self.finish_head(false, false, &mut out) {
            Ok(()) => self.run_events(&mut consumer, &events, framing, &mut out).await,
            Err(error) => Err(error),
        };
        self.worker.runtime.buffers.release_output(out);
        match sent.is_ok() && is_stream {
            true => ConnectionFate::KeepAlive,
            false => ConnectionFate::Close,
        }
    }

    /// Sends records until the client goes, the gateway ends, or brokers fail; then the stream ends as it should, and
    /// the client may come again.
    async fn run_events(
        &mut self,
        consumer: &mut Consumer,
        events: &KafkaEvents,
        framing: Framing,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        self.send_event(&events.reply.body, framing, out).await?;
        loop {
            let found = match self.next_records(consumer, events).await {
                Ok(Some(Ok(found))) => found,
                Ok(Some(Err(error))) => {
                    note(&error);
                    self.report.error = Some(RefusalKind::UpstreamFailed.as_str());
                    break;
                }
                Ok(None) => break,
                Err(_) => {
                    self.report.aborted = true;
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
            };
            let mut piece = Vec::new();
            for partition in &found {
                events.form.write(partition, &mut piece);
            }
            if found.is_empty() {
                piece.extend_from_slice(events.idle.1);
            }
            self.send_event(&piece, framing, out).await?;
            let context = context(self.worker, &events.read);
            let stored = within(events.read.source.timeout, consumer.store(context)).await;
            if let Err(error) = stored {
                note(&error);
                self.report.error = Some(RefusalKind::UpstreamFailed.as_str());
                break;
            }
        }
        let mut trailers = Vec::new();
        self.end_filters(framing, &mut trailers, out);
        if framing == Framing::Chunked {
            out.extend_from_slice(chunked::LAST_CHUNK);
        }
        self.write_last(out, &[], &mut Background::Nothing).await
    }

    /// The next records of a stream, or none after its idle time; `None`: the gateway ends.
    async fn next_records(
        &mut self,
        consumer: &mut Consumer,
        events: &KafkaEvents,
    ) -> Result<Option<io::Result<Vec<KafkaPartition>>>, ShortCircuit> {
        let worker = self.worker;
        let wait = events.idle.0;
        let fetched = consumer.fetch(context(worker, &events.read), wait);
        let mut fetched = std::pin::pin!(within(wait + events.read.source.timeout, fetched));
        let until_drained = std::future::poll_fn(|context| match worker.is_draining() {
            true => Poll::Ready(None),
            false => fetched.as_mut().poll(context).map(Some),
        });
        self.unless_gone(until_drained).await
    }

    /// Sends a piece of a stream at once.
    async fn send_event(&mut self, piece: &[u8], framing: Framing, out: &mut Vec<u8>) -> io::Result<()> {
        let watch = &mut Background::Nothing;
        if !piece.is_empty() {
            if self.exchange.response.body_filters.is_empty() {
                self.send_data(piece, framing, out, watch).await?;
            } else {
                self.send_filtered(piece, framing, out, watch).await?;
                self.pause_filters(framing, out);
            }
        }
        self.flush(out, watch).await
    }
}

fn context<'r>(worker: &'r Worker, read: &'r KafkaRead) -> ReadContext<'r> {
    let dialer = Dialer {
        shared: &worker.shared,
        resolver: &worker.resolver,
    };
    ReadContext { dialer, read }
}

/// Reads once, in turn with others of the group. Offsets are stored at once, so that no other gets the same records.
async fn read_once(worker: &Worker, read: &KafkaRead) -> io::Result<Vec<KafkaPartition>> {
    let source = &read.source;
    let _turn = match source.keeps_offsets {
        true => {
            let turn = worker.shared.kafka_turns.take(read);
            match tokio::time::timeout(source.wait.max(MIN_TURN), turn).await {
                Ok(turn) => Some(turn),
                // Others have waited for records all the time.
                Err(_) => return Ok(Vec::new()),
            }
        }
        false => None,
    };
    let context = context(worker, read);
    let mut consumer = worker.kafka.take(read);
    let read_all = async {
        consumer.open(context).await?;
        let found = consumer.fetch(context, source.wait).await?;
        consumer.store(context).await?;
        Ok(found)
    };
    let found = within(source.wait + source.timeout, read_all).await?;
    worker.kafka.keep(read, consumer);
    Ok(found)
}

async fn within<T>(time: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let done = tokio::time::timeout(time, work).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// What a failure is for filters.
fn note(error: &io::Error) -> KafkaFailure {
    tracing::debug!(%error, "records of Kafka cannot be read");
    match error.kind() {
        io::ErrorKind::TimedOut => KafkaFailure::Timeout,
        io::ErrorKind::Unsupported => KafkaFailure::Unreadable,
        _ => KafkaFailure::Unavailable,
    }
}
