//! The simulation: what a fleet of gateways needs, from what single things cost. It is arithmetic and a seeded queue;
//! it starts nothing, reads no clock and measures nothing.

/// A fleet and what is asked of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fleet {
    /// Gateways that follow one control plane.
    pub gateways: u32,
    /// Gateways that share one core. 1: each has its own.
    pub gateways_on_a_core: u32,
    /// Cores of the control plane.
    pub control_cores: u32,
    /// Routes.
    pub routes: u64,
    /// Consumers, each with one key.
    pub consumers: u64,
    /// Calls in a day over all gateways.
    pub calls_a_day: f64,
    /// Changes a second, at random times.
    pub changes_a_second: f64,
    /// Network of the control plane, in bits a second.
    pub network_bits: f64,
    /// Keys (a route with a status, a consumer) that are called within an hour; analytics keep a row for each.
    pub active_keys: u64,
}

impl Fleet {
    /// Documents in the store: a consumer is one, its key another.
    pub fn documents(&self) -> f64 {
        (self.routes + 2 * self.consumers) as f64
    }

    /// The same fleet at 1/`by` of its size, with all its gateways on one core.
    pub fn part(&self, by: u32) -> Self {
        let gateways = (self.gateways / by).max(1);
        Self {
            gateways,
            gateways_on_a_core: gateways,
            control_cores: 1,
            routes: self.routes / u64::from(by),
            consumers: self.consumers / u64::from(by),
            calls_a_day: self.calls_a_day / f64::from(by),
            changes_a_second: self.changes_a_second / f64::from(by),
            ..*self
        }
    }
}

/// What single things cost on one machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// Resident memory of a control plane: bytes when empty, bytes a document.
    pub control_memory: Line,
    /// Resident memory of a gateway, likewise.
    pub gateway_memory: Line,
    /// Time until a new gateway serves: seconds when empty, seconds a document.
    pub first_read: Line,
    /// CPU seconds of the control plane for a new gateway.
    pub first_read_control: Line,
    /// Bytes on the stream of a new gateway.
    pub first_read_bytes: Line,
    /// Bytes of the store.
    pub store_bytes: Line,
    /// Single changes as they were measured with one gateway.
    pub changes: Vec<Change>,
    /// The documents that there were meanwhile.
    pub changes_documents: f64,
    /// Bytes on the stream of one gateway for one change.
    pub change_bytes: f64,
    /// CPU seconds of the control plane for one change, without its gateways.
    pub control_cpu: f64,
    /// CPU seconds of the control plane to send one change to one more gateway.
    pub send_cpu: f64,
    /// CPU seconds of a gateway for one change.
    pub gateway_cpu: Line,
    /// CPU seconds of a gateway for one call.
    pub call_cpu: f64,
}

/// One change, as measured; both in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// From the request to the answer of the Admin API.
    pub commit: f64,
    /// From that answer until the gateway serves the change.
    pub serve: f64,
}

/// A straight line: what nothing costs, and what each document adds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// The cost of an empty configuration.
    pub base: f64,
    /// The cost that a document adds.
    pub each: f64,
}

impl Line {
    /// The line through two measured points (documents, cost). A cost that falls with more documents is noise: then
    /// the line is flat at the higher one.
    pub fn through(small: (f64, f64), large: (f64, f64)) -> Self {
        let each = (large.1 - small.1) / (large.0 - small.0);
        if each <= 0.0 {
            return Self {
                base: small.1.max(large.1),
                each: 0.0,
            };
        }
        Self {
            base: (small.1 - each * small.0).max(0.0),
            each,
        }
    }

    /// The cost of so many documents.
    pub fn at(&self, documents: f64) -> f64 {
        self.base + self.each * documents
    }
}

/// What the simulation says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Seconds from a change's request until the last gateway serves it: half of the changes are faster.
    pub propagation_p50: f64,
    /// Likewise for 99 of 100.
    pub propagation_p99: f64,
    /// Bytes of memory of the control plane.
    pub control_memory: f64,
    /// Bytes of memory of one gateway.
    pub gateway_memory: f64,
    /// Bytes of the store.
    pub store: f64,
    /// Cores of the control plane that changes keep busy.
    pub control_cores: f64,
    /// Bytes a second that the control plane sends for changes.
    pub stream_rate: f64,
    /// Bytes that one new gateway reads.
    pub first_read_bytes: f64,
    /// Seconds until one new gateway serves.
    pub first_read_one: f64,
    /// Seconds until all gateways serve that start at once.
    pub first_read_all: f64,
    /// Calls a second of one gateway.
    pub calls_each: f64,
    /// Cores of one gateway that calls and changes keep busy.
    pub gateway_cores: f64,
    /// Bytes of analytics that a day adds by the minute.
    pub analytics_day: f64,
    /// Bytes of analytics kept by all tiers after 15 months.
    pub analytics_kept: f64,
}

/// Bytes of analytics for one key and hour: by the minute, by five minutes, by the hour (docs/analytics.md).
const ANALYTICS_ROW: [f64; 3] = [520.0, 213.0, 137.0];
/// Days for which each tier keeps them.
const ANALYTICS_DAYS: [f64; 3] = [8.0, 22.0, 456.0];
/// Streams of new gateways that the control plane reads for at the same time.
const FIRST_READS_AT_ONCE: u32 = 4;
/// Changes that are simulated.
const CHANGES: usize = 20_000;

/// Simulates a fleet. The same seed gives the same answer.
pub fn simulate(fleet: &Fleet, costs: &Costs, seed: u64) -> Forecast {
    let documents = fleet.documents();
    let mut propagation = propagation(fleet, costs, seed);
    propagation.sort_by(f64::total_cmp);
    let at = |share: f64| propagation[((propagation.len() - 1) as f64 * share) as usize];
    let gateways = f64::from(fleet.gateways);
    let calls_each = fleet.calls_a_day / 86_400.0 / gateways;
    let first_read_bytes = costs.first_read_bytes.at(documents);
    let one = costs.first_read.at(documents);
    // What a gateway does by itself happens on all gateways at once, as far as they have cores of their own.
    let on_a_core = one * f64::from(fleet.gateways_on_a_core);
    let at_once = f64::from(fleet.control_cores.min(FIRST_READS_AT_ONCE));
    let reading = costs.first_read_control.at(documents) * gateways / at_once;
    let sending = first_read_bytes * 8.0 / fleet.network_bits;
    let kept: f64 = ANALYTICS_ROW
        .iter()
        .zip(ANALYTICS_DAYS)
        .map(|(row, days)| row * days * 24.0)
        .sum();
    let keys = fleet.active_keys as f64;
    Forecast {
        propagation_p50: at(0.5),
        propagation_p99: at(0.99),
        control_memory: costs.control_memory.at(documents),
        gateway_memory: costs.gateway_memory.at(documents),
        store: costs.store_bytes.at(documents),
        control_cores: fleet.changes_a_second * (costs.control_cpu + gateways * costs.send_cpu),
        stream_rate: fleet.changes_a_second * gateways * costs.change_bytes,
        first_read_bytes,
        first_read_one: one + sending,
        first_read_all: on_a_core.max(reading) + sending * gateways,
        calls_each,
        gateway_cores: calls_each * costs.call_cpu + fleet.changes_a_second * costs.gateway_cpu.at(documents),
        analytics_day: keys * 24.0 * ANALYTICS_ROW[0],
        analytics_kept: keys * kept,
    }
}

/// Seconds until the last gateway serves, for each simulated change. Changes wait for each other at the control plane,
/// which commits one after the other and sends each to every gateway in turn.
fn propagation(fleet: &Fleet, costs: &Costs, seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    let mut now = 0.0;
    let mut free = 0.0_f64;
    let mut all = Vec::with_capacity(CHANGES);
    let own = costs.gateway_cpu.at(fleet.documents());
    let more = own - costs.gateway_cpu.at(costs.changes_documents);
    for _ in 0..CHANGES {
        now += -random.unit().ln() / fleet.changes_a_second;
        let commit = random.pick(&costs.changes).commit;
        let committed = free.max(now) + commit;
        free = committed + costs.send_cpu * f64::from(fleet.gateways);
        let last = (0..fleet.gateways)
            .map(|at| {
                let sent = costs.send_cpu * f64::from(at + 1);
                let turn = f64::from(at % fleet.gateways_on_a_core) * own;
                let serve = (random.pick(&costs.changes).serve + more).max(0.0);
                committed + sent + turn + serve
            })
            .fold(committed, f64::max);
        all.push(last - now);
    }
    all
}

/// SplitMix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Above 0, at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn pick(&mut self, changes: &[Change]) -> Change {
        changes[(self.next() % changes.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet() -> Fleet {
        Fleet {
            gateways: 100,
            gateways_on_a_core: 1,
            control_cores: 4,
            routes: 1_000_000,
            consumers: 100_000,
            calls_a_day: 12e9,
            changes_a_second: 1.0,
            network_bits: 10e9,
            active_keys: 8_000,
        }
    }

    fn costs() -> Costs {
        let line = |base, each| Line { base, each };
        Costs {
            control_memory: line(30e6, 2_000.0),
            gateway_memory: line(15e6, 2_000.0),
            first_read: line(0.1, 10e-6),
            first_read_control: line(0.0, 1e-6),
            first_read_bytes: line(1_000.0, 300.0),
            store_bytes: line(100e3, 500.0),
            changes: vec![Change {
                commit: 0.002,
                serve: 0.010,
            }],
            changes_documents: 1_000.0,
            change_bytes: 400.0,
            control_cpu: 0.001,
            send_cpu: 20e-6,
            gateway_cpu: line(0.002, 0.0),
            call_cpu: 15e-6,
        }
    }

    #[test]
    fn lines_go_through_their_points_and_noise_is_flat() {
        let line = Line::through((100.0, 20.0), (300.0, 60.0));
        assert_eq!(
            (line.at(100.0), line.at(300.0), line.at(500.0)),
            (20.0, 60.0, 100.0)
        );
        let flat = Line::through((100.0, 20.0), (300.0, 19.0));
        assert_eq!((flat.at(0.0), flat.at(1e6)), (20.0, 20.0));
    }

    #[test]
    fn propagation_of_a_quiet_fleet_is_commit_send_and_serve() {
        let quiet = Fleet {
            changes_a_second: 0.001,
            ..fleet()
        };
        let forecast = simulate(&quiet, &costs(), 1);
        let expected = 0.002 + 100.0 * 20e-6 + 0.010;
        assert!((forecast.propagation_p50 - expected).abs() < 1e-6, "{forecast:?}");
        assert!((forecast.propagation_p99 - expected).abs() < 1e-6, "{forecast:?}");
    }

    #[test]
    fn propagation_grows_when_changes_wait_for_each_other() {
        // The control plane is busy for 4 ms a change: at 200 a second it is busy for 80 % of the time.
        let (quiet, busy) = (
            fleet(),
            Fleet {
                changes_a_second: 200.0,
                ..fleet()
            },
        );
        let (quiet, busy) = (simulate(&quiet, &costs(), 1), simulate(&busy, &costs(), 1));
        assert!(
            busy.propagation_p99 > 2.0 * quiet.propagation_p99,
            "{busy:?} {quiet:?}"
        );
        assert!((busy.control_cores - 200.0 * 0.003).abs() < 1e-9, "{busy:?}");
    }

    #[test]
    fn propagation_of_gateways_on_one_core_adds_their_work() {
        let shared = Fleet {
            gateways: 5,
            gateways_on_a_core: 5,
            changes_a_second: 0.001,
            ..fleet()
        };
        let expected = 0.002 + 5.0 * 20e-6 + 4.0 * 0.002 + 0.010;
        let forecast = simulate(&shared, &costs(), 1);
        assert!((forecast.propagation_p50 - expected).abs() < 1e-6, "{forecast:?}");
    }

    #[test]
    fn propagation_grows_with_what_a_change_costs_among_more_documents() {
        let mut costs = costs();
        costs.gateway_cpu = Line {
            base: 0.001,
            each: 1e-6,
        };
        let quiet = Fleet {
            gateways: 1,
            changes_a_second: 0.001,
            ..fleet()
        };
        // Measured among 1,000 documents, simulated among 1.2 million: 1.199 s more.
        let expected = 0.002 + 20e-6 + 0.010 + 1.199;
        let forecast = simulate(&quiet, &costs, 1);
        assert!((forecast.propagation_p50 - expected).abs() < 1e-6, "{forecast:?}");
    }

    #[test]
    fn forecast_scales_with_documents_and_calls() {
        let forecast = simulate(&fleet(), &costs(), 7);
        assert_eq!(forecast.gateway_memory, 15e6 + 1_200_000.0 * 2_000.0);
        assert_eq!(forecast.store, 100e3 + 1_200_000.0 * 500.0);
        assert_eq!(forecast.stream_rate, 100.0 * 400.0);
        assert!((forecast.calls_each - 1_388.9).abs() < 0.1);
        assert!((forecast.gateway_cores - (1_388.89 * 15e-6 + 0.002)).abs() < 1e-6);
        assert_eq!(forecast.analytics_day, 8_000.0 * 24.0 * 520.0);
        assert_eq!(simulate(&fleet(), &costs(), 7), forecast);
    }

    #[test]
    fn first_reads_wait_for_the_slower_of_control_plane_and_gateway() {
        let forecast = simulate(&fleet(), &costs(), 1);
        // 1.2 million documents at 1 µs for 100 gateways by four cores: 30 s. A gateway alone needs 12 s.
        let sending = (1_000.0 + 300.0 * 1.2e6) * 8.0 / 10e9;
        assert!(
            (forecast.first_read_all - (30.0 + 100.0 * sending)).abs() < 1e-6,
            "{forecast:?}"
        );
        assert!(
            (forecast.first_read_one - (0.1 + 12.0 + sending)).abs() < 1e-6,
            "{forecast:?}"
        );
    }

    #[test]
    fn part_of_a_fleet_keeps_what_each_gateway_does() {
        let part = fleet().part(20);
        assert_eq!(
            (
                part.gateways,
                part.gateways_on_a_core,
                part.routes,
                part.consumers
            ),
            (5, 5, 50_000, 5_000)
        );
        let (whole, part) = (simulate(&fleet(), &costs(), 1), simulate(&part, &costs(), 1));
        assert!((whole.calls_each - part.calls_each).abs() < 1e-6);
    }
}
