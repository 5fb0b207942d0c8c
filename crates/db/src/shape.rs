//! Reads the sizes of a store from its file, without opening the store.

use fulgurite_engine::{SUPERBLOCKS, StoreShape};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Returns the sizes of the store in the file at `path`; `None` if neither of its superblocks can be read.
pub fn shape(path: &Path) -> Option<StoreShape> {
    let file = File::open(path).ok()?;
    let shapes = SUPERBLOCKS.iter().filter_map(|place| {
        let mut bytes = [0; 128];
        file.read_exact_at(&mut bytes, *place).ok()?;
        StoreShape::read(&bytes)
    });
    // The copies differ only in their sizes after a crash while the store was extended.
    shapes.max_by_key(|shape| shape.bytes)
}
