//! Services that filters may send calls to, instead of the route's own. How such a call is forwarded is not here.

use std::cell::RefCell;
use weir_model::UpstreamHost;

/// The services that filters may send calls to, with the Host for each.
pub type Destinations = RefCell<Vec<(String, UpstreamHost)>>;

/// A destination: its index in [`Destinations`] and in the snapshot's list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DestinationId(pub u32);
