//! Tells how much room a file system has.

use std::path::Path;

/// Returns the bytes that the file system of `folder` has free for this user; `None` if the system does not tell.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(folder).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}
