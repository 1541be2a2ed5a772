//! Health of a target: what calls and probes saw of it is counted, and the counts say when it is out and when it is
//! back.
//!
//! The rules are those of widespread gateways: four counters, each with its own limit. A success makes the
//! failures forgotten and a failure the successes, a limit of 0 means that such an event does not count at all, and
//! what confirms the present health does not count either.
//!
//! Who probes, when, and how long a target stays out without being probed is the business of the callers.

mod cell;

pub use cell::HealthCell;

/// What one call or probe showed of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signal {
    /// It answered as a healthy target does, or accepted a connection if that is enough.
    Success,
    /// It answered with a status that counts as a failure.
    HttpFailure,
    /// It did not take a connection, or broke it.
    TcpFailure,
    /// It took too long.
    Timeout,
}

/// How a target stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum HealthState {
    /// No failure is remembered.
    #[default]
    Healthy,
    /// There were failures, though not enough of them.
    MostlyHealthy,
    /// There were successes, though not enough of them.
    MostlyUnhealthy,
    /// No success is remembered.
    Unhealthy,
}

impl HealthState {
    /// Whether calls may go to the target.
    #[inline]
    #[must_use]
    pub fn is_usable(self) -> bool {
        matches!(self, Self::Healthy | Self::MostlyHealthy)
    }

    /// The state's word, as in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::MostlyHealthy => "mostly_healthy",
            Self::MostlyUnhealthy => "mostly_unhealthy",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// How many events of a kind, without one to the contrary between them, change a target's health. 0: such events do
/// not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thresholds {
    /// Successes that make a target healthy.
    pub successes: u8,
    /// Answers with a failing status that make it unhealthy.
    pub http_failures: u8,
    /// Connections that failed that make it unhealthy.
    pub tcp_failures: u8,
    /// Time-outs that make it unhealthy.
    pub timeouts: u8,
}

impl Thresholds {
    fn of(&self, signal: Signal) -> u8 {
        match signal {
            Signal::Success => self.successes,
            Signal::HttpFailure => self.http_failures,
            Signal::TcpFailure => self.tcp_failures,
            Signal::Timeout => self.timeouts,
        }
    }
}

/// What is remembered of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Health {
    /// State.
    pub state: HealthState,
    /// Whether a person has put it out; time alone does not bring it back then.
    pub is_held: bool,
    /// Successes since the last failure, while unhealthy.
    pub successes: u8,
    /// Failing statuses since the last success, while healthy.
    pub http_failures: u8,
    /// Failed connections since the last success, while healthy.
    pub tcp_failures: u8,
    /// Time-outs since the last success, while healthy.
    pub timeouts: u8,
}

impl Health {
    /// A target of which nothing bad is known.
    pub const HEALTHY: Self = Self::fresh(HealthState::Healthy, false);

    /// A target that a person has put out.
    pub const HELD_OUT: Self = Self::fresh(HealthState::Unhealthy, true);

    const fn fresh(state: HealthState, is_held: bool) -> Self {
        Self {
            state,
            is_held,
            successes: 0,
            http_failures: 0,
            tcp_failures: 0,
            timeouts: 0,
        }
    }

    /// What is remembered after one more event.
    #[must_use]
    pub fn after(mut self, signal: Signal, thresholds: &Thresholds) -> Self {
        let limit = thresholds.of(signal);
        let confirmed = match signal {
            Signal::Success => HealthState::Healthy,
            _ => HealthState::Unhealthy,
        };
        if limit == 0 || self.state == confirmed {
            return self;
        }
        let count = match signal {
            Signal::Success => {
                (self.http_failures, self.tcp_failures, self.timeouts) = (0, 0, 0);
                &mut self.successes
            }
            Signal::HttpFailure => &mut self.http_failures,
            Signal::TcpFailure => &mut self.tcp_failures,
            Signal::Timeout => &mut self.timeouts,
        };
        *count = count.saturating_add(1);
        let is_reached = *count >= limit;
        if signal != Signal::Success {
            self.successes = 0;
        }
        self.state = match self.state {
            _ if is_reached => confirmed,
            HealthState::Healthy => HealthState::MostlyHealthy,
            HealthState::Unhealthy => HealthState::MostlyUnhealthy,
            unsure => unsure,
        };
        self.is_held &= !self.state.is_usable();
        self
    }

    /// All of it in one number, so that it can be exchanged at once.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        let state = match self.state {
            HealthState::Healthy => 0u8,
            HealthState::MostlyHealthy => 1,
            HealthState::MostlyUnhealthy => 2,
            HealthState::Unhealthy => 3,
        };
        u64::from_le_bytes([
            state,
            u8::from(self.is_held),
            self.successes,
            self.http_failures,
            self.tcp_failures,
            self.timeouts,
            0,
            0,
        ])
    }

    /// What [`Health::to_bits`] made a number of.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        let [state, held, successes, http_failures, tcp_failures, timeouts, ..] = bits.to_le_bytes();
        Self {
            state: match state {
                0 => HealthState::Healthy,
                1 => HealthState::MostlyHealthy,
                2 => HealthState::MostlyUnhealthy,
                _ => HealthState::Unhealthy,
            },
            is_held: held != 0,
            successes,
            http_failures,
            tcp_failures,
            timeouts,
        }
    }
}

/// A set of HTTP statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusSet([u64; 16]);

impl StatusSet {
    /// No status.
    pub const NONE: Self = Self([0; 16]);

    /// Whether the status is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, status: u16) -> bool {
        self.0
            .get(usize::from(status / 64))
            .is_some_and(|word| word >> (status % 64) & 1 == 1)
    }
}

impl FromIterator<u16> for StatusSet {
    /// Statuses from 1024 on, which do not exist, are left out.
    fn from_iter<I: IntoIterator<Item = u16>>(statuses: I) -> Self {
        let mut set = Self::default();
        for status in statuses {
            if let Some(word) = set.0.get_mut(usize::from(status / 64)) {
                *word |= 1 << (status % 64);
            }
        }
        set
    }
}

/// How calls, or probes, are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// Statuses that are a success.
    pub healthy: StatusSet,
    /// Statuses that are a failure, unless they are a success.
    pub unhealthy: StatusSet,
    /// How many of them count.
    pub thresholds: Thresholds,
}

impl Rules {
    /// What an answer with this status shows; `None`: nothing.
    #[inline]
    #[must_use]
    pub fn read(&self, status: u16) -> Option<Signal> {
        if self.healthy.contains(status) {
            Some(Signal::Success)
        } else if self.unhealthy.contains(status) {
            Some(Signal::HttpFailure)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
