//! The calls for gateways, and those that they make themselves.

use super::DRY_RUN;
use crate::access::Action;
use crate::api::operation::Operation;
use crate::api::shapes::GatewayList;
use crate::api::{draining, fleet, gateways, sync};
use crate::shared_limits::{LimitReport, LimitReportResponse};
use axum::http::StatusCode;

pub(super) fn of_gateways() -> Vec<Operation> {
    let follow = Action::ConfigurationFollow;
    let operations = [
        Operation::get(
            "/api/v1/gateways",
            "listGateways",
            Action::GatewaysRead,
            gateways::list,
        )
        .about(
            "Gateways",
            "Lists gateways, the revision that each serves, and its lag",
        )
        .answers::<GatewayList>()
        .also("/gateways"),
        Operation::post(
            "/api/v1/gateways/{name}",
            "reportGateway",
            follow,
            gateways::report,
        )
        .about("Gateways", "Takes a gateway's report")
        .partial()
        .headers(DRY_RUN)
        .body::<fleet::GatewayReport>()
        .answers::<fleet::ReportResponse>(),
        Operation::put(
            "/api/v1/gateways/{name}/drain",
            "drainGateway",
            Action::EnvironmentsWrite,
            draining::drain,
        )
        .about(
            "Gateways",
            "Takes a gateway out: it is not ready, and says that it drains",
        )
        .description(
            "The gateway learns this with its next report, within 10 seconds, and still answers calls.",
        )
        .headers(DRY_RUN)
        .status(StatusCode::NO_CONTENT),
        Operation::delete(
            "/api/v1/gateways/{name}/drain",
            "undrainGateway",
            Action::EnvironmentsWrite,
            draining::undrain,
        )
        .about("Gateways", "Ends the draining of a gateway")
        .headers(DRY_RUN),
        Operation::delete(
            "/api/v1/gateways/{name}",
            "forgetGateway",
            Action::EnvironmentsWrite,
            gateways::forget,
        )
        .about("Gateways", "Removes an offline gateway")
        .description("A gateway that still reports is refused with 409: its next report would bring it back.")
        .headers(DRY_RUN),
        Operation::post(
            "/api/v1/gateways/{name}/limits",
            "syncLimits",
            follow,
            gateways::limits,
        )
        .about(
            "Gateways",
            "Accepts a gateway's counts of shared limits, and returns those of the other gateways",
        )
        .description("A caller with the right in environments only names these, and settles with no others.")
        .partial()
        .query::<gateways::LimitQuery>()
        .ignoring_unknown_parameters()
        .body::<LimitReport>()
        .answers::<LimitReportResponse>(),
        Operation::get("/api/v1/sync", "followConfiguration", follow, sync::sync)
            .about(
                "Gateways",
                "Streams the configuration to a gateway, a line of JSON at a time",
            )
            .description("A caller with the right in environments only names these, and follows no others.")
            .partial()
            .query::<sync::SyncQuery>()
            .ignoring_unknown_parameters()
            .answers_of("application/x-ndjson", None),
    ];
    operations.into()
}
