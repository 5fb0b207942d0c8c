//! The `fulgurite` command, as users start it.

mod bad_input;
mod bench;
mod contract;
mod folder;
mod outputs;
mod repeatable;
mod store;
