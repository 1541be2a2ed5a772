//! Slow start: a target that has just come, or come back, gets a growing share of its calls, so that its caches and
//! connections warm up before it carries its full load. When a target came is for the callers to know.

/// What a target's share is measured in.
pub const WHOLE: u16 = 1_024;

/// How a target's share grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowStart {
    /// Milliseconds until a target has its whole share.
    pub window_ms: u64,
    /// The share at the beginning, in percent; at least 1 counts, so that a target can ever warm up.
    pub min_percent: u8,
    /// 1: the share grows evenly. Above 1 it grows faster at the beginning: it is the time passed, as a part of the
    /// window, to the power of `1 / aggression`.
    pub aggression: f64,
}

impl SlowStart {
    /// How much of its share a target is spared at `now_ms` that came at `since_ms`, in parts of [`WHOLE`].
    #[must_use]
    pub fn spared(&self, since_ms: u64, now_ms: u64) -> u16 {
        let passed = now_ms.saturating_sub(since_ms);
        if passed >= self.window_ms {
            return 0;
        }
        let part = passed as f64 / self.window_ms as f64;
        let share = match self.aggression == 1.0 {
            true => part,
            false => part.powf(1.0 / self.aggression),
        };
        let least = f64::from(self.min_percent.clamp(1, 100)) / 100.0;
        let share = (share.clamp(least, 1.0) * f64::from(WHOLE)) as u16;
        WHOLE - share.clamp(1, WHOLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_grow_to_the_whole() {
        // `(percent at first, aggression, milliseconds since, share of 1024)`; the window is a minute.
        for (min_percent, aggression, since, share) in [
            (10, 1.0, 0, 102),
            (10, 1.0, 3_000, 102),
            (10, 1.0, 30_000, 512),
            (10, 1.0, 59_999, 1_023),
            (10, 1.0, 60_000, 1_024),
            (10, 1.0, u64::MAX, 1_024),
            (10, 2.0, 15_000, 512),
            (10, 0.5, 30_000, 256),
            (0, 1.0, 0, 10),
            (100, 1.0, 0, 1_024),
        ] {
            let rules = SlowStart {
                window_ms: 60_000,
                min_percent,
                aggression,
            };
            let spared = rules.spared(1_000, since.saturating_add(1_000));
            assert_eq!(WHOLE - spared, share, "{min_percent} {aggression} {since}");
        }
        let rules = SlowStart {
            window_ms: 0,
            min_percent: 10,
            aggression: 1.0,
        };
        assert_eq!(rules.spared(5, 5), 0, "no window");
        assert_eq!(rules.spared(5, 4), 0, "a clock that went back");
    }
}
