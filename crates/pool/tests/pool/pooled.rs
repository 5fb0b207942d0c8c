//! Tests of a pool before a drive as a device of its own.

use crate::common::{PAGE_BYTES, config, mem};
use crate::write_backs;
use fulgurite_base::{Lpn, Nanos, Prng, Spec};
use fulgurite_device::{Arena, Command, Completion, Device, MemDevice, Operation, Tag, conformance};
use fulgurite_pool::{PooledDevice, WriteBack};
use fulgurite_ssd::SimDrive;

fn pooled<D: Device + 'static>(device: D, frames: u32, write_back: WriteBack) -> PooledDevice<D> {
    PooledDevice::new(device, config(frames, write_back)).unwrap()
}

/// Returns a small flash drive without contents.
fn flash() -> SimDrive {
    let config = "reference-e:page=512B,blocks=32,pages=8,channels=2";
    let config = fulgurite_ssd::preset::configure(Spec::parse(config).unwrap()).unwrap();
    SimDrive::new(config, 42, false).unwrap()
}

/// Submits the operations at once, and returns their completions when all have completed.
fn complete<D: Device>(device: &mut D, operations: impl IntoIterator<Item = Operation>) -> Vec<Completion> {
    let mut expected = 0;
    for operation in operations {
        device.submit(Command { tag: Tag(expected), operation }).unwrap();
        expected += 1;
    }
    let mut completions = Vec::new();
    while (completions.len() as u64) < expected {
        device.wait(None, &mut completions);
    }
    assert!(completions.iter().all(|completion| completion.status.is_ok()), "{completions:?}");
    completions
}

fn write(lpn: u64, value: u8) -> Operation {
    let from = Arena::new(PAGE_BYTES as usize).buffer(0, PAGE_BYTES as usize);
    // SAFETY: no command uses the new buffer yet.
    unsafe { from.bytes_mut() }.fill(value);
    Operation::Write { lpn: Lpn(lpn), pages: 1, from: Some(from), stream: Default::default(), durable: false }
}

fn trim(lpn: u64, pages: u32) -> Operation {
    Operation::Trim { lpn: Lpn(lpn), pages }
}

fn read(device: &mut impl Device, lpn: u64) -> u8 {
    let into = Arena::new(PAGE_BYTES as usize).buffer(0, PAGE_BYTES as usize);
    complete(device, [Operation::Read { lpn: Lpn(lpn), pages: 1, into: Some(into.clone()) }]);
    // SAFETY: the read has completed.
    let bytes = unsafe { into.bytes() };
    bytes[PAGE_BYTES as usize - 1]
}

/// The rule: a drive behind a pool is a device as any other, with few and with many frames.
#[test]
fn a_drive_behind_a_pool_conforms() {
    for write_back in write_backs() {
        for frames in [4, 64] {
            conformance::check_simulated(|| pooled(mem(128), frames, write_back.clone()));
        }
        conformance::check_simulated(|| pooled(flash(), 6, write_back.clone()));
    }
}

/// The rule: a page has the bytes of its last write, and zeros after a trim. A loss takes back what was not flushed,
/// and nothing else; what a loss keeps is what the drive below has.
#[test]
fn a_loss_takes_back_what_was_not_flushed() {
    for write_back in write_backs() {
        // As many frames as pages, so that nothing is written before a flush.
        for (frames, may_write) in [(6, true), (40, false)] {
            let mut device = pooled(mem(32), frames, write_back.clone());
            // For each page the values since the last flush, of which that of the flush is the first.
            let mut values = vec![vec![0]; 32];
            let mut random = Prng::new(1, "pooled");
            for round in 0..3_000_u32 {
                let lpn = random.below(32) as usize;
                match random.below(16) {
                    0 => {
                        complete(&mut device, [trim(lpn as u64, 1)]);
                        // The drive below forgets a trimmed page at once.
                        values[lpn] = vec![0];
                    }
                    1 => {
                        complete(&mut device, [Operation::Flush]);
                        values.iter_mut().for_each(|of| *of = of.split_off(of.len() - 1));
                    }
                    2 => {
                        device.lose();
                        for (lpn, of) in values.iter_mut().enumerate() {
                            let kept = read(&mut device, lpn as u64);
                            // A page may reach the drive before a flush, if another one needs its frame.
                            assert!(kept == of[0] || may_write && of.contains(&kept), "page {lpn}, {round}");
                            *of = vec![kept];
                        }
                    }
                    3..=8 => {
                        let value = (round % 255) as u8 + 1;
                        complete(&mut device, [write(lpn as u64, value)]);
                        values[lpn].push(value);
                    }
                    _ => assert_eq!(
                        Some(&read(&mut device, lpn as u64)),
                        values[lpn].last(),
                        "page {lpn}, {round}"
                    ),
                }
            }
        }
    }
}

/// The rule: a trim beside a read or a write-back of the same page leaves zeros, also in the pool.
#[test]
fn a_trim_discards_a_page_in_motion() {
    for write_back in write_backs() {
        let mut device = pooled(mem(64), 4, write_back);
        complete(&mut device, [write(5, 7), Operation::Flush]);
        device.lose();
        complete(&mut device, [Operation::read(Lpn(5), 1), trim(5, 1)]);
        assert_eq!(read(&mut device, 5), 0, "a read brought the page back");
        complete(&mut device, (0..4).map(|lpn| write(lpn, 7)));
        // These displace dirty pages, whose writes are under way when the trim comes.
        complete(&mut device, (10..14).map(|lpn| write(lpn, 8)).chain([trim(0, 4)]));
        assert_eq!([0, 1, 2, 3].map(|lpn| read(&mut device, lpn)), [0; 4]);
        // A trim of more pages than frames takes another way to the pages.
        complete(&mut device, [write(20, 9), write(63, 9)]);
        complete(&mut device, [trim(1, 62)]);
        assert_eq!([10, 13, 20, 62, 63].map(|lpn| read(&mut device, lpn)), [0, 0, 0, 0, 9]);
    }
}

/// The rule: a rewritten page is written to the drive once, a trimmed one never, and a write reads nothing.
#[test]
fn the_drive_below_gets_what_is_left() {
    let mut device = pooled(flash(), 20, WriteBack::SINGLE);
    for _ in 0..5 {
        complete(&mut device, [Operation::write(Lpn(3), 4)]);
    }
    complete(&mut device, [trim(4, 2), Operation::Flush]);
    let counters = device.counters();
    assert_eq!((counters.hits, counters.misses, counters.pages_read, counters.pages_flushed), (16, 4, 0, 2));
    let below = device.with_below(|drive| {
        drive.settle();
        drive.counters()
    });
    assert_eq!((below.host_pages_written, below.flash_pages_read), (2, 0));
    complete(&mut device, [Operation::write(Lpn(0), 1)]);
    device.write_back().unwrap();
    assert_eq!(device.pool().counters().pages_flushed, 3);
}

/// The rule: a hit takes no time, and a miss takes that of the drive.
#[test]
fn only_misses_take_time() {
    let mut device = pooled(MemDevice::new(64, PAGE_BYTES, 8, Nanos(10_000)), 8, WriteBack::SINGLE);
    let mut at = |operation| complete(&mut device, [operation])[0].at;
    let times = [Operation::write(Lpn(0), 8), Operation::read(Lpn(0), 8), Operation::read(Lpn(8), 1)];
    assert_eq!(times.map(&mut at), [Nanos(0), Nanos(0), Nanos(20_000)], "the last evicts a dirty page");
}
