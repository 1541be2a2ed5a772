//! Which core does what. The gateway under test always has one alone; the upstream and the load share another one when
//! there are only two, which the output says.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;

use anyhow::{Context, Result, bail};

/// The cores of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinning {
    /// The gateway's one core.
    pub gateway: usize,
    /// The upstream's core.
    pub upstream: usize,
    /// The load generator's core; the upstream's too on a machine of two cores.
    pub load: usize,
    /// Some of them are hardware threads of one physical core, so each slows the other down.
    pub hyperthreads: bool,
    /// How many cores the bench may use.
    pub allowed: usize,
    /// Them, those of other parts last.
    for_workers: Vec<usize>,
}

impl Pinning {
    /// The cores of a gateway with so many workers. If there are not enough others, they share those of the load and the
    /// upstream.
    pub fn gateway_cores(&self, workers: u32) -> Vec<usize> {
        self.for_workers.iter().copied().take(workers as usize).collect()
    }
}

/// Cores as `taskset` names them.
pub fn list(cores: &[usize]) -> String {
    let texts: Vec<String> = cores.iter().map(usize::to_string).collect();
    texts.join(",")
}

impl fmt::Display for Pinning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.upstream == self.load {
            write!(
                f,
                "gateway on core {}, upstream and load together on core {}",
                self.gateway, self.load
            )?;
        } else {
            write!(
                f,
                "gateway on core {}, upstream on core {}, load on core {}",
                self.gateway, self.upstream, self.load
            )?;
        }
        if self.hyperthreads {
            f.write_str(" (some are threads of one physical core)")?;
        }
        Ok(())
    }
}

/// Chooses cores from those that this process may use, on different physical cores if there are enough.
///
/// # Errors
/// Fewer than two cores.
pub fn choose() -> Result<Pinning> {
    let status = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
        .and_then(parse_list)
        .context("reading the allowed cores from /proc/self/status")?;
    choose_from(&allowed, |core| {
        let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
        fs::read_to_string(path)
            .ok()
            .and_then(|list| parse_list(&list))
            .unwrap_or_else(|| vec![core])
    })
}

fn choose_from(allowed: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> Result<Pinning> {
    let mut taken = BTreeSet::new();
    let mut apart = Vec::new();
    for &core in allowed {
        if !taken.contains(&core) {
            taken.extend(siblings(core));
            apart.push(core);
        }
    }
    // Two physical cores are better than three threads of them: the gateway's must be its own.
    let (cores, hyperthreads) = if apart.len() >= 2 {
        (apart.as_slice(), false)
    } else {
        (allowed, true)
    };
    match *cores {
        [gateway, both] => Ok(Pinning {
            gateway,
            upstream: both,
            load: both,
            hyperthreads,
            allowed: allowed.len(),
            for_workers: for_workers(gateway, allowed, &[both]),
        }),
        [gateway, upstream, load, ..] => Ok(Pinning {
            gateway,
            upstream,
            load,
            hyperthreads,
            allowed: allowed.len(),
            for_workers: for_workers(gateway, allowed, &[load, upstream]),
        }),
        _ => bail!(
            "the bench needs two cores (one for the gateway alone) and may use only {}",
            cores.len()
        ),
    }
}

/// The gateway's core first, and those of other parts last.
fn for_workers(gateway: usize, allowed: &[usize], others: &[usize]) -> Vec<usize> {
    let is_free = |core: &&usize| **core != gateway && !others.contains(core);
    let free = allowed.iter().filter(is_free);
    [gateway].iter().chain(free).chain(others).copied().collect()
}

/// Parses the kernel's list format, as in `0-3,8`.
fn parse_list(list: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cores.extend(first.parse().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        let cases = [
            ("0-1\n", Some(vec![0, 1])),
            ("\t0-2,7,9-10", Some(vec![0, 1, 2, 7, 9, 10])),
            ("3", Some(vec![3])),
            ("", None),
            ("a-b", None),
        ];
        for (list, expected) in cases {
            assert_eq!(parse_list(list), expected, "{list:?}");
        }
    }

    #[test]
    fn cores_are_chosen_apart() {
        // (allowed, threads of one physical core are neighbours, expected gateway/upstream/load and hyperthreads)
        let cases = [
            (vec![0, 1], false, Some((0, 1, 1, false))),
            (vec![0, 1], true, Some((0, 1, 1, true))),
            (vec![0, 1, 2, 3], true, Some((0, 2, 2, false))),
            (vec![0, 1, 2, 3, 4, 5], true, Some((0, 2, 4, false))),
            (vec![4, 5, 6], false, Some((4, 5, 6, false))),
            (vec![3], false, None),
        ];
        for (allowed, paired, expected) in cases {
            let siblings = |core: usize| {
                if paired {
                    vec![core & !1, core | 1]
                } else {
                    vec![core]
                }
            };
            let chosen = choose_from(&allowed, siblings).ok();
            let chosen = chosen.map(|p| (p.gateway, p.upstream, p.load, p.hyperthreads));
            assert_eq!(chosen, expected, "{allowed:?} paired: {paired}");
        }
    }
}
