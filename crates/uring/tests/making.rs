//! Tests that a drive is recognised after its creation, its enlargement or a load was interrupted, and that a
//! drive without room is refused.

use fulgurite_uring::{DriveOptions, OpenError, PsyncDevice, check, is_half_loaded, mark_loading};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A folder for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn of(pages: u64) -> DriveOptions {
    DriveOptions { pages: Some(pages), ..DriveOptions::default() }
}

/// Writes a drive of `pages` pages as it is left if its creation, or its enlargement from `kept` pages, is
/// interrupted.
fn interrupted(path: &Path, kept: u64, pages: u64) {
    let file = File::options().write(true).create(true).truncate(false).open(path).unwrap();
    file.set_len((pages + 1) * 4096).unwrap();
    let mut mark = b"fulgurite drive, making\n".to_vec();
    mark.extend((kept * 4096).to_le_bytes());
    file.write_all_at(&mark, pages * 4096).unwrap();
}

#[test]
fn a_drive_whose_making_was_interrupted_is_made_again() {
    let folder = Folder::new("making");
    let path = folder.0.join("d");
    interrupted(&path, 0, 64);
    assert_eq!(check(&path, &DriveOptions::default()).unwrap(), 64);
    // The drive may be created with another size, because there are no contents to keep.
    drop(PsyncDevice::open(&path, &of(16)).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().len(), 17 * 4096);
    assert_eq!(check(&path, &DriveOptions::default()).unwrap(), 16);
}

#[test]
fn a_drive_whose_enlarging_was_interrupted_keeps_its_contents() {
    let folder = Folder::new("growing");
    let path = folder.0.join("d");
    drop(PsyncDevice::open(&path, &of(16)).unwrap());
    let write = |page: u64| {
        File::options().write(true).open(&path).unwrap().write_all_at(b"kept", page * 4096).unwrap()
    };
    write(15);
    interrupted(&path, 16, 64);
    // Only the kept pages have valid contents; page 20 is overwritten with zeros when the drive is created
    // again.
    write(20);
    drop(PsyncDevice::open(&path, &of(64)).unwrap());
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 65 * 4096);
    assert_eq!(&bytes[15 * 4096..15 * 4096 + 4], b"kept");
    assert!(bytes[16 * 4096..64 * 4096].iter().all(|byte| *byte == 0));
    assert_eq!(check(&path, &DriveOptions::default()).unwrap(), 64);
}

#[test]
fn a_drive_whose_load_was_interrupted_is_reported() {
    let folder = Folder::new("loading");
    let path = folder.0.join("d");
    drop(PsyncDevice::open(&path, &of(16)).unwrap());
    assert!(!is_half_loaded(&path));
    mark_loading(&path, true).unwrap();
    assert!(is_half_loaded(&path));
    assert_eq!(check(&path, &DriveOptions::default()).unwrap(), 16, "the drive is still recognised");
    drop(PsyncDevice::open(&path, &of(32)).unwrap());
    mark_loading(&path, false).unwrap();
    assert!(!is_half_loaded(&path));
    assert_eq!(check(&path, &DriveOptions::default()).unwrap(), 32);
}

#[test]
fn a_drive_without_room_is_refused_before_the_first_byte() {
    let folder = Folder::new("room");
    let path = folder.0.join("d");
    let pages = 1 << 46;
    for _ in 0..2 {
        match check(&path, &of(pages)) {
            Err(OpenError::NoRoom { bytes, free, .. }) => assert!(bytes == pages * 4096 && free < bytes),
            other => panic!("{other:?}"),
        }
        assert!(PsyncDevice::open(&path, &of(pages)).is_err());
        // In the second round, the drive exists and would have to be enlarged.
        let has = fs::metadata(&path).map(|found| found.len()).ok();
        assert!(has.is_none_or(|has| has == 17 * 4096), "{has:?}");
        drop(PsyncDevice::open(&path, &of(16)).unwrap());
    }
}

#[test]
fn a_sparse_drive_is_enlarged_without_space_on_the_disk() {
    let folder = Folder::new("sparse");
    let path = folder.0.join("d");
    let sparse = |pages| DriveOptions { sparse: true, ..of(pages) };
    let taken = || std::os::unix::fs::MetadataExt::blocks(&fs::metadata(&path).unwrap()) * 512;
    drop(PsyncDevice::open(&path, &sparse(256)).unwrap());
    File::options().write(true).open(&path).unwrap().write_all_at(b"kept", 255 * 4096).unwrap();
    // The second enlarging goes on where an interrupted one has stopped.
    for pages in [512, 1 << 20] {
        interrupted(&path, 256, pages);
        drop(PsyncDevice::open(&path, &sparse(pages)).unwrap());
        assert_eq!(check(&path, &DriveOptions::default()).unwrap(), pages);
        assert!(taken() < 64 << 10, "{} bytes", taken());
    }
    let mut bytes = [1; 2 * 4096];
    File::open(&path).unwrap().read_exact_at(&mut bytes, 255 * 4096).unwrap();
    assert!(bytes.starts_with(b"kept") && bytes[4096..].iter().all(|byte| *byte == 0));
}
