//! Tests of the rings of finished calls.

use super::*;

fn record(number: u64) -> CallRecord {
    CallRecord {
        ended_us: number,
        generation: 3,
        route: Some(number as u32),
        consumer: Some(9),
        target: Some((5, 6)),
        status: 404,
        refusal: Some(2),
        plugin: Some(300),
        method: 4,
        protocol: 3,
        is_aborted: true,
        retries: 2,
        total_us: 1_000,
        upstream_us: 900,
        bytes_in: 70_000,
        bytes_out: 1 << 41,
        address: u64::MAX,
    }
}

#[test]
fn records_come_back() {
    let none = CallRecord {
        route: None,
        consumer: None,
        target: None,
        refusal: None,
        plugin: None,
        is_aborted: false,
        ..record(1)
    };
    for record in [record(7), none, CallRecord::default()] {
        assert_eq!(CallRecord::unpack(&record.pack()), record);
    }
    assert_eq!(size_of_val(&record(1).pack()), 64);
    let huge = CallRecord {
        bytes_in: u64::MAX,
        ..record(1)
    };
    assert_eq!(
        CallRecord::unpack(&huge.pack()),
        CallRecord {
            bytes_in: (1 << 40) - 1,
            ..huge
        }
    );
}

#[test]
fn a_full_ring_drops_and_counts() {
    let rings = CallRings::new(Arc::default(), Arc::default());
    for number in 0..RECORDS as u64 + 5 {
        rings.push(&record(number));
    }
    let mut seen = Vec::new();
    rings.drain(|record| seen.push(record.ended_us));
    assert_eq!(seen, (0..RECORDS as u64).collect::<Vec<_>>());
    assert_eq!(rings.dropped(), (5, 0));
    rings.push(&record(1));
    seen.clear();
    rings.drain(|record| seen.push(record.ended_us));
    assert_eq!(seen, [1]);
}

#[test]
fn a_writer_and_a_reader_work_at_the_same_time() {
    const COUNT: u64 = 300_000;
    let rings = CallRings::new(Arc::default(), Arc::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..COUNT {
                rings.push(&CallRecord {
                    address: !number,
                    ..record(number)
                });
            }
        });
        let (mut next, mut seen) = (0, 0);
        while seen + rings.dropped().0 < COUNT {
            rings.drain(|record| {
                assert!(
                    record.ended_us >= next && record.address == !record.ended_us,
                    "{record:?}"
                );
                (next, seen) = (record.ended_us + 1, seen + 1);
            });
        }
    });
}

/// The reader sleeps for as long as the test may take. It finds everything all the same, as it is woken in time.
#[test]
fn a_reader_that_sleeps_is_woken_when_there_is_much_to_read() {
    const COUNT: u64 = 3 * RECORDS as u64;
    let reader = Arc::new(RingReader::default());
    let rings = CallRings::new(Arc::default(), Arc::clone(&reader));
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            reader.is_here();
            ready.send(()).expect("somebody waits");
            let mut seen = 0;
            while seen < COUNT {
                std::thread::park_timeout(std::time::Duration::from_secs(60));
                rings.drain(|_| seen += 1);
            }
            seen
        });
        is_ready.recv().expect("it is ready");
        for number in 0..COUNT {
            // No faster than the reader: a busy machine may not let it run.
            while number - rings.calls.read() >= RECORDS as u64 / 2 {
                std::thread::yield_now();
            }
            rings.push(&record(number));
        }
        assert_eq!(reading.join().expect("it ends"), COUNT);
    });
    assert_eq!(rings.dropped(), (0, 0));
}

#[test]
fn sampled_calls_have_texts_and_weights_add_up() {
    let sampling = Arc::new(Sampling::default());
    let rings = CallRings::new(Arc::clone(&sampling), Arc::default());
    let long = [b'a'; 500];
    let texts = CallTexts {
        path: &long,
        request_id: b"id",
        host: b"",
        agent: b"curl/8",
        headers: b"x-tenant: acme",
    };
    rings.push_sampled(&record(3), 7, texts);
    rings.drain_sampled(|sampled| {
        assert_eq!((sampled.weight, sampled.record), (7, record(3)));
        let lengths: Vec<usize> = sampled.texts.iter().map(|it| it.len()).collect();
        assert_eq!(lengths, [200, 2, 0, 6]);
        assert_eq!(sampled.texts[3], b"curl/8");
        assert_eq!(sampled.headers, b"x-tenant: acme");
    });
    let full = CallTexts {
        path: &long,
        request_id: &long,
        host: &long,
        agent: &long,
        headers: &long,
    };
    rings.push_sampled(&record(3), 7, full);
    rings.push_sampled(
        &record(3),
        7,
        CallTexts {
            headers: &long,
            ..CallTexts::default()
        },
    );
    let mut lengths = Vec::new();
    rings.drain_sampled(|sampled| lengths.push((sampled.texts[3].len(), sampled.headers.len())));
    assert_eq!(lengths, [(96, 0), (0, TEXT - 2)]);
    let ordinary = CallRecord {
        refusal: None,
        status: 200,
        total_us: 10,
        ..record(1)
    };
    let mut weights = 0;
    for number in 0..10_050 {
        if number == 5_000 {
            sampling.set((100, 1), 5_000);
        }
        weights += u64::from(rings.push(&ordinary).unwrap_or(0));
    }
    assert_eq!(weights, 10_000, "the last 50 are not sampled yet");
    assert_eq!(
        rings.push(&CallRecord {
            status: 502,
            ..ordinary
        }),
        Some(1)
    );
    assert_eq!(
        rings.push(&CallRecord {
            total_us: 5_001,
            ..ordinary
        }),
        Some(1)
    );
    assert_eq!(
        rings.push(&CallRecord {
            refusal: Some(4),
            ..ordinary
        }),
        None
    );
}

#[test]
fn failed_calls_have_a_share_of_their_own() {
    let sampling = Arc::new(Sampling::default());
    let rings = CallRings::new(Arc::clone(&sampling), Arc::default());
    sampling.set((1_000, 20), 5_000);
    let weights = |record: CallRecord| -> Vec<u32> { (0..100).filter_map(|_| rings.push(&record)).collect() };
    let failed = CallRecord {
        status: 503,
        total_us: 9_000,
        ..CallRecord::default()
    };
    assert_eq!(weights(failed), [20; 5], "slow ones, too: all of them may be");
    let slow = CallRecord {
        status: 200,
        ..failed
    };
    assert_eq!(weights(slow), [1; 100]);
    assert_eq!(weights(CallRecord { total_us: 1, ..slow }), [0; 0]);
}

#[test]
fn calls_that_find_no_room_count_with_the_next_one() {
    let rings = CallRings::new(Arc::default(), Arc::default());
    let (fine, failed) = (
        CallRecord::default(),
        CallRecord {
            status: 502,
            ..CallRecord::default()
        },
    );
    let push = |record: &CallRecord| {
        if let Some(weight) = rings.push(record) {
            rings.push_sampled(record, weight, CallTexts::default());
        }
    };
    let mut weights = [0_u64; 2];
    for _ in 0..4 {
        (0..SAMPLED_RECORDS).for_each(|_| push(&fine));
        (0..300).for_each(|_| push(&failed));
        rings.drain_sampled(|sampled| {
            weights[usize::from(sampled.record.status == 502)] += u64::from(sampled.weight);
        });
    }
    push(&fine);
    push(&failed);
    rings.drain_sampled(|sampled| {
        weights[usize::from(sampled.record.status == 502)] += u64::from(sampled.weight);
    });
    assert_eq!(weights, [4 * SAMPLED_RECORDS as u64 + 1, 1_201]);
}

#[test]
fn methods_and_protocols_are_those_of_their_tables() {
    for (number, method) in METHODS.iter().enumerate() {
        assert_eq!(usize::from(method_number(method.as_bytes())), number);
    }
    let versions = [(1, 0), (1, 1), (2, 0), (3, 0), (0, 9)];
    for (number, version) in versions.into_iter().enumerate() {
        assert_eq!(usize::from(protocol_number(version)), number);
    }
}
