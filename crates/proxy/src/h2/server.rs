//! HTTP/2 connections from clients (RFC 9113): takes their streams in.

use super::connection;
use super::stream;
use crate::client::Client;
use crate::halves::into_socket;
use crate::limits::{LINGER, LINGER_BYTES};
use crate::multiplex::connection::{GoAway, MuxConnection, MuxProtocol};
use crate::multiplex::fields::StreamRequest;
use crate::multiplex::stream::StreamHalves;
use crate::multiplex::task_pool::TaskPool;
use crate::timer::Timer;
use crate::worker::Worker;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;
use weir_http2::frame::Code;
use weir_http2::{PseudoHeader, Role, Settings};
use weir_telemetry::metrics::ProtocolError;

/// The first bytes of a client that knows that HTTP/2 is spoken (RFC 9113, 3.3).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// Data that a client may send ahead on a stream, and on all streams of a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Serves a client that speaks HTTP/2 until the connection ends.
pub async fn serve(worker: &Rc<Worker>, tasks: Rc<TaskPool>, client: Client) {
    let Client {
        mut reader,
        write,
        peer,
        local,
        tls,
        ..
    } = client;
    let inbox = std::mem::take(&mut reader.inbox);
    let halves = reader.into_half().map(|read| (read, write));
    let Some(socket) = halves.and_then(into_socket) else {
        return;
    };
    let limits = &worker.shared.limits;
    let settings = Settings {
        stream_window: STREAM_WINDOW,
        connection_window: CONNECTION_WINDOW,
        max_streams: limits.max_streams,
        max_head_bytes: limits.max_head_bytes,
    };
    let connection = connection::Connection::new(&worker.runtime, socket, inbox, Role::Server, settings);
    let _streams = connection::LoseOnPanic(Rc::clone(&connection));
    let mut protocol = Streams { connection, tasks };
    match protocol.greet(worker).await {
        true => {
            MuxConnection::new(worker, peer, local, tls)
                .run(&mut protocol)
                .await
        }
        false => {
            worker.metrics.protocol_error(ProtocolError::BadRequest);
            tracing::debug!(client = %peer, "a client does not speak HTTP/2");
        }
    }
    protocol.connection.lose();
    linger(&protocol.connection).await;
}

/// The streams of a connection.
struct Streams {
    connection: Rc<connection::Connection>,
    /// The tasks of calls.
    tasks: Rc<TaskPool>,
}

impl Streams {
    /// Waits for the client's first words; says whether they came in time, and were right.
    async fn greet(&self, worker: &Worker) -> bool {
        let mut timer = Timer::new(Instant::now(), worker.shared.limits.header_timeout);
        std::future::poll_fn(|context| {
            let is_over = self.connection.poll_in(context).is_ready();
            if let Poll::Ready(Err(_)) = self.connection.poll_out(context) {
                return Poll::Ready(false);
            }
            match is_over {
                true => Poll::Ready(false),
                false if self.connection.with(|state| state.is_greeted()) => Poll::Ready(true),
                false => timer.poll_expired(context).map(|()| false),
            }
        })
        .await
    }

    /// Begins a call for each stream that has come.
    fn begin(&self, connection: &Rc<MuxConnection>) {
        let (mut accepted, late_resets) = self.connection.with(connection::Http2State::take_accepted);
        for _ in 0..late_resets {
            connection.note_given_up();
        }
        for request in accepted.drain(..) {
            let halves = stream::StreamHalves::from_client(&self.connection, request.key);
            if halves.is_faulty() {
                // It was given up before anybody looked at it.
                connection.note_given_up();
                continue;
            }
            let protocol = request.list.get(PseudoHeader::Protocol).map(<[u8]>::to_vec);
            let request = StreamRequest {
                list: request.list,
                protocol,
                version: (2, 0),
            };
            self.tasks
                .run(connection.begin(), request, StreamHalves::Http2(halves));
        }
        self.connection.with(|state| state.give_accepted(accepted));
    }
}

impl MuxProtocol for Streams {
    fn poll_streams(&mut self, connection: &Rc<MuxConnection>, context: &mut Context<'_>) -> Poll<()> {
        let is_over = self.connection.poll_in(context).is_ready();
        self.begin(connection);
        let is_done = |state: &mut connection::Http2State| {
            if state.take_failure().is_some() {
                connection
                    .worker
                    .metrics
                    .protocol_error(ProtocolError::BadRequest);
            }
            is_over || state.is_done()
        };
        match self.connection.with(is_done) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.poll_out(context)
    }

    fn go_away(&mut self, which: GoAway) {
        self.connection.with(|state| match which {
            GoAway::Promised => state.start_graceful_shutdown(),
            GoAway::Final => state.go_away(),
        });
    }

    fn cut_off(&mut self) {
        self.connection.fail(Code::ENHANCE_YOUR_CALM);
        // It is counted as what it is.
        let _failure = self.connection.with(connection::Http2State::take_failure);
    }
}

/// Reads on for a while, so that what was said last reaches a client that is still sending.
async fn linger(connection: &connection::Connection) {
    let mut timer = Timer::new(Instant::now(), LINGER);
    let mut read = 0;
    std::future::poll_fn(|context| {
        if let Poll::Ready(Err(_)) = connection.poll_end(context) {
            return Poll::Ready(());
        }
        loop {
            match connection.poll_discard(context) {
                Poll::Ready(Ok(count)) if count > 0 && read < LINGER_BYTES => read += count,
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return timer.poll_expired(context),
            }
        }
    })
    .await;
}
