//! The files of the request log: one for each hour, appended to in blocks, deleted as a whole.
//!
//! A process that is killed may leave half a block at a file's end. It is passed over.

use super::CallLine;
use super::block::{self, HEAD, Head};
use super::search::{CallCursor, CallSearchResponse, MAX_FOUND, Search, latest_first};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Calls of a block.
const BLOCK: usize = 1_000;
/// Bytes of blocks that one search opens, at most.
const MAX_OPENED: u64 = 64 << 20;
const PREFIX: &str = "calls-";
const HOUR_MS: u64 = 3_600_000;

/// Bounds of the log.
#[derive(Debug, Clone)]
pub struct CallLogOptions {
    /// The folder of its files; `None`: the log is in memory only.
    pub folder: Option<PathBuf>,
    /// Bytes of all files.
    pub max_bytes: u64,
    /// For how long calls are kept, in milliseconds.
    pub max_age_ms: u64,
    /// Calls in memory.
    pub in_memory: usize,
}

impl Default for CallLogOptions {
    fn default() -> Self {
        Self {
            folder: None,
            max_bytes: 2 << 30,
            max_age_ms: 24 * HOUR_MS,
            in_memory: 10_000,
        }
    }
}

/// The log.
pub struct CallLog {
    options: CallLogOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ring: VecDeque<Arc<CallLine>>,
    /// Calls that no file has yet, at the ring's end.
    waiting: Vec<Arc<CallLine>>,
    /// Counts calls that were added.
    added: u64,
}

impl CallLog {
    /// Opens the log.
    ///
    /// # Errors
    /// Its folder cannot be made.
    pub fn open(options: CallLogOptions) -> io::Result<Self> {
        if let Some(folder) = &options.folder {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        Ok(Self {
            options,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds calls.
    pub fn add(&self, lines: impl IntoIterator<Item = CallLine>) {
        let mut state = self.state();
        for line in lines {
            let line = Arc::new(line);
            if state.ring.len() >= self.options.in_memory.max(1) {
                state.ring.pop_front();
            }
            state.ring.push_back(Arc::clone(&line));
            if self.options.folder.is_some() {
                state.waiting.push(line);
            }
            state.added += 1;
        }
    }

    /// Calls that were added after the first `seen`, and how many were added by now. Those that the ring has lost since
    /// are not among them.
    pub fn since(&self, seen: u64) -> (u64, Vec<Arc<CallLine>>) {
        let state = self.state();
        let new = state.added.saturating_sub(seen).min(state.ring.len() as u64) as usize;
        let lines = state.ring.iter().skip(state.ring.len() - new).cloned();
        (state.added, lines.collect())
    }

    /// How many calls wait to be written.
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// Writes what waits to the files, and deletes files that are too old or too many.
    ///
    /// # Errors
    /// A file cannot be written. What it would have held is lost: the log never grows in memory.
    pub fn flush(&self, now_ms: u64) -> io::Result<()> {
        let mut waiting = std::mem::take(&mut self.state().waiting);
        // Lines of several gateways come in turns, and late ones are of hours before.
        waiting.sort_by_key(|line| line.time);
        let Some(folder) = &self.options.folder else {
            return Ok(());
        };
        let mut rest = &waiting[..];
        while let Some(first) = rest.first() {
            let hour = first.time / HOUR_MS;
            let same = rest.iter().take_while(|line| line.time / HOUR_MS == hour).count();
            let (lines, others) = rest.split_at(same.min(BLOCK));
            let mut file = fs::OpenOptions::new();
            let path = folder.join(format!("{PREFIX}{hour}"));
            let mut file = file.create(true).append(true).mode(0o600).open(path)?;
            file.write_all(&block::write(lines)?)?;
            rest = others;
        }
        self.clear_up(now_ms)
    }

    /// All files, the latest hour first: the hour, the size, the path.
    fn files(&self) -> io::Result<Vec<(u64, u64, PathBuf)>> {
        let mut files = Vec::new();
        let Some(folder) = &self.options.folder else {
            return Ok(files);
        };
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let hour = name.to_str().and_then(|it| it.strip_prefix(PREFIX)?.parse().ok());
            if let Some(hour) = hour {
                files.push((hour, entry.metadata()?.len(), entry.path()));
            }
        }
        files.sort_unstable_by(|a, b| b.cmp(a));
        Ok(files)
    }

    fn clear_up(&self, now_ms: u64) -> io::Result<()> {
        let oldest = now_ms.saturating_sub(self.options.max_age_ms) / HOUR_MS;
        let mut bytes = 0_u64;
        for (place, (hour, size, path)) in self.files()?.into_iter().enumerate() {
            bytes = bytes.saturating_add(size);
            let is_too_much = bytes > self.options.max_bytes && place > 0;
            if hour < oldest || is_too_much {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Finds calls, the latest first.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn search(&self, search: &Search) -> io::Result<CallSearchResponse> {
        // Those of the cursor's call that were given are found once more.
        let given = search.after.map_or(0, |it| it.given);
        let limit = search.limit.clamp(1, MAX_FOUND).saturating_add(given);
        let (mut calls, mut is_complete, mut stopped_at) = (Vec::new(), true, None);
        let in_memory: Vec<Arc<CallLine>> = match &self.options.folder {
            Some(_) => self.state().waiting.clone(),
            None => self.state().ring.iter().cloned().collect(),
        };
        calls.extend(in_memory.into_iter().rev().filter(|line| search.holds(line)));
        let mut opened = 0;
        for (hour, _, path) in self.files()? {
            let start = hour * HOUR_MS;
            if start >= search.end() || start + HOUR_MS <= search.from {
                continue;
            }
            let end = start + HOUR_MS;
            let is_enough = oldest_found(&mut calls, limit).is_some_and(|oldest| oldest >= end);
            if is_enough || opened > MAX_OPENED {
                stopped_at = Some(end);
                break;
            }
            let mut file = match File::open(path) {
                // It was deleted meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            // Blocks are in the order in which lines came, and some come late.
            let mut heads = heads(&mut file)?;
            heads.sort_by_key(|(_, head)| std::cmp::Reverse(head.last));
            for (at, head) in heads {
                if !head.may_hold(search) {
                    continue;
                }
                if let Some(oldest) = oldest_found(&mut calls, limit)
                    && head.last < oldest
                {
                    is_complete = false;
                    break;
                }
                let mut packed = vec![0; head.length as usize];
                file.seek(SeekFrom::Start(at + HEAD as u64))?;
                file.read_exact(&mut packed)?;
                opened += u64::from(head.length);
                let lines = block::read(&head, &packed).unwrap_or_default();
                let lines = lines.into_iter().filter(|line| search.holds(line)).map(Arc::new);
                calls.extend(lines.rev());
            }
        }
        Ok(page(search, calls, (is_complete, stopped_at)))
    }
}

/// The page of a search in the calls that were found, and where the next one begins. `stopped_at`: nothing was searched before that
/// time.
fn page(
    search: &Search,
    mut calls: Vec<Arc<CallLine>>,
    (is_complete, stopped_at): (bool, Option<u64>),
) -> CallSearchResponse {
    calls.sort_by(latest_first);
    let is_given = |line: &Arc<CallLine>| search.after.is_some_and(|it| it.order(line).is_eq());
    let given = search.after.map_or(0, |it| it.given);
    let again = calls.iter().take(given).take_while(|it| is_given(it)).count();
    calls.drain(..again);
    // Of the time before it, only the calls in memory are known.
    calls.retain(|it| stopped_at.is_none_or(|end| it.time >= end));
    let limit = search.limit.clamp(1, MAX_FOUND);
    let is_cut = calls.len() > limit || (calls.len() == limit && (!is_complete || stopped_at.is_some()));
    calls.truncate(limit);
    let next = match (calls.last(), stopped_at) {
        (Some(last), _) if is_cut => {
            let equal = calls.iter().rev().take_while(|it| *it == last).count();
            Some(CallCursor {
                time: last.time,
                hash: last.hash(),
                given: equal + if is_given(last) { given } else { 0 },
            })
        }
        (_, Some(end)) => Some(CallCursor::at(end)),
        (_, None) => None,
    };
    CallSearchResponse {
        complete: next.is_none(),
        searched_from: match (calls.last(), stopped_at) {
            (Some(last), _) if is_cut => last.time,
            (_, end) => end.unwrap_or(search.from),
        },
        next: next.map(|it| it.to_string()),
        calls,
    }
}

/// The time of the last of the latest calls, if there are as many as are wanted. Older ones are taken out.
fn oldest_found(calls: &mut Vec<Arc<CallLine>>, limit: usize) -> Option<u64> {
    if calls.len() < limit {
        return None;
    }
    calls.sort_by(latest_first);
    // One more shows that there are more.
    calls.truncate(limit + 1);
    calls.get(limit - 1).map(|line| line.time)
}

/// The heads of a file's blocks, up to the first one that is damaged.
fn heads(file: &mut File) -> io::Result<Vec<(u64, Head)>> {
    let length = file.metadata()?.len();
    let (mut heads, mut at) = (Vec::new(), 0);
    let mut bytes = [0; HEAD];
    while at + HEAD as u64 <= length {
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut bytes)?;
        let Ok(head) = Head::read(&bytes) else {
            break;
        };
        let end = at + HEAD as u64 + u64::from(head.length);
        if end > length {
            break;
        }
        heads.push((at, head));
        at = end;
    }
    Ok(heads)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_700_000_000_000;

    fn line(number: u64, status: u16) -> CallLine {
        CallLine {
            time: NOW + number,
            weight: 1,
            status,
            total_us: number as u32,
            request_id: format!("id-{number}").into(),
            service: "shop".into(),
            route: format!("route-{}", number % 7).into(),
            path: format!("/a/{number}").into(),
            ..CallLine::default()
        }
    }

    fn log(options: CallLogOptions) -> (tempfile::TempDir, CallLog) {
        let folder = tempfile::tempdir().expect("a folder");
        let options = CallLogOptions {
            folder: Some(folder.path().join("calls")),
            ..options
        };
        (folder, CallLog::open(options).expect("opened"))
    }

    #[test]
    fn calls_are_found_in_memory_and_in_files() {
        let (_folder, log) = log(CallLogOptions::default());
        for part in 0..3_u64 {
            log.add((0..2_500).map(|it| line(part * 3_000_000 + it, if it % 100 == 0 { 502 } else { 200 })));
            if part < 2 {
                log.flush(NOW).expect("written");
            }
        }
        let search = |search: Search| log.search(&search).expect("searched");
        let id = search(Search {
            request_id: Some("id-3000042".to_owned()),
            ..Search::default()
        });
        assert_eq!(
            (id.calls.len(), &*id.calls[0].path, id.complete),
            (1, "/a/3000042", true)
        );
        let failed = search(Search {
            status: Some("5xx".to_owned()),
            limit: 1_000,
            ..Search::default()
        });
        assert_eq!((failed.calls.len(), failed.complete), (75, true));
        assert!(failed.calls.is_sorted_by_key(|it| std::cmp::Reverse(it.time)));
        let few = search(Search {
            route: Some("route-3".to_owned()),
            to: NOW + 3_000_000,
            limit: 10,
            ..Search::default()
        });
        assert_eq!((few.calls.len(), few.complete), (10, false));
        assert!(
            few.calls
                .iter()
                .all(|it| &*it.route == "route-3" && it.time < NOW + 3_000_000)
        );
        let none = search(Search {
            consumer: Some("stranger".to_owned()),
            ..Search::default()
        });
        assert_eq!((none.calls.len(), none.complete), (0, true));
        let slow = search(Search {
            min_us: 6_002_400,
            path: Some("/a/60024".to_owned()),
            ..Search::default()
        });
        assert_eq!(slow.calls.len(), 100);
    }

    /// Gateways deliver late what they could not before.
    #[test]
    fn the_latest_calls_are_found_whenever_they_came() {
        let (_folder, log) = log(CallLogOptions::default());
        let came = [[10, 11, 12], [1, 2, 3], [7, 8, 9], [4, 5, 6]];
        for (place, numbers) in came.into_iter().enumerate() {
            log.add(numbers.into_iter().rev().map(|it| line(it * HOUR_MS / 4, 200)));
            if place < 3 {
                log.flush(NOW).expect("written");
            }
        }
        for (limit, to, expected) in [
            (4, 13, &[12, 11, 10, 9][..]),
            (2, 10, &[9, 8]),
            (3, 6, &[5, 4, 3]),
            (12, 13, &[12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        ] {
            let found = log.search(&Search {
                limit,
                to: NOW + to * HOUR_MS / 4,
                ..Search::default()
            });
            let found = found.expect("searched");
            let times = found.calls.iter().map(|it| (it.time - NOW) * 4 / HOUR_MS);
            assert_eq!(times.collect::<Vec<_>>(), expected);
            assert_eq!(found.complete, limit == 12, "{limit}");
        }
    }

    /// The defect: lines of the millisecond at which a page ended were lost, and `searched_from` was in another unit than `to`.
    #[test]
    fn pages_lose_nothing_and_repeat_nothing() {
        let (_folder, log) = log(CallLogOptions::default());
        // Thirty calls of each millisecond, of which ten are the same; two hours; the last part is in memory only.
        for part in 0..4_u64 {
            log.add((0..60).map(|it| CallLine {
                request_id: format!("{}", if it % 3 == 0 { 0 } else { it }).into(),
                total_us: 7,
                ..line(part / 2 * HOUR_MS + it / 30, 200)
            }));
            if part < 3 {
                log.flush(NOW).expect("written");
            }
        }
        for limit in [1, 7, 30, 239, 240, 1_000] {
            let mut search = Search {
                limit,
                ..Search::default()
            };
            let mut lines = Vec::new();
            loop {
                let found = log.search(&search).expect("searched");
                assert!(found.calls.len() <= limit && (found.complete || !found.calls.is_empty()));
                lines.extend(found.calls);
                assert_eq!(found.complete, found.next.is_none());
                let Some(next) = found.next else {
                    break;
                };
                search.after = Some(next.parse().expect("a cursor"));
            }
            let mut all = log.search(&Search {
                limit: 1_000,
                ..Search::default()
            });
            let all = std::mem::take(&mut all.as_mut().expect("searched").calls);
            assert_eq!((all.len(), lines == all), (240, true), "{limit}: {}", lines.len());
        }
        for wrong in ["", "1", "1-2", "1-x-3", "1-2-3-4", "-1-2-3", "1-2-100001"] {
            assert!(wrong.parse::<CallCursor>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn half_a_block_is_passed_over() {
        let (_folder, log) = log(CallLogOptions::default());
        for number in 0..3 {
            log.add([line(number, 200)]);
            log.flush(NOW).expect("written");
        }
        let (_, size, path) = log.files().expect("files").remove(0);
        let file = File::options().write(true).open(path).expect("there");
        file.set_len(size - 3).expect("cut");
        assert_eq!(log.search(&Search::default()).expect("searched").calls.len(), 2);
    }

    #[test]
    fn files_are_bounded_in_age_and_size() {
        let (_folder, log) = log(CallLogOptions {
            max_bytes: 4_000,
            ..CallLogOptions::default()
        });
        for hour in 0..40 {
            log.add((0..20).map(|it| line(hour * HOUR_MS + it, 200)));
            log.flush(NOW + hour * HOUR_MS).expect("written");
            let files = log.files().expect("files");
            let bytes: u64 = files.iter().map(|(_, size, _)| size).sum();
            assert!(bytes <= 4_000 && files.len() <= 25, "{hour}: {files:?}");
            assert_eq!(log.waiting(), 0);
        }
    }

    #[test]
    fn the_ring_is_bounded_and_can_be_followed() {
        let log = CallLog::open(CallLogOptions {
            in_memory: 5,
            ..CallLogOptions::default()
        })
        .expect("opened");
        log.add((0..3).map(|it| line(it, 200)));
        let (seen, lines) = log.since(0);
        assert_eq!((seen, lines.len()), (3, 3));
        log.add((3..20).map(|it| line(it, 200)));
        let (seen, lines) = log.since(seen);
        assert_eq!((seen, lines.len()), (20, 5));
        assert_eq!(log.since(seen).1.len(), 0);
        assert_eq!(log.search(&Search::default()).expect("searched").calls.len(), 5);
    }
}
