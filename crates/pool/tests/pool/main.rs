//! Tests of a pool with many users, with failures of the drive, and with dropped requests.

mod batches;
#[path = "../common/mod.rs"]
mod common;
mod contents;
mod failed_writes;
mod fetching;
mod misses;
mod policy;
mod pooled;
mod size;
mod stores;

use fulgurite_pool::{WriteBack, WriteBackConfig};

/// Returns a write-back policy for each mechanism: waiting or not, one page or a batch, with and without a
/// cleaner.
fn write_backs() -> Vec<WriteBack> {
    let specs = [
        "single",
        "single:lock=yes",
        "ace:n_w=4",
        "background:ahead=4",
        "background:ahead=3,n_w=2",
        "raw:buffers=1",
        "raw:buffers=2,least=2",
        "raw:buffers=2",
        "ace+raw:n_w=4,buffers=2",
    ];
    specs.map(|spec| spec.parse::<WriteBackConfig>().unwrap().resolve(|| Ok(4)).unwrap()).to_vec()
}
