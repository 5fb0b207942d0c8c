//! Requests, faults, snapshots and time.

use fulgurite_base::{Nanos, Prng};
use fulgurite_device::MemDevice;
use fulgurite_disk::{Cache, Completed, CutPoint, Disk, DiskError, Failing, PowerModel, Request};
use fulgurite_ssd::{SimDrive, preset};

const PAGE: u64 = 512;

fn disk() -> Disk<MemDevice, u64> {
    Disk::new(MemDevice::new(128, PAGE as u32, 4, Nanos(10)), PowerModel::of(Cache::Volatile))
}

/// Submits a request and returns its completion.
fn done<D: fulgurite_device::Device>(disk: &mut Disk<D, u64>, request: Request<'_>) -> Completed<u64> {
    let mut completed = Vec::new();
    disk.submit(request, 5);
    assert!(disk.finish(&mut completed));
    assert_eq!(completed.len(), 1);
    completed[0]
}

fn bytes<D: fulgurite_device::Device>(disk: &Disk<D, u64>, offset: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    disk.copy(offset, length, &mut bytes);
    bytes
}

/// The rule: a disk holds what an array of bytes holds, whatever the alignment and length of its requests. A trim
/// discards only whole pages.
#[test]
fn a_disk_is_an_array_of_bytes() {
    let mut disk = disk();
    let size = disk.bytes();
    let mut array = vec![0u8; size as usize];
    let mut random = Prng::new(3, "bytes");
    for step in 0..3_000u64 {
        let offset = random.below(size);
        let length = random.below((size - offset + 1).min(5 * PAGE));
        let (from, to) = (offset as usize, (offset + length) as usize);
        match random.below(4) {
            0 => {
                let data: Vec<u8> = (0..length).map(|at| (at + step) as u8).collect();
                array[from..to].copy_from_slice(&data);
                done(&mut disk, Request::Write { offset, data: &data, durable: step % 2 == 0 });
            }
            1 => {
                array[from..to].fill(0);
                done(&mut disk, Request::Zero { offset, length, durable: false, trim: step % 2 == 0 });
            }
            2 => {
                let (first, end) = (offset.div_ceil(PAGE) * PAGE, (offset + length) / PAGE * PAGE);
                if first < end {
                    array[first as usize..end as usize].fill(0);
                }
                done(&mut disk, Request::Trim { offset, length, durable: false });
            }
            _ => {
                let read = done(&mut disk, Request::Read { offset, length });
                let pages = if length == 0 { 0 } else { (offset + length).div_ceil(PAGE) - offset / PAGE };
                assert_eq!((u64::from(read.pages), read.status), (pages, Ok(())));
                assert_eq!(bytes(&disk, offset, length as usize), array[from..to]);
            }
        }
    }
    // The extents of the disk cover it, and those without contents are zeros.
    let mut at = 0;
    while at < size {
        let (length, is_written) = disk.extent(at, size - at);
        assert!(length > 0);
        assert!(is_written || array[at as usize..(at + length) as usize].iter().all(|byte| *byte == 0));
        at += length;
    }
    assert_eq!(
        done(&mut disk, Request::Read { offset: size - 1, length: 2 }).status,
        Err(DiskError::OutOfRange)
    );
    assert_eq!(
        done(&mut disk, Request::Read { offset: u64::MAX, length: 2 }).status,
        Err(DiskError::OutOfRange)
    );
}

/// The rule: a write of a part of a page takes the time of a read and a write, a write of whole pages that of a write,
/// and a request longer than a command that of several commands.
#[test]
fn a_part_of_a_page_is_read_before_it_is_written() {
    let mut disk = disk();
    let took = |completed: Completed<u64>| (completed.at - completed.submitted).0;
    let write = |offset, data| Request::Write { offset, data, durable: false };
    assert_eq!(took(done(&mut disk, write(PAGE, &[1; 512]))), 10);
    assert_eq!(took(done(&mut disk, write(PAGE, &[1; 511]))), 20);
    assert_eq!(took(done(&mut disk, write(PAGE + 1, &[1; 511]))), 20);
    // A durable write of a device without durable writes needs a flush.
    assert_eq!(took(done(&mut disk, Request::Write { offset: 0, data: &[1; 512], durable: true })), 20);
    // Whole pages in the middle, and two parts, which are read at once.
    assert_eq!(took(done(&mut disk, write(3, &[1; 2048]))), 20);
}

/// The rule: requests complete at the times of the device's commands, and `advance` passes no completion that is due.
#[test]
fn time_is_that_of_the_device() {
    let mut disk = disk();
    let mut completed = Vec::new();
    // The queue takes four commands, so the fifth begins when they have ended.
    for token in 0..5 {
        disk.submit(Request::Read { offset: token * PAGE, length: PAGE }, token);
    }
    assert_eq!(disk.next_event(), Some(Nanos(10)));
    disk.advance(Nanos(9), &mut completed);
    assert!(completed.is_empty());
    disk.advance(Nanos(19), &mut completed);
    assert_eq!(completed.iter().map(|done| done.token).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(completed.iter().all(|done| done.at == Nanos(10)));
    disk.faults_mut().delay = Nanos(100);
    assert_eq!(disk.next_event(), Some(Nanos(20)));
    disk.advance(Nanos(1_000), &mut completed);
    assert_eq!((completed[4].token, completed[4].at), (4, Nanos(120)));
    assert_eq!((disk.now(), disk.next_event(), disk.in_flight()), (Nanos(1_000), None, 0));
}

/// The rule: each fault strikes the requests that it names, as often as it says, and nothing else.
#[test]
fn faults_strike_what_they_name() {
    let mut disk = disk();
    let write = |disk: &mut Disk<MemDevice, u64>, page: u64, value: u8| {
        done(disk, Request::Write { offset: page * PAGE, data: &[value; 512], durable: false }).status
    };
    let medium = Err(DiskError::Device(fulgurite_device::IoError::Media));
    (0..4).for_each(|page| assert_eq!(write(&mut disk, page, 1), Ok(())));
    disk.faults_mut().reads.push(Failing { offset: 2 * PAGE, length: PAGE, times: 2 });
    let mut read = |offset, length| done(&mut disk, Request::Read { offset, length }).status;
    assert_eq!([read(0, 2 * PAGE), read(3 * PAGE, PAGE)], [Ok(()); 2]);
    assert_eq!([read(0, 2 * PAGE + 1), read(3 * PAGE - 1, 1), read(2 * PAGE, 1)], [medium, medium, Ok(())]);
    disk.faults_mut().writes.push(Failing { offset: 0, length: 1, times: 1 });
    assert_eq!([write(&mut disk, 0, 9), write(&mut disk, 0, 2)], [medium, Ok(())]);
    disk.faults_mut().is_full = true;
    assert_eq!(write(&mut disk, 1, 9), Err(DiskError::NoSpace));
    disk.faults_mut().is_full = false;
    disk.faults_mut().lost_writes = 1;
    assert_eq!([write(&mut disk, 1, 9), write(&mut disk, 2, 2)], [Ok(()); 2]);
    disk.faults_mut().misdirected_writes = 1;
    assert_eq!(write(&mut disk, 2, 3), Ok(()));
    assert!(disk.rot(5, 0));
    assert!(!disk.rot(100 * PAGE, 0) && !disk.rot(u64::MAX, 0));
    let page = |page: u64| bytes(&disk, page * PAGE, 512);
    assert_eq!(page(0)[4..7], [2, 3, 2]);
    let values = [1, 2, 3, 4].map(|at| page(at)[0]);
    assert_eq!(values, [1, 2, 1, 3]);
}

/// The rule: the power is due to be cut at the point that was named: the nth write or flush, a write to a range, or
/// a flush with so many unflushed pages.
#[test]
fn a_cut_is_due_at_its_point() {
    let after = |point, requests: &[&str]| {
        let mut disk = disk();
        done(&mut disk, Request::Write { offset: 0, data: &[1; 512], durable: false });
        disk.cut_at(point);
        requests.iter().position(|request| {
            match *request {
                "flush" => disk.submit(Request::Flush, 0),
                "read" => disk.submit(Request::Read { offset: 3 * PAGE, length: PAGE }, 0),
                "trim" => disk.submit(Request::Trim { offset: 3 * PAGE, length: PAGE, durable: false }, 0),
                page => {
                    let offset = page.parse::<u64>().unwrap() * PAGE;
                    disk.submit(Request::Write { offset, data: &[1; 512], durable: false }, 0);
                }
            }
            let is_due = disk.is_cut_due();
            disk.finish(&mut Vec::new());
            is_due
        })
    };
    let requests = ["1", "read", "flush", "2", "flush", "trim", "3", "4", "flush", "flush"];
    assert_eq!(after(CutPoint::Write(1), &requests), Some(0));
    assert_eq!(after(CutPoint::Write(3), &requests), Some(5));
    assert_eq!(after(CutPoint::Write(9), &requests), None);
    assert_eq!(after(CutPoint::Flush(2), &requests), Some(4));
    assert_eq!(after(CutPoint::WriteTo { offset: 3 * PAGE + 5, length: 1 }, &requests), Some(5));
    assert_eq!(after(CutPoint::WriteTo { offset: 4 * PAGE, length: 1 }, &requests), Some(7));
    assert_eq!(after(CutPoint::Unflushed(2), &requests), Some(2));
    assert_eq!(after(CutPoint::Unflushed(3), &requests), None);
}

/// The rule: a snapshot holds the contents of its time, and restoring it leaves nothing that a cut could lose.
#[test]
fn a_snapshot_brings_the_contents_back() {
    let mut disk = disk();
    let write = |disk: &mut Disk<MemDevice, u64>, value: u8| {
        disk.submit(Request::Write { offset: 700, data: &[value; 2_000], durable: false }, 0);
    };
    write(&mut disk, 1);
    disk.finish(&mut Vec::new());
    let (snapshot, before) = (disk.snapshot().unwrap(), bytes(&disk, 0, 8_192));
    write(&mut disk, 2);
    assert!(!disk.restore(&snapshot));
    disk.finish(&mut Vec::new());
    assert!(disk.restore(&snapshot));
    assert_eq!((bytes(&disk, 0, 8_192), disk.pieces().len()), (before, 0));
    let other: Disk<MemDevice, u64> =
        Disk::new(MemDevice::new(4_096, 512, 4, Nanos(10)), PowerModel::of(Cache::Volatile));
    assert!(!disk.restore(&other.snapshot().unwrap()));
}

/// The rule: requests on a simulated drive take its latencies, also while it collects garbage, and none is lost.
#[test]
fn a_simulated_drive_completes_every_request() {
    let config = preset::configure(fulgurite_base::Spec::parse("virtual:blocks=20").unwrap()).unwrap();
    let drive = SimDrive::new(config, 7, false).unwrap();
    let mut disk: Disk<SimDrive, u64> = Disk::new(drive, PowerModel::of(Cache::Protected));
    let (page, pages) = (disk.page_bytes(), disk.bytes() / disk.page_bytes());
    let mut random = Prng::new(1, "drive");
    let mut completed = Vec::new();
    for token in 0..4_000 {
        let offset = random.below(pages) * page;
        match token % 4 {
            0 => disk.submit(Request::Read { offset, length: page }, token),
            1 if token % 8 == 1 => disk.submit(Request::Flush, token),
            _ => disk.submit(Request::Write { offset, data: &vec![1; page as usize], durable: false }, token),
        }
        let next = disk.next_event().unwrap();
        disk.advance(next, &mut completed);
    }
    assert!(disk.finish(&mut completed));
    let mut tokens: Vec<u64> = completed.iter().map(|done| done.token).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, (0..4_000).collect::<Vec<_>>());
    assert!(completed.iter().all(|done| done.status == Ok(()) && done.at > done.submitted));
    assert!(completed.windows(2).all(|pair| pair[0].at <= pair[1].at));
    let counters = disk.device().counters();
    assert!(counters.gc_pages_copied > 0, "{counters:?}");
}
