//! What of a store's files is data, and what is holes or zeros.
//!
//! A copy keeps holes as holes (`std::fs::copy` fills them) and zeros as zeros, so that a copied store behaves as the one
//! that its engine made: writing to a hole costs the file system a commit of its own journal.
//!
//! Engines allocate files in advance, some by holes and some by zeros. So what a store holds is counted in blocks that are
//! neither: what `cp --sparse=always` would leave of it.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

const BLOCK_BYTES: usize = 4096;
const BUFFER_BYTES: usize = 1 << 20;
/// After so many bytes the page cache is told to drop the file: what is only read here is not memory that an engine used.
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
    // A hole at the end, too.
    target.set_len(source.metadata()?.len())?;
    each_part(&source, |bytes, at| target.write_all_at(bytes, at))
}

/// Bytes of the blocks below `folder` that hold anything but zeros.
///
/// A process that has one of the files open by POSIX locks (SQLite, LMDB) loses these when this closes it again: to be
/// called where no other process uses the store.
pub fn data_bytes(folder: &Path) -> Result<u64> {
    const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
    let mut blocks = 0;
    for path in crate::meter::files(folder)? {
        let file = match File::open(&path) {
            // An engine may delete a file meanwhile.
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

/// Reads what is not a hole, in parts, each with its place.
fn each_part(file: &File, mut part: impl FnMut(&[u8], u64) -> io::Result<()>) -> Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut end = 0;
    while let Some(run) = next_data(file, end)? {
        end = run.end;
        let mut at = run.start;
        while at < run.end {
            let most = buffer.len().min((run.end - at) as usize);
            match file.read_at(&mut buffer[..most], at)? {
                // It was cut meanwhile.
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

/// The first run of data at or behind `from`; none where only a hole is left.
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

    /// Data, zeros that were written, data behind a hole, and a hole and an odd length at the end.
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
        // A file system may keep blocks of its own for a file.
        let space = meter::space_bytes(&to).unwrap();
        assert!((4 * 64 * KIB..5 * 64 * KIB).contains(&space), "{space}");
        assert_eq!(data_bytes(&to).unwrap(), 3 * 64 * KIB);
        fs::remove_dir_all(&folder).unwrap();
    }
}
