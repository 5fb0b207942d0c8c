//! An ext4 file system on a drive that is served as a file: of the kernel, on a loop device, or elsewhere of fuse2fs.

use super::drive::Served;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Whether this process may mount file systems of the kernel.
fn has_loop_devices() -> bool {
    rustix::process::geteuid().is_root() && Path::new("/dev/loop-control").exists()
}

/// Makes an empty file system, which belongs to the user.
pub(crate) fn make(served: &Served) {
    served.done("mkdir -p m; mkfs.ext4 -q -E root_owner d/drive");
}

/// A mounted file system. It is at `m` in the folder of the drive.
pub(crate) struct Mounted<'a> {
    served: &'a Served,
    /// The process of the file system if it is not of the kernel.
    process: Option<Child>,
}

impl<'a> Mounted<'a> {
    pub(crate) fn new(served: &'a Served) -> Mounted<'a> {
        if has_loop_devices() {
            served.done("mount -o loop d/drive m");
            return Mounted { served, process: None };
        }
        served.done("command -v fuse2fs || fuse2fs");
        let process = Command::new("fuse2fs")
            .args(["-f", "d/drive", "m"])
            .current_dir(&served.folder.0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        served.done("for try in {1..2000}; do mountpoint -q m && exit 0; sleep 0.005; done; exit 1");
        Mounted { served, process: Some(process) }
    }
}

impl Drop for Mounted<'_> {
    /// Unmounts the file system, and writes what was not written if the drive has power.
    fn drop(&mut self) {
        match &mut self.process {
            None => self.served.done("umount m || { umount --lazy m; exit 1; }"),
            Some(process) => {
                let said = self.served.done("fusermount3 -u m || { fusermount3 -uz m; exit 1; }");
                process.wait().unwrap();
                said
            }
        };
    }
}
