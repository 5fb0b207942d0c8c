//! Tests that real drives pass the common conformance tests, keep written data, and do not change other
//! files.

use fulgurite_device::{Device, conformance};
use fulgurite_uring::{DriveOptions, OpenError, OverlayDevice, PsyncDevice, ReadOnlyFile};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(target_os = "linux")]
use fulgurite_uring::UringDevice;

/// A folder with a path for each drive. It is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fulgurite-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn next(&self) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        self.0.join(format!("drive-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options() -> DriveOptions {
    DriveOptions { pages: Some(128), queue_depth: 32, ..DriveOptions::default() }
}

/// Returns whether io_uring can be used. It may be forbidden, as in some containers; the tests of io_uring
/// are then skipped.
#[cfg(target_os = "linux")]
fn has_uring(folder: &Folder) -> bool {
    match UringDevice::open(&folder.next(), &options()) {
        Err(OpenError::NoUring(error)) => {
            println!("skipped: io_uring cannot be used here: {error}");
            false
        }
        outcome => outcome.map(|_| true).unwrap(),
    }
}

#[test]
fn psync_conforms() {
    let folder = Folder::new("psync");
    conformance::check(|| PsyncDevice::open(&folder.next(), &options()).unwrap());
}

/// Creates a drive over a file of 128 pages that are filled with `byte`.
fn overlay(path: &Path, byte: u8) -> OverlayDevice {
    fs::write(path, vec![byte; 128 * 4096]).unwrap();
    let beside = path.with_extension("beside");
    let beside = fs::File::options().read(true).write(true).create_new(true).open(beside).unwrap();
    OverlayDevice::new(ReadOnlyFile::open(path).unwrap(), beside)
}

#[test]
fn an_overlay_conforms() {
    let folder = Folder::new("overlay");
    conformance::check(|| overlay(&folder.next(), 0));
}

#[test]
fn an_overlay_reads_written_pages_and_does_not_change_its_file() {
    use fulgurite_base::Lpn;
    use fulgurite_device::{Arena, Executor, Operation};
    let folder = Folder::new("beside");
    let path = folder.next();
    let executor = Executor::new(overlay(&path, 7));
    let handle = executor.handle();
    let arena = Arena::new(5 * 4096);
    let buffer = arena.buffer(0, 5 * 4096);
    let into = buffer.clone();
    let run = executor.block_on(async move {
        // A write without a buffer writes unspecified contents, so only trims are checked: a trim writes
        // zeros.
        handle.submit(Operation::Trim { lpn: Lpn(11), pages: 2 }).await.unwrap();
        handle.submit(Operation::Trim { lpn: Lpn(14), pages: 1 }).await.unwrap();
        handle.submit(Operation::Read { lpn: Lpn(10), pages: 5, into: Some(into) }).await.unwrap();
    });
    run.unwrap();
    // SAFETY: the read has completed, so the device no longer changes the buffer.
    let pages: Vec<u8> = unsafe { buffer.bytes() }.chunks(4096).map(|page| page[100]).collect();
    assert_eq!(pages, [7, 0, 0, 7, 0]);
    assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn a_drive_has_one_writer_or_many_readers() {
    let folder = Folder::new("readers");
    let path = folder.next();
    let writer = PsyncDevice::open(&path, &options()).unwrap();
    assert!(matches!(ReadOnlyFile::open(&path), Err(OpenError::InUse(_))));
    drop(writer);
    let readers = [ReadOnlyFile::open(&path).unwrap(), ReadOnlyFile::open(&path).unwrap()];
    assert!(matches!(PsyncDevice::open(&path, &options()), Err(OpenError::InUse(_))));
    drop(readers);
    PsyncDevice::open(&path, &options()).unwrap();
}

#[test]
fn a_sparse_drive_is_a_drive_that_takes_no_room() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new("sparse");
    let path = folder.next();
    let file = fs::File::create_new(&path).unwrap();
    fulgurite_uring::make_sparse(&file, 1 << 30).unwrap();
    let drive = PsyncDevice::open(&path, &DriveOptions::default()).unwrap();
    assert_eq!(drive.caps().pages, (1 << 30) / 4096);
    assert!(file.metadata().unwrap().blocks() * 512 < 1 << 20);
}

#[test]
#[cfg(target_os = "linux")]
fn uring_conforms() {
    let folder = Folder::new("uring");
    if has_uring(&folder) {
        conformance::check(|| UringDevice::open(&folder.next(), &options()).unwrap());
        let polling = DriveOptions { poll: true, ..options() };
        conformance::check(|| UringDevice::open(&folder.next(), &polling).unwrap());
        let many_threads = DriveOptions { many_threads: true, ..options() };
        conformance::check(|| UringDevice::open(&folder.next(), &many_threads).unwrap());
    }
}

/// The rule: if a thread submits commands to the kernel and ends, the commands still succeed, and another
/// thread gets their completions.
#[test]
#[cfg(target_os = "linux")]
fn commands_outlive_the_thread_that_submitted_them() {
    use fulgurite_base::{Lpn, Nanos};
    use fulgurite_device::{Command, Operation, Tag};
    const COMMANDS: usize = 30;
    let folder = Folder::new("threads");
    if !has_uring(&folder) {
        return;
    }
    let options = DriveOptions { many_threads: true, ..options() };
    let mut drive = UringDevice::open(&folder.next(), &options).unwrap();
    let parker = drive.parker().expect("a drive of many threads can be waited for");
    for round in 0..8u64 {
        let mut done = Vec::new();
        drive = std::thread::scope(|scope| {
            let submit = || {
                // The thread submits more commands than the kernel's workers begin at once.
                for tag in 0..COMMANDS as u64 {
                    let lpn = Lpn((round + tag) % 100);
                    let operation = match tag % 3 {
                        0 => Operation::write(lpn, 1),
                        1 => Operation::Trim { lpn, pages: 2 },
                        _ => Operation::Flush,
                    };
                    drive.submit(Command { tag: Tag(tag), operation }).unwrap();
                }
                // The deadline is in the past, so all commands are left to `submit`.
                drive.wait(Some(Nanos::ZERO), &mut done);
                parker.submit();
                drive
            };
            scope.spawn(submit).join().unwrap()
        });
        while done.len() < COMMANDS {
            parker.park(None);
            drive.wait(Some(Nanos::ZERO), &mut done);
            parker.submit();
        }
        assert!(done.iter().all(|completion| completion.status.is_ok()), "round {round}: {done:?}");
    }
}

/// The rule: a thread may execute a command itself if it is the only command. The command ends like any
/// other.
#[test]
#[cfg(target_os = "linux")]
fn a_single_command_is_an_errand() {
    use fulgurite_base::{Lpn, Nanos, StreamId};
    use fulgurite_device::{Arena, Command, Done, IoError, Operation, Tag};
    let folder = Folder::new("errands");
    if !has_uring(&folder) {
        return;
    }
    let options = DriveOptions { many_threads: true, queue_depth: 2, ..options() };
    let mut drive = UringDevice::open(&folder.next(), &options).unwrap();
    let arena = Arena::new(8192);
    let (from, into) = (arena.buffer(0, 4096), arena.buffer(4096, 4096));
    // SAFETY: the arena is new, so no other code has its address.
    unsafe { from.bytes_mut() }.fill(7);
    let write = |lpn| Operation::Write {
        lpn,
        pages: 1,
        from: Some(from.clone()),
        stream: StreamId::default(),
        durable: false,
    };
    let read = |lpn| Operation::Read { lpn, pages: 1, into: Some(into.clone()) };
    let submit = |drive: &mut UringDevice, tag, operation| {
        let submitted = drive.submit(Command { tag: Tag(tag), operation });
        submitted.map_err(|_| "the queue is full")
    };
    let mut done = Vec::new();
    for (tag, operation) in [(1, write(Lpn(5))), (2, Operation::Flush), (3, read(Lpn(5)))] {
        submit(&mut drive, tag, operation).unwrap();
        let errand = drive.take_errand(None).expect("it is alone");
        assert!(drive.take_errand(None).is_none(), "an errand is taken only once");
        let ended = std::thread::scope(|scope| scope.spawn(|| errand.run()).join().unwrap());
        assert_eq!(ended, Done { tag: Tag(tag), status: Ok(()) });
        drive.end_errand();
        drive.wait(Some(Nanos::ZERO), &mut done);
        assert!(done.is_empty(), "an errand has no completion");
    }
    // SAFETY: no command is in flight, so the device no longer changes the buffer.
    assert_eq!(unsafe { into.bytes() }, [7; 4096]);
    // The rest of this test checks that errors are reported, that an errand counts for the queue depth, and
    // that several commands are submitted to the ring.
    submit(&mut drive, 4, read(Lpn(1000))).unwrap();
    let outside = drive.take_errand(None).unwrap();
    submit(&mut drive, 5, read(Lpn(5))).unwrap();
    assert!(submit(&mut drive, 6, Operation::Flush).is_err(), "the queue has two places");
    assert_eq!(outside.run().status, Err(IoError::OutOfRange));
    drive.end_errand();
    submit(&mut drive, 6, Operation::Flush).unwrap();
    while done.len() < 2 {
        drive.wait(None, &mut done);
    }
    submit(&mut drive, 7, write(Lpn(1))).unwrap();
    submit(&mut drive, 8, read(Lpn(5))).unwrap();
    assert!(drive.take_errand(None).is_none(), "two commands are submitted to the ring");
    // A thread that names one of two commands gets that command, and the other one is submitted to the ring.
    let meant = drive.take_errand(Some(Tag(7))).expect("the command has not begun");
    drive.wait(None, &mut done);
    assert_eq!(done.last().map(|one| one.tag), Some(Tag(8)));
    assert_eq!(meant.run(), Done { tag: Tag(7), status: Ok(()) });
    drive.end_errand();
    assert!(done.iter().all(|one| one.status.is_ok()), "{done:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_parked_thread_is_woken() {
    let folder = Folder::new("parker");
    if !has_uring(&folder) {
        return;
    }
    let options = DriveOptions { many_threads: true, ..options() };
    let drive = UringDevice::open(&folder.next(), &options).unwrap();
    let parker = drive.parker().expect("a drive of many threads can be waited for");
    // Each call of `unpark` ends one wait, whether the call is made before or after the wait begins.
    std::thread::scope(|scope| {
        scope.spawn(|| parker.unpark());
        parker.park(None);
    });
    let start = std::time::Instant::now();
    parker.park(Some(fulgurite_base::Nanos::from_micros(20_000)));
    assert!(start.elapsed().as_millis() >= 20, "this wait must time out");
}

#[test]
fn files_without_a_mark_are_not_changed() {
    let folder = Folder::new("foreign");
    let path = folder.next();
    let contents = vec![7u8; 100_000];
    fs::write(&path, &contents).unwrap();
    let refused = PsyncDevice::open(&path, &options()).err().unwrap();
    assert!(refused.to_string().contains("--destroy-contents"), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), contents);
    // With `destroy_contents`, the file becomes a drive, and stays one when it is opened without this option.
    let told = DriveOptions { destroy_contents: true, ..options() };
    drop(PsyncDevice::open(&path, &told).unwrap());
    let reopened = PsyncDevice::open(&path, &DriveOptions { pages: None, ..options() }).unwrap();
    assert_eq!(reopened.caps().pages, 128);
}

/// The rule: a file of any length without a mark is refused, even if it is too short for a mark.
#[test]
fn short_files_without_a_mark_are_not_changed() {
    let folder = Folder::new("short");
    for len in [1, 4_095, 4_096, 8_191, 8_192, 12_287] {
        let path = folder.next();
        let contents = vec![7u8; len];
        fs::write(&path, &contents).unwrap();
        let refused = PsyncDevice::open(&path, &options()).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|error| error.contains("--destroy-contents")), "{len} bytes");
        assert_eq!(fs::read(&path).unwrap(), contents, "{len} bytes");
    }
    // An empty file has no contents to lose.
    let path = folder.next();
    fs::write(&path, []).unwrap();
    assert_eq!(PsyncDevice::open(&path, &options()).unwrap().caps().pages, 128);
}

/// The rule: a drive is still recognised after it was opened with more or fewer pages, and keeps its pages.
#[test]
fn a_drive_is_recognised_at_any_size() {
    let folder = Folder::new("sizes");
    let path = folder.next();
    let open = |pages| {
        PsyncDevice::open(&path, &DriveOptions { pages, ..options() }).map(|drive| drive.caps().pages)
    };
    assert_eq!(open(Some(3)).unwrap(), 3);
    let page = vec![9u8; 4096];
    std::os::unix::fs::FileExt::write_all_at(&fs::File::options().write(true).open(&path).unwrap(), &page, 0)
        .unwrap();
    for (asked, pages, bytes) in
        [(Some(1), 1, 4 * 4096), (Some(5), 5, 6 * 4096), (Some(2), 2, 6 * 4096), (None, 5, 6 * 4096)]
    {
        assert_eq!(open(asked).unwrap(), pages);
        assert_eq!(fs::metadata(&path).unwrap().len(), bytes, "{asked:?}");
        assert_eq!(fs::read(&path).unwrap()[..4096], page, "{asked:?}");
    }
    // If the file was extended or cut, the mark is not at the end of the file, and the file is refused.
    for len in [7 * 4096, 3 * 4096, 4096] {
        fs::File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
        assert!(open(Some(5)).unwrap_err().to_string().contains("--destroy-contents"), "{len} bytes");
    }
}

/// The rule: files that cannot store pages are refused with a sentence, without being opened. Opening a pipe
/// would wait for a writer of the pipe.
#[test]
fn pipes_terminals_and_folders_are_refused() {
    let folder = Folder::new("pipes");
    let pipe = folder.next();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_path(), &folder.0, Path::new("/dev/null"), Path::new("/dev/zero")] {
        for told in [false, true] {
            let refused = PsyncDevice::open(path, &DriveOptions { destroy_contents: told, ..options() });
            let refused = refused.err().map(|error| error.to_string());
            assert!(
                refused.as_ref().is_some_and(|error| error.contains("neither a file nor a block device")),
                "{}: {refused:?}",
                path.display()
            );
        }
    }
}

#[test]
fn drives_are_made_grown_and_refused_with_a_reason() {
    let folder = Folder::new("made");
    let path = folder.next();
    let error =
        |options: DriveOptions| PsyncDevice::open(&path, &options).err().map(|error| error.to_string());
    assert!(error(DriveOptions { pages: None, ..options() }).unwrap().contains("size="));
    assert!(!path.exists());
    assert!(error(DriveOptions { page_bytes: 700, ..options() }).unwrap().contains("power of two"));
    assert_eq!(error(options()), None);
    // Enlarging a drive leaves its old pages unchanged.
    assert_eq!(error(DriveOptions { pages: Some(1_000), ..options() }), None);
    assert_eq!(fs::metadata(&path).unwrap().len(), 1_001 * 4096);
    assert!(error(DriveOptions { pages: None, ..options() }).is_none());
    let folder_error = PsyncDevice::open(&folder.0, &options()).err().unwrap().to_string();
    assert!(folder_error.contains("neither a file nor a block device"), "{folder_error}");
}

#[test]
fn a_drive_has_one_user_at_a_time() {
    let folder = Folder::new("lock");
    let path = folder.next();
    let first = PsyncDevice::open(&path, &options()).unwrap();
    let refused = |outcome: Result<PsyncDevice, OpenError>| match outcome {
        Err(OpenError::InUse(drive)) => drive == path,
        _ => false,
    };
    assert!(refused(PsyncDevice::open(&path, &options())));
    // A second user can neither destroy the drive's contents nor enlarge the drive.
    let destroy = DriveOptions { destroy_contents: true, pages: Some(256), ..options() };
    assert!(refused(PsyncDevice::open(&path, &destroy)));
    let before = fs::metadata(&path).unwrap().len();
    drop(first);
    PsyncDevice::open(&path, &destroy).unwrap();
    assert!(fs::metadata(&path).unwrap().len() > before, "the drive can be enlarged when it is closed");
}

/// The rule: if the system refuses a command, every device reports the page at which the command failed.
#[test]
fn a_truncated_file_is_reported_with_the_page() {
    use fulgurite_base::Lpn;
    use fulgurite_device::{Command, Doing, Failure, IoError, Operation, Tag};
    let folder = Folder::new("cut-off");
    let check = |drive: &mut dyn Device, path: &Path| {
        std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(4 * 4096).unwrap();
        drive.submit(Command { tag: Tag(1), operation: Operation::read(Lpn(6), 2) }).unwrap();
        let mut done = Vec::new();
        drive.wait(None, &mut done);
        let failure = Failure { doing: Doing::Read, lpn: Lpn(6), pages: 2, code: None };
        assert_eq!(done[0].status, Err(IoError::System(failure)));
    };
    let path = folder.next();
    check(&mut PsyncDevice::open(&path, &options()).unwrap(), &path);
    #[cfg(target_os = "linux")]
    if has_uring(&folder) {
        let path = folder.next();
        check(&mut UringDevice::open(&path, &options()).unwrap(), &path);
    }
}
