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

fn told(text: &str, rules: &str, base_path: Option<&str>) -> Vec<String> {
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
    let found = told(PETS, "extends: spectral:oas", Some("/v2"));
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
            "25:9 weir-response-without-schema",
            "29:3 path-params",
            "30:5 weir-operation-shadowed",
            "31:7 operation-operationId-unique",
            "34:19 oas3-operation-security-defined",
            "35:7 path-params",
            "36:68 typed-enum",
            "36:73 duplicated-entry-in-enum",
            "41:5 weir-security-scheme",
            "43:5 array-items",
            "43:5 oas3-unused-component",
        ]
    );
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
        assert_eq!(told(text, rules, None), expected, "{rules}");
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
        assert_eq!(told(text, &rule(then), None), expected, "{then}");
    }
}

#[test]
fn faults_of_a_severities_file_are_told_at_their_place() {
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
