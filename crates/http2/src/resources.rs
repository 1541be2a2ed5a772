//! What a connection needs from its owner. Sockets are not among it.

use crate::buffers::StreamBuffers;
use crate::field_list::FieldList;
use std::time::Instant;

/// What a connection takes from its owner: buffers that others used before, and the time. It is a type parameter, so
/// that this costs no more than a call of a function that is known.
pub trait Resources {
    /// An empty buffer to write into.
    fn take_output(&self) -> Vec<u8>;

    /// Takes back what [`Resources::take_output`] gave.
    fn give_output(&self, output: Vec<u8>);

    /// An empty field list.
    fn take_list(&self) -> Box<FieldList>;

    /// Empty buffers for a stream.
    fn take_buffers(&self) -> Box<StreamBuffers>;

    /// Takes back what [`Resources::take_buffers`] gave, emptied.
    fn give_buffers(&self, buffers: Box<StreamBuffers>);

    /// The time.
    fn now(&self) -> Instant;
}
