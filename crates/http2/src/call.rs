//! A stream as a call has it: what has come on it, and whether it still can be used. What a call sends is in
//! [`crate::send`].

use crate::connection::ConnectionState;
use crate::field_list::FieldList;
use crate::head::is_interim;
use crate::resources::Resources;
use crate::stream::{Receiving, StreamError};
use bytes::Bytes;
use std::task::{Context, Poll};

/// A head that has come from an upstream.
pub enum IncomingHead {
    /// An interim one.
    Interim(Box<FieldList>),
    /// The final one, and whether nothing follows it.
    Final(Box<FieldList>, bool),
}

/// The received part of a body.
pub enum BodyEvent {
    /// Data.
    Data(Bytes),
    /// Its end, and the trailers before it, as header lines.
    End(Option<Vec<u8>>),
}

impl<R: Resources> ConnectionState<R> {
    /// Waits for the next head from an upstream.
    ///
    /// # Errors
    /// The stream has ended before it came.
    #[inline]
    pub fn poll_head(
        &mut self,
        key: usize,
        context: &Context<'_>,
    ) -> Poll<Result<IncomingHead, StreamError>> {
        let stream = &mut self.streams[key];
        let queues = stream.waiting.as_mut();
        let Some(list) = queues.and_then(|queues| queues.heads.pop_front()) else {
            return match stream.fault {
                Some(fault) => Poll::Ready(Err(fault)),
                None => {
                    stream.wait(context);
                    Poll::Pending
                }
            };
        };
        if is_interim(&list) {
            return Poll::Ready(Ok(IncomingHead::Interim(list)));
        }
        let is_whole =
            stream.receiving == Receiving::Ended && !stream.has_data() && stream.trailers.is_none();
        Poll::Ready(Ok(IncomingHead::Final(list, is_whole)))
    }

    /// Waits for the next piece of a body.
    ///
    /// # Errors
    /// The stream has ended before its time.
    #[inline]
    pub fn poll_piece(&mut self, key: usize, context: &Context<'_>) -> Poll<Result<BodyEvent, StreamError>> {
        let stream = &mut self.streams[key];
        if let Some(data) = stream.waiting.as_mut().and_then(|queues| queues.pop()) {
            return Poll::Ready(Ok(BodyEvent::Data(data)));
        }
        if let Some(fault) = stream.fault {
            return Poll::Ready(Err(fault));
        }
        if stream.receiving != Receiving::Ended {
            stream.wait(context);
            return Poll::Pending;
        }
        Poll::Ready(Ok(BodyEvent::End(stream.trailers.take())))
    }

    /// Gives `read` all there is of the body, if that is little and fits into `room`; the number of bytes.
    #[inline]
    pub fn read_small(&mut self, key: usize, room: usize, read: impl FnOnce(&[u8])) -> Option<usize> {
        let queues = self.streams[key].waiting.as_mut()?;
        let count = queues.read_small(room, read)?;
        self.note_read(key, count);
        Some(count)
    }

    /// Whether the end of what comes is next.
    #[inline]
    pub fn is_read(&self, key: usize) -> bool {
        let stream = &self.streams[key];
        let is_empty = !stream.has_data() && stream.trailers.is_none();
        is_empty && stream.receiving == Receiving::Ended && stream.fault.is_none()
    }

    /// Whether all was sent.
    #[inline]
    pub fn is_sent(&self, key: usize) -> bool {
        self.streams[key].is_sent
    }

    /// Whether the stream has ended before its time.
    #[inline]
    pub fn is_faulty(&self, key: usize) -> bool {
        self.streams[key].fault.is_some()
    }

    /// Ready once the stream has ended before its time.
    #[inline]
    pub fn poll_fault(&mut self, key: usize, context: &Context<'_>) -> Poll<()> {
        let stream = &mut self.streams[key];
        match stream.fault {
            Some(_) => Poll::Ready(()),
            None => {
                stream.wait(context);
                Poll::Pending
            }
        }
    }
}
