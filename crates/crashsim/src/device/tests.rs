//! Tests that the drive keeps the guarantees of its fault model, and no others.

use super::*;
use fulgurite_base::StreamId;
use fulgurite_device::{Arena, conformance};

fn config(protected: bool) -> CrashConfig {
    CrashConfig {
        durable_writes: true,
        page_bytes: 4096,
        pages: 128,
        queue_depth: 8,
        pages_per_command: 8,
        share_pages: 16,
        atomic_bytes: 0,
        protected,
        stalls: Stalls::FEW,
        uneven: false,
    }
}

fn submit(device: &mut CrashDevice, tag: u64, operation: Operation) {
    device.submit(Command { tag: Tag(tag), operation }).expect("the queue has room");
}

fn drain(device: &mut CrashDevice) -> Vec<Completion> {
    let mut completions = Vec::new();
    while !device.core.borrow().flights.is_empty() {
        device.wait(None, &mut completions);
    }
    completions
}

fn write(device: &mut CrashDevice, lpn: u64, pages: usize, byte: u8) {
    write_bytes(device, lpn, &vec![byte; pages * 4096]);
}

fn write_bytes(device: &mut CrashDevice, lpn: u64, bytes: &[u8]) {
    let buffer = Arena::new(bytes.len()).buffer(0, bytes.len());
    // SAFETY: the buffer is new and has no other user.
    unsafe { buffer.bytes_mut() }.copy_from_slice(bytes);
    let stream = StreamId::default();
    let pages = (bytes.len() / 4096) as u32;
    submit(device, 1, Operation::Write { lpn: Lpn(lpn), pages, from: Some(buffer), stream, durable: false });
}

fn read(device: &mut CrashDevice, lpn: u64) -> Result<Vec<u8>, IoError> {
    let buffer = Arena::new(4096).buffer(0, 4096);
    submit(device, 2, Operation::Read { lpn: Lpn(lpn), pages: 1, into: Some(buffer.clone()) });
    let completion = drain(device).pop().expect("one command was under way");
    // SAFETY: the read has completed.
    completion.status.map(|()| unsafe { buffer.bytes() }.to_vec())
}

fn flush(device: &mut CrashDevice) {
    submit(device, 3, Operation::Flush);
    drain(device);
}

/// Returns the number of power cuts that left page 5 old, new and mixed. `before` sets up the drive. Page 5
/// contained ones and is overwritten with twos.
fn outcomes(config: &CrashConfig, before: impl Fn(&mut CrashDevice)) -> [u32; 3] {
    let mut counts = [0; 3];
    for seed in 0..400 {
        let mut device = CrashDevice::new(config.clone(), Prng::new(seed, "device"));
        write(&mut device, 5, 1, 1);
        drain(&mut device);
        flush(&mut device);
        before(&mut device);
        device.restart(None, Vec::new(), u64::MAX);
        let page = read(&mut device, 5).unwrap();
        let old = page.iter().filter(|byte| **byte == 1).count();
        assert!(page.iter().all(|byte| [1, 2].contains(byte)) && old % medium::SECTOR == 0);
        counts[if old == 4096 {
            0
        } else if old == 0 {
            1
        } else {
            2
        }] += 1;
    }
    counts
}

fn write_and_wait(device: &mut CrashDevice) {
    write(device, 5, 1, 2);
    drain(device);
}

#[test]
fn it_conforms_to_the_device_interface() {
    conformance::check(|| CrashDevice::new(config(true), Prng::new(1, "device")));
    conformance::check(|| {
        CrashDevice::new(CrashConfig { share_pages: 0, ..config(false) }, Prng::new(2, "device"))
    });
}

#[test]
fn a_volatile_cache_loses_keeps_and_tears_unflushed_writes() {
    assert!(outcomes(&config(false), write_and_wait).iter().all(|count| *count > 20));
    let flushed = |device: &mut CrashDevice| {
        write_and_wait(device);
        flush(device);
    };
    assert_eq!(outcomes(&config(false), flushed), [0, 400, 0]);
}

#[test]
fn a_durable_write_needs_no_flush_and_makes_nothing_else_durable() {
    let durable = |lpn: u64, device: &mut CrashDevice| {
        let buffer = Arena::new(4096).buffer(0, 4096);
        // SAFETY: the buffer is new and has no other user.
        unsafe { buffer.bytes_mut() }.fill(2);
        let (lpn, from, stream) = (Lpn(lpn), Some(buffer), StreamId::default());
        submit(device, 1, Operation::Write { lpn, pages: 1, from, stream, durable: true });
        drain(device);
    };
    assert_eq!(outcomes(&config(false), |device| durable(5, device)), [0, 400, 0]);
    let beside = |device: &mut CrashDevice| {
        write_and_wait(device);
        durable(6, device);
    };
    assert!(outcomes(&config(false), beside).iter().all(|count| *count > 20));
}

#[test]
fn a_flush_covers_only_writes_completed_before_its_submission() {
    let beside = |device: &mut CrashDevice| {
        write(device, 5, 1, 2);
        flush(device);
    };
    assert!(outcomes(&config(false), beside).iter().all(|count| *count > 20));
}

#[test]
fn a_protected_cache_keeps_exactly_the_acknowledged_writes() {
    assert_eq!(outcomes(&config(true), write_and_wait), [0, 400, 0]);
    let under_way = |device: &mut CrashDevice| write(device, 5, 1, 2);
    assert!(outcomes(&config(true), under_way).iter().all(|count| *count > 20));
}

#[test]
fn an_atomic_write_is_never_torn() {
    for protected in [false, true] {
        let config = CrashConfig { atomic_bytes: 4096, ..config(protected) };
        let [old, new, torn] = outcomes(&config, |device| write(device, 5, 1, 2));
        assert!(old > 20 && new > 20 && torn == 0);
    }
    // Two pages that are written together at an even address are always kept or lost together; at an odd
    // address they are not.
    let together = |lpn: u64| {
        (0..200).all(|seed| {
            let config = CrashConfig { atomic_bytes: 8192, ..config(false) };
            let mut device = CrashDevice::new(config, Prng::new(seed, "device"));
            write(&mut device, lpn, 2, 2);
            device.restart(None, Vec::new(), u64::MAX);
            read(&mut device, lpn).unwrap() == read(&mut device, lpn + 1).unwrap()
        })
    };
    assert!(together(6) && !together(7));
}

#[test]
fn a_share_is_durable_and_makes_earlier_writes_to_its_sources_durable() {
    let share = |device: &mut CrashDevice| {
        write(device, 9, 1, 2);
        drain(device);
        submit(device, 4, Operation::share(Lpn(5), Lpn(9), 1));
        drain(device);
    };
    assert_eq!(outcomes(&config(false), share), [0, 400, 0]);
}

/// The rule: a power cut keeps all runs of a SHARE command or none, whether the command was in flight or
/// completed.
#[test]
fn a_share_of_several_runs_is_kept_whole_or_not_at_all() {
    let runs = |order: &[(u64, u64)]| {
        let run = |&(destination, source)| ShareRun {
            destination: Lpn(destination),
            source: Lpn(source),
            pages: 2,
        };
        Operation::Share { runs: order.iter().map(run).collect() }
    };
    let mut kept = 0;
    for seed in 0..400 {
        let config = CrashConfig { protected: seed % 2 == 0, ..config(true) };
        let mut device = CrashDevice::new(config, Prng::new(seed, "device"));
        for lpn in [40, 10, 20, 60, 6] {
            write(&mut device, lpn, 2, if lpn == 40 || lpn == 60 { 2 } else { 1 });
        }
        drain(&mut device);
        flush(&mut device);
        submit(&mut device, 4, runs(&[(10, 40), (6, 60), (20, 40)]));
        // Half of the power cuts happen while the SHARE command is in flight.
        if seed % 4 < 2 {
            drain(&mut device);
        }
        device.restart(None, Vec::new(), u64::MAX);
        let pages = [6, 7, 10, 11, 20, 21].map(|lpn| read(&mut device, lpn).unwrap()[0]);
        assert!(pages == [1; 6] || pages == [2; 6], "seed {seed}: {pages:?}");
        assert!(seed % 4 >= 2 || pages == [2; 6], "seed {seed}: a completed share is durable");
        kept += u32::from(seed % 4 >= 2 && pages == [2; 6]);
    }
    assert!((60..140).contains(&kept), "{kept} of 200 that were under way");
}

#[test]
fn a_failed_flush_loses_part_of_the_cache() {
    let fails = |device: &mut CrashDevice| {
        device.core.borrow_mut().faults = vec![Fault { kind: FaultKind::FlushError, nth: 1 }];
        write_and_wait(device);
        flush(device);
        // The second flush succeeds, but does not restore the writes that the failed one lost.
        flush(device);
    };
    let [old, new, torn] = outcomes(&config(false), fails);
    assert!(old > 100 && new > 100 && torn == 0);
}

/// Returns a drive on which one fault will strike the next command of its kind. Page 5 contained ones, then
/// twos; page 6 contains threes.
fn struck(kind: FaultKind) -> CrashDevice {
    let mut device = CrashDevice::new(config(true), Prng::new(3, "device"));
    write(&mut device, 6, 1, 3);
    write(&mut device, 5, 1, 1);
    drain(&mut device);
    write(&mut device, 5, 1, 2);
    drain(&mut device);
    device.restart(None, vec![Fault { kind, nth: 0 }], u64::MAX);
    device
}

#[test]
fn read_faults_are_transient_and_rot_is_permanent() {
    let mut device = struck(FaultKind::ReadError);
    assert_eq!(read(&mut device, 5), Err(IoError::Media));
    assert_eq!(read(&mut device, 5), Ok(vec![2; 4096]));
    let mut device = struck(FaultKind::StaleRead);
    assert_eq!(read(&mut device, 5), Ok(vec![2; 4096]), "older versions went with the power");
    write(&mut device, 5, 1, 3);
    drain(&mut device);
    device.arm(None, vec![Fault { kind: FaultKind::StaleRead, nth: 0 }], u64::MAX);
    assert_eq!(read(&mut device, 5), Ok(vec![2; 4096]));
    assert_eq!(read(&mut device, 5), Ok(vec![3; 4096]));
    let mut device = struck(FaultKind::MisdirectedRead);
    assert_ne!(read(&mut device, 5), Ok(vec![2; 4096]));
    assert_eq!(read(&mut device, 5), Ok(vec![2; 4096]));
    let mut device = struck(FaultKind::Rot);
    let rotten = read(&mut device, 5).unwrap();
    assert_eq!(rotten.iter().filter(|byte| **byte != 2).count(), 1);
    device.restart(None, Vec::new(), u64::MAX);
    assert_eq!(read(&mut device, 5), Ok(rotten));
    assert_eq!(device.struck(), [FaultKind::Rot]);
}

#[test]
fn misdirected_reads_return_other_versions() {
    for share_pages in [0, 16] {
        let versions = (0..40).filter(|seed| {
            let config = CrashConfig { share_pages, ..config(true) };
            let mut device = CrashDevice::new(config, Prng::new(*seed, "device"));
            // Both pages contain the same page number, so they are versions of one page.
            let mut version = vec![9; 4096];
            version[8..16].fill(1);
            write(&mut device, 5, 1, 1);
            write_bytes(&mut device, 7, &version);
            drain(&mut device);
            device.arm(None, vec![Fault { kind: FaultKind::MisdirectedRead, nth: 0 }], u64::MAX);
            read(&mut device, 5) == Ok(version)
        });
        let versions = versions.count();
        assert!(
            if share_pages > 0 { versions == 0 } else { (10..=30).contains(&versions) },
            "{versions}, shares {share_pages}"
        );
    }
}

#[test]
fn silent_write_faults_are_acknowledged() {
    for kind in [FaultKind::LostWrite, FaultKind::MisdirectedWrite] {
        let mut device = struck(kind);
        write(&mut device, 5, 1, 9);
        assert_eq!(drain(&mut device)[0].status, Ok(()));
        assert_eq!(read(&mut device, 5), Ok(vec![2; 4096]));
        let elsewhere = (0..128).any(|lpn| read(&mut device, lpn) == Ok(vec![9; 4096]));
        assert_eq!(elsewhere, kind == FaultKind::MisdirectedWrite);
    }
}

#[test]
fn the_power_is_cut_at_the_given_event_and_nothing_completes_after_it() {
    let mut device = CrashDevice::new(config(true), Prng::new(4, "device"));
    device.restart(Some(4), Vec::new(), u64::MAX);
    for lpn in 0..3 {
        write(&mut device, lpn, 1, 7);
    }
    assert!(device.powered());
    let completed = drain(&mut device).len();
    assert_eq!((completed, device.powered()), (1, false));
    write(&mut device, 9, 1, 7);
    let mut completions = Vec::new();
    device.wait(Some(Nanos::MAX), &mut completions);
    assert!(completions.is_empty());
    device.restart(None, Vec::new(), u64::MAX);
    assert_eq!(read(&mut device, 9), Ok(vec![0; 4096]));
}

#[test]
fn a_buffer_that_changes_under_a_write_is_noticed() {
    let mut device = CrashDevice::new(config(true), Prng::new(5, "device"));
    let buffer = Arena::new(4096).buffer(0, 4096);
    let stream = StreamId::default();
    submit(
        &mut device,
        1,
        Operation::Write { lpn: Lpn(0), pages: 1, from: Some(buffer.clone()), stream, durable: false },
    );
    // SAFETY: this breaks the protocol deliberately. There is one thread and no other reference.
    let bytes = unsafe { buffer.bytes_mut() };
    bytes[17] = 1;
    drain(&mut device);
    assert!(device.misuse().is_some());
}
