//! Serves a simulated drive to programs that know nothing of Fulgurite: as a network block device, or as a file in a
//! folder. A control socket cuts its power and injects faults.
//!
//! The drive runs on the wall clock, so a client measures its simulated latencies.

mod pace;
mod address;
mod contents;
mod live;
mod watch;
mod metrics;
mod http;
mod control;
mod client;
mod drive;
mod connection;
mod fuse;
mod server;
mod start;

pub use client::control;
pub use server::Handle;
pub use start::{Asked, Started, serve};
