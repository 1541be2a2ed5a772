//! Limits that count what GraphQL queries cost.

use super::*;

/// A POST of this query.
fn query(text: &str) -> Exchange {
    let mut exchange = exchange();
    prepare(
        &mut exchange,
        "POST /graphql",
        &[("Content-Type", "application/json")],
    );
    exchange.request.body = Some(json!({"query": text}).to_string().into_bytes());
    exchange
}

#[test]
fn queries_count_as_what_they_cost() {
    let config = json!({
        "limits": [{"count": 9, "per": {"sliding-seconds": 60}, "headers": {"remaining": "Left"}}],
        "headers": {},
        "graphql": {"header": "Cost", "max": 7, "factor": 1.5},
    });
    let filter = build(&RateLimit::default(), &config).expect("valid");
    for (text, expected, headers) in [
        ("{ a { b } }", "continue", vec!["Cost: 5", "Left: 4"]),
        ("{ a { b } }", "rate_limited 429", vec!["Cost: 5", "Left: 4"]),
        // What is too dear for the rest does not pass, and takes nothing of it.
        (
            "{ a { b { c } } }",
            "rate_limited 429",
            vec!["Cost: 6", "Left: 4"],
        ),
        ("{ a { b { c { d } } } }", "forbidden 403", vec!["Cost: 8"]),
        ("{ a }", "continue", vec!["Cost: 3", "Left: 1"]),
        ("no", "reply 400", vec![]),
    ] {
        let mut exchange = query(text);
        assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{text}");
        assert_eq!(lines(&exchange.response_headers), headers, "{text}");
    }
}

#[test]
fn queries_that_a_service_may_read_otherwise_are_refused() {
    let config = json!({"limits": [{"count": 100, "per": "minute"}], "graphql": {}});
    let filter = build(&RateLimit::default(), &config).expect("valid");
    for (line, body, expected) in [
        ("POST /", "{\"query\":\"{a}\"}", "continue"),
        ("POST /?query=%7Bb%7D", "{\"query\":\"{a}\"}", "reply 400"),
        ("POST /?%76ariables=%7B%7D", "{\"query\":\"{a}\"}", "reply 400"),
        ("POST /?x=1", "{\"query\":\"{a}\"}", "continue"),
        ("POST /", "[{\"query\":\"{a}\"}]", "reply 400"),
        ("POST /", "{\"query\":\"{a}\",\"variables\":\"{}\"}", "reply 400"),
        ("POST /", "{\"query\":\"{a}\",\"Query\":\"{b}\"}", "reply 400"),
        ("POST /", "{\"query\":\"{a}\",\"query\":\"{b}\"}", "reply 400"),
        ("GET /?query=%7Ba%7D", "", "continue"),
        ("GET /?query=%7Ba%7D&query=%7Bb%7D", "", "reply 400"),
        ("GET /", "", "reply 400"),
        ("PUT /", "{\"query\":\"{a}\"}", "answered 405"),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, line, &[("Content-Type", "application/json")]);
        if !body.is_empty() {
            exchange.request.body = Some(body.as_bytes().to_vec());
        }
        assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{line} {body}");
    }
    // A body that has not been read yet is requested; the body of a GET is not read at all.
    for (line, expected) in [("POST /", "body"), ("GET /?query=%7Ba%7D", "reply 400")] {
        let mut exchange = exchange();
        prepare(&mut exchange, line, &[]);
        exchange.request.has_body = true;
        assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{line}");
    }
}

/// The schema is fetched once, by the call that needs it first; without a schema, queries are refused.
#[test]
fn weights_need_the_schema_of_the_service() {
    let config = json!({
        "limits": [{"count": 100, "per": "minute"}],
        "graphql": {"header": "Cost", "services": [{
            "introspection": {"url": "http://127.0.0.1:1980/graphql", "host": "gql.example"},
            "weights": [{"path": "Query.products", "multiply_arguments": ["first"]}],
        }]},
    });
    let schema = json!({"data": {"__schema": {
        "queryType": {"name": "Query"},
        "types": [
            {"name": "Query", "fields": [{"name": "products", "type": {"name": "Products"}}]},
            {"name": "Products", "fields": [{"name": "name", "type": {"name": "String"}}]},
        ],
    }}});
    for (status, body, expected) in [
        (200, schema.to_string(), "continue"),
        (503, schema.to_string(), "plugin_failed 500"),
        (200, "{}".to_owned(), "plugin_failed 500"),
    ] {
        let filter = build(&RateLimit::default(), &config).expect("valid");
        let text = "{ products(first: 7) { name } }";
        let mut first = query(text);
        let asked = filter.on_request(&mut first);
        let Outcome::Subrequest(asked) = asked else {
            panic!("{asked:?}");
        };
        let message = String::from_utf8_lossy(&asked.message).into_owned();
        assert!(
            message.starts_with("POST /graphql HTTP/1.1\r\nHost: gql.example\r\n"),
            "{message}"
        );
        let mut second = query(text);
        assert_eq!(word(&filter.on_request(&mut second)), "wait", "another one waits");
        first.subrequest_response = Some(Some(SubrequestResponse {
            status,
            body: body.into_bytes(),
            ..SubrequestResponse::default()
        }));
        assert_eq!(word(&filter.on_request(&mut first)), expected);
        assert_eq!(word(&filter.on_request(&mut second)), expected);
        if expected == "continue" {
            for exchange in [first, second] {
                let headers = lines(&exchange.response_headers);
                assert!(headers.contains(&"Cost: 9".to_owned()), "{headers:?}");
            }
        }
    }
}

#[test]
fn costs_of_queries_are_checked() {
    let with = |graphql: Value| json!({"limits": [{"count": 1, "per": "minute"}], "graphql": graphql});
    let service = |service: Value| json!({"services": [service]});
    let url = json!({"url": "http://a/"});
    let services = |weights: &dyn Fn(usize) -> Value| -> Vec<Value> {
        let one = |it| json!({"service": format!("s{it}"), "introspection": url, "weights": weights(it)});
        (0..10_001).map(one).collect()
    };
    for (graphql, places) in [
        (json!({}), vec![]),
        (
            json!({"factor": 0, "header": "a b"}),
            vec!["graphql.factor", "graphql.header"],
        ),
        (
            service(json!({"weights": [{"path": "A.b"}]})),
            vec!["graphql.services"],
        ),
        (
            service(json!({"introspection": {"url": "ftp://a"}})),
            vec!["graphql.services"],
        ),
        (
            service(json!({"introspection": {"url": "http://a/", "host": "a\r\nb"}})),
            vec!["graphql.services"],
        ),
        (
            service(json!({"introspection": url, "weights": [{"path": "A..b"}]})),
            vec!["graphql.services"],
        ),
        (
            service(json!({"introspection": url, "weights": [{"path": "A.b", "add": -1}]})),
            vec!["graphql.services"],
        ),
        (
            service(json!({"introspection": url, "weights": [{"path": "A.b.c"}]})),
            vec![],
        ),
        // Of services with the same weights, one counts.
        (
            json!({"services": services(&|_| json!([{"path": "A.b"}]))}),
            vec![],
        ),
        (
            json!({"services": services(&|it| json!([{"path": "A.b", "add": it}]))}),
            vec!["graphql.services"],
        ),
    ] {
        assert_eq!(
            refused_at(&RateLimit::default(), &with(graphql.clone())),
            places,
            "{}",
            graphql.to_string().chars().take(200).collect::<String>()
        );
    }
}
