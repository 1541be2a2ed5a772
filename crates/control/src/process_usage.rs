//! How much processor time and memory this process uses, as gateways report it. Nothing is known of them elsewhere than on
//! Linux.

use std::time::{Duration, Instant};

/// Processor time at a moment.
#[derive(Debug, Clone, Copy)]
pub struct ProcessUsage {
    at: Instant,
    cpu: Duration,
}

impl ProcessUsage {
    /// That of now.
    pub fn current() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
        Self {
            at: Instant::now(),
            cpu: Duration::new(seconds, nanoseconds),
        }
    }

    /// Processor time since an earlier moment, in thousandths of a core; `None`: no time has passed.
    pub fn cpu_permille(&self, earlier: &Self) -> Option<u64> {
        let passed = self.at.saturating_duration_since(earlier.at).as_micros();
        let used = self.cpu.saturating_sub(earlier.cpu).as_micros();
        u64::try_from((used * 1000).checked_div(passed)?).ok()
    }
}

/// The memory that the process holds, in bytes; `None`: the system does not say.
pub fn memory() -> Option<u64> {
    resident(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// The resident memory in Linux's status of a process.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_of_what_linux_says() {
        for (status, expected) in [
            ("Name:\tweir\nVmRSS:\t   1024 kB\nThreads:\t3\n", Some(1 << 20)),
            ("VmRSS:\t12\n", None),
            ("Name:\tweir\n", None),
            ("VmRSS:\t99999999999999999999 kB", None),
        ] {
            assert_eq!(resident(status), expected, "{status}");
        }
    }

    #[test]
    fn processor_time_is_a_share_of_the_time_that_passed() {
        let start = ProcessUsage {
            at: Instant::now(),
            cpu: Duration::from_secs(7),
        };
        for (passed, used, expected) in [
            (10, 5, Some(500)),
            (10, 20, Some(2000)),
            (10, 0, Some(0)),
            (0, 1, None),
        ] {
            let now = ProcessUsage {
                at: start.at + Duration::from_secs(passed),
                cpu: start.cpu + Duration::from_secs(used),
            };
            assert_eq!(now.cpu_permille(&start), expected, "{passed} {used}");
        }
    }
}
