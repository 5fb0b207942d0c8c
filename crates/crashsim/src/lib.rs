//! The engine under power cuts and failing drives, by seed.
//!
//! A seed becomes a [`plan::Plan`]: a drive, a store, clients with their transactions, faults and power cuts.
//! [`run::run`] carries it out on a [`device::CrashDevice`], whose module states the fault model. After each restart
//! [`recovery`] judges what the store has, and [`serial`] whether all that the clients saw has a serial order.
//! [`search`] goes through seeds, runs each twice, and makes a plan that fails as small as it can.

pub mod device;
pub mod history;
pub mod plan;
pub mod recovery;
pub mod run;
pub mod search;
pub mod serial;
pub mod shrink;
pub mod value;
pub mod violation;
