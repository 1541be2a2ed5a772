//! Finds which of a route's patterns a call has matched.

/// Of patterns with spaces between them the one that fits this path best: itself, then the longest beginning.
pub(crate) fn matched<'p>(patterns: &'p str, path: &[u8]) -> &'p str {
    let fit = |pattern: &&str| match pattern.strip_suffix('*') {
        _ if pattern.as_bytes() == path => usize::MAX,
        Some(start) if path.starts_with(start.as_bytes()) => start.len() + 1,
        _ => 0,
    };
    let mut all = patterns.split(' ');
    let first = all.next().unwrap_or_default();
    all.fold(first, |best, it| if fit(&it) > fit(&best) { it } else { best })
}

/// The pattern that fits a host best; patterns of hosts begin with the `*`.
pub(crate) fn matched_host<'p>(patterns: &'p str, host: &[u8]) -> &'p str {
    let fits = |pattern: &str| match pattern.strip_prefix('*') {
        Some(end) => host.ends_with(end.as_bytes()),
        None => host == pattern.as_bytes(),
    };
    // Itself, then the longest ending.
    let own = patterns
        .split(' ')
        .filter(|pattern| fits(pattern))
        .max_by_key(|pattern| (!pattern.starts_with('*'), pattern.len()));
    own.or_else(|| patterns.split(' ').next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_that_fits_best_is_found() {
        for (patterns, path, expected) in [
            ("/a /b", "/b", "/b"),
            ("/* /a/* /a/b", "/a/b", "/a/b"),
            ("/* /a/*", "/a/c", "/a/*"),
            ("/x", "/y", "/x"),
        ] {
            assert_eq!(matched(patterns, path.as_bytes()), expected, "{patterns} {path}");
        }
        for (patterns, host, expected) in [
            ("*.com foo.com", "foo.com", "foo.com"),
            ("* *.com *.foo.com", "a.foo.com", "*.foo.com"),
            ("*.com", "x.org", "*.com"),
        ] {
            assert_eq!(
                matched_host(patterns, host.as_bytes()),
                expected,
                "{patterns} {host}"
            );
        }
    }
}
