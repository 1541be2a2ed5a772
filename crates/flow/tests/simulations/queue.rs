//! A server with a number of workers and a queue before them, in simulated time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Calls are served in the order in which they come, each by one worker.
pub struct Server {
    /// When each worker is free, in microseconds.
    free: BinaryHeap<Reverse<u64>>,
}

impl Server {
    pub fn new(workers: usize) -> Self {
        Self {
            free: std::iter::repeat_n(Reverse(0), workers).collect(),
        }
    }

    /// When a call is done that comes now and takes so long once a worker has it.
    pub fn done_us(&mut self, now_us: u64, takes_us: u64) -> u64 {
        let Reverse(free) = self.free.pop().unwrap();
        let done = free.max(now_us) + takes_us;
        self.free.push(Reverse(done));
        done
    }
}

/// The latency below which `part` of these calls stay, in milliseconds.
pub fn percentile_ms(latencies_us: &mut [u64], part: f64) -> f64 {
    if latencies_us.is_empty() {
        return 0.0;
    }
    latencies_us.sort_unstable();
    let place = ((latencies_us.len() - 1) as f64 * part) as usize;
    latencies_us[place] as f64 / 1_000.0
}
