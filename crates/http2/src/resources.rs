//! What a connection needs from its owner. Sockets are not among it.

use crate::buffers::StreamBuffers;
use crate::field_list::FieldList;
use std::time::Instant;

/// What a connection takes from its owner: buffers that others used before, and the time. It is a type parameter, so
/// that this costs no more than a call of a function that is known.
pub trait Resources {
    /// An empty buffer to write into.
    fn acquire_output(&self) -> Vec<u8>;

    /// Takes back what [`Resources::acquire_output`] gave.
    fn release_output(&self, output: Vec<u8>);

    /// An empty field list.
    fn take_list(&self) -> Box<FieldList>;

    /// Empty buffers for a stream.
    fn acquire_buffers(&self) -> Box<StreamBuffers>;

    /// Takes back what [`Resources::acquire_buffers`] gave, emptied.
    fn release_buffers(&self, buffers: Box<StreamBuffers>);

    /// The time.
    fn now(&self) -> Instant;
}
