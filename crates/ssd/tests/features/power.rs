//! Tests of power cuts: the pages that a drive still has after a power cut.

use super::*;

/// The expected contents of each page, now and after a power cut.
struct Model {
    now: Vec<u64>,
    /// For each page, its values since the last flush, oldest first, starting with the flushed value.
    since_flush: Vec<Vec<u64>>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// The rule: under random writes, shares, trims, flushes and power cuts with garbage collection,
    /// acknowledged writes remain unless the buffer is volatile, flushed writes always remain, and a share is
    /// atomic.
    #[test]
    fn contents_survive_power_cuts(
        seed: u64,
        cache in 0usize..3,
        schedule in 0usize..3,
        unit in 0usize..6,
        rows in 0usize..3,
    ) {
        let cache = [WriteCache::Protected, WriteCache::Volatile, WriteCache::Off][cache];
        let schedule = ["paced", "semi-preemptive+merge+pipeline", "non-preemptive"][schedule];
        let unit = match (unit, cache) {
            (0, _) => "drive",
            (1, WriteCache::Protected | WriteCache::Off) => "channel",
            (2, WriteCache::Protected | WriteCache::Off) => "plane,stripe=least-loaded",
            (3, _) => "chip,stripe=address",
            (4, _) => "plane,stripe=address",
            _ => "channel,stripe=address,gc_overlap=yes",
        };
        let rows = match (rows, cache) {
            (1, WriteCache::Protected) => ",flash_page=8KiB,pages=4,cell_bits=2,one_shot=yes",
            (2, WriteCache::Protected) => ",flash_page=8KiB,pages=5,parity=5",
            _ => "",
        };
        // Sets the cache last, because not every stripe allows it.
        let options = format!("schedule={schedule},gc_unit={unit}{rows}");
        let config = SsdConfig { write_cache: cache, ..with(&options) };
        let mut stamped = Stamped::new(config);
        let pages = stamped.drive.caps().pages;
        let mut model = Model { now: vec![0; pages as usize], since_flush: vec![vec![0]; pages as usize] };
        let mut prng = Prng::new(seed, "power");
        for stamp in 1..2_500u64 {
            let lpn = prng.below(pages);
            let set = |model: &mut Model, lpn: u64, value: u64| {
                model.now[lpn as usize] = value;
                model.since_flush[lpn as usize].push(value);
            };
            match prng.below(200) {
                0..20 => prop_assert_eq!(stamped.read(lpn), model.now[lpn as usize]),
                20..30 => {
                    stamped.run(Operation::Trim { lpn: Lpn(lpn), pages: 1 }).unwrap();
                    set(&mut model, lpn, 0);
                }
                30..40 if stamped.drive.caps().share_pages > 0 => {
                    let runs = random_runs(&mut prng, pages);
                    let status = stamped.run(Operation::Share { runs: runs.clone() });
                    let mut named: Vec<u64> = destinations(&runs).collect();
                    named.sort_unstable();
                    let is_named = |page: &u64| named.binary_search(page).is_ok();
                    if named.windows(2).any(|pair| pair[0] == pair[1]) || sources(&runs).any(|page| is_named(&page)) {
                        prop_assert_eq!(status, Err(IoError::Invalid));
                        continue;
                    }
                    prop_assert_eq!(status, Ok(()));
                    for (page, source) in destinations(&runs).zip(sources(&runs)) {
                        let value = model.now[source as usize];
                        set(&mut model, page, value);
                    }
                    if cache == WriteCache::Volatile {
                        // A share makes all earlier writes durable, so each page now has one value since the
                        // last flush.
                        (0..pages as usize).for_each(|page| model.since_flush[page] = vec![model.now[page]]);
                    }
                }
                40..44 => {
                    stamped.run(Operation::Flush).unwrap();
                    (0..pages as usize).for_each(|page| model.since_flush[page] = vec![model.now[page]]);
                }
                44..46 => {
                    // A command in flight may or may not have taken effect.
                    let (other, buffer) = (prng.below(pages), stamped.buffer());
                    stamp_buffer(&buffer, stamp);
                    let operation =
                        Operation::Write {
                            lpn: Lpn(other),
                            pages: 1,
                            from: Some(buffer),
                            stream: StreamId(0),
                            durable: false,
                        };
                    stamped.drive.submit(Command { tag: Tag(9), operation }).unwrap();
                    stamped.drive.power_cut();
                    for page in 0..pages {
                        let got = stamped.read(page);
                        let (now, known) = (model.now[page as usize], &model.since_flush[page as usize]);
                        let may_be = got == now
                            || page == other && got == stamp
                            || cache == WriteCache::Volatile && known.contains(&got);
                        prop_assert!(may_be, "page {page} holds {got} for {now}, {known:?}");
                        model.now[page as usize] = got;
                        model.since_flush[page as usize] = vec![got];
                    }
                    stamped.drive.verify(true).unwrap();
                }
                _ => {
                    stamped.write(lpn, stamp).unwrap();
                    set(&mut model, lpn, stamp);
                }
            }
        }
        stamped.verify();
        prop_assert!(stamped.drive.counters().gc_pages_copied > 50);
    }
}

/// The number of pages of each write of [`writes_under_way`].
const EACH: u64 = 5;

/// Returns a full drive with writes of all its pages in flight and none answered. Not all pages have physical
/// pages, and the last placed write has only some of them. Also returns the memory of the writes, in which
/// each page holds twice its number, plus two.
fn writes_under_way(options: &str) -> (Stamped, Arc<Arena>) {
    let mut stamped = Stamped::new(with(&format!("write_latency_us=10000,queue_depth=1024,{options}")));
    let pages = stamped.drive.caps().pages;
    assert!(pages.is_multiple_of(EACH));
    (0..pages).for_each(|lpn| stamped.write(lpn, 1 + lpn).unwrap());
    let memory = Arena::new(stamped.bytes * pages as usize);
    for lpn in 0..pages {
        stamp_buffer(&memory.buffer(stamped.bytes * lpn as usize, stamped.bytes), 2 + 2 * lpn);
    }
    for lpn in (0..pages).step_by(EACH as usize) {
        let from = Some(memory.buffer(stamped.bytes * lpn as usize, stamped.bytes * EACH as usize));
        let operation =
            Operation::Write { lpn: Lpn(lpn), pages: EACH as u32, from, stream: StreamId(0), durable: false };
        stamped.drive.submit(Command { tag: Tag(lpn), operation }).unwrap();
    }
    let mut completions = Vec::new();
    let soon = stamped.drive.now() + Nanos::from_micros(300);
    while stamped.drive.now() < soon {
        stamped.drive.wait(Some(soon), &mut completions);
    }
    assert!(completions.is_empty());
    let placed = stamped.drive.ftl().unwrap().counters().host_pages - pages;
    assert!(
        0 < placed && placed < pages && !placed.is_multiple_of(EACH),
        "{placed} of {pages} pages have places"
    );
    (stamped, memory)
}

/// The rule: a write that a protected buffer has accepted survives a power cut with its original bytes, even
/// before the host has its answer. The host may reuse its memory after the cut.
#[test]
fn a_write_without_an_answer_keeps_its_bytes_over_a_power_cut() {
    for unit in ["drive", "chip,stripe=address"] {
        let (mut stamped, memory) = writes_under_way(&format!("gc_unit={unit}"));
        let pages = stamped.drive.caps().pages;
        stamped.drive.power_cut();
        for lpn in 0..pages {
            stamp_buffer(&memory.buffer(stamped.bytes * lpn as usize, stamped.bytes), 0);
        }
        (0..pages).for_each(|lpn| assert_eq!(stamped.read(lpn), 2 + 2 * lpn, "{unit}: page {lpn}"));
        stamped.verify();
    }
}

/// The rule: a page counts as written by the host once the drive has accepted it; without a cache, once it
/// has a physical page. No other page in flight counts.
#[test]
fn accepted_pages_count_as_written() {
    for cache in ["protected", "volatile", "off"] {
        let (mut stamped, _memory) = writes_under_way(&format!("write_cache={cache}"));
        let pages = stamped.drive.caps().pages;
        stamped.drive.submit(Command { tag: Tag(0), operation: Operation::read(Lpn(0), 4) }).unwrap();
        let placed = stamped.drive.ftl().unwrap().counters().host_pages;
        let written = stamped.drive.counters().host_pages_written;
        assert_eq!(written, if cache == "off" { placed } else { 2 * pages }, "{cache}");
    }
}

/// The rule: with a volatile buffer, the old physical page of a logical page is not erased before the new one
/// is programmed. Here the logical page is in the buffer, alone in its row, when an idle drive collects the
/// segment with its old physical page.
#[test]
fn pages_that_a_power_cut_may_restore_are_not_erased() {
    // With overlap, collection of the next victim begins while the previous victim is being erased.
    for overlap in ["", ",gc_overlap=yes"] {
        cut_the_power_while_it_collects(&format!("schedule=semi-preemptive{overlap}"));
    }
}

fn cut_the_power_while_it_collects(schedule: &str) {
    let mut erased = Vec::new();
    for cut_ms in (1..60).step_by(2) {
        let mut config = SsdConfig {
            channels: 2,
            chips: 1,
            pages: 4,
            blocks: 8,
            op: Share::percent(300),
            // Programs take longer than erases, so a premature erase would end before the superseding page is
            // programmed.
            program: Nanos::from_micros(5_000),
            erase: Nanos::from_micros(1_000),
            write_cache: WriteCache::Volatile,
            ..with(schedule)
        };
        config.collect.background = 5;
        let mut stamped = Stamped::new(config);
        // Writes two segments, then all pages of the first one again. The last of these pages begins a new
        // row.
        let writes: Vec<u64> = (0..32).chain([16]).chain(0..16).collect();
        for (stamp, lpn) in (1..).zip(&writes) {
            stamped.write(*lpn, stamp).unwrap();
            if stamp == 32 {
                stamped.run(Operation::Flush).unwrap();
            }
        }
        let cut = stamped.drive.now() + Nanos::from_micros(cut_ms * 1_000);
        while stamped.drive.now() < cut {
            stamped.drive.wait(Some(cut), &mut Vec::new());
        }
        erased.push(stamped.drive.counters().erases > 0);
        stamped.drive.power_cut();
        for lpn in 0..32 {
            let known: Vec<u64> =
                (1..).zip(&writes).filter(|(_, page)| **page == lpn).map(|(stamp, _)| stamp).collect();
            let got = stamped.read(lpn);
            assert!(
                known.contains(&got),
                "cut after {cut_ms} ms: page {lpn} holds {got}, was written as {known:?}"
            );
        }
        stamped.verify();
    }
    assert!(
        !erased[0] && erased[erased.len() - 1],
        "the cuts come before, while and after collection erases"
    );
}

/// The rule: pages that a power cut loses are not counted as programmed; pages that the drive still programs
/// are counted.
#[test]
fn a_lost_page_counts_as_not_programmed() {
    for (cache, programmed) in [("protected", 1), ("volatile", 0), ("off", 1)] {
        let mut drive = SimDrive::new(with(&format!("write_cache={cache}")), 42, false).unwrap();
        drive.submit(Command { tag: Tag(0), operation: Operation::write(Lpn(3), 1) }).unwrap();
        let amid = drive.now() + Nanos::from_micros(100);
        drive.wait(Some(amid), &mut Vec::new());
        drive.wait(Some(amid), &mut Vec::new());
        assert_eq!(drive.counters().flash_pages_programmed, 0, "{cache}");
        drive.power_cut();
        assert_eq!(drive.counters().flash_pages_programmed, programmed, "{cache}");
        drive.verify(true).unwrap();
    }
}

/// The rule: a power cut ends everything in progress. No command completes later, the queue is empty, and the
/// drive continues like a new drive.
#[test]
fn a_power_cut_ends_what_is_under_way() {
    const DEPTH: u64 = 64;
    let options = [
        "write_cache=protected",
        "write_cache=volatile",
        "write_cache=off",
        "gc_unit=chip,write_cache=off",
        "gc_overlap=yes,write_cache=volatile",
        "gc_unit=chip,stripe=address",
        "gc_unit=chip,stripe=address,write_cache=volatile",
    ];
    for (option, cut_us) in
        options.into_iter().flat_map(|option| (1..1_500).step_by(149).map(move |at| (option, at)))
    {
        let config = SsdConfig {
            queue_depth: DEPTH as u32,
            write_buffer: 16 * 4096,
            read_latency: Nanos::from_micros(30),
            write_command: Nanos::from_micros(10),
            write_latency: Nanos::from_micros(20),
            ..with(option)
        };
        let mut drive = SimDrive::new(config, 42, false).unwrap();
        let pages = drive.caps().pages;
        let mut prng = Prng::new(cut_us, option);
        let submit = |drive: &mut SimDrive, prng: &mut Prng, tag: u64| {
            let lpn = Lpn(prng.below(pages - 4));
            let operation = match prng.below(12) {
                0 => Operation::Flush,
                1 => Operation::Trim { lpn, pages: 2 },
                2 => Operation::share(Lpn(pages - 1), lpn, 1),
                3..7 => Operation::read(lpn, 3),
                _ => Operation::write(lpn, 4),
            };
            drive.submit(Command { tag: Tag(tag), operation }).unwrap();
        };
        let mut completions = Vec::new();
        // Submits enough writes for a collection to be in progress.
        for tag in 0..4 * pages {
            submit(&mut drive, &mut prng, tag);
            drive.wait(None, &mut completions);
        }
        completions.clear();
        for tag in 0..DEPTH {
            submit(&mut drive, &mut prng, tag);
        }
        let cut = drive.now() + Nanos::from_micros(cut_us);
        while drive.now() < cut {
            drive.wait(Some(cut), &mut completions);
            // Keeps the queue full.
            for _ in completions.drain(..) {
                submit(&mut drive, &mut prng, 0);
            }
        }
        drive.power_cut();
        completions.clear();
        for tag in 0..DEPTH {
            submit(&mut drive, &mut prng, 1_000_000 + tag);
        }
        while completions.len() < DEPTH as usize {
            let before = completions.len();
            drive.wait(None, &mut completions);
            assert!(completions.len() > before, "{option}, cut after {cut_us} µs: the drive stalls");
        }
        let mut tags: Vec<u64> = completions.iter().map(|completion| completion.tag.0).collect();
        tags.sort_unstable();
        assert_eq!(
            tags,
            (1_000_000..1_000_000 + DEPTH).collect::<Vec<_>>(),
            "{option}, cut after {cut_us} µs"
        );
        drive.settle();
        drive.drain_events();
        drive.verify(true).unwrap();
        let mut late = Vec::new();
        drive.wait(None, &mut late);
        assert_eq!(late, [], "{option}, cut after {cut_us} µs");
    }
}

/// The rule: after a power cut with a volatile buffer, lost pages have their previous contents, even pages
/// that were written several times. Pages that collection has moved are still found.
#[test]
fn lost_pages_have_their_previous_contents() {
    let mut stamped = Stamped::new(with("write_cache=volatile"));
    for (stamp, lpn) in [(1, 7), (2, 8)] {
        stamped.write(lpn, stamp).unwrap();
    }
    stamped.run(Operation::Flush).unwrap();
    for (stamp, lpn) in [(3, 7), (4, 7), (5, 9)] {
        stamped.write(lpn, stamp).unwrap();
    }
    // No page is programmed yet, so the power cut loses the writes since the flush.
    stamped.drive.power_cut();
    assert_eq!([7, 8, 9].map(|lpn| stamped.read(lpn)), [1, 2, 0]);
    stamped.verify();
    // Cuts the power at random times while pages are collected; flushed pages remain.
    let pages = stamped.drive.caps().pages;
    let mut prng = Prng::new(3, "pages");
    let mut known = vec![0; pages as usize];
    for stamp in 10..1_500 {
        let lpn = prng.below(pages);
        stamped.write(lpn, stamp).unwrap();
        known[lpn as usize] = stamp;
        if stamp % 10 == 0 {
            stamped.run(Operation::Flush).unwrap();
            let cut = stamped.drive.now() + Nanos::from_micros(prng.below(400));
            while stamped.drive.now() < cut {
                stamped.drive.wait(Some(cut), &mut Vec::new());
            }
            stamped.drive.power_cut();
            let lpn = prng.below(pages);
            assert_eq!(
                stamped.read(lpn),
                known[lpn as usize].max(match lpn {
                    7 => 1,
                    8 => 2,
                    _ => 0,
                }),
                "page {lpn}"
            );
        }
    }
    for lpn in 0..pages {
        let first = match lpn {
            7 => 1,
            8 => 2,
            _ => 0,
        };
        assert_eq!(stamped.read(lpn), known[lpn as usize].max(first), "page {lpn}");
    }
    assert!(stamped.drive.counters().gc_pages_copied > 100);
    stamped.verify();
}

/// The rule: pages that a protected buffer has accepted get physical pages after a power cut, even without
/// requests.
#[test]
fn pages_left_in_the_buffer_by_a_power_cut_are_written() {
    for unit in ["drive", "chip,stripe=address"] {
        let (mut stamped, _memory) = writes_under_way(&format!("gc_unit={unit}"));
        let pages = stamped.drive.caps().pages;
        stamped.drive.power_cut();
        stamped.verify();
        assert_eq!(stamped.drive.ftl().unwrap().counters().host_pages, 2 * pages, "{unit}");
    }
}

/// The rule: completions that were not taken before a power cut are never delivered.
#[test]
fn untaken_completions_are_lost_in_a_power_cut() {
    let mut drive = SimDrive::new(small(), 42, false).unwrap();
    drive.submit(Command { tag: Tag(1), operation: Operation::read(Lpn(0), 1) }).unwrap();
    drive.drain_events();
    drive.power_cut();
    let mut completions = Vec::new();
    drive.wait(None, &mut completions);
    assert_eq!(completions, []);
}
