//! Copies stores with their holes, and counts the data in their files.
//!
//! A copy keeps holes as holes (`std::fs::copy` fills them) and zeros as zeros. So a copied store behaves
//! like the original: writing to a hole makes the file system commit its own journal.
//!
//! Engines allocate files in advance, some as holes and some as zeros. So only blocks with other contents
//! count as data: the blocks that `cp --sparse=always` would keep.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

const BLOCK_BYTES: usize = 4096;
const BUFFER_BYTES: usize = 1 << 20;
/// After this many bytes the file is dropped from the page cache, because these reads are not memory of an
/// engine.
const FORGET_BYTES: u64 = 16 << 20;

/// Copies everything below the folder `from` into the folder `to`.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            copy_file(&entry.path(), &target).with_context(|| format!("copying to {}", target.display()))?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let (source, target) = (File::open(from)?, File::create_new(to)?);
    // A hole at the end is kept too.
    target.set_len(source.metadata()?.len())?;
    each_part(&source, |bytes, at| target.write_all_at(bytes, at))
}

/// The size of all blocks below `folder` that contain anything but zeros.
///
/// If this process has POSIX locks on one of the files (SQLite, LMDB), closing the file here releases them.
/// So call this only when no engine in the process uses the store.
pub fn data_bytes(folder: &Path) -> Result<u64> {
    const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
    let mut blocks = 0;
    for path in crate::meter::files(folder)? {
        let file = match File::open(&path) {
            // An engine may have deleted the file in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        each_part(&file, |bytes, _| {
            blocks +=
                bytes.chunks(BLOCK_BYTES).filter(|block| **block != ZEROS[..block.len()]).count() as u64;
            Ok(())
        })
        .with_context(|| format!("reading {}", path.display()))?;
    }
    Ok(blocks * BLOCK_BYTES as u64)
}

/// Reads everything that is not a hole, in pieces with their offsets.
fn each_part(file: &File, mut part: impl FnMut(&[u8], u64) -> io::Result<()>) -> Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut end = 0;
    while let Some(run) = next_data(file, end)? {
        end = run.end;
        let mut at = run.start;
        while at < run.end {
            let most = buffer.len().min((run.end - at) as usize);
            match file.read_at(&mut buffer[..most], at)? {
                // The file was truncated in the meantime.
                0 => return Ok(()),
                length => {
                    part(&buffer[..length], at)?;
                    at += length as u64;
                    if at % FORGET_BYTES < length as u64 {
                        crate::meter::forget_file(file)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The next range of data at or after `from`; `None` if only a hole is left.
fn next_data(file: &File, from: u64) -> Result<Option<Range<u64>>> {
    // SAFETY: an open file. No part of this reads from its offset.
    let seek = |from: u64, what| unsafe { libc::lseek(file.as_raw_fd(), from as i64, what) };
    let start = seek(from, libc::SEEK_DATA);
    if start < 0 {
        return match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            error => bail!("lseek: {error}"),
        };
    }
    let end = seek(start as u64, libc::SEEK_HOLE);
    if end < 0 {
        bail!("lseek: {}", io::Error::last_os_error());
    }
    Ok(Some(start as u64..end as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter;

    const KIB: u64 = 1 << 10;

    /// Data, written zeros, data after a hole, and a file of odd length that ends with a hole.
    #[test]
    fn a_copy_keeps_holes_and_zeros_and_neither_counts_as_data() {
        let folder = crate::scratch("holes");
        let (from, to) = (folder.join("from"), folder.join("to"));
        fs::create_dir_all(from.join("below")).unwrap();
        fs::create_dir(&to).unwrap();
        let file = File::create(from.join("below/file")).unwrap();
        for (byte, start) in [(1, 0), (0, 1), (2, 3), (3, 900)] {
            file.write_all_at(&[byte; 64 << 10], start * 64 * KIB).unwrap();
        }
        file.set_len((100 << 20) + 5).unwrap();
        copy(&from, &to).unwrap();
        meter::sync_device(&folder).unwrap();
        assert!(fs::read(from.join("below/file")).unwrap() == fs::read(to.join("below/file")).unwrap());
        // A file system may need blocks of its own for a file.
        let space = meter::space_bytes(&to).unwrap();
        assert!((4 * 64 * KIB..5 * 64 * KIB).contains(&space), "{space}");
        assert_eq!(data_bytes(&to).unwrap(), 3 * 64 * KIB);
        fs::remove_dir_all(&folder).unwrap();
    }
}
