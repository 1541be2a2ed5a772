//! Whether a match takes nothing that another does not take. If that is not decidable, the answer is no: callers want to
//! know that a changed route takes no more than before.

use crate::{HostPattern, PathPattern, RouteMatch};

impl RouteMatch {
    /// Whether the other holds for every call that this one holds for.
    pub fn is_within(&self, other: &Self) -> bool {
        self.path.is_within(&other.path)
            && all_within(&self.hosts, &other.hosts, HostPattern::is_within)
            // Gateways compare methods by case, as HTTP says.
            && all_within(&self.methods, &other.methods, PartialEq::eq)
            && all_within(&self.remote_addrs, &other.remote_addrs, |one, other| {
                other.contains(one)
            })
            && all_within(&self.snis, &other.snis, PartialEq::eq)
            && other.headers.iter().all(|it| self.headers.contains(it))
            && (other.when.is_none() || self.when == other.when)
    }
}

/// Whether each member lies in one of the others. An empty list is everything.
fn all_within<T>(own: &[T], others: &[T], is_within: impl Fn(&T, &T) -> bool) -> bool {
    let is_in_one = |one: &T| others.iter().any(|other| is_within(one, other));
    others.is_empty() || (!own.is_empty() && own.iter().all(is_in_one))
}

impl PathPattern {
    fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Any) => true,
            (Self::Exact(own) | Self::Prefix(own) | Self::Segments(own), Self::Prefix(other)) => {
                own.starts_with(other.as_str())
            }
            (Self::Exact(own) | Self::Segments(own), Self::Segments(other)) => {
                let below = own.strip_prefix(other.as_str());
                below.is_some_and(|it| it.is_empty() || it.starts_with('/') || other.ends_with('/'))
            }
            (own, other) => own == other,
        }
    }
}

impl HostPattern {
    fn is_within(&self, other: &Self) -> bool {
        let is_port_within = |own: &Option<u16>, other: &Option<u16>| other.is_none() || own == other;
        match (self, other) {
            (_, Self::Any) => true,
            (
                Self::Exact { host: own, port } | Self::Suffix { suffix: own, port },
                Self::Suffix { suffix, port: other },
            ) => own.ends_with(suffix.as_str()) && is_port_within(port, other),
            (
                Self::Exact { host: own, port } | Self::Prefix { prefix: own, port },
                Self::Prefix { prefix, port: other },
            ) => own.starts_with(prefix.as_str()) && is_port_within(port, other),
            (Self::Exact { host: own, port }, Self::Exact { host, port: other }) => {
                own == host && is_port_within(port, other)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_takes_no_more_is_known() {
        for (own, other, expected) in [
            (json!({"path": "/a"}), json!({}), true),
            (json!({}), json!({"path": "/a"}), false),
            (json!({"path": "=/a/b"}), json!({"path": "/a*"}), true),
            (json!({"path": "/a/b"}), json!({"path": "/a"}), true),
            (json!({"path": "/ab"}), json!({"path": "/a"}), false),
            (json!({"path": "/a*"}), json!({"path": "/a"}), false),
            (json!({"path": "~/a"}), json!({"path": "~/a"}), true),
            (json!({"path": "~/ab"}), json!({"path": "~/a"}), false),
            (json!({"hosts": ["a.test"]}), json!({}), true),
            (json!({}), json!({"hosts": ["a.test"]}), false),
            (
                json!({"hosts": ["a.test", "x.b.test"]}),
                json!({"hosts": ["*.b.test", "a.test"]}),
                true,
            ),
            (
                json!({"hosts": ["a.test", "c.test"]}),
                json!({"hosts": ["a.test"]}),
                false,
            ),
            (
                json!({"hosts": ["a.test:81"]}),
                json!({"hosts": ["a.test"]}),
                true,
            ),
            (
                json!({"hosts": ["a.test"]}),
                json!({"hosts": ["a.test:81"]}),
                false,
            ),
            (json!({"hosts": ["*.a.test"]}), json!({"hosts": ["a.*"]}), false),
            (
                json!({"methods": ["GET"]}),
                json!({"methods": ["GET", "PUT"]}),
                true,
            ),
            (
                json!({"methods": ["get"]}),
                json!({"methods": ["GET", "PUT"]}),
                false,
            ),
            (json!({"methods": []}), json!({"methods": ["GET"]}), false),
            (
                json!({"remote_addrs": ["10.1.0.0/16"]}),
                json!({"remote_addrs": ["10.0.0.0/8"]}),
                true,
            ),
            (
                json!({"remote_addrs": ["10.0.0.0/8"]}),
                json!({"remote_addrs": ["10.1.0.0/16"]}),
                false,
            ),
            (
                json!({"headers": [{"name": "a"}, {"name": "b"}]}),
                json!({"headers": [{"name": "a"}]}),
                true,
            ),
            (
                json!({"headers": [{"name": "b"}]}),
                json!({"headers": [{"name": "a"}]}),
                false,
            ),
            (json!({"when": ["arg_a", "==", "1"]}), json!({}), true),
            (json!({}), json!({"when": ["arg_a", "==", "1"]}), false),
        ] {
            let read = |it: &Value| serde_json::from_value::<RouteMatch>(it.clone()).expect("a match");
            assert_eq!(read(&own).is_within(&read(&other)), expected, "{own} {other}");
        }
    }
}
