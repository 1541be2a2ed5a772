//! The `h3` crate's view of a connection. Of requests' streams it gets the heads alone, each whole, and what it
//! sends there waits in a queue: its own work never has to wait, and gathers nothing.

use super::frames::FrameRead;
use super::stream_io::{Receiving, Sending, code};
use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use quinn::{ConnectionError, ReadError, VarInt};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes outside of requests that a client may send to begin with, and more with each request.
const BESIDE: u64 = 64 * 1024;
const BESIDE_PER_REQUEST: u64 = 512;

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, ConnectionError>>>>;
type Bidirectional = (quinn::SendStream, quinn::RecvStream);

fn accept_bi(connection: quinn::Connection) -> Boxed<Bidirectional> {
    Box::pin(async move { connection.accept_bi().await })
}

fn accept_uni(connection: quinn::Connection) -> Boxed<quinn::RecvStream> {
    Box::pin(async move { connection.accept_uni().await })
}

fn open_uni(connection: quinn::Connection) -> Boxed<quinn::SendStream> {
    Box::pin(async move { connection.open_uni().await })
}

/// A connection.
pub struct QuicConnection {
    connection: quinn::Connection,
    shared: Rc<Shared>,
    accepting: Option<Boxed<Bidirectional>>,
    accepting_one_way: Option<Boxed<quinn::RecvStream>>,
    opener: UniOpener,
}

/// The state that the owner of a connection sees.
pub struct Shared {
    /// Largest head, in bytes as it is sent.
    max_headers: usize,
    /// The request that was taken in last.
    latest: RefCell<Option<QuicStream>>,
    /// Bytes outside of requests that the client may still send.
    allowance: Cell<u64>,
    /// The gateway's own streams: control, and those of QPACK.
    own: RefCell<Vec<Rc<RefCell<Sending>>>>,
}

impl Shared {
    /// Of a connection whose heads may have so many bytes as they are sent.
    pub fn new(max_headers: usize) -> Rc<Self> {
        Rc::new(Self {
            max_headers,
            latest: RefCell::default(),
            allowance: Cell::new(BESIDE),
            own: RefCell::default(),
        })
    }

    /// The stream of the request that was taken in last.
    pub fn take_latest(&self) -> Option<QuicStream> {
        self.latest.take()
    }

    /// Writes what waits on the gateway's own streams.
    pub fn poll_flush(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        for stream in &*self.own.borrow() {
            ready!(stream.borrow_mut().poll_flush(context))?;
        }
        Poll::Ready(Ok(()))
    }
}

/// A request's stream.
#[derive(Clone)]
pub struct QuicStream {
    pub sending: Rc<RefCell<Sending>>,
    pub receiving: Rc<RefCell<Receiving>>,
    /// A head that waits for the `h3` crate to read it.
    pub head: Rc<Cell<Option<Bytes>>>,
}

impl QuicConnection {
    /// The view of this connection.
    pub fn new(connection: quinn::Connection, shared: Rc<Shared>) -> Self {
        Self {
            opener: UniOpener {
                connection: connection.clone(),
                shared: Rc::clone(&shared),
                opening: None,
            },
            connection,
            shared,
            accepting: None,
            accepting_one_way: None,
        }
    }
}

impl quic::Connection<Bytes> for QuicConnection {
    type RecvStream = ClientUniStream;
    type OpenStreams = UniOpener;

    fn poll_accept_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ClientUniStream, ConnectionErrorIncoming>> {
        let connection = &self.connection;
        let accepting = self
            .accepting_one_way
            .get_or_insert_with(|| accept_uni(connection.clone()));
        let accepted = ready!(accepting.as_mut().poll(context));
        self.accepting_one_way = None;
        Poll::Ready(match accepted {
            Ok(stream) => Ok(ClientUniStream {
                stream,
                connection: self.connection.clone(),
                shared: Rc::clone(&self.shared),
            }),
            Err(error) => Err(lost(error)),
        })
    }

    fn poll_accept_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<QuicStream, ConnectionErrorIncoming>> {
        let connection = &self.connection;
        let accepting = self
            .accepting
            .get_or_insert_with(|| accept_bi(connection.clone()));
        let accepted = ready!(accepting.as_mut().poll(context));
        self.accepting = None;
        let (send, receive) = match accepted {
            Ok(streams) => streams,
            Err(error) => return Poll::Ready(Err(lost(error))),
        };
        let shared = &self.shared;
        shared
            .allowance
            .set(shared.allowance.get().saturating_add(BESIDE_PER_REQUEST));
        let receiving = Receiving::new(receive, self.connection.clone(), shared.max_headers);
        let stream = QuicStream {
            sending: Rc::new(RefCell::new(Sending::new(send))),
            receiving: Rc::new(RefCell::new(receiving)),
            head: Rc::default(),
        };
        shared.latest.replace(Some(stream.clone()));
        Poll::Ready(Ok(stream))
    }

    fn opener(&self) -> UniOpener {
        UniOpener {
            connection: self.connection.clone(),
            shared: Rc::clone(&self.shared),
            opening: None,
        }
    }
}

/// Opens the gateway's own streams.
pub struct UniOpener {
    connection: quinn::Connection,
    shared: Rc<Shared>,
    opening: Option<Boxed<quinn::SendStream>>,
}

impl quic::OpenStreams<Bytes> for UniOpener {
    type BidiStream = QuicStream;
    type SendStream = ControlStream;

    /// Servers open no requests.
    fn poll_open_bidi(&mut self, _: &mut Context<'_>) -> Poll<Result<QuicStream, StreamErrorIncoming>> {
        Poll::Ready(Err(unknown(io::ErrorKind::Unsupported.into())))
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ControlStream, StreamErrorIncoming>> {
        let connection = &self.connection;
        let opening = self.opening.get_or_insert_with(|| open_uni(connection.clone()));
        let opened = ready!(opening.as_mut().poll(context));
        self.opening = None;
        Poll::Ready(match opened {
            Ok(stream) => {
                let sending = Rc::new(RefCell::new(Sending::new(stream)));
                self.shared.own.borrow_mut().push(Rc::clone(&sending));
                Ok(ControlStream(sending))
            }
            Err(error) => Err(StreamErrorIncoming::ConnectionErrorIncoming {
                connection_error: lost(error),
            }),
        })
    }

    fn close(&mut self, cause: Code, reason: &[u8]) {
        self.connection.close(code(cause), reason);
    }
}

impl quic::OpenStreams<Bytes> for QuicConnection {
    type BidiStream = QuicStream;
    type SendStream = ControlStream;

    fn poll_open_bidi(&mut self, context: &mut Context<'_>) -> Poll<Result<QuicStream, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(context)
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ControlStream, StreamErrorIncoming>> {
        self.opener.poll_open_send(context)
    }

    fn close(&mut self, cause: Code, reason: &[u8]) {
        self.opener.close(cause, reason);
    }
}

/// One of the gateway's own streams.
pub struct ControlStream(Rc<RefCell<Sending>>);

/// Puts what is to be sent into the queue.
fn push(sending: &RefCell<Sending>, data: impl Into<WriteBuf<Bytes>>) {
    let mut data: WriteBuf<Bytes> = data.into();
    sending.borrow_mut().push(data.copy_to_bytes(data.remaining()));
}

fn id_of(id: u64) -> StreamId {
    StreamId::try_from(id).unwrap_or_else(|_| unreachable!("invariant: quinn's numbers fit"))
}

impl quic::SendStream<Bytes> for ControlStream {
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        push(&self.0, data);
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.0.borrow_mut().end();
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, reason: u64) {
        self.0
            .borrow_mut()
            .reset(VarInt::from_u64(reason).unwrap_or_default());
    }

    fn send_id(&self) -> StreamId {
        id_of(self.0.borrow().id())
    }
}

impl quic::SendStream<Bytes> for QuicStream {
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        push(&self.sending, data);
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.sending.borrow_mut().end();
        Poll::Ready(Ok(()))
    }

    fn reset(&mut self, reason: u64) {
        self.sending
            .borrow_mut()
            .reset(VarInt::from_u64(reason).unwrap_or_default());
    }

    fn send_id(&self) -> StreamId {
        id_of(self.sending.borrow().id())
    }
}

impl quic::RecvStream for QuicStream {
    type Buf = Bytes;

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Ok(Some(head)));
        }
        let mut receiving = self.receiving.borrow_mut();
        Poll::Ready(match ready!(receiving.poll_next(context)) {
            Ok(Some(FrameRead::Headers(head))) => Ok(Some(head)),
            // The crate then says what is wrong with it, and its prefix is enough for that.
            Ok(Some(FrameRead::Data(_))) => Ok(Some(Bytes::from_static(b"\x00\x00"))),
            Ok(None) => Ok(None),
            Err(error) => Err(unknown(error)),
        })
    }

    fn stop_sending(&mut self, reason: u64) {
        self.receiving
            .borrow_mut()
            .stop(VarInt::from_u64(reason).unwrap_or_default());
    }

    fn recv_id(&self) -> StreamId {
        id_of(self.receiving.borrow().id())
    }
}

/// A stream that a client uses in addition to its requests.
pub struct ClientUniStream {
    stream: quinn::RecvStream,
    connection: quinn::Connection,
    shared: Rc<Shared>,
}

impl quic::RecvStream for ClientUniStream {
    type Buf = Bytes;

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let read = ready!(pin!(self.stream.read_chunk(4096, true)).poll(context));
        let chunk = match read {
            Ok(Some(chunk)) => chunk.bytes,
            Ok(None) => return Poll::Ready(Ok(None)),
            Err(ReadError::Reset(reason)) => {
                let error_code = reason.into_inner();
                return Poll::Ready(Err(StreamErrorIncoming::StreamTerminated { error_code }));
            }
            Err(ReadError::ConnectionLost(error)) => {
                let connection_error = lost(error);
                return Poll::Ready(Err(StreamErrorIncoming::ConnectionErrorIncoming {
                    connection_error,
                }));
            }
            Err(error) => return Poll::Ready(Err(unknown(io::Error::other(error)))),
        };
        let allowance = &self.shared.allowance;
        match allowance.get().checked_sub(chunk.len() as u64) {
            Some(left) => allowance.set(left),
            None => {
                self.connection.close(code(Code::H3_EXCESSIVE_LOAD), b"");
                return Poll::Ready(Err(unknown(io::ErrorKind::InvalidData.into())));
            }
        }
        Poll::Ready(Ok(Some(chunk)))
    }

    fn stop_sending(&mut self, reason: u64) {
        // Else it has ended already.
        let _is_stopped = self.stream.stop(VarInt::from_u64(reason).unwrap_or_default());
    }

    fn recv_id(&self) -> StreamId {
        id_of(self.stream.id().into())
    }
}

fn unknown(error: io::Error) -> StreamErrorIncoming {
    match error.kind() {
        io::ErrorKind::ConnectionReset => StreamErrorIncoming::StreamTerminated {
            error_code: Code::H3_REQUEST_CANCELLED.value(),
        },
        _ => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

fn lost(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => ConnectionErrorIncoming::ApplicationClose {
            error_code: close.error_code.into(),
        },
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}
