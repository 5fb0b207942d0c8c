//! Reads the counters of the kernel: bytes of this process and of the device, CPU time, memory, disk space.

use anyhow::{Context, Result, bail};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The counters of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process {
    /// CPU time of all threads, in µs.
    pub cpu_us: u64,
    /// Bytes read from the device (`read_bytes` of /proc/self/io).
    pub read_bytes: u64,
    /// Bytes written towards the device (`write_bytes`). A page counts each time it becomes dirty.
    pub write_bytes: u64,
}

impl Process {
    /// Reads the counters.
    ///
    /// # Errors /proc is missing or has an unknown format.
    pub fn now() -> Result<Process> {
        let text = fs::read_to_string("/proc/self/io").context("reading /proc/self/io")?;
        let field = |name: &str| -> Result<u64> {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            Ok(value.with_context(|| format!("/proc/self/io has no {name}"))?.parse()?)
        };
        Ok(Process {
            cpu_us: cpu_us()?,
            read_bytes: field("read_bytes")?,
            write_bytes: field("write_bytes")?,
        })
    }
}

fn cpu_us() -> Result<u64> {
    // SAFETY: a struct of integers, all zero, that the kernel fills in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_SELF, &mut usage) != 0 {
            bail!("getrusage: {}", io::Error::last_os_error());
        }
        usage
    };
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Ok(us(usage.ru_utime) + us(usage.ru_stime))
}

/// The peak memory of this process in bytes (`VmHWM`).
pub fn peak_rss_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}

/// The block device under a folder.
pub struct Device {
    stat: PathBuf,
}

/// The counters of a device, over all its users.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    pub reads: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Flushes of the drive's cache. Kernels before 5.5 do not report them.
    pub flushes: Option<u64>,
}

impl Device {
    /// The device of `folder`; `None` if the file system has none (overlay, network, memory).
    pub fn of(folder: &Path) -> Result<Option<Device>> {
        let id = fs::metadata(folder)?.dev();
        let stat = PathBuf::from(format!("/sys/dev/block/{}:{}/stat", libc::major(id), libc::minor(id)));
        Ok(stat.exists().then_some(Device { stat }))
    }

    /// Its counters.
    pub fn traffic(&self) -> Result<Traffic> {
        parse_stat(&fs::read_to_string(&self.stat)?)
    }
}

/// Documentation/block/stat.rst: read I/Os, read merges, read sectors, ticks, write I/Os, write merges, write
/// sectors; the sixteenth field is flush I/Os.
fn parse_stat(text: &str) -> Result<Traffic> {
    let fields = text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let [reads, _, read_sectors, _, _, _, write_sectors, ..] = fields[..] else {
        bail!("a device's stat: {text}")
    };
    Ok(Traffic {
        reads,
        read_bytes: read_sectors * 512,
        write_bytes: write_sectors * 512,
        flushes: fields.get(15).copied(),
    })
}

/// Writes all dirty data of the file system of `folder` to its device.
pub fn sync_device(folder: &Path) -> Result<()> {
    use std::os::fd::AsRawFd;
    let file = fs::File::open(folder)?;
    // SAFETY: an open file.
    if unsafe { libc::syncfs(file.as_raw_fd()) } != 0 {
        bail!("syncfs: {}", io::Error::last_os_error());
    }
    Ok(())
}

/// All regular files below `folder`.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            found.extend(files(&entry.path())?);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// The disk space of the files below `folder`. Holes do not count.
pub fn space_bytes(folder: &Path) -> Result<u64> {
    let mut blocks = 0;
    for file in files(folder)? {
        match fs::metadata(&file) {
            Ok(metadata) => blocks += metadata.blocks(),
            // An engine may delete a file in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(blocks * 512)
}

/// Drops the files below `folder` from the page cache, so that no run starts with pages that another run has
/// read.
pub fn forget(folder: &Path) -> Result<()> {
    for path in files(folder)? {
        let file = fs::File::open(&path)?;
        file.sync_all()?;
        forget_file(&file)?;
    }
    Ok(())
}

/// Drops the clean pages of a file from the page cache. It drops the whole file, because large pages at the
/// ends of a range would be kept.
pub fn forget_file(file: &fs::File) -> Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: an open file; a length of 0 means all of it.
    let status = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    if status != 0 {
        bail!("posix_fadvise: {}", io::Error::from_raw_os_error(status));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_by_position() {
        let text = "  10 2 300 4 50 6 700 8 0 9 10 0 0 0 0 77 0\n";
        let traffic = parse_stat(text).unwrap();
        assert_eq!(
            traffic,
            Traffic { reads: 10, read_bytes: 300 * 512, write_bytes: 700 * 512, flushes: Some(77) }
        );
        assert!(parse_stat("1 2 3").is_err());
    }

    #[test]
    fn this_process_has_used_something() {
        assert!(Process::now().unwrap().cpu_us > 0 || cpu_us().unwrap() > 0);
        assert!(peak_rss_bytes().unwrap() > 100_000);
    }
}
