//! A worker's facts about routes, in copies of its own.
//!
//! A call with plugins holds the facts about its route. If all workers held the same value, each call would write to a
//! reference count that all cores share, and that costs each of them more with every further core.

use std::cell::RefCell;
use std::sync::Arc;
use weir_plugin::RouteInfo;

/// Routes of which there are copies, at most.
const MAX_COPIES: usize = 1024;

/// A worker's copy of the facts about a route, and the route's position in the snapshot.
type Copied = (u32, Arc<RouteInfo>);

/// Copies of facts, by the routes' positions in the snapshot. A place belongs to the first route that comes.
#[derive(Default)]
pub struct RouteInfos(RefCell<Vec<Option<Copied>>>);

impl RouteInfos {
    /// The facts about a route, for a call to hold. A route whose place another one has shares them with other workers.
    pub fn get(&self, position: u32, shared: &Arc<RouteInfo>) -> Arc<RouteInfo> {
        let mut places = self.0.borrow_mut();
        if places.is_empty() {
            places.resize(MAX_COPIES, None);
        }
        match &mut places[position as usize % MAX_COPIES] {
            Some((owner, own)) if *owner == position => Arc::clone(own),
            Some(_) => Arc::clone(shared),
            place => {
                let own = Arc::new(RouteInfo::clone(shared));
                *place = Some((position, Arc::clone(&own)));
                own
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_infos_are_copied_once_and_for_one_route_a_place() {
        let named = |name: &str| {
            Arc::new(RouteInfo {
                name: name.to_owned(),
                ..RouteInfo::default()
            })
        };
        let (one, other) = (named("one"), named("other"));
        let known = RouteInfos::default();
        let first = known.get(7, &one);
        assert_eq!(first, one);
        assert!(!Arc::ptr_eq(&first, &one), "a copy");
        assert!(Arc::ptr_eq(&first, &known.get(7, &one)), "the same copy");
        let other_place = 7 + MAX_COPIES as u32;
        assert!(Arc::ptr_eq(&other, &known.get(other_place, &other)), "shared");
        assert_eq!(known.get(7, &one).name, "one");
    }
}
