//! The calls for users, their rights and the audit log.

use super::DRY_RUN;
use crate::access::Action;
use crate::api::operation::Operation;
use crate::api::shapes::{AuditEntry, List, ListedUser, NewUser};
use crate::api::{accounts, roles, users};
use axum::http::StatusCode;

pub(super) fn of_access() -> Vec<Operation> {
    const USER: &str = "/api/v1/users/{name}";
    let manage = Action::UsersManage;
    let operations = [
        Operation::get("/api/v1/users", "listUsers", manage, accounts::list)
            .about("Access", "Lists users with their rights")
            .answers::<List<ListedUser>>(),
        Operation::post(USER, "addUser", manage, users::add_user)
            .about(
                "Access",
                "Creates a user, or gives a user a new token and other rights",
            )
            .description("The sessions and personal tokens of the one before end.")
            .headers(DRY_RUN)
            .body::<users::UserRequest>()
            .status(StatusCode::CREATED)
            .answers::<NewUser>(),
        Operation::delete(USER, "removeUser", manage, users::remove_user)
            .about("Access", "Removes a user, with all sessions and personal tokens")
            .headers(DRY_RUN),
        Operation::put(
            "/api/v1/users/{name}/rights",
            "setUserRights",
            manage,
            accounts::set_rights,
        )
        .about("Access", "Changes the rights of a user")
        .headers(&["If-Match", "Weir-Dry-Run"])
        .body::<accounts::RightsRequest>()
        .answers::<ListedUser>(),
        Operation::put(
            "/api/v1/users/{name}/password",
            "setUserPassword",
            manage,
            accounts::set_password,
        )
        .about(
            "Access",
            "Gives a user another password, and ends all sessions of the user",
        )
        .headers(DRY_RUN)
        .body::<accounts::NewPassword>()
        .status(StatusCode::NO_CONTENT),
        Operation::delete(
            "/api/v1/users/{name}/sessions",
            "endUserSessions",
            manage,
            accounts::end_sessions,
        )
        .about("Access", "Ends all sessions of a user")
        .headers(DRY_RUN),
        Operation::get("/api/v1/roles", "listRoles", Action::Own, roles::list)
            .about("Access", "Lists roles and their actions")
            .answers::<roles::RoleTable>(),
        Operation::get("/api/v1/users/{name}/can", "checkPermission", manage, roles::can)
            .about(
                "Access",
                "Checks whether a user may do an action in a scope, and names the right or the missing one",
            )
            .query::<roles::PermissionQuery>()
            .answers::<roles::Verdict>(),
        Operation::get("/api/v1/audit", "listAudit", Action::AuditRead, users::audit)
            .about("Access", "Reads the audit log, the latest entry first")
            .query::<users::AuditLogQuery>()
            .answers::<List<AuditEntry>>()
            .also("/audit"),
    ];
    operations.into()
}
