//! A memory limit that includes the page cache: a control group of version 2 or 1.
//!
//! The group is created at the top of the hierarchy, where memory can be assigned, and removed afterwards. A
//! process that is already in a group with a limit stays there: a new group at the top would remove that
//! limit.

use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A control group with a memory limit. It is removed when this value is dropped.
pub struct Group {
    folder: PathBuf,
    files: &'static Files,
}

/// The names of files in a version of control groups.
struct Files {
    version: &'static str,
    limit: &'static str,
    /// The limit on memory and swap together, or on swap. Some kernels have none.
    swap: &'static str,
    swap_is_sum: bool,
    peak: &'static str,
    killed: &'static str,
}

const V2: Files = Files {
    version: "cgroup v2",
    limit: "memory.max",
    swap: "memory.swap.max",
    swap_is_sum: false,
    peak: "memory.peak",
    killed: "memory.events",
};

const V1: Files = Files {
    version: "cgroup v1",
    limit: "memory.limit_in_bytes",
    swap: "memory.memsw.limit_in_bytes",
    swap_is_sum: true,
    peak: "memory.max_usage_in_bytes",
    killed: "memory.oom_control",
};

/// The prefix of the group's name. The process number follows.
const PREFIX: &str = "fulgurite-peers-";

/// A higher limit means no limit (version 1 writes "none" as a number near 2^63).
const NO_LIMIT: u64 = 1 << 60;

impl Group {
    /// Creates a group that limits memory to `bytes`.
    ///
    /// # Errors The machine has no control groups for memory, or this process may not create one.
    pub fn create(bytes: u64) -> Result<Group> {
        let (root, own, files) = hierarchy()?;
        let present = fs::read_to_string(own.join(files.limit)).unwrap_or_default();
        // The root of version 2 has no such file and no limit.
        let limited = present.trim().parse::<u64>().is_ok_and(|limit| limit < NO_LIMIT);
        ensure!(!limited, "this process is in a group with a limit of its own");
        remove_orphans(&root);
        let group = Group { folder: root.join(format!("{PREFIX}{}", std::process::id())), files };
        fs::create_dir(&group.folder).with_context(|| format!("making {}", group.folder.display()))?;
        let path = group.folder.join(files.limit);
        fs::write(&path, bytes.to_string()).with_context(|| format!("writing {}", path.display()))?;
        let swap = group.folder.join(files.swap);
        if swap.exists() {
            let bytes = if files.swap_is_sum { bytes } else { 0 };
            fs::write(&swap, bytes.to_string()).with_context(|| format!("writing {}", swap.display()))?;
        }
        Ok(group)
    }

    /// The version of control groups.
    pub fn version(&self) -> &'static str {
        self.files.version
    }

    /// The file to which a process writes its number to join the group.
    pub fn procs(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// The peak memory usage of the group including its page cache, in bytes. Kernels before 5.19 do not
    /// report it.
    pub fn peak_bytes(&self) -> Option<u64> {
        fs::read_to_string(self.folder.join(self.files.peak)).ok()?.trim().parse().ok()
    }

    /// Whether the kernel killed a process of the group because memory ran out.
    pub fn has_killed(&self) -> bool {
        let text = fs::read_to_string(self.folder.join(self.files.killed)).unwrap_or_default();
        text.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last process may still be exiting.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        eprintln!("peers: the group {} could not be removed", self.folder.display());
    }
}

/// Removes groups of processes that were killed.
fn remove_orphans(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        if !Path::new("/proc").join(process).exists() {
            // A group in use cannot be removed.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The root of the hierarchy with the memory controller, and the group of this process in it.
fn hierarchy() -> Result<(PathBuf, PathBuf, &'static Files)> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("reading /proc/self/mounts")?;
    let groups = fs::read_to_string("/proc/self/cgroup").context("reading /proc/self/cgroup")?;
    let found = find(&mounts, &groups);
    let Some((root, own, files)) = found else { bail!("no control group file system is mounted") };
    if files.version == V2.version {
        let path = root.join("cgroup.subtree_control");
        let handed = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        ensure!(handed.split_whitespace().any(|name| name == "memory"), "{} lacks memory", path.display());
    }
    Ok((root, own, files))
}

/// Finds both paths in the texts of /proc/self/mounts and /proc/self/cgroup. Version 1 is tried first: if
/// both versions are mounted and version 1 has the memory controller, version 2 has not.
fn find(mounts: &str, groups: &str) -> Option<(PathBuf, PathBuf, &'static Files)> {
    let mount = |wanted: &dyn Fn(&str, &str) -> bool| {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (path, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
            wanted(kind, options).then(|| PathBuf::from(path))
        })
    };
    let own = |wanted: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            wanted(fields.next()?).then_some(fields.next()?.trim_start_matches('/'))
        })
    };
    let has_memory = |list: &str| list.split(',').any(|name| name == "memory");
    let (root, path, files) = match mount(&|kind, options| kind == "cgroup" && has_memory(options)) {
        Some(root) => (root, own(&has_memory)?, &V1),
        None => (mount(&|kind, _| kind == "cgroup2")?, own(&str::is_empty)?, &V2),
    };
    let own = root.join(path);
    Some((root, own, files))
}

/// Moves this process into the group with this `cgroup.procs` file.
pub fn join(procs: &Path) -> Result<()> {
    fs::write(procs, std::process::id().to_string()).with_context(|| format!("joining {}", procs.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_MOUNT: &str =
        "cgroup /cg/cpu cgroup rw,relatime,cpu 0 0\ncgroup /cg/memory cgroup rw,memory 0 0\n";
    const V2_MOUNT: &str = "cgroup2 /cg/unified cgroup2 rw,nosuid 0 0\n";

    #[test]
    fn version_1_goes_first_where_it_has_memory() {
        let mounts = format!("{V2_MOUNT}{V1_MOUNT}");
        let (root, own, files) = find(&mounts, "4:memory:/a/b\n1:cpu:/\n0::/\n").unwrap();
        assert_eq!(
            (root.to_str(), own.to_str(), files.version),
            (Some("/cg/memory"), Some("/cg/memory/a/b"), V1.version)
        );
    }

    #[test]
    fn version_2_is_taken_where_version_1_has_no_memory() {
        let mounts = format!("cgroup /cg/cpu cgroup rw,cpu 0 0\n{V2_MOUNT}");
        let (root, own, files) = find(&mounts, "1:cpu:/x\n0::/user.slice\n").unwrap();
        assert_eq!(
            (root.to_str(), own.to_str(), files.version),
            (Some("/cg/unified"), Some("/cg/unified/user.slice"), V2.version)
        );
        assert!(find("proc /proc proc rw 0 0\n", "0::/\n").is_none());
    }
}
