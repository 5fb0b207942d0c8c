//! Recognises a file that holds a store.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Whether the file at `path` begins with a store's superblock. A file in which `bench` has not finished
/// loading its data does not count as a store.
pub fn holds_store(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    if fulgurite_uring::is_half_loaded(path) {
        return false;
    }
    fulgurite_engine::SUPERBLOCKS.iter().any(|offset| {
        let mut bytes = [0; 64];
        file.read_exact_at(&mut bytes, *offset).is_ok() && fulgurite_engine::is_store(&bytes)
    })
}
