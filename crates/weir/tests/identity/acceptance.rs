//! What plugins that recognise callers have to show, and the tests that show it: their files and names. They run here,
//! with real partners, and next to the plugins, where time and answers are chosen.

/// The points by their numbers, each with its tests.
const ACCEPTANCE: &[(&str, &[&str])] = &[
    (
        "1 a browser logs in and comes back",
        &[
            "openid browsers_log_in_at_a_real_provider_and_every_gateway_with_the_secret_knows_them",
            "openid apisix_renews_a_token_once_for_twenty_calls",
            "logins browsers_log_in_and_come_back_to_where_they_wanted_to_go",
            "bearer headers_of_a_client_are_removed_from_calls_that_are_not_looked_at",
        ],
    ),
    (
        "2 two tabs log in at once",
        &[
            "openid browsers_log_in_at_a_real_provider_and_every_gateway_with_the_secret_knows_them",
            "logins two_tabs_log_in_at_once",
        ],
    ),
    (
        "3 a second gateway knows the session by its secret",
        &["openid browsers_log_in_at_a_real_provider_and_every_gateway_with_the_secret_knows_them"],
    ),
    (
        "4 twenty calls cause one refresh",
        &[
            "openid apisix_renews_a_token_once_for_twenty_calls",
            "logins expired_tokens_are_renewed_once_for_all_calls",
        ],
    ),
    (
        "5 bearer tokens that are none",
        &[
            "openid apisix_takes_tokens_and_no_logins_with_bearer_only",
            "bearer bearer_tokens_are_checked_by_the_providers_keys",
            "bearer opaque_tokens_are_explained_by_the_provider",
            "apisix-openid options_are_translated",
        ],
    ),
    (
        "6 a provider that is down",
        &[
            "openid a_provider_that_is_down_stops_only_those_who_need_it",
            "bearer calls_are_refused_while_the_provider_is_down",
        ],
    ),
    (
        "7 new keys, and keys that are not known",
        &[
            "bearer tokens_of_a_new_key_pass_at_once",
            "bearer random_key_ids_cause_one_fetch",
        ],
    ),
    (
        "8 one introspection for a hundred calls",
        &[
            "bearer a_hundred_calls_with_one_token_cause_one_introspection",
            "bearer opaque_tokens_are_explained_by_the_provider",
        ],
    ),
    (
        "9 consumers by a claim",
        &[
            "openid kong_finds_consumers_by_a_claim",
            "bearer consumers_are_found_by_a_claim",
        ],
    ),
    (
        "10 random, moved and long cookies",
        &[
            "sealed random_cookies_never_open",
            "session-cookie cookies_are_good_for_their_audience_and_secret_only",
            "cookie long_values_are_cut_and_put_together",
        ],
    ),
    (
        "11 a session remembers who was recognised",
        &[
            "kong sessions_are_as_in_the_original",
            "session callers_that_were_recognised_are_remembered",
            "session logging_out_removes_the_cookie",
            "session a_copy_of_the_cookie_is_dead_after_the_logout",
        ],
    ),
    (
        "12 a directory",
        &[
            "directory users_of_a_directory_are_recognised",
            "kong groups_of_a_directory_reach_acl",
            "ldap groups_decide_and_are_forwarded",
            "ldap credentials_are_read_and_verdicts_are_kept",
            "ldap-ber names_cannot_leave_their_place",
        ],
    ),
    (
        "13 a policy agent",
        &[
            "opa a_real_agent_decides",
            "opa-answers headers_of_callers_are_replaced",
        ],
    ),
    (
        "14 client certificates",
        &[
            "mtls only_certificates_of_the_authority_are_good",
            "mtls revoked_certificates_are_refused",
            "certificates a_host_that_asks_for_certificates_is_met_by_its_own_name_only",
            "certificates a_plugin_asks_clients_of_its_own_names_only_and_takes_any_certificate",
        ],
    ),
    (
        "15 one token for all calls to an upstream",
        &[
            "upstream-oauth fifty_first_calls_cause_one_request",
            "upstream-oauth fifty_refused_calls_cause_one_more_request",
            "upstream-oauth one_token_serves_all_calls_until_the_upstream_refuses_it",
            "tries a_filter_has_a_refused_call_sent_once_more",
            "oauth calls_that_an_upstream_refuses_are_sent_once_more_with_one_new_token",
        ],
    ),
    (
        "16 forged answers of SAML",
        &[
            "saml-responses wrapped_assertions_are_refused",
            "saml-responses comments_cut_no_name_short",
            "saml-responses changed_messages_are_refused",
            "saml-responses what_is_not_for_this_request_place_and_time_is_refused",
            "saml an_answer_lets_one_browser_in_once",
        ],
    ),
    (
        "43 every name of a plugin is served, or refused with a reason",
        &[
            "names plugin_names_are_found_as_they_are_built",
            "names plugin_lists_are_up_to_date",
        ],
    ),
];

#[test]
fn every_acceptance_has_its_tests() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let authentication = format!("{root}/plugins-authentication/src");
    let mut numbers = (1..=16).chain([43]);
    for (what, tests) in ACCEPTANCE {
        let number = numbers.next().expect("no more than there are");
        assert!(what.starts_with(&format!("{number} ")), "{what}");
        assert!(!tests.is_empty(), "{what}");
        for test in *tests {
            let (file, name) = test.split_once(' ').expect("a file and a name");
            let path = match file {
                "logins" | "bearer" => format!("{authentication}/openid_connect/tests/{file}.rs"),
                "apisix-openid" => format!("{root}/apisix/src/plugins/openid_connect/mod.rs"),
                "session" => format!("{authentication}/session.rs"),
                "session-cookie" => format!("{authentication}/session_cookie.rs"),
                "upstream-oauth" => format!("{authentication}/upstream_oauth.rs"),
                "sealed" | "cookie" => format!("{root}/plugins-shared/src/{file}.rs"),
                "ldap" => format!("{authentication}/ldap_auth/tests.rs"),
                "ldap-ber" => format!("{authentication}/ldap_auth/ber.rs"),
                "opa-answers" => format!("{authentication}/opa/tests.rs"),
                "mtls" => format!("{authentication}/mtls_auth/tests.rs"),
                "certificates" => format!("{root}/proxy/tests/https/certificates.rs"),
                "saml-responses" => format!("{root}/saml/tests/responses.rs"),
                "tries" => format!("{root}/proxy/tests/traffic/tries.rs"),
                "names" => format!("{root}/tidy/tests/tidy/plugins.rs"),
                file => format!("{root}/weir/tests/identity/{file}.rs"),
            };
            let text = std::fs::read_to_string(&path).expect("a file");
            assert!(
                text.contains(&format!("fn {name}(")),
                "{what}: no test {name} in {path}"
            );
        }
    }
    assert_eq!(numbers.next(), None, "a point without a test");
}
