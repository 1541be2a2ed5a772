//! Findings of rules, with their lines and columns, and severities files.

use super::*;
use crate::openapi::read;

const PETS: &str = r#"openapi: 3.1.0
info: {title: Pets, version: '1'}
servers:
  - url: https://api.example.com/v1/
tags: [{name: pets}, {name: pets}]
paths:
  /pets/{id}:
    get:
      operationId: get pet
      tags: [cats]
      responses:
        '404': {description: gone}
    put:
      operationId: putPet
      tags: [pets]
      description: <script>
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
      requestBody:
        content:
          application/json:
            schema: {type: object, required: [name]}
            example: {age: 1}
      responses:
        '200':
          description: ok
          content:
            application/json: {}
  /pets/{name}:
    put:
      operationId: putPet
      tags: [pets]
      description: the same
      security: [{key: []}]
      parameters:
        - {name: name, in: path, schema: {type: integer, enum: [1, 'a', 1]}}
      responses:
        default: {description: ok}
components:
  securitySchemes:
    other: {type: apiKey, in: header, name: x}
  schemas:
    Unused: {type: array}
"#;

fn findings_of(text: &str, rules: &str, base_path: Option<&str>) -> Vec<String> {
    let ruleset = Ruleset::parse(rules).expect("rules");
    let description = read(text).expect("a description");
    let findings = run(text, &description, &ruleset, Options { base_path });
    findings
        .iter()
        .map(|it| {
            let position = it.position.expect("a position");
            format!("{}:{} {}", position.line, position.column, it.rule)
        })
        .collect()
}

#[test]
fn findings_have_spectrals_names_and_their_places() {
    let found = findings_of(PETS, "extends: spectral:oas", Some("/v2"));
    assert_eq!(
        found,
        [
            "2:1 info-contact",
            "2:1 info-description",
            "4:5 oas3-server-trailing-slash",
            "4:5 weir-servers-base-path",
            "5:23 openapi-tags-uniqueness",
            "8:5 path-params",
            "8:5 operation-description",
            "9:7 operation-operationId-valid-in-url",
            "10:14 operation-tag-defined",
            "11:7 operation-success-response",
            "16:7 no-script-tags-in-markdown",
            "23:13 oas3-valid-media-example",
            "28:13 weir-response-without-schema",
            "29:3 path-params",
            "30:5 weir-operation-shadowed",
            "31:7 operation-operationId-unique",
            "34:19 oas3-operation-security-defined",
            "36:11 path-params",
            "36:68 typed-enum",
            "36:73 duplicated-entry-in-enum",
            "41:5 weir-security-scheme",
            "43:5 array-items",
            "43:5 oas3-unused-component",
        ]
    );
}

/// Each finding is at the very field that it is about, wherever that is written.
#[test]
fn places_are_those_of_the_field() {
    let v3 = "openapi: 3.0.3\ninfo: {title: A, version: '1'}\n";
    let v2 = "swagger: '2.0'\ninfo: {title: A, version: '1'}\n";
    each_finds(&[
        // Behind references: of a response, of a parameter, of a whole path.
        (
            v3,
            "paths:\n  /a:\n    get: {responses: {200: {$ref: '#/components/responses/r'}}}\ncomponents:\n  responses:\n    r:\n      description: ok\n      content:\n        application/json: {schema: {type: string}, example: 1}",
            "oas3-valid-media-example",
            &["11:52"],
        ),
        (
            v3,
            "paths:\n  /a:\n    parameters:\n      - {name: ok, in: query, schema: {type: string}}\n      - {$ref: '#/components/parameters/p'}\n    get:\n      parameters: [{name: q, in: query, schema: {type: string}, example: 1}]\n      responses: {}\ncomponents:\n  parameters:\n    p: {name: p, in: query, schema: {type: string}, example: 1}",
            "oas3-valid-media-example",
            &["9:65", "13:53"],
        ),
        (
            v3,
            "paths:\n  /a: {$ref: '#/x-shared'}\nx-shared:\n  get:\n    tags: [none]",
            "operation-tag-defined",
            &["7:12"],
        ),
        (
            v3,
            "paths:\n  /a/{id}:\n    get:\n      parameters:\n        - {name: q, in: query}\n        - {name: id, in: path, required: false}\n        - {name: x, in: path, required: true}",
            "path-params",
            &["8:32", "9:12"],
        ),
        (
            v3,
            "paths:\n  /a:\n    get:\n      parameters:\n        - {name: q, in: query, description: x}\n        - {name: r, in: query}\n        - {name: s, in: query, description: ''}",
            "oas3-parameter-description",
            &["8:11", "9:32"],
        ),
        (
            v3,
            "paths:\n  /a{x}{y}:\n    get: {}\n    put: {}",
            "weir-path-parameter",
            &["4:3"],
        ),
        (
            "openapi: 3.0.3\n",
            "info:\n  title: A\n  description: ''\npaths: {}",
            "info-description",
            &["4:3"],
        ),
        (v3, "servers: []\npaths: {}", "oas3-api-servers", &["3:1"]),
        (
            v3,
            "tags:\n  - name: b\n  - name: a\npaths: {}",
            "openapi-tags-alphabetical",
            &["5:5"],
        ),
        // What 2.0 writes elsewhere.
        (
            v2,
            "paths: {}\nsecurityDefinitions:\n  k: {type: basic}",
            "weir-security-scheme",
            &["5:3"],
        ),
        (
            v2,
            "paths:\n  /a:\n    post:\n      parameters:\n        - {name: b, in: body, schema: {}}\n        - {name: id, in: path, type: string}",
            "path-params",
            &["8:12"],
        ),
    ]);
    let found = findings_of(
        &format!("{v2}host: a.test\nbasePath: /v1\npaths: {{}}\n"),
        "rules: {weir-servers-base-path: error}\nextends: [[spectral:oas, 'off']]",
        Some("/v2"),
    );
    assert_eq!(found, ["4:1 weir-servers-base-path"]);
}

#[test]
fn severities_files_turn_rules_on_and_off() {
    let text = "openapi: 3.1.0\ninfo: {title: A, version: '1'}\npaths: {}\n";
    for (rules, expected) in [
        (
            "extends: spectral:oas",
            vec!["1:1 oas3-api-servers", "2:1 info-contact", "2:1 info-description"],
        ),
        ("extends: [[spectral:oas, off]]", vec![]),
        (
            "extends: [[spectral:oas, 'off']]\nrules: {info-license: true, info-contact: error}",
            vec!["2:1 info-contact", "2:1 info-license"],
        ),
        (
            "extends: spectral:oas\nrules: {info-contact: 'off', info-description: false, oas3-api-servers: hint}",
            vec!["1:1 oas3-api-servers"],
        ),
        ("rules: {openapi-tags: warn}", vec!["1:1 openapi-tags"]),
    ] {
        assert_eq!(findings_of(text, rules, None), expected, "{rules}");
    }
}

#[test]
fn rules_of_ones_own_are_read() {
    let text = "openapi: 3.1.0\ninfo: {title: my api, version: '1'}\npaths:\n  /Pets:\n    get: {operationId: ListPets, x-owner: shop}\n  /a:\n    get: {operationId: listA}\n";
    let rule = |then: &str| format!("rules:\n  mine: {{given: {then}}}\n");
    for (then, expected) in [
        (
            "$.info, then: {field: title, function: pattern, functionOptions: {match: '^[A-Z]'}}",
            vec!["2:8 mine"],
        ),
        (
            "'$.paths[*].get', then: {field: x-owner, function: truthy}",
            vec!["7:5 mine"],
        ),
        (
            "'$.paths[*].get', then: {field: x-owner, function: falsy}",
            vec!["5:34 mine"],
        ),
        (
            "'$.paths[*][*].operationId', then: {function: casing, functionOptions: {type: camel}}",
            vec!["5:11 mine"],
        ),
        (
            "$.paths, then: {field: '@key', function: pattern, functionOptions: {notMatch: '[A-Z]'}}",
            vec!["4:3 mine"],
        ),
        (
            "$.info.title, then: {function: length, functionOptions: {max: 3}}",
            vec!["2:8 mine"],
        ),
        (
            "$.info.version, then: {function: enumeration, functionOptions: {values: ['2']}}",
            vec!["2:23 mine"],
        ),
        (
            "$.info, then: {function: schema, functionOptions: {schema: {required: [license]}}}",
            vec!["2:1 mine"],
        ),
        (
            "[$.info], then: [{field: license, function: undefined}, {field: title, function: defined}]",
            vec![],
        ),
        (
            "$.info, severity: 'off', then: {field: license, function: truthy}",
            vec![],
        ),
    ] {
        assert_eq!(findings_of(text, &rule(then), None), expected, "{then}");
    }
}

/// A name that stands twice is an error with its place, in JSON and in YAML, unless the severities file says otherwise.
#[test]
fn names_that_stand_twice_are_found() {
    for (text, place) in [
        (
            "{\"openapi\": \"3.1.0\", \"info\": {\"title\": \"A\", \"version\": \"1\"},\n \"paths\": {\"/a\": {}, \"/a\": {}}}",
            "2:22 parser",
        ),
        (
            "openapi: 3.1.0\ninfo: {title: A, version: '1'}\npaths:\n  /a: {}\n  /a: {}\n",
            "5:3 parser",
        ),
    ] {
        assert!(
            findings_of(text, "extends: spectral:oas", None).contains(&place.to_owned()),
            "{text}"
        );
        assert_eq!(
            findings_of(text, "rules: {parser: warn}", None),
            [place],
            "{text}"
        );
        assert!(
            !findings_of(text, "extends: spectral:oas\nrules: {parser: 'off'}", None)
                .contains(&place.to_owned())
        );
    }
}

/// The names of Spectral's set. A file that sets one of them is read.
const SPECTRAL: &str = "operation-success-response oas2-operation-formData-consume-check operation-operationId-unique
    operation-parameters operation-tag-defined path-params contact-properties duplicated-entry-in-enum info-contact
    info-description info-license license-url no-eval-in-markdown no-script-tags-in-markdown openapi-tags-alphabetical
    openapi-tags-uniqueness openapi-tags operation-description operation-operationId operation-operationId-valid-in-url
    operation-singular-tag operation-tags path-declarations-must-exist path-keys-no-trailing-slash path-not-include-query
    tag-description no-$ref-siblings array-items typed-enum oas2-api-host oas2-api-schemes oas2-discriminator
    oas2-host-not-example oas2-host-trailing-slash oas2-parameter-description oas2-operation-security-defined
    oas2-valid-schema-example oas2-valid-media-example oas2-anyOf oas2-oneOf oas2-schema oas2-unused-definition
    oas3-api-servers oas3-examples-value-or-externalValue oas3-operation-security-defined oas3-parameter-description
    oas3-server-not-example.com oas3-server-trailing-slash oas3-valid-media-example oas3-valid-schema-example oas3-schema
    oas3-unused-component oas3-links-parameters-expression oas3-server-variables oas3-callbacks-in-callbacks
    oas3_1-servers-in-webhook oas3_1-callbacks-in-webhook oas3_2-no-deprecated-xml-attribute";

#[test]
fn every_rule_of_spectral_is_known() {
    let known = rule_names();
    for name in SPECTRAL.split_whitespace() {
        assert!(known.contains(&name), "{name}");
    }
    assert_eq!(
        known.len(),
        SPECTRAL.split_whitespace().count() + 7,
        "and the gateway's own"
    );
}

/// Of each row one rule alone, over a document: what it finds, and where.
fn each_finds(rows: &[(&str, &str, &str, &[&str])]) {
    let mut wrong = Vec::new();
    for (head, rest, rule, expected) in rows {
        let rules = format!("rules: {{{rule}: error}}");
        let expected: Vec<String> = expected.iter().map(|it| format!("{it} {rule}")).collect();
        let found = findings_of(&format!("{head}{rest}\n"), &rules, None);
        if found != expected {
            wrong.push(format!("{found:?}, expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rules_of_version_2_find_what_they_are_for() {
    let v2 = "swagger: '2.0'\ninfo: {title: A, version: '1'}\n";
    each_finds(&[
        (
            v2,
            "host: api.example.com\npaths: {}",
            "oas2-host-not-example",
            &["3:1"],
        ),
        (
            v2,
            "host: a.test/\npaths: {}",
            "oas2-host-trailing-slash",
            &["3:1"],
        ),
        (
            v2,
            "paths:\n  /a:\n    post: {parameters: [{name: f, in: formData, type: file}], responses: {}}\n    put: {consumes: [multipart/form-data], parameters: [{name: f, in: formData, type: file}], responses: {}}",
            "oas2-operation-formData-consume-check",
            &["5:5"],
        ),
        (
            v2,
            "paths: {}\ndefinitions:\n  A: {discriminator: kind, properties: {kind: {type: string}}, required: [kind]}\n  B: {discriminator: kind}",
            "oas2-discriminator",
            &["6:7", "6:7"],
        ),
        (
            v2,
            "paths: {}\ndefinitions:\n  A: {anyOf: []}\n  B: {oneOf: []}",
            "oas2-anyOf",
            &["5:7"],
        ),
        (
            v2,
            "paths: {}\ndefinitions:\n  A: {anyOf: []}\n  B: {oneOf: []}",
            "oas2-oneOf",
            &["6:7"],
        ),
        (
            v2,
            "paths: {}\ndefinitions:\n  A: {type: string}\n  B: {items: {$ref: '#/definitions/A'}}",
            "oas2-unused-definition",
            &["6:3"],
        ),
        (
            v2,
            "paths:\n  /a:\n    get:\n      parameters: [{name: n, in: query, type: integer, default: x}]\n      responses: {}\ndefinitions:\n  A: {type: string, example: 1}\n  B: {$ref: '#/definitions/A'}",
            "oas2-valid-schema-example",
            &["6:56", "9:21"],
        ),
        (
            v2,
            "paths:\n  /a:\n    get:\n      responses:\n        200:\n          schema: {$ref: '#/definitions/A'}\n          examples:\n            application/json: 1\ndefinitions:\n  A: {type: string}",
            "oas2-valid-media-example",
            &["10:13"],
        ),
    ]);
}

#[test]
fn rules_of_version_3_find_what_they_are_for() {
    let v3 = "openapi: 3.1.0\ninfo: {title: A, version: '1'}\n";
    let v32 = "openapi: 3.2.0\ninfo: {title: A, version: '1'}\npaths: {}\n";
    each_finds(&[
        (
            v3,
            "paths: {}\ncomponents:\n  examples:\n    a: {value: 1}\n    b: {summary: x}\n    c: {value: 1, externalValue: y}",
            "oas3-examples-value-or-externalValue",
            &["7:5", "8:5"],
        ),
        (
            v3,
            "paths: {}\ncomponents:\n  schemas:\n    A: {type: object, properties: {example: {type: string, default: 1}, n: {type: [integer, 'null'], default: null}}}\n    B: {$ref: '#/components/schemas/C', default: x}\n    C: {type: integer, example: 2}",
            "oas3-valid-schema-example",
            &["6:60", "7:41"],
        ),
        (
            "openapi: 3.0.3\ninfo: {title: A, version: '1'}\n",
            "paths: {}\ncomponents:\n  schemas:\n    A: {type: object, properties: {a: {type: string, nullable: true}}, example: {a: null}}\n    B: {type: string, nullable: true, default: null}",
            "oas3-valid-schema-example",
            &[],
        ),
        (
            v3,
            "servers:\n  - url: https://{region}.test/{v}\n    variables:\n      region: {enum: [eu], default: us}\n      other: {}\npaths: {}",
            "oas3-server-variables",
            &["4:5", "6:7", "7:7", "7:7"],
        ),
        (
            v3,
            "paths:\n  /a:\n    get:\n      responses:\n        200:\n          links:\n            next:\n              parameters: {id: $response.body#/id, bad: $answer.x, text: plain}",
            "oas3-links-parameters-expression",
            &["10:52"],
        ),
        (
            v3,
            "paths:\n  /a:\n    get:\n      callbacks: {done: {'{$url}': {post: {callbacks: {}}}}}",
            "oas3-callbacks-in-callbacks",
            &["6:44"],
        ),
        (
            v3,
            "webhooks:\n  w:\n    post: {servers: [], callbacks: {}}",
            "oas3_1-servers-in-webhook",
            &["5:12"],
        ),
        (
            v3,
            "webhooks:\n  w:\n    post: {servers: [], callbacks: {}}",
            "oas3_1-callbacks-in-webhook",
            &["5:25"],
        ),
        (
            v32,
            "components:\n  schemas:\n    A: {xml: {attribute: true}}",
            "oas3_2-no-deprecated-xml-attribute",
            &["6:15"],
        ),
    ]);
}

#[test]
fn rules_as_people_have_them_are_read() {
    let mut wrong = Vec::new();
    let text = "openapi: 3.1.0\ninfo: {title: my api, version: '1'}\npaths:\n  /pet_list:\n    get: {operationId: list_pets, parameters: [{$ref: '#/components/parameters/p'}]}\ncomponents:\n  parameters:\n    p: {name: p, in: query}\n";
    for (rules, expected) in [
        // Flags of JavaScript.
        (
            "r: {given: $.info.title, then: {function: pattern, functionOptions: {match: '/^MY/i'}}}",
            vec![],
        ),
        (
            "r: {given: $.info.title, then: {function: pattern, functionOptions: {match: '/^MY/'}}}",
            vec!["2:8 r"],
        ),
        (
            "r: {given: $.info.title, then: {function: pattern, functionOptions: {notMatch: /api/}}}",
            vec!["2:8 r"],
        ),
        // Names of fields.
        (
            "r: {given: '$.paths[*]~', then: {function: pattern, functionOptions: {match: '^/[a-z-]+$'}}}",
            vec!["4:3 r"],
        ),
        // What is referred to.
        (
            "r: {given: '$.paths[*][*].parameters[*]', then: {field: name, function: defined}}",
            vec![],
        ),
        (
            "r: {given: '$.paths[*][*].parameters[*]', resolved: false, then: {field: name, function: defined}}",
            vec!["5:48 r"],
        ),
        // Other versions, and rules for a whole set only.
        (
            "r: {given: $.info, formats: [oas2], then: {field: x, function: defined}}",
            vec![],
        ),
        (
            "r: {given: $.info, formats: [oas3], then: {field: x, function: defined}}",
            vec!["2:1 r"],
        ),
        (
            "r: {given: $.info, formats: [oas3.0], then: {field: x, function: defined}}",
            vec![],
        ),
        (
            "r: {given: $.info, recommended: false, then: {field: x, function: defined}}",
            vec![],
        ),
        // Casings.
        (
            "r: {given: '$.paths[*].get.operationId', then: {function: casing, functionOptions: {type: flat, separator: {char: _}}}}",
            vec![],
        ),
        (
            "r: {given: $.info.version, then: {function: casing, functionOptions: {type: flat}}}",
            vec!["2:23 r"],
        ),
        (
            "r: {given: $.info.title, then: {function: casing, functionOptions: {type: camel, separator: {char: ' '}}}}",
            vec![],
        ),
        // Orders and choices.
        ("r: {given: $.info, then: {function: alphabetical}}", vec![]),
        ("r: {given: $, then: {function: alphabetical}}", vec!["1:1 r"]),
        (
            "r: {given: $.info, then: {function: xor, functionOptions: {properties: [title, version]}}}",
            vec!["2:1 r"],
        ),
        (
            "r: {given: $.info, then: {function: or, functionOptions: {properties: [title, summary]}}}",
            vec![],
        ),
    ] {
        let found = findings_of(text, &format!("rules:\n  {rules}\n"), None);
        if found != expected {
            wrong.push(format!("{rules}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let with_aliases = "aliases:\n  Path: ['$.paths[*]']\n  Operation: ['#Path[get,put]']\n  Loop: ['#Loop']\nrules:\n  r:\n    given: '#Operation.operationId'\n    description: names\n    message: '{{description}}: {{value}}'\n    then: {function: casing, functionOptions: {type: kebab}}\n";
    let description = read(text).expect("a description");
    // JSONPath of RFC 9535 has no names without quotes in brackets.
    let quoted = with_aliases.replace("[get,put]", "[\"get\",\"put\"]");
    let ruleset = Ruleset::parse(&quoted).expect("rules");
    let found = run(text, &description, &ruleset, Options::default());
    assert_eq!(found[0].message, "names: \"list_pets\"");
    let wrong = Ruleset::parse(&quoted.replace("#Operation.", "#Loop.")).expect_err("refused");
    assert!(wrong[0].message.contains("there is no alias 'Loop'"), "{wrong:?}");
}

#[test]
fn faults_of_a_severities_file_are_reported_at_their_place() {
    for (rules, line, part) in [
        ("extends: [other.yaml]", 1, "other rule sets are not fetched"),
        (
            "extends: [[spectral:oas, most]]",
            1,
            "'recommended', 'all' or 'off'",
        ),
        ("a: 1", 1, "'a' is not read"),
        (
            "rules:\n  no-such-rule: error",
            2,
            "no rule is named 'no-such-rule'",
        ),
        ("rules:\n  info-contact: loud", 2, "expected 'off'"),
        (
            "rules:\n  x:\n    given: $[\n    then: {function: truthy}",
            3,
            "not a JSONPath",
        ),
        (
            "rules:\n  x:\n    given: $\n    then: {function: magic}",
            4,
            "no function is named 'magic'",
        ),
        ("rules:\n  x: {given: $}", 2, "expected 'given' and 'then'"),
        ("a: [", 2, "not YAML"),
    ] {
        let found = Ruleset::parse(rules).expect_err(rules);
        let position = found[0].position.expect("a position");
        assert!(
            position.line == line && found[0].message.contains(part),
            "{rules}: {found:?}"
        );
    }
    // What is turned off may have any name.
    assert!(Ruleset::parse("rules: {asyncapi-tags: 'off'}").is_ok());
}

#[test]
fn reports_for_build_servers_are_well_formed() {
    let found = Finding::error("a<b", weir_model::DocPath::root(), "say \"x\" & y")
        .at(crate::Position { line: 2, column: 3 });
    let report = junit("pets.yaml", &[found], Level::Error);
    assert_eq!(
        report,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"1\" failures=\"1\">\n  <testsuite name=\"pets.yaml\" tests=\"1\" failures=\"1\" errors=\"0\">\n    <testcase name=\"a&lt;b pets.yaml:2:3\" classname=\"pets.yaml\"><failure message=\"say &quot;x&quot; &amp; y\">2:3: error: say &quot;x&quot; &amp; y (a&lt;b)</failure></testcase>\n  </testsuite>\n</testsuites>\n"
    );
    assert!(junit("a", &[], Level::Warn).contains("<testcase name=\"lint\""));
}

#[test]
fn places_that_take_too_long_are_reported_and_not_looked_for() {
    // Maps within maps, so that many ways lead to each value.
    let nested = "{a: {a: {a: {a: {a: ".repeat(12);
    let text = format!(
        "openapi: 3.1.0\ninfo: {{title: T, version: '1'}}\npaths: {{}}\nx-deep: {nested}1{}\n",
        "}".repeat(60)
    );
    let rules = "rules:\n  costly:\n    given: '$..*..*..*..*..*..*..*..*'\n    then: {function: truthy}\n  cheap:\n    given: $.info\n    then: {field: contact, function: truthy}\n";
    let description = read(&text).expect("readable");
    let ruleset = Ruleset::parse(rules).expect("good");
    let found = run(&text, &description, &ruleset, Options::default());
    let levels: Vec<_> = found.iter().map(|it| (it.rule.as_str(), it.level)).collect();
    assert_eq!(levels.len(), 2, "{found:?}");
    assert!(levels.contains(&("cheap", Level::Warn)), "{levels:?}");
    let costly = found.iter().find(|it| it.rule == "costly").expect("told");
    assert!(
        costly.level == Level::Error && costly.message.contains("not checked at"),
        "{costly:?}"
    );
}
