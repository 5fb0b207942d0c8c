//! Tests of wear: leveling, worn-out drives and bad blocks.

use super::*;

#[test]
fn wear_is_levelled() {
    let spread = |leveling: &str| {
        let config =
            SsdConfig { precondition: Precondition::Fill, ..with(&format!("blocks=60,op=25%,{leveling}")) };
        let (counters, drive) = skewed_writes(config, 60_000, 5);
        let (least, mean, most) = drive.ftl().unwrap().segments().wear();
        assert!(mean > 20.0);
        (most - least, counters.leveled_segments)
    };
    let (none, dynamic) = (spread("wear_leveling=none"), spread("wear_leveling=dynamic"));
    let (loose, tight) =
        (spread("wear_leveling=static,wear_gap=16"), spread("wear_leveling=static,wear_gap=4"));
    assert_eq!((none.1, dynamic.1), (0, 0));
    assert!(loose.1 > 0 && tight.1 > loose.1, "{loose:?} {tight:?}");
    assert!(tight.0 < loose.0 && loose.0 < dynamic.0, "{tight:?} {loose:?} {dynamic:?} {none:?}");
    assert!(tight.0 <= 8, "{tight:?}");
}

/// The rule: a worn-out drive accepts no changes, and keeps all data that it has acknowledged, in the flash
/// or the buffer.
#[test]
fn a_worn_out_drive_can_still_be_read() {
    let units = ["drive", "plane,stripe=address"];
    for (cache, unit) in
        ["protected", "volatile", "off"].iter().flat_map(|cache| units.map(|unit| (cache, unit)))
    {
        wear_out(&format!("endurance=10,gc_unit={unit},write_cache={cache}"), cache);
    }
}

fn wear_out(options: &str, cache: &str) {
    let mut stamped = Stamped::new(with(options));
    let pages = stamped.drive.caps().pages;
    let mut prng = Prng::new(1, "wear out");
    let mut expected = vec![0; pages as usize];
    let mut written = 0u64;
    let error = loop {
        let lpn = prng.below(pages);
        match stamped.write(lpn, written + 1) {
            Ok(()) => {
                written += 1;
                expected[lpn as usize] = written;
            }
            Err(error) => break error,
        }
        assert!(written < 100_000, "it never wears out");
    };
    assert_eq!(error, IoError::WornOut);
    // A cached write was accepted long before the drive was worn out.
    let in_buffer = stamped.drive.ftl().unwrap().counters().host_pages < written;
    assert_eq!(in_buffer, cache != "off", "{options}");
    let refused = Err(IoError::WornOut);
    assert_eq!(stamped.run(Operation::Trim { lpn: Lpn(0), pages: 1 }), refused);
    assert_eq!(
        stamped.run(Operation::Flush),
        if cache == "volatile" { refused } else { Ok(()) },
        "{options}"
    );
    let check = |stamped: &mut Stamped| {
        (0..pages).for_each(|lpn| assert_eq!(stamped.read(lpn), expected[lpn as usize], "{options}: {lpn}"));
    };
    check(&mut stamped);
    if cache != "volatile" {
        stamped.drive.power_cut();
        check(&mut stamped);
    }
    // The power cut clears the volatile buffer, so no page is left that could not be made durable.
    stamped.drive.power_cut();
    assert_eq!(stamped.run(Operation::Flush), Ok(()), "{options}");
    stamped.verify();
    // When the drive is worn out, each segment has been erased about ten times.
    let physical = stamped.drive.config().physical_pages() as f64;
    let programmed = stamped.drive.counters().flash_pages_programmed as f64;
    assert!((8.0..12.0).contains(&(programmed / physical)), "{programmed} programs on {physical} pages");
}

/// The rule: a drive that wears out during several writes of several pages answers each of them. Its buffer
/// then holds only the pages that it has accepted.
#[test]
fn a_drive_that_wears_out_answers_every_write() {
    let units = ["drive", "plane,stripe=address"];
    for (cache, unit) in
        ["protected", "volatile", "off"].iter().flat_map(|cache| units.map(|unit| (cache, unit)))
    {
        let options = format!("endurance=10,write_buffer=64KiB,gc_unit={unit},write_cache={cache}");
        let mut drive = SimDrive::new(with(&options), 42, false).unwrap();
        let mut prng = Prng::new(1, "wear out");
        let (mut submitted, mut answered, mut refused) = (0, 0, 0);
        let (mut written, mut sizes) = (0, Vec::new());
        let mut completions = Vec::new();
        while refused < 100 {
            while submitted < answered + 12 {
                let lpn = Lpn(prng.below(drive.caps().pages - 4));
                let pages = 1 + prng.below(4) as u32;
                sizes.push(u64::from(pages));
                drive
                    .submit(Command { tag: Tag(submitted), operation: Operation::write(lpn, pages) })
                    .unwrap();
                submitted += 1;
            }
            drive.wait(None, &mut completions);
            assert!(!completions.is_empty(), "{options}: {answered} of {submitted} writes are answered");
            answered += completions.len() as u64;
            for done in completions.drain(..) {
                match done.status {
                    Ok(()) => written += sizes[done.tag.0 as usize],
                    Err(error) => {
                        assert_eq!(error, IoError::WornOut);
                        refused += 1;
                    }
                }
            }
        }
        // The drive may count more pages as written, because some pages of refused writes were written.
        assert!(written <= drive.counters().host_pages_written, "{options}: {written} pages were answered");
        drive.drain_events();
        drive.verify(true).unwrap();
    }
}

/// The rule: preconditioning stands for years of use with an idle time at its end. So a new drive has no
/// overdue collection, and no erase counts against its endurance. A paced collection continues from its
/// position.
#[test]
fn a_preconditioned_drive_is_idle_and_without_wear() {
    for (schedule, unit, seed) in ["paced", "semi-preemptive"].iter().flat_map(|schedule| {
        ["drive", "channel"].iter().flat_map(move |unit| (0..8).map(move |seed| (schedule, unit, seed)))
    }) {
        let options = format!("schedule={schedule},gc_unit={unit},precondition=steady,endurance=3");
        let drive = SimDrive::new(with(&options), seed, false).unwrap();
        let ftl = drive.ftl().unwrap();
        let has = |state| (0..ftl.segments().len()).any(|id| ftl.segments().state(SegmentId(id)) == state);
        assert!(!has(SegmentState::Retired), "{options}: a segment is worn out");
        assert!(*schedule == "paced" || !has(SegmentState::Victim), "{options}: a victim is half collected");
        assert!(drive.state() < ScheduleState::Pressed, "{options}: {:?}", drive.state());
        assert_eq!(drive.counters().erases, 0, "{options}");
    }
}

#[test]
fn bad_blocks_cost_spare_space() {
    let config = |bad: &str| SsdConfig {
        precondition: Precondition::Steady,
        ..with(&format!("blocks=100,op=60%,bad_blocks={bad}"))
    };
    let (good, bad) = (config("0%"), config("5%"));
    assert_eq!(good.segments(), 100);
    assert!((85..95).contains(&bad.segments()), "the worst of 8 planes has {} good blocks", bad.segments());
    assert_eq!(good.logical_pages(), bad.logical_pages());
    let (good, bad) = (skewed_writes(good, 20_000, 90).0, skewed_writes(bad, 20_000, 90).0);
    assert!(waf(&bad) > 1.05 * waf(&good), "{} {}", waf(&bad), waf(&good));
}

/// The rule: the erase count of a page is that of its erase block, for all pages of the drive.
#[test]
fn the_drive_reports_erases_by_page() {
    let mut stamped = Stamped::new(small());
    let pages = stamped.drive.caps().pages;
    stamped.write(0, 1).unwrap();
    assert_eq!([0, pages, 1 << 40].map(|lpn| stamped.drive.erases(Lpn(lpn))), [Some(0), None, None]);
    // Sequential writes in rounds make each segment invalid, and erased, as a whole.
    (0..8 * pages).for_each(|at| stamped.write(at % pages, at).unwrap());
    let told: Vec<u64> = (0..pages).filter_map(|lpn| stamped.drive.erases(Lpn(lpn))).collect();
    assert_eq!(told.len() as u64, pages);
    assert!(told.iter().all(|erases| *erases > 0), "{told:?}");
    let in_place = SimDrive::new(SsdConfig { in_place: true, planes: 1, ..small() }, 42, false).unwrap();
    assert_eq!(in_place.erases(Lpn(0)), None);
}
