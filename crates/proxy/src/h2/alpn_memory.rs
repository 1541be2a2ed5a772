//! Which version of HTTP targets have chosen that could have had either. What connections they have is in [`super::pool`].

use crate::pool::PoolKey;
use crate::timer::later;
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long an unused choice is remembered.
const KEPT: Duration = Duration::from_secs(60);

/// The targets that chose HTTP/1.1 at the last handshake, with the time of the last lookup.
#[derive(Default)]
pub struct AlpnMemory(RefCell<HashMap<PoolKey, Instant, foldhash::fast::RandomState>>);

impl AlpnMemory {
    /// Whether a target has chosen HTTP/1.1.
    pub fn is_http1(&self, key: &PoolKey, now: Instant) -> bool {
        match self.0.borrow_mut().get_mut(key) {
            Some(asked) => {
                *asked = now;
                true
            }
            None => false,
        }
    }

    /// Notes what a target has chosen.
    pub fn note(&self, key: &PoolKey, is_http1: bool, now: Instant) {
        let mut choices = self.0.borrow_mut();
        if is_http1 {
            choices.insert(key.clone(), now);
        } else {
            choices.remove(key);
        }
    }

    /// Forgets choices that were not used for a while.
    pub fn prune(&self, now: Instant) {
        self.0.borrow_mut().retain(|_, asked| now < later(*asked, KEPT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    #[test]
    fn a_choice_is_remembered_while_calls_ask_for_it() {
        let choices = AlpnMemory::default();
        let key = PoolKey {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 443)),
            tls: None,
        };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(!choices.is_http1(&key, at(0)));
        choices.note(&key, true, at(0));
        choices.prune(at(50));
        assert!(choices.is_http1(&key, at(50)));
        choices.prune(at(100));
        assert!(choices.is_http1(&key, at(100)));
        choices.prune(at(160));
        assert!(!choices.is_http1(&key, at(160)));
        choices.note(&key, true, at(160));
        choices.note(&key, false, at(160));
        assert!(!choices.is_http1(&key, at(160)), "it has changed its mind");
    }
}
