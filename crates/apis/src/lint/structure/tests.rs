//! Documents that are not as OpenAPI has them: what is found, and where.

use crate::lint::{Options, Ruleset, run};
use crate::openapi::read;

const V2: &str = "swagger: '2.0'\ninfo: {title: A, version: '1'}\n";
const V30: &str = "openapi: 3.0.3\ninfo: {title: A, version: '1'}\n";
const V31: &str = "openapi: 3.1.0\ninfo: {title: A, version: '1'}\n";
const V32: &str = "openapi: 3.2.0\ninfo: {title: A, version: '1'}\n";

/// What the two rules find: line, column and message.
fn found(text: &str) -> Vec<String> {
    let ruleset =
        Ruleset::parse("rules: {oas2-schema: true, oas3-schema: true}\nextends: [[spectral:oas, 'off']]")
            .expect("rules");
    let description = read(text).unwrap_or_else(|found| panic!("{text}: {found:?}"));
    run(text, &description, &ruleset, Options::default())
        .iter()
        .map(|it| {
            let position = it.position.expect("a position");
            format!("{}:{} {}", position.line, position.column, it.message)
        })
        .collect()
}

fn each_finds(rows: &[(&str, &str, &[&str])]) {
    let mut wrong = Vec::new();
    for (head, rest, expected) in rows {
        let found = found(&format!("{head}{rest}\n"));
        if found != *expected {
            wrong.push(format!("{rest}\n  found {found:#?}\n  expected {expected:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn heads_are_checked() {
    each_finds(&[
        (
            "openapi: 3.0.3\n",
            "info: {title: A}\npaths: {}",
            &["2:1 \"info\" property must have required property \"version\"."],
        ),
        (
            "openapi: 3.0.3\n",
            "info: {title: 1, version: 1.0}\npaths: {}",
            &[
                "2:8 \"title\" property must be string.",
                "2:18 \"version\" property must be string.",
            ],
        ),
        (
            "openapi: 3.1.0\n",
            "paths: {}",
            &["1:1 Object must have required property \"info\"."],
        ),
        (
            V30,
            "paths: {}\nservices: []\nx-mine: 1",
            &["4:1 Property \"services\" is not expected to be here."],
        ),
        (
            V30,
            "paths: {}\nwebhooks: {}",
            &["4:1 Property \"webhooks\" is not expected to be here: OpenAPI has it since 3.1."],
        ),
        (V31, "components: {}\nwebhooks: {}", &[]),
        (
            V30,
            "paths: {}\nservers: [https://a.test, {description: x}]",
            &[
                "4:11 Item 0 of \"servers\" must be object.",
                "4:27 Item 1 of \"servers\" must have required property \"url\".",
            ],
        ),
        (
            V30,
            "paths: {}\ntags: [{description: x}]\nsecurity: {key: []}",
            &[
                "4:8 Item 0 of \"tags\" must have required property \"name\".",
                "5:1 \"security\" property must be array.",
            ],
        ),
        (
            "openapi: 3.1.0\n",
            "info: {title: A, version: '1', license: {name: M, identifier: MIT, url: https://a.test}}\npaths: {}",
            &["2:68 Property \"url\" must not be next to \"identifier\"."],
        ),
        (
            "swagger: '2.0'\n",
            "info: {title: A}\npaths: {}\nschemes: [https, ftp]\nservers: []",
            &[
                "2:1 \"info\" property must have required property \"version\".",
                "4:18 Item 1 of \"schemes\" must be equal to one of the allowed values: \"http\", \"https\", \"ws\", \"wss\".",
                "5:1 Property \"servers\" is not expected to be here.",
            ],
        ),
    ]);
}

#[test]
fn operations_are_checked() {
    each_finds(&[
        (
            V30,
            "paths:\n  /a:\n    get: {summary: x}\n    fetch: {}",
            &[
                "5:5 \"get\" property must have required property \"responses\".",
                "6:5 Property \"fetch\" is not expected to be here.",
            ],
        ),
        (V31, "paths:\n  /a:\n    get: {summary: x}", &[]),
        (
            V32,
            "paths:\n  /a:\n    query: {summary: x}\n    additionalOperations: {COPY: {tags: x}}",
            &["6:35 \"tags\" property must be array."],
        ),
        (
            V30,
            "paths:\n  /a:\n    get:\n      parameters:\n        - {name: a, in: querry, schema: {type: string}}\n        - {in: query, schema: {}}\n        - {name: c, in: query}\n        - $ref: '#/components/parameters/p'\n        - {name: d, in: query, schema: {}, content: {}}\n      responses: {}\ncomponents:\n  parameters:\n    p: {name: p, in: query, schema: {}, typ: x}",
            &[
                "7:21 \"in\" property must be equal to one of the allowed values: \"query\", \"header\", \"path\", \"cookie\".",
                "8:11 Item 1 of \"parameters\" must have required property \"name\".",
                "9:11 Item 2 of \"parameters\" must have exactly one of \"schema\", \"content\".",
                "11:11 Item 4 of \"parameters\" must have exactly one of \"schema\", \"content\".",
                "15:41 Property \"typ\" is not expected to be here.",
            ],
        ),
        (
            V30,
            "paths:\n  /a:\n    put:\n      requestBody: {required: 'yes', schema: {}}\n      responses:\n        200: {content: {application/json: {shema: {}}}}\n        ok: {description: x}\n        2XX: {description: x, headers: {n: {type: string}}}\n        x-more: 1",
            &[
                "6:7 \"requestBody\" property must have required property \"content\".",
                "6:21 \"required\" property must be boolean.",
                "6:38 Property \"schema\" is not expected to be here.",
                "8:9 \"200\" property must have required property \"description\".",
                "8:44 Property \"shema\" is not expected to be here.",
                "9:9 Property \"ok\" is not expected to be here: expected a status code or \"default\".",
                "10:41 \"n\" property must have exactly one of \"schema\", \"content\".",
                "10:45 Property \"type\" is not expected to be here.",
            ],
        ),
        (
            V2,
            "paths:\n  /a:\n    post:\n      parameters: [{name: b, in: body}, {name: q, in: query}, {name: c, in: cookie, type: string}]\n      responses: {200: {}, 2XX: {description: x}}",
            &[
                "6:20 Item 0 of \"parameters\" must have required property \"schema\".",
                "6:41 Item 1 of \"parameters\" must have required property \"type\".",
                "6:73 \"in\" property must be equal to one of the allowed values: \"query\", \"header\", \"path\", \"formData\", \"body\".",
                "7:19 \"200\" property must have required property \"description\".",
                "7:28 Property \"2XX\" is not expected to be here: expected a status code or \"default\".",
            ],
        ),
        (
            V30,
            "paths:\n  /a:\n    post:\n      responses: {200: {description: x, links: {l: {parameters: {a: 1}}}}}\n      callbacks:\n        done: {'{$url}': {post: {responses: []}}, x-a: 1}\n        there: {$ref: '#/components/callbacks/c'}\ncomponents: {callbacks: {c: {}}}",
            &[
                "6:49 \"l\" property must have exactly one of \"operationRef\", \"operationId\".",
                "8:34 \"responses\" property must be object.",
            ],
        ),
    ]);
}

#[test]
fn schemas_are_checked_in_the_words_of_their_version() {
    each_finds(&[
        (
            V30,
            "paths: {}\ncomponents:\n  schemas:\n    A: {type: strng}\n    B: {type: [string, 'null'], const: 1}\n    C: {type: object, required: true, properties: {a: {typo: 1}, default: {type: 1}, b: true}}\n    D: {maxLength: -1, minimum: '1', exclusiveMinimum: 1, required: []}\n    E: {$ref: 1}\n    F: {additionalProperties: false, example: {type: strng}, default: {type: 1}, enum: [{type: 1}]}\n    G h: {}",
            &[
                "6:9 \"type\" property must be equal to one of the allowed values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\".",
                "7:9 \"type\" property must be string.",
                "7:33 Property \"const\" is not expected to be here.",
                "8:23 \"required\" property must be array.",
                "8:56 Property \"typo\" is not expected to be here.",
                "8:76 \"type\" property must be string.",
                "8:86 \"b\" property must be object.",
                "9:9 \"maxLength\" property must be an integer from 0.",
                "9:24 \"minimum\" property must be number.",
                "9:38 \"exclusiveMinimum\" property must be boolean.",
                "9:59 \"required\" property must not have fewer than 1 items.",
                "10:9 \"$ref\" property must be string.",
                "12:5 Property \"G h\" is not expected to be here: a name has letters, digits, \".\", \"-\" and \"_\".",
            ],
        ),
        (
            V31,
            "components:\n  schemas:\n    A: {type: [string, strng]}\n    B: {$ref: '#/components/schemas/A', minimum: true, words: 1}\n    C: true\n    D: {items: {type: strng}, allOf: [], const: {type: 1}, examples: [{type: 1}]}\n    E: {prefixItems: [false, 1], if: {then: 1}, discriminator: {mapping: {a: 1}}}",
            &[
                "5:24 Item 1 of \"type\" must be equal to one of the allowed values: \"array\", \"boolean\", \"integer\", \"null\", \"number\", \"object\", \"string\".",
                "6:41 \"minimum\" property must be number.",
                "8:17 \"type\" property must be equal to one of the allowed values: \"array\", \"boolean\", \"integer\", \"null\", \"number\", \"object\", \"string\".",
                "8:31 \"allOf\" property must not have fewer than 1 items.",
                "9:30 Item 1 of \"prefixItems\" must be object.",
                "9:39 \"then\" property must be object.",
                "9:49 \"discriminator\" property must have required property \"propertyName\".",
                "9:75 \"a\" property must be string.",
            ],
        ),
        (
            V2,
            "paths: {}\ndefinitions:\n  A: {type: file, discriminator: {propertyName: a}}\n  B: {nullable: true, items: [{type: strng}]}",
            &[
                "5:19 \"discriminator\" property must be string.",
                "6:7 Property \"nullable\" is not expected to be here.",
                "6:32 \"type\" property must be equal to one of the allowed values: \"array\", \"boolean\", \"integer\", \"null\", \"number\", \"object\", \"string\", \"file\".",
            ],
        ),
    ]);
}

#[test]
fn security_schemes_are_checked() {
    each_finds(&[
        (
            V30,
            "paths: {}\ncomponents:\n  securitySchemes:\n    a: {type: apiKey, in: body}\n    b: {type: http}\n    c: {type: oauth2, flows: {clientCredentials: {scopes: []}}}\n    d: {type: openIdConnect}\n    e: {type: mutualTLS}",
            &[
                "6:5 \"a\" property must have required property \"name\".",
                "6:23 \"in\" property must be equal to one of the allowed values: \"query\", \"header\", \"cookie\".",
                "7:5 \"b\" property must have required property \"scheme\".",
                "8:31 \"clientCredentials\" property must have required property \"tokenUrl\".",
                "8:51 \"scopes\" property must be object.",
                "9:5 \"d\" property must have required property \"openIdConnectUrl\".",
                "10:9 \"type\" property must be equal to one of the allowed values: \"apiKey\", \"http\", \"oauth2\", \"openIdConnect\".",
            ],
        ),
        (V31, "components: {securitySchemes: {e: {type: mutualTLS}}}", &[]),
        (
            V2,
            "paths: {}\nsecurityDefinitions: {a: {type: oauth2, flow: application, scopes: {}}}",
            &["4:23 \"a\" property must have required property \"tokenUrl\"."],
        ),
    ]);
}

/// Much that is wrong does not take the room of what other rules find.
#[test]
fn findings_are_bounded() {
    let wrong: Vec<String> = (0..2_000).map(|it| format!("w{it}: 1")).collect();
    let text = format!("{V30}paths: {{}}\n{}\n", wrong.join("\n"));
    assert_eq!(found(&text).len(), super::MAX_FINDINGS);
    let description = read(&text).expect("a description");
    let all = run(&text, &description, &Ruleset::default(), Options::default());
    assert!(
        all.iter().any(|it| it.rule == "oas3-api-servers"),
        "{}",
        all.len()
    );
    // And matters of taste do not take theirs.
    let bare: Vec<String> = (0..2_000).map(|it| format!("  /p{it}: {{get: {{}}}}")).collect();
    let text = format!("{V30}paths:\n{}\n", bare.join("\n"));
    let description = read(&text).expect("a description");
    let all = run(&text, &description, &Ruleset::default(), Options::default());
    let of_form = all.iter().filter(|it| it.rule == "oas3-schema").count();
    assert_eq!((all.len(), of_form), (1_000, super::MAX_FINDINGS));
}

/// Ones that people have are good: they are of the size and kind that the tables are for.
#[test]
fn good_documents_of_each_version_have_no_findings() {
    for text in [
        include_str!("good/v2.yaml"),
        include_str!("good/v3_0.yaml"),
        include_str!("good/v3_1.yaml"),
        include_str!("good/v3_2.yaml"),
        // Weir's own.
        include_str!("../../../../../docs/schema/api.openapi.json"),
        include_str!("../../../../../docs/schema/portal.openapi.json"),
    ] {
        assert_eq!(found(text), Vec::<String>::new());
    }
}
