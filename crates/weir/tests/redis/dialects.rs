//! Both originals' spellings of limits in a Redis.

use crate::support::{CLOSED_PORT, Gateway, Redis, Upstream, is_installed, passed};

fn kong(upstream: &Upstream, plugin: &str) -> String {
    let url = upstream.address;
    format!(
        "_format_version: '3.0'\nservices:\n- name: s\n  url: http://{url}\n  routes:\n  - name: r\n    paths: [/]\n    plugins:\n    - {plugin}\n"
    )
}

/// A document in which all calls go to the upstream after this plugin.
pub fn apisix(upstream: &Upstream, plugin: &str) -> String {
    let url = upstream.address;
    format!(
        "routes:\n- id: r\n  uri: /*\n  upstream: {{nodes: {{'{url}': 1}}, type: roundrobin}}\n  plugins:\n    {plugin}\n#END\n"
    )
}

#[test]
fn limits_of_both_are_shared() {
    if !is_installed() {
        return;
    }
    let redis = Redis::start(&["--requirepass", "geheim"]);
    let upstream = Upstream::start("");
    let at = format!(
        "redis_host: 127.0.0.1, redis_port: {}, redis_password: geheim",
        redis.port
    );
    let nested = format!(
        "redis: {{host: 127.0.0.1, port: {}, password: geheim}}",
        redis.port
    );
    type Make = fn(&Upstream, &str) -> String;
    let cases: [(Make, String, usize); 7] = [
        (
            kong,
            format!(
                "{{name: rate-limiting, config: {{day: 10, policy: redis, fault_tolerant: false, limit_by: ip, {nested}}}}}"
            ),
            10,
        ),
        (
            kong,
            format!(
                "{{name: rate-limiting, config: {{month: 12, policy: redis, fault_tolerant: false, {at}, redis_database: 2}}}}"
            ),
            12,
        ),
        (
            apisix,
            format!("limit-count: {{count: 11, time_window: 600, policy: redis, {at}}}"),
            11,
        ),
        (
            apisix,
            format!(
                "limit-count: {{count: 14, time_window: 86400, window_type: sliding, policy: redis, {at}}}"
            ),
            14,
        ),
        (
            apisix,
            format!(
                "limit-count: {{rules: [{{count: 13, time_window: 600, key: $remote_addr}}], policy: redis, {at}}}"
            ),
            13,
        ),
        (
            apisix,
            format!(
                "limit-req: {{rate: 0.001, burst: 8, nodelay: true, key: remote_addr, policy: redis, {at}}}"
            ),
            9,
        ),
        (
            apisix,
            format!(
                "workflow: {{rules: [{{case: [[uri, ==, /]], actions: [[limit-count, {{count: 7, time_window: 600, policy: redis, {at}}}]]}}]}}"
            ),
            7,
        ),
    ];
    for (make, plugin, expected) in cases {
        let document = make(&upstream, &plugin);
        let gateways = [Gateway::start(&document), Gateway::start(&document)];
        let gateways: Vec<&Gateway> = gateways.iter().collect();
        let got = passed(&gateways, 48, "/");
        assert_eq!(got, expected, "{plugin}: {}", gateways[0].log());
    }
}

/// Answers to callers while there is no Redis.
#[test]
fn answers_without_a_redis_are_those_of_the_original() {
    let upstream = Upstream::start("");
    let port = CLOSED_PORT;
    let at = format!("redis_host: 127.0.0.1, redis_port: {port}");
    type Make = fn(&Upstream, &str) -> String;
    let cases: [(Make, String, u16, &str); 9] = [
        (
            kong,
            format!(
                "{{name: rate-limiting, config: {{day: 1, policy: redis, redis: {{host: 127.0.0.1, port: {port}}}}}}}"
            ),
            200,
            "ok",
        ),
        (
            kong,
            format!(
                "{{name: rate-limiting, config: {{day: 1, policy: redis, fault_tolerant: false, {at}}}}}"
            ),
            500,
            "An unexpected error occurred",
        ),
        (
            kong,
            format!(
                "{{name: response-ratelimiting, config: {{limits: {{v: {{day: 1}}}}, policy: redis, {at}}}}}"
            ),
            200,
            "ok",
        ),
        (
            kong,
            format!(
                "{{name: response-ratelimiting, config: {{limits: {{v: {{day: 1}}}}, policy: redis, fault_tolerant: false, {at}}}}}"
            ),
            500,
            "An unexpected error occurred",
        ),
        (
            apisix,
            format!("limit-count: {{count: 1, time_window: 600, policy: redis, {at}}}"),
            500,
            "{\"error_msg\":\"failed to limit count\"}",
        ),
        (
            apisix,
            format!(
                "limit-count: {{count: 1, time_window: 600, policy: redis, allow_degradation: true, {at}}}"
            ),
            200,
            "ok",
        ),
        (
            apisix,
            format!("limit-req: {{rate: 1, burst: 0, key: remote_addr, policy: redis, {at}}}"),
            500,
            "",
        ),
        (
            apisix,
            format!(
                "limit-conn: {{conn: 1, burst: 0, default_conn_delay: 1, key: remote_addr, policy: redis, {at}}}"
            ),
            500,
            "",
        ),
        (
            apisix,
            format!(
                "limit-conn: {{conn: 1, burst: 0, default_conn_delay: 1, key: remote_addr, policy: redis-cluster, redis_cluster_name: c, redis_cluster_nodes: ['127.0.0.1:{port}'], allow_degradation: true}}"
            ),
            200,
            "ok",
        ),
    ];
    for (make, plugin, status, body) in cases {
        let gateway = Gateway::start(&make(&upstream, &plugin));
        for _ in 0..3 {
            let (got, answer) = gateway.get("/", "");
            assert_eq!(got, status, "{plugin}: {answer}\n{}", gateway.log());
            assert!(answer.contains(body), "{plugin}: {answer}");
        }
    }
}
