//! Whether a process is ready: from when on callers and load balancers can rely on it.

/// The facts that decide whether a process is ready.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadinessFacts {
    pub is_draining: bool,
    pub is_control_plane: bool,
    pub has_gateway: bool,
    /// Whether something from the store is served, or would be.
    pub is_served: bool,
    pub is_last_known_good: bool,
    pub awaits_admin: bool,
}

impl ReadinessFacts {
    /// Ready are those that serve or manage. The Admin APIs' first read of the store is waited for, unless it is away and
    /// the last known good configuration is served.
    pub fn state(self) -> &'static str {
        let is_started = self.has_gateway || (self.is_control_plane && self.is_served);
        let waits = self.awaits_admin && !(self.has_gateway && self.is_last_known_good);
        match (self.is_draining, is_started && !waits, self.has_gateway) {
            (true, ..) => "draining",
            (_, true, true) => "serving",
            (_, true, false) => "managing",
            (_, false, _) => "starting",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ready_once_the_store_was_read() {
        let none = ReadinessFacts::default();
        let gateway = ReadinessFacts {
            has_gateway: true,
            is_served: true,
            ..none
        };
        let control = ReadinessFacts {
            is_control_plane: true,
            is_served: true,
            ..none
        };
        for (facts, expected) in [
            (none, "starting"),
            (gateway, "serving"),
            (control, "managing"),
            (
                ReadinessFacts {
                    is_served: false,
                    ..control
                },
                "starting",
            ),
            (
                ReadinessFacts {
                    awaits_admin: true,
                    ..gateway
                },
                "starting",
            ),
            (
                ReadinessFacts {
                    awaits_admin: true,
                    ..control
                },
                "starting",
            ),
            // The store is away.
            (
                ReadinessFacts {
                    awaits_admin: true,
                    is_last_known_good: true,
                    ..gateway
                },
                "serving",
            ),
            (
                ReadinessFacts {
                    is_draining: true,
                    ..gateway
                },
                "draining",
            ),
        ] {
            assert_eq!(facts.state(), expected, "{facts:?}");
        }
    }
}
