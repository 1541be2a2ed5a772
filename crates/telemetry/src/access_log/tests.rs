//! Tests of the hand-over between workers and the writer. The sink is held up and let go by the test itself,
//! so nothing here depends on time.

use std::sync::Mutex;
use std::sync::mpsc::Sender;

use super::*;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Keeps what is written.
#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    fn lines(&self) -> Vec<serde_json::Value> {
        let bytes = self.0.lock().unwrap();
        bytes
            .split_inclusive(|&b| b == b'\n')
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Announces that a write has come, then lets it through only once the gate is opened (its sender dropped).
struct GatedWriter {
    arrived: Sender<()>,
    gate: Receiver<()>,
    kept: SharedBuffer,
}

impl Write for GatedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _nobody_asks_any_more = self.arrived.send(());
        let _opened = self.gate.recv();
        self.kept.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct FailingWriter;

impl Write for FailingWriter {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn entry(path: &str) -> AccessEntry<'_> {
    AccessEntry {
        time_ms: 1_000,
        client: Some(std::net::Ipv4Addr::LOCALHOST.into()),
        path: path.as_bytes(),
        ..AccessEntry::default()
    }
}

#[test]
fn lines_of_several_workers_arrive_whole() {
    let kept = SharedBuffer::default();
    let log = AccessLog::to_writer(kept.clone()).unwrap();
    let stats = log.stats();
    let workers: Vec<_> = ["/a", "/b", "/c"]
        .into_iter()
        .map(|path| {
            let mut handle = log.handle();
            thread::spawn(move || (0..1_000).for_each(|_| handle.log(&entry(path))))
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    assert!(log.close(TIMEOUT));
    let lines = kept.lines();
    for path in ["/a", "/b", "/c"] {
        assert_eq!(lines.iter().filter(|line| line["path"] == path).count(), 1_000);
    }
    assert_eq!((stats.written(), stats.dropped()), (3_000, 0));
}

#[test]
fn a_writer_that_is_stuck_costs_lines_but_never_blocks() {
    let (arrived, first_write) = mpsc::channel();
    let (gate_keeper, gate) = mpsc::channel();
    let kept = SharedBuffer::default();
    let log = AccessLog::to_writer(GatedWriter {
        arrived,
        gate,
        kept: kept.clone(),
    })
    .unwrap();
    let stats = log.stats();
    let mut handle = log.handle();

    handle.log(&entry("/first"));
    handle.flush();
    first_write.recv().unwrap();
    // The writer is held with one batch in its hand: exactly the queue's length more are taken.
    for _ in 0..QUEUE_BATCHES + 5 {
        handle.log(&entry("/more"));
        handle.flush();
    }
    assert_eq!((stats.written(), stats.dropped()), (0, 5));

    // No more memory than the one buffer, however long it goes on.
    let before = stats.dropped();
    let many = 20_000;
    (0..many).for_each(|_| handle.log(&entry("/dropped")));
    assert!(handle.buffer.capacity() <= 2 * BATCH_BYTES);
    assert!(stats.dropped() > before);

    drop(gate_keeper);
    drop(handle);
    assert!(log.close(TIMEOUT));
    let logged = 1 + QUEUE_BATCHES as u64 + 5 + many;
    assert_eq!(
        stats.written() + stats.dropped(),
        logged,
        "every line is accounted for"
    );
    assert_eq!(kept.lines().len() as u64, stats.written());
}

#[test]
fn closing_does_not_wait_for_ever() {
    let (arrived, _first_write) = mpsc::channel();
    let (_gate_keeper, gate) = mpsc::channel();
    let log = AccessLog::to_writer(GatedWriter {
        arrived,
        gate,
        kept: SharedBuffer::default(),
    })
    .unwrap();
    log.handle().log(&entry("/"));
    assert!(!log.close(Duration::ZERO));
}

#[test]
fn a_batch_leaves_when_it_is_full_or_old() {
    let log = AccessLog::to_writer(io::sink()).unwrap();
    // The only line is from 1000 ms: the tick's time, the maximum age, and whether the batch leaves.
    let cases = [
        (1_000, 1_000, false),
        (1_999, 1_000, false),
        (2_000, 1_000, true),
        (999, 1_000, true),
    ];
    for (now_ms, max_age_ms, leaves) in cases {
        let mut handle = log.handle();
        handle.flush_if_older_than(now_ms, max_age_ms);
        handle.log(&entry("/"));
        handle.flush_if_older_than(now_ms, max_age_ms);
        assert_eq!(handle.lines == 0, leaves, "at {now_ms}");
    }
    let path = "p".repeat(BATCH_BYTES / 8);
    let mut handle = log.handle();
    let left_at = (1..=10).find(|_| {
        handle.log(&entry(&path));
        handle.lines == 0
    });
    assert_eq!(left_at, Some(8));
}

#[test]
fn lines_that_cannot_be_written_count_as_dropped() {
    let log = AccessLog::to_writer(FailingWriter).unwrap();
    let stats = log.stats();
    let mut handle = log.handle();
    (0..3).for_each(|_| handle.log(&entry("/")));
    drop(handle);
    assert!(log.close(TIMEOUT));
    assert_eq!((stats.written(), stats.dropped()), (0, 3));
}

#[test]
fn a_file_is_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    for run in ["/one", "/two"] {
        let log = AccessLog::to_file(&path).unwrap();
        log.handle().log(&entry(run));
        assert!(log.close(TIMEOUT));
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let paths: Vec<_> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["path"].clone())
        .collect();
    assert_eq!(paths, ["/one", "/two"]);

    let missing = folder.path().join("no/such/access.log");
    let error = AccessLog::to_file(&missing).unwrap_err();
    assert!(error.to_string().contains("no/such/access.log"), "{error}");
}
