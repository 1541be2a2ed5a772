//! The second factor of a developer: set up with an authenticator app, confirmed by its first code, and turned off with the
//! password and a code. What an app has to know is in the answer that makes it, and nowhere else.

use super::account_common::{
    code_attempts, end_other_sessions, notify_of_change, profile_response, prove_code, prove_password,
    too_many,
};
use super::account_shapes::{
    FactorProof, FirstCode, NewSecondFactor, PasswordProof, ProfileResponse, QrCode,
};
use super::account_shapes::{RecoveryCodes, SecondFactorState};
use super::operation::{Operation, Shared};
use super::signed_in::developer;
use crate::people::{Developer, title_of};
use crate::state::{PortalContext, Portals};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use qrcodegen::{QrCode as Modules, QrCodeEcc};
use std::time::SystemTime;
use weir_control::api::Json;
use weir_control::api::Problem;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            "/portal/v1/account/second-factor",
            ("getSecondFactor", "Reads whether there is a second factor"),
            state,
        )
        .by_session()
        .answers::<SecondFactorState>(),
        Operation::post(
            "/portal/v1/account/second-factor",
            (
                "beginSecondFactor",
                "Creates the secret for an authenticator app; it is shown only once and waits ten minutes for the \
                 first code",
            ),
            begin,
        )
        .by_session()
        .body::<PasswordProof>()
        .answers::<NewSecondFactor>(),
        Operation::post(
            "/portal/v1/account/second-factor/confirm",
            (
                "confirmSecondFactor",
                "Turns the second factor on with the app's first code; the recovery codes are shown this once",
            ),
            confirm,
        )
        .by_session()
        .body::<FirstCode>()
        .answers::<RecoveryCodes>(),
        Operation::post(
            "/portal/v1/account/second-factor/recovery-codes",
            (
                "renewRecoveryCodes",
                "Creates new recovery codes; the old ones are no longer valid",
            ),
            renew,
        )
        .by_session()
        .body::<FactorProof>()
        .answers::<RecoveryCodes>(),
        Operation::post(
            "/portal/v1/account/second-factor/remove",
            ("removeSecondFactor", "Turns the second factor off"),
            remove,
        )
        .by_session()
        .body::<FactorProof>()
        .answers::<ProfileResponse>(),
    ];
    Operation::tagged("Account", operations)
}

/// The longest name of a portal in an app, in characters.
const MAX_ISSUER: usize = 40;
/// The light margin that a QR code needs, in modules.
const MARGIN: i32 = 4;

async fn state(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
) -> Result<Json<SecondFactorState>, Problem> {
    let developer = developer(&portals, &visit, SystemTime::now()).await?;
    let factor = developer.second_factor.as_ref();
    Ok(Json(SecondFactorState {
        is_on: factor.is_some(),
        recovery_codes_left: factor.map_or(0, |it| it.recovery_codes_left()),
    }))
}

async fn begin(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Json(given): Json<PasswordProof>,
) -> Result<Json<NewSecondFactor>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let developer = developer(&portals, &visit, now).await?;
    if developer.password.is_none() {
        let detail = "you sign in through an identity provider, which may ask for a second factor itself";
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    prove_password(&portals, &visit, &developer, ("password", given.password), now).await?;
    let secret = portals
        .people
        .begin_second_factor(portal, &developer, now)
        .await?;
    let issuer: String = title_of(&visit.portal).chars().take(MAX_ISSUER).collect();
    let uri = secret.uri(&issuer, &developer.mail);
    let qr = qr_code(&uri)?;
    Ok(Json(NewSecondFactor {
        secret: secret.text(),
        uri,
        qr,
    }))
}

/// A text as a QR code that a page can draw.
fn qr_code(text: &str) -> Result<QrCode, Problem> {
    let made = Modules::encode_text(text, QrCodeEcc::Medium);
    let made = made.map_err(|_| Problem::unreadable("the QR code would be too large"))?;
    let mut path = String::new();
    for y in 0..made.size() {
        let mut x = 0;
        while x < made.size() {
            let length = (x..made.size()).take_while(|it| made.get_module(*it, y)).count();
            let length = i32::try_from(length).unwrap_or(0);
            if length > 0 {
                path += &format!("M{} {}h{length}v1h-{length}z", x + MARGIN, y + MARGIN);
            }
            x += length + 1;
        }
    }
    Ok(QrCode {
        size: u32::try_from(made.size() + 2 * MARGIN).unwrap_or(0),
        path,
    })
}

async fn confirm(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    headers: HeaderMap,
    Json(given): Json<FirstCode>,
) -> Result<Json<RecoveryCodes>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let developer = developer(&portals, &visit, now).await?;
    // Guesses are counted with those of a login.
    let attempts = code_attempts(portal, &developer.mail);
    let begun = portals.people.attempts.begin(&attempts, visit.address, now);
    begun.map_err(|wait| too_many("codes", wait))?;
    let codes = portals
        .people
        .confirm_second_factor(portal, &developer.id, &given.code, now)
        .await?;
    portals.people.attempts.succeeded(&attempts, visit.address, now);
    // Sessions that another person may have begun with the password alone end.
    end_other_sessions(&portals, &visit, &headers, &developer.id, now).await?;
    notify_of_change(&portals, &visit, &developer, "two-factor login is on").await;
    Ok(Json(RecoveryCodes { codes }))
}

async fn renew(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Json(given): Json<FactorProof>,
) -> Result<Json<RecoveryCodes>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let developer = proven(&portals, &visit, given, now).await?;
    let codes = portals
        .people
        .renew_recovery_codes(portal, &developer.id, now)
        .await?;
    notify_of_change(&portals, &visit, &developer, "new recovery codes were made").await;
    Ok(Json(RecoveryCodes { codes }))
}

async fn remove(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Json(given): Json<FactorProof>,
) -> Result<Json<ProfileResponse>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let developer = proven(&portals, &visit, given, now).await?;
    let developer = portals
        .people
        .remove_second_factor(portal, &developer.id, now)
        .await?;
    notify_of_change(&portals, &visit, &developer, "two-factor login is off").await;
    Ok(Json(profile_response(&developer)))
}

/// The developer who is signed in, if the password and the code are right.
async fn proven(
    portals: &Portals,
    visit: &PortalContext,
    given: FactorProof,
    now: SystemTime,
) -> Result<Developer, Problem> {
    let developer = developer(portals, visit, now).await?;
    if developer.second_factor.is_none() {
        return Err(Problem::new(StatusCode::CONFLICT, "there is no second factor"));
    }
    prove_password(portals, visit, &developer, ("password", given.password), now).await?;
    prove_code(portals, visit, &developer, &given.code, now).await?;
    Ok(developer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qr_code_is_drawn_of_runs_with_a_margin() {
        let text =
            "otpauth://totp/Acme:ann%40example%2Ecom?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Acme";
        let made = qr_code(text).expect("a code");
        // The first row of the pattern in the corner: seven dark modules after the margin, and a light one.
        assert!(made.path.starts_with("M4 4h7v1h-7z"), "{}", &made.path[..40]);
        let modules = Modules::encode_text(text, QrCodeEcc::Medium).expect("a code");
        let dark = (0..modules.size()).flat_map(|y| (0..modules.size()).map(move |x| (x, y)));
        let dark = dark.filter(|(x, y)| modules.get_module(*x, *y)).count();
        let runs = made.path.split('M').skip(1).filter_map(|run| {
            let (_, length) = run.split_once('h')?;
            length.split_once('v')?.0.parse::<usize>().ok()
        });
        assert_eq!(runs.sum::<usize>(), dark);
        assert_eq!(i32::try_from(made.size), Ok(modules.size() + 8));
        let long = "x".repeat(5_000);
        assert!(qr_code(&long).is_err());
    }
}
