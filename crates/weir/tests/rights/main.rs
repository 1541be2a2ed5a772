//! What rights are worth at the Admin APIs of all dialects: who may only read sees no secret, wherever documents are
//! shown; who may write in one workspace takes nothing of another; a write says what is not served.

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
mod views;
mod warnings;
mod workspaces;
