//! Floods of keys: whose counters make room.

use super::*;

/// The defect: keys made up for one limit reset the counts of another.
#[test]
fn a_flood_of_one_limit_resets_no_other() {
    let all = Limiter::new(4_096);
    let (login, search) = (all.counters("login"), all.counters("search"));
    let of_login = [limit(Window::Second, 3)];
    for n in 0..200u64 {
        for _ in 0..1 + n % 3 {
            assert_eq!(login.take(number(n), &of_login, NOW, &mut []), Verdict::Allowed);
        }
    }
    // Windows that end later and count more than those of the other limit.
    for n in 0..50_000 {
        for _ in 0..2 {
            let _counted = search.take(number(n), &[limit(Window::Year, 10)], NOW, &mut []);
        }
    }
    for n in 0..200 {
        assert_eq!(login.used(number(n), Window::Second, NOW), 1 + n % 3, "{n}");
    }
    assert!(all.entries() <= 4_400, "{}", all.entries());
    assert!(all.evictions().load(Ordering::Relaxed) >= 45_000);
}

#[test]
fn counters_at_their_limit_outlast_a_flood_of_the_same_limit() {
    // How the count came to the limit: by calls, at once, from elsewhere, by a limit that was lowered.
    let all = Limiter::new(4_096);
    let counters = all.counters("a");
    let two = [limit(Window::Minute, 2)];
    for n in 0..1_000 {
        let key = number(n);
        match n % 4 {
            0 => (0..2).for_each(|_| {
                let _counted = counters.take(key, &two, NOW, &mut []);
            }),
            1 => counters.add(key, &two, 2, NOW),
            2 => counters.set(key, two[0], 2, NOW + 60_000, NOW),
            _ => {
                counters.add(key, &[limit(Window::Minute, 9)], 2, NOW);
                assert_eq!(counters.take(key, &two, NOW, &mut []), rejected(0));
            }
        }
    }
    for n in 1_000..50_000 {
        assert_eq!(
            counters.take(number(n), &[limit(Window::Hour, 2)], NOW, &mut []),
            Verdict::Allowed
        );
    }
    for n in 0..1_000 {
        assert_eq!(counters.take(number(n), &two, NOW, &mut []), rejected(0), "{n}");
    }
}
