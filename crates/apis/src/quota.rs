//! Quotas: where the limits of a subscription count, in which windows, and what its developers are notified of.
//!
//! **What it is not**: it counts nothing. Gateways do; how they stand is asked for elsewhere.

use crate::entities::{Limit, Period, Product, Subscription};
use crate::events::Event;
use crate::naming;
use crate::render::limit_of_product;

const DAY: u64 = 86_400;
const WEEK: u64 = 7 * DAY;

/// The shares of a quota, in per cent, at which developers are notified.
pub const LEVELS: [u8; 2] = [80, 100];

/// The scope in which the limits of a subscription count: gateways of an environment count together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaScope {
    /// The environment.
    pub environment: String,
    /// The limit: the id of its plugin.
    pub limit: String,
}

/// The environment of a publication, and what the names of its documents begin with.
fn parts_of(publication: &str) -> Option<(String, String)> {
    let parts: Vec<&str> = publication.split('/').collect();
    let [api, version, environment] = parts[..] else {
        return None;
    };
    Some((
        environment.to_owned(),
        naming::publication(environment, api, version),
    ))
}

/// The places of a subscription: that of its publication, or one for each environment of its product.
pub fn places(subscription: &Subscription, product: Option<&Product>) -> Vec<QuotaScope> {
    if subscription.product.is_empty() {
        let found = parts_of(&subscription.publication).map(|(environment, name)| QuotaScope {
            environment,
            limit: format!("{name}.plan.{}", subscription.plan),
        });
        return found.into_iter().collect();
    }
    let Some(product) = product else {
        return Vec::new();
    };
    let place = |environment: String| QuotaScope {
        limit: limit_of_product(&product.name, &subscription.plan),
        environment,
    };
    product.environments().into_iter().map(place).collect()
}

/// The window of the clock that a time is in: its begin and its end, in seconds since 1970. Gateways count in the same.
pub fn window(per: Period, now: u64) -> (u64, u64) {
    let of = |length: u64| (now - now % length, now - now % length + length);
    match per {
        Period::Second => of(1),
        Period::Minute => of(60),
        Period::Hour => of(3_600),
        Period::Day => of(DAY),
        Period::Week => {
            // 1970 began on a Thursday, three days into its week.
            let into = (now + 3 * DAY) % WEEK;
            (now.saturating_sub(into), now + WEEK - into)
        }
        Period::Month => month(now),
    }
}

/// The part of a window in which the calls of a subscription counted for its plan: a plan counts from when it was moved to
/// it.
pub fn counted_in(subscription: &Subscription, per: Period, now: u64) -> (u64, u64) {
    let (begin, end) = window(per, now);
    (
        subscription
            .moved
            .unwrap_or_default()
            .clamp(begin, now.max(begin)),
        end,
    )
}

/// The calendar month in UTC that a time is in (days from the civil calendar, after Hinnant).
fn month(now: u64) -> (u64, u64) {
    let days = now / DAY + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let is_leap = (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let length = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let begin = (now / DAY - (day - 1)) * DAY;
    (begin, begin + length * DAY)
}

/// The highest level that is reached, in percent.
pub fn level(used: u64, limit: u64) -> Option<u8> {
    let is_reached = |it: &u8| u128::from(used) * 100 >= u128::from(limit) * u128::from(*it);
    LEVELS.into_iter().filter(is_reached).max()
}

/// How a quota stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaLevel {
    /// The level that is reached, in percent.
    pub level: u8,
    /// Calls that counted in the window.
    pub used: u64,
    /// When the next window begins, in seconds since 1970.
    pub resets: u64,
}

/// The event of a quota for developers.
pub fn event(subscription: &Subscription, environment: &str, limit: &Limit, reached: &QuotaLevel) -> Event {
    let kind = match reached.level {
        100 => "quota.reached",
        _ => "quota.near",
    };
    let per = serde_json::json!(limit.per);
    let mut event = Event {
        kind: kind.to_owned(),
        ..Event::default()
    };
    event.about_subscription(subscription);
    event.about.extend([
        ("environment", environment.to_owned()),
        ("limit", limit.count.to_string()),
        ("per", per.as_str().unwrap_or_default().to_owned()),
        ("used", reached.used.to_string()),
        ("percent", reached.level.to_string()),
        ("resets", reached.resets.to_string()),
    ]);
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_clock() {
        // 2024-02-29T12:34:56Z
        let now = 1_709_210_096;
        for (per, begin, end) in [
            (Period::Minute, 1_709_210_040, 1_709_210_100),
            (Period::Hour, 1_709_208_000, 1_709_211_600),
            (Period::Day, 1_709_164_800, 1_709_251_200),
            (Period::Week, 1_708_905_600, 1_709_510_400),
            (Period::Month, 1_706_745_600, 1_709_251_200),
        ] {
            assert_eq!(window(per, now), (begin, end), "{per:?}");
        }
        // 2026-12-31T23:59:59Z
        assert_eq!(month(1_798_761_599), (1_796_083_200, 1_798_761_600));
    }

    #[test]
    fn a_plan_counts_from_when_a_subscription_was_moved_to_it() {
        let now = 1_709_210_096;
        let (begin, end) = window(Period::Day, now);
        for (moved, expected) in [
            (None, begin),
            (Some(begin - 1), begin),
            (Some(begin + 7), begin + 7),
            // Clocks of several machines.
            (Some(now + 1), now),
        ] {
            let subscription = Subscription {
                moved,
                ..Subscription::default()
            };
            assert_eq!(
                counted_in(&subscription, Period::Day, now),
                (expected, end),
                "{moved:?}"
            );
        }
    }

    #[test]
    fn levels_are_reached() {
        for (used, limit, expected) in [
            (0, 10, None),
            (7, 10, None),
            (8, 10, Some(80)),
            (9, 10, Some(80)),
            (10, 10, Some(100)),
            (12, 10, Some(100)),
            (0, 1, None),
            (1, 1, Some(100)),
            (u64::MAX, u64::MAX, Some(100)),
        ] {
            assert_eq!(level(used, limit), expected, "{used} of {limit}");
        }
    }

    #[test]
    fn limits_count_in_the_environments_of_what_is_subscribed() {
        let product = Product {
            name: "bundle".to_owned(),
            publications: ["pets/1/test", "cats/2/test", "pets/1/prod"]
                .map(|it| (it.to_owned(), Vec::new()))
                .into(),
            ..Product::default()
        };
        let to_publication = Subscription {
            publication: "pets/1/test".to_owned(),
            plan: "gold".to_owned(),
            ..Subscription::default()
        };
        let to_product = Subscription {
            product: "bundle".to_owned(),
            plan: "gold".to_owned(),
            ..Subscription::default()
        };
        let shown = |subscription: &Subscription, product: Option<&Product>| {
            let all = places(subscription, product).into_iter();
            let all = all.map(|it| format!("{} {}", it.environment, it.limit));
            all.collect::<Vec<_>>()
        };
        assert_eq!(shown(&to_publication, None), ["test test.pets.1.plan.gold"]);
        assert_eq!(
            shown(&to_product, Some(&product)),
            ["prod products.bundle.plan.gold", "test products.bundle.plan.gold"]
        );
        assert!(shown(&to_product, None).is_empty());
        assert!(shown(&Subscription::default(), None).is_empty());
    }

    #[test]
    fn developers_read_how_a_quota_stands() {
        let subscription = Subscription {
            id: "s".to_owned(),
            application: "shop".to_owned(),
            publication: "pets/1/test".to_owned(),
            plan: "gold".to_owned(),
            ..Subscription::default()
        };
        let limit = Limit {
            count: 1_000,
            per: Period::Month,
        };
        for (level, subject, beginning) in [
            (
                80,
                "80 % of the quota of pets 1 is used",
                "shop has used 812 of 1000 calls of this month to pets 1 (test). New calls come on Fri, 01 Jan 2027",
            ),
            (
                100,
                "The quota of pets 1 is used up",
                "shop has used 812 of 1000 calls of this month to pets 1 (test). New calls come on Fri, 01 Jan 2027 00:00:00 GMT. Further calls are answered with 429 until then.",
            ),
        ] {
            let reached = QuotaLevel {
                level,
                used: 812,
                resets: 1_798_761_600,
            };
            let event = event(&subscription, "test", &limit, &reached);
            let event_for_application =
                crate::events::for_application(&event).expect("it is for the application");
            assert_eq!(event_for_application.about, event.about);
            let (title, text) = crate::events::mail_to_application(&event_for_application).expect("a mail");
            assert_eq!(title, subject);
            assert!(text.starts_with(beginning), "{text}");
            assert!(text.contains("Fri, 01 Jan 2027"), "{text}");
        }
    }
}
