//! The Admin API as its clients meet it: tables of calls and answers, played in order on a store in memory.

mod api;
mod configs;
mod control;
mod documents;
mod files;
mod messages;
mod pairs;
mod references;
mod schemas;
mod store;
mod stored_documents;
mod takeover;
mod unserved;
