//! A simulated SSD with contents, power cuts and faults, for simulations and servers.
//!
//! [`Disk`] adds to a simulated device what a program sees of a drive besides time: bytes, the loss of unflushed
//! writes, and faults. The device decides when a request completes. The [`PowerModel`] says which writes a power cut
//! can lose, and a seed decides which of them it loses.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

mod pages;
mod unflushed;
mod versions;
mod power;
mod fault;
mod request;
mod disk;
mod ssd;

pub use disk::{Cut, Disk, Snapshot};
pub use fault::{CutPoint, Failing, Faults};
pub use pages::Backing;
pub use power::{Cache, Pattern, PowerModel, choose};
pub use request::{Completed, DiskError, Kind, Request};
pub use ssd::Ssd;
pub use unflushed::{Loss, Piece, WriteId};
pub use versions::Versions;
