//! What rights are worth at the Admin APIs of all dialects: users who may only read see no secret in any view of
//! documents; users who may write in one workspace change nothing of another; a write says what is not served.

mod login;
mod openid;
mod plane;
mod portal;
mod portal_files;
mod portal_hostile;
mod portal_openid;
#[path = "../support/provider.rs"]
mod provider;
mod readers;
mod takeovers;
mod views;
mod warnings;
mod workspaces;
