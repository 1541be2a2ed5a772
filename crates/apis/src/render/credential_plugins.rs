//! How callers are recognised: the plugin of each kind of plan, and the credentials that it looks at.

use super::Renderer;
use crate::entities::{Credential, CredentialKind, Plan, PlanSecurity, Subscription, TokenCheck};
use serde_json::{Value, json};

/// In which scope credentials of a plan count that an application has: its client id and its certificates may lead to
/// several of its subscriptions.
fn scope(target: &str, plan: &str) -> String {
    format!("{target}/{plan}")
}

/// The scope of a subscription.
pub(super) fn scope_of(subscription: &Subscription) -> String {
    scope(&subscription.target(), &subscription.plan)
}

impl Renderer<'_> {
    /// The scope of a plan here. A product's is the same in all of its publications.
    fn scope(&self, plan: &Plan) -> String {
        match plan.product.as_str() {
            "" => scope(&self.input.publication.id(), &plan.name),
            product => {
                let name = plan.name.rsplit('.').next().unwrap_or_default();
                scope(&format!("{}{product}", crate::entities::PRODUCTS), name)
            }
        }
    }

    /// The plugin that recognises callers of a plan, with its configuration.
    pub(super) fn way(&self, plan: &Plan) -> (&'static str, Value) {
        match plan.security {
            PlanSecurity::Keyless | PlanSecurity::Key => (
                "key-auth",
                json!({ "locations": self.key_places(), "strip": "found" }),
            ),
            PlanSecurity::Jwt => ("jwt", json!({ "required_claims": ["exp"] })),
            PlanSecurity::Basic => ("basic-auth", json!({ "strip": true })),
            PlanSecurity::Hmac => ("hmac-auth", signatures(plan)),
            PlanSecurity::Oauth2 => ("openid-connect", tokens(plan, &self.scope(plan))),
            PlanSecurity::Mtls => {
                let authorities = plan.mtls.as_ref().map_or(&[][..], |it| &it.authorities);
                let config = json!({ "registered": self.scope(plan), "authorities": authorities });
                ("mtls-auth", config)
            }
        }
    }
}

/// The time and what is called are always signed, so that a call is good for a short time, and for nothing else.
fn signatures(plan: &Plan) -> Value {
    let settings = plan.hmac.clone().unwrap_or_default();
    let mut headers = vec!["date".to_owned(), "@request-target".to_owned()];
    headers.extend(settings.headers.iter().map(|it| it.to_lowercase()));
    if settings.check_body {
        headers.push("digest".to_owned());
    }
    json!({
        "required_headers": headers,
        "algorithms": ["hmac-sha256", "hmac-sha384", "hmac-sha512"],
        "check_body": settings.check_body,
        "strip": true,
    })
}

/// Makes a way by signatures ask for what another one asks for, too.
pub(super) fn tighten(known: &mut Value, other: &Value) {
    let added = other["required_headers"].as_array().cloned().unwrap_or_default();
    if let Some(headers) = known["required_headers"].as_array_mut() {
        for header in added {
            if !headers.contains(&header) {
                headers.push(header);
            }
        }
    }
    if other["check_body"] == true {
        known["check_body"] = true.into();
    }
}

fn tokens(plan: &Plan, scope: &str) -> Value {
    let settings = plan.oauth2.clone().unwrap_or_default();
    let mut client = json!({ "scope": scope });
    if !settings.client_claims.is_empty() {
        client["claims"] = json!(settings.client_claims);
    }
    let mut config = json!({
        "discovery": settings.discovery,
        "client_id": if settings.client_id.is_empty() { "weir" } else { &settings.client_id },
        "methods": [match settings.check { TokenCheck::Jwks => "bearer", TokenCheck::Introspection => "introspection" }],
        "unauthenticated": "refuse",
        "client": client,
        "upstream_headers": [],
    });
    for (field, value) in [
        ("client_secret", &settings.client_secret),
        ("introspection_endpoint", &settings.introspection_endpoint),
    ] {
        if !value.is_empty() {
            config[field] = value.as_str().into();
        }
    }
    let mut required = json!({ "audiences": settings.audiences, "access_token": true });
    if !settings.scopes.is_empty() {
        // One alternative, of which all words have to be there.
        required["scopes"] = json!([settings.scopes.join(" ")]);
    }
    config["required"] = required;
    config
}

/// A credential as a consumer has it. `scope` is that of its subscription.
pub(super) fn credential(known: &Credential, scope: &str) -> Value {
    let (plugin, config) = match known.kind {
        CredentialKind::Key => ("key-auth", json!({ "key_sha256": known.hash })),
        CredentialKind::Jwt => {
            let jwt = known.jwt.clone().unwrap_or_default();
            let config =
                json!({ "key": jwt.issuer, "algorithm": jwt.algorithm, "public_key": jwt.public_key });
            ("jwt", config)
        }
        CredentialKind::Basic => (
            "basic-auth",
            json!({ "username": known.name, "password_sha256": known.hash }),
        ),
        CredentialKind::Hmac => ("hmac-auth", json!({ "key": known.name, "secret": known.secret })),
        CredentialKind::Oauth2 => (
            "openid-connect",
            json!({ "scope": scope, "client_id": known.name }),
        ),
        CredentialKind::Mtls => ("mtls-auth", json!({ "scope": scope, "fingerprint": known.name })),
    };
    let mut credential = json!({ "id": known.id, plugin: config });
    // Gateways carry the end out by themselves, whether they reach their control plane or not.
    if let Some(end) = known.expires {
        credential["expires"] = end.into();
    }
    credential
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::{OauthSettings, PRODUCTS};

    fn plan(security: PlanSecurity) -> Plan {
        Plan {
            name: "gold".into(),
            security,
            oauth2: Some(OauthSettings {
                discovery: "https://id.test".into(),
                scopes: vec!["read".into(), "list".into()],
                audiences: vec!["pets".into()],
                ..OauthSettings::default()
            }),
            ..Plan::default()
        }
    }

    #[test]
    fn tokens_need_all_scopes_one_audience_and_a_client_of_the_plan() {
        let made = tokens(&plan(PlanSecurity::Oauth2), "pets/1/test/gold");
        assert_eq!(
            made["required"],
            json!({"audiences": ["pets"], "access_token": true, "scopes": ["read list"]})
        );
        assert_eq!(
            (
                &made["methods"],
                &made["client"]["scope"],
                &made["unauthenticated"]
            ),
            (&json!(["bearer"]), &json!("pets/1/test/gold"), &json!("refuse"))
        );
        let mut asking = plan(PlanSecurity::Oauth2);
        let settings = asking.oauth2.as_mut().expect("settings");
        settings.check = TokenCheck::Introspection;
        settings.client_secret = "s".into();
        let made = tokens(&asking, "x");
        assert_eq!(
            (&made["methods"], &made["client_secret"]),
            (&json!(["introspection"]), &json!("s"))
        );
    }

    /// The time and the target are signed, whatever else is.
    #[test]
    fn signatures_cover_time_and_target() {
        let mut own = plan(PlanSecurity::Hmac);
        assert_eq!(
            signatures(&own)["required_headers"],
            json!(["date", "@request-target"])
        );
        own.hmac = Some(crate::entities::HmacSettings {
            headers: vec!["X-A".into()],
            check_body: true,
        });
        let made = signatures(&own);
        assert_eq!(
            made["required_headers"],
            json!(["date", "@request-target", "x-a", "digest"])
        );
        assert!(!made["algorithms"].to_string().contains("sha1"));
        // Beside a laxer plan, the stricter one holds for both.
        let mut both = signatures(&plan(PlanSecurity::Hmac));
        tighten(&mut both, &made);
        assert_eq!(both, made);
    }

    /// A consumer's credentials lead to the plan of its own subscription, and a product's are the same in all places.
    #[test]
    fn credentials_have_the_scope_of_their_subscription() {
        let own = Subscription {
            publication: "pets/1/test".into(),
            plan: "gold".into(),
            ..Subscription::default()
        };
        let of_product = Subscription {
            product: "bundle".into(),
            ..own.clone()
        };
        assert_eq!(scope_of(&own), "pets/1/test/gold");
        assert_eq!(scope_of(&of_product), format!("{PRODUCTS}bundle/gold"));
        let known = Credential {
            id: "c".into(),
            kind: CredentialKind::Mtls,
            name: "00ff".into(),
            ..Credential::default()
        };
        assert_eq!(
            credential(&known, "x/gold"),
            json!({"id": "c", "mtls-auth": {"scope": "x/gold", "fingerprint": "00ff"}})
        );
    }
}
