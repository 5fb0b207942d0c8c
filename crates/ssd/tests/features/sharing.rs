//! Tests of shared pages.

use super::*;

#[test]
fn shared_pages_change_independently() {
    let mut stamped = Stamped::new(small());
    stamped.write(1, 11).unwrap();
    stamped.share(2, 1, 1);
    stamped.share(3, 2, 1);
    assert_eq!(stamped.drive.counters().host_pages_written, 1, "sharing writes nothing");
    assert_eq!(stamped.drive.counters().shared_pages, 2);
    stamped.write(1, 12).unwrap();
    assert_eq!([1, 2, 3].map(|lpn| stamped.read(lpn)), [12, 11, 11]);
    stamped.run(Operation::Trim { lpn: Lpn(2), pages: 1 }).unwrap();
    assert_eq!([1, 2, 3].map(|lpn| stamped.read(lpn)), [12, 0, 11]);
    // Sharing an empty page empties the destination.
    stamped.share(3, 2, 1);
    assert_eq!([1, 2, 3].map(|lpn| stamped.read(lpn)), [12, 0, 0]);
    stamped.verify();
    // Sharing a page with one that has the same physical page changes nothing, whether or not that page has
    // other sharers.
    (0..4).for_each(|lpn| stamped.write(lpn, 100 + lpn).unwrap());
    stamped.share(4, 0, 4);
    stamped.share(0, 4, 4);
    assert_eq!(
        [0, 1, 2, 3, 4, 5, 6, 7].map(|lpn| stamped.read(lpn)),
        [100, 101, 102, 103, 100, 101, 102, 103]
    );
    stamped.verify();
}

/// The rule: logical pages that share a physical page are read from it once, and each of them gets its bytes.
#[test]
fn pages_that_share_a_place_are_read_once() {
    let mut stamped = Stamped::new(small());
    stamped.write(1, 11).unwrap();
    stamped.share(2, 1, 1);
    stamped.drive.settle();
    let before = stamped.drive.counters();
    let arena = Arena::new(2 * stamped.bytes);
    let both = arena.buffer(0, 2 * stamped.bytes);
    stamped.run(Operation::Read { lpn: Lpn(1), pages: 2, into: Some(both.clone()) }).unwrap();
    // SAFETY: the read has completed.
    let bytes = unsafe { both.bytes() };
    let stamp = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!([stamp(0), stamp(stamped.bytes)], [11, 11]);
    assert_eq!(stamped.drive.counters().since(&before).flash_pages_read, 1);
}

/// The rule: a power cut at any time keeps all runs of a share or none, and keeps completed shares. The
/// destinations then hold the flushed contents of the sources, and the sources hold their latest writes.
#[test]
fn a_power_cut_keeps_a_share_whole_or_not_at_all() {
    for cache in ["protected", "volatile", "off"] {
        let mut counts = [0; 2];
        for cut_us in 0..80 {
            let options = format!("write_cache={cache},write_command_us=20,write_latency_us=9");
            let mut stamped = Stamped::new(with(&options));
            (0..40).for_each(|lpn| stamped.write(lpn, 100 + lpn).unwrap());
            stamped.run(Operation::Flush).unwrap();
            (0..20).for_each(|lpn| stamped.write(lpn, 200 + lpn).unwrap());
            let run = |page: u64| ShareRun { destination: Lpn(39 - page), source: Lpn(page), pages: 1 };
            let operation = Operation::Share { runs: (0..20).map(run).collect() };
            stamped.drive.submit(Command { tag: Tag(1), operation }).unwrap();
            let mut completions = Vec::new();
            let cut_at = stamped.drive.now() + Nanos::from_micros(10 * cut_us);
            stamped.drive.wait(Some(cut_at), &mut completions);
            stamped.drive.power_cut();
            let got: Vec<u64> = (0..20).map(|page| stamped.read(39 - page)).collect();
            let is_new = got.iter().copied().eq(200..220);
            let is_old = got.iter().copied().eq((0..20).map(|page| 139 - page));
            assert!(is_new || is_old, "{cache} after {cut_us}0 us: {got:?}");
            assert!(is_new || completions.is_empty(), "{cache} after {cut_us}0 us: it had completed");
            counts[usize::from(is_new)] += 1;
            stamped.drive.verify(true).unwrap();
        }
        assert!(counts.iter().all(|count| *count > 0), "{cache}: {counts:?}");
    }
}

/// The rule: the limit of pages in one share is the option's value, by default the published number, and 0 if
/// pages cannot leave their unit.
#[test]
fn the_pages_of_a_share_are_limited_by_the_options() {
    let pages = |options: &str| with(options).caps(true).share_pages;
    assert_eq!(small().caps(true).share_pages, 250);
    assert_eq!([pages("share_pages=16"), pages("share_pages=0")], [16, 0]);
    assert_eq!([pages("gc_unit=channel,stripe=address"), pages("planes=1,in_place=yes")], [0, 0]);
    for (share_pages, expected) in [(3, Ok(())), (2, Err(IoError::Invalid)), (0, Err(IoError::Unsupported))] {
        let mut stamped = Stamped::new(with(&format!("share_pages={share_pages}")));
        assert_eq!(stamped.run(Operation::share(Lpn(10), Lpn(0), 3)), expected, "{share_pages}");
    }
}

/// The rule: a share takes the time of a command, and of 16 bytes for each of its pages.
#[test]
fn a_share_takes_a_command_and_the_list_of_its_pages() {
    let mut stamped = Stamped::new(with("write_command_us=5,write_page_us=256,write_latency_us=40"));
    let list = |pages: u64| 256_000 * 16 * pages / u64::from(stamped.drive.caps().page_bytes);
    let times = [1, 2, 20].map(|runs| (runs, Nanos(45_000 + list(runs))));
    (0..60).for_each(|lpn| stamped.write(lpn, lpn).unwrap());
    for (runs, expected) in times {
        let run = |page: u64| ShareRun { destination: Lpn(30 + page), source: Lpn(page), pages: 1 };
        let before = stamped.drive.now();
        stamped.run(Operation::Share { runs: (0..runs).map(run).collect() }).unwrap();
        assert_eq!(stamped.drive.now() - before, expected, "{runs} runs");
    }
}
