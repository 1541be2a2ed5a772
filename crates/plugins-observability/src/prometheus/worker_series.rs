//! What one worker counts of one series, and which cell of it belongs to which family.

use super::{Family, Measure};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use weir_plugin::CallRecord;

/// Counts of a series. Only the worker that made them changes them; anybody may read.
#[derive(Debug)]
pub struct WorkerSeries {
    values: Box<[AtomicU64]>,
    /// The end of the last call, in Unix milliseconds; 0 if nothing reads it.
    last_ms: AtomicU64,
    /// The series was dropped to make room; its further counts are not reported.
    is_over: AtomicBool,
}

impl WorkerSeries {
    /// So many cells.
    pub fn new(count: usize) -> Self {
        Self {
            values: (0..count).map(|_| AtomicU64::new(0)).collect(),
            last_ms: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Notes when a call was over.
    pub fn note_end(&self, record: &CallRecord<'_>) {
        self.last_ms
            .store(record.started_ms + record.total_us / 1000, Relaxed);
    }

    /// When the last call was over, in Unix milliseconds.
    pub fn last_ms(&self) -> u64 {
        self.last_ms.load(Relaxed)
    }

    /// Whether the series has made room for others.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// The series makes room for others.
    pub fn end(&self) {
        self.is_over.store(true, Relaxed);
    }

    /// Adds to `sums`.
    pub fn add_to(&self, sums: &mut [u64]) {
        for (sum, value) in sums.iter_mut().zip(&self.values) {
            *sum = sum.wrapping_add(value.load(Relaxed));
        }
    }

    /// A load and a store suffice for the only writer.
    fn add(&self, cell: usize, count: u64) {
        let value = &self.values[cell];
        value.store(value.load(Relaxed).wrapping_add(count), Relaxed);
    }
}

/// Where a family's cells are, and what is counted in them: one for a counter; for a histogram one for each bucket, one
/// for what lies above all bounds, and the sum.
#[derive(Debug)]
pub struct FamilyLayout {
    /// The first cell.
    pub first: usize,
    value: Measure,
    /// In microseconds.
    bounds: Vec<u64>,
}

impl FamilyLayout {
    /// The slots of families, and the number of cells that they have together.
    pub fn of(families: &[Family]) -> (Vec<Self>, usize) {
        let mut next = 0;
        let slots = families.iter().map(|family| {
            let first = next;
            next += match family.buckets.len() {
                0 => 1,
                count => count + 2,
            };
            Self {
                first,
                value: family.value,
                bounds: (family.buckets.iter())
                    .map(|bound| u64::from(*bound) * if family.value.is_time() { 1000 } else { 1 })
                    .collect(),
            }
        });
        (slots.collect(), next)
    }

    /// Counts a call.
    pub fn count(&self, cells: &WorkerSeries, record: &CallRecord<'_>) {
        let Some(value) = self.value.of(record) else {
            return;
        };
        if self.bounds.is_empty() {
            cells.add(self.first, value);
            return;
        }
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        cells.add(self.first + bucket, 1);
        cells.add(self.first + self.bounds.len() + 1, value);
    }
}

impl Measure {
    /// Whether it is counted in microseconds and reported in milliseconds.
    pub fn is_time(self) -> bool {
        matches!(self, Self::TotalMs | Self::UpstreamMs | Self::GatewayMs)
    }

    fn of(self, record: &CallRecord<'_>) -> Option<u64> {
        let upstream = record.upstream_us.map(|upstream| upstream.min(record.total_us));
        Some(match self {
            Self::Calls => 1,
            Self::BytesIn => record.bytes_in,
            Self::BytesOut => record.bytes_out,
            Self::TotalMs => record.total_us,
            Self::UpstreamMs => upstream?,
            Self::GatewayMs => record.total_us - upstream.unwrap_or(0),
        })
    }
}
