//! The CPU time that a gateway's processes have used, from the operating system's own accounts.
//!
//! `/proc/PID/task/*/schedstat` counts nanoseconds; if the kernel keeps none, `/proc/PID/stat` counts clock ticks
//! (10 ms). The split into user and system time is known in ticks only.

use std::fmt;
use std::fs;
use std::time::Duration;

use crate::procfs;

/// Which account is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Nanoseconds from `/proc/PID/task/*/schedstat`.
    SchedStat,
    /// Clock ticks (10 ms as a rule) from `/proc/PID/stat`.
    Ticks,
}

impl Clock {
    /// The finest account that this kernel keeps.
    pub fn available() -> Self {
        // A kernel without the account leaves the file away or shows zeros; init has certainly run.
        match fs::read_to_string("/proc/1/schedstat")
            .ok()
            .and_then(|text| parse_schedstat(&text))
        {
            Some(nanoseconds) if nanoseconds > 0 => Self::SchedStat,
            _ => Self::Ticks,
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SchedStat => "/proc/PID/task/*/schedstat, in nanoseconds",
            Self::Ticks => "/proc/PID/stat, in clock ticks",
        })
    }
}

/// CPU time used so far by a process and its descendants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// User and system time together.
    pub total: Duration,
    user_ticks: u64,
    system_ticks: u64,
}

impl CpuTime {
    /// Reads the account of a process and its descendants.
    pub fn of(root: u32, clock: Clock) -> Self {
        let mut sum = Self::default();
        let mut ticks = 0;
        for pid in procfs::tree(root) {
            let Some(stat) = procfs::stat(pid) else { continue };
            sum.user_ticks += stat.user_ticks;
            sum.system_ticks += stat.system_ticks;
            ticks += stat.user_ticks + stat.system_ticks;
            if clock == Clock::SchedStat {
                sum.total += tasks_time(pid);
            }
        }
        if clock == Clock::Ticks {
            sum.total =
                Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64);
        }
        sum
    }

    /// What was used since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            total: self.total.saturating_sub(before.total),
            user_ticks: self.user_ticks.saturating_sub(before.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(before.system_ticks),
        }
    }

    /// The part of it that was spent outside the kernel, 0 to 1.
    pub fn user_share(self) -> f64 {
        let ticks = self.user_ticks + self.system_ticks;
        if ticks == 0 {
            0.0
        } else {
            self.user_ticks as f64 / ticks as f64
        }
    }
}

/// CPU time of the programs that this process started and has seen end.
pub fn of_ended_children() -> Duration {
    let ticks = procfs::stat(std::process::id()).map_or(0, |stat| stat.children_ticks);
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// CPU time of the calling thread.
pub fn of_this_thread() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn tasks_time(pid: u32) -> Duration {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Duration::ZERO;
    };
    let read = |path: std::path::PathBuf| parse_schedstat(&fs::read_to_string(path.join("schedstat")).ok()?);
    Duration::from_nanos(tasks.filter_map(|task| read(task.ok()?.path())).sum())
}

/// The first of the three numbers: nanoseconds on a core.
fn parse_schedstat(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_lines() {
        let cases = [
            ("178218841 14319346 366\n", Some(178_218_841)),
            ("0 0 0\n", Some(0)),
            ("", None),
            ("x 1 2", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_schedstat(text), expected, "{text:?}");
        }
    }

    #[test]
    fn difference_and_user_share() {
        let at = |ms, user_ticks, system_ticks| CpuTime {
            total: Duration::from_millis(ms),
            user_ticks,
            system_ticks,
        };
        let cases = [
            (at(100, 1, 3), at(500, 11, 33), 400, 0.25),
            (at(100, 1, 3), at(100, 1, 3), 0, 0.0),
            (at(500, 9, 9), at(100, 1, 3), 0, 0.0),
        ];
        for (before, after, milliseconds, share) in cases {
            let used = after.since(before);
            assert_eq!(used.total, Duration::from_millis(milliseconds));
            assert!((used.user_share() - share).abs() < 1e-9);
        }
    }
}
