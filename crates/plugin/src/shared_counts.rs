//! Counts that gateways share through their control plane. Who moves them is not here.

/// What one gateway has counted in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedCount {
    /// What the counter is called on all gateways.
    pub name: u128,
    /// When the window ends; milliseconds since the Unix epoch.
    pub end_ms: u64,
    /// From then on it is worth nothing.
    pub until_ms: u64,
    /// The calls.
    pub count: u64,
}

/// The counts of a plugin that gateways share.
pub trait SharedCounts: Send + Sync {
    /// Whether there was ever something to share.
    fn has_counted(&self) -> bool;

    /// Whether there are windows to hear of.
    fn is_open(&self) -> bool;

    /// What was counted since the last report, or `all` that was counted in open windows.
    fn report(&self, all: bool, now_ms: u64) -> Vec<SharedCount>;

    /// Learns what the other gateways have counted in a window.
    fn learn(&self, name: u128, end_ms: u64, others: u64, now_ms: u64);

    /// There is contact with the other gateways, or none any more with the others of so many.
    fn set_contact(&self, cut_off_of: Option<u64>);
}
