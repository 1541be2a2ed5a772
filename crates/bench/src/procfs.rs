//! Reads the kernel's facts about processes: who they are, whose children, how much memory they hold.

use std::fs;

/// The fields of `/proc/PID/stat` that the bench needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The process has ended and waits to be reaped.
    pub ended: bool,
    /// Parent's process id.
    pub parent: u32,
    /// User time in clock ticks.
    pub user_ticks: u64,
    /// System time in clock ticks.
    pub system_ticks: u64,
    /// User and system time in clock ticks of children that have ended and were waited for.
    pub children_ticks: u64,
    /// Start time in clock ticks since boot; with the id it names one process for ever.
    pub started: u64,
}

/// A process that cannot be mistaken for a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub started: u64,
}

impl Identity {
    /// The process that has this id now.
    pub fn of(pid: u32) -> Option<Self> {
        stat(pid).map(|stat| Self {
            pid,
            started: stat.started,
        })
    }

    /// It is still running (and not merely waiting to be reaped).
    pub fn is_alive(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.started == self.started && !stat.ended)
    }
}

/// Reads `/proc/PID/stat`; `None` once the process is gone.
pub fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name in parentheses may hold spaces and parentheses itself: only the last one closes it.
    let fields: Vec<&str> = text
        .get(text.rfind(')')? + 1..)?
        .split_ascii_whitespace()
        .collect();
    // Field 3 of proc_pid_stat(5), the state, is the first one here.
    let field = |number: usize| fields.get(number - 3);
    let number = |at: usize| field(at)?.parse::<u64>().ok();
    Some(Stat {
        ended: matches!(*field(3)?, "Z" | "X"),
        parent: field(4)?.parse().ok()?,
        user_ticks: number(14)?,
        system_ticks: number(15)?,
        children_ticks: number(16)? + number(17)?,
        started: number(22)?,
    })
}

/// A process and all its descendants that run now, itself first.
pub fn tree(root: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return vec![root];
    };
    let parents: Vec<(u32, u32)> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| Some((pid, stat(pid)?.parent)))
        .collect();
    descend(root, &parents)
}

fn descend(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(
            parents
                .iter()
                .filter(|(pid, of)| *of == parent && *pid != parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found
}

/// Resident memory of a process and its descendants in KiB, pages that they share counted for each.
pub fn resident_kib(root: u32) -> u64 {
    let of = |pid: u32| parse_resident(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?);
    tree(root).into_iter().filter_map(of).sum()
}

fn parse_resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines() {
        let tail =
            "S 41 42 42 0 -1 4194560 900 0 0 0 731 256 3 4 20 0 1 0 98765 11182080 1300 18446744073709551615";
        let read = Stat {
            ended: false,
            parent: 41,
            user_ticks: 731,
            system_ticks: 256,
            children_ticks: 7,
            started: 98765,
        };
        let cases = [
            (format!("42 (nginx) {tail}"), Some(read)),
            (format!("42 (a) b (c d) {tail}\n"), Some(read)),
            (
                format!("42 (weir) Z{}", &tail[1..]),
                Some(Stat { ended: true, ..read }),
            ),
            ("42 (nginx) S 41 42".to_owned(), None),
            ("no parenthesis".to_owned(), None),
            (String::new(), None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_stat(&text), expected, "{text:?}");
        }
    }

    #[test]
    fn descendants_of_a_process() {
        let parents = [(1, 0), (10, 1), (11, 10), (12, 10), (13, 12), (20, 1)];
        let cases = [(10, vec![10, 11, 12, 13]), (20, vec![20]), (99, vec![99])];
        for (root, expected) in cases {
            assert_eq!(descend(root, &parents), expected, "{root}");
        }
    }

    #[test]
    fn resident_memory_lines() {
        let cases = [
            (
                "Name:\tweir\nVmPeak:\t  900 kB\nVmRSS:\t   5432 kB\nRssAnon:\t 1 kB\n",
                Some(5432),
            ),
            ("Name:\tkthreadd\n", None),
            ("VmRSS:\tmany kB\n", None),
        ];
        for (status, expected) in cases {
            assert_eq!(parse_resident(status), expected, "{status:?}");
        }
    }
}
