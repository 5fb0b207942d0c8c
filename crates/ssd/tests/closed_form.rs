//! Compares simulated write amplification with the closed forms, in counting mode: uniform random single-page
//! writes, FIFO and greedy victims, within 1 %.

use fulgurite_base::{Lpn, Prng, Share, StreamId};
use fulgurite_device::{Command, Device, Operation, Tag};
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_ftl::{Collect, CountingSink, Ftl, FtlConfig, analytic, check};
use fulgurite_ssd::{SimDrive, SsdConfig, preset};

/// Returns the steady write amplification of `victim` at over-provisioning ρ of `rho_percent`, and the
/// translation layer at the end.
fn simulate(victim: VictimConfig, schedule: Schedule, rho_percent: u32, segment_pages: u32) -> (f64, Ftl) {
    let (segments, reserve) = (262_144 / segment_pages, 2);
    let effective = (segments - reserve) * segment_pages;
    let logical_pages = (f64::from(effective) / (1.0 + f64::from(rho_percent) / 100.0)).round() as u32;
    let plain = FtlConfig::plain(logical_pages, segments, segment_pages);
    let config = FtlConfig { collect: Collect { reserve, victim, schedule, ..Collect::PLAIN }, ..plain };
    let logical = config.logical_pages;
    let mut ftl = Ftl::new(config).unwrap();
    let mut sink = CountingSink::default();
    let mut prng = Prng::new(1, "closed-form");
    for lpn in 0..logical {
        ftl.write(lpn, 1, StreamId(0), &mut sink);
    }
    let mut overwrite = |ftl: &mut Ftl, sink: &mut CountingSink, writes: u32| {
        for _ in 0..writes {
            ftl.write(prng.below(u64::from(logical)) as u32, 1, StreamId(0), sink);
        }
    };
    overwrite(&mut ftl, &mut sink, 6 * logical);
    let before = sink;
    overwrite(&mut ftl, &mut sink, 6 * logical);
    check::check(&ftl).unwrap();
    assert_eq!(
        sink.programs,
        ftl.counters().host_pages + ftl.counters().copied_pages,
        "a program is a host page or a copy"
    );
    assert_eq!(sink.reads, ftl.counters().copied_pages);
    ((sink.programs - before.programs) as f64 / f64::from(6 * logical), ftl)
}

fn within(simulated: f64, expected: f64, tolerance: f64, what: &str) {
    let error = simulated / expected - 1.0;
    println!("{what}: simulated {simulated:.4}, closed form {expected:.4}, {:+.2} %", error * 100.0);
    assert!(error.abs() < tolerance, "{what}: simulated {simulated:.4}, closed form {expected:.4}");
}

#[test]
fn fifo_is_within_one_percent() {
    for rho in [7, 15, 28] {
        let (waf, ftl) = simulate(VictimConfig::FIFO, Schedule::NON_PREEMPTIVE, rho, 128);
        within(waf, analytic::waf_fifo(ftl.config().spare_effective()), 0.01, &format!("fifo, rho {rho} %"));
    }
}

#[test]
fn greedy_is_within_one_percent() {
    for (rho, pages) in [(7, 64), (15, 64), (28, 64), (7, 256), (15, 256), (28, 256)] {
        let (waf, ftl) = simulate(VictimConfig::GREEDY, Schedule::NON_PREEMPTIVE, rho, pages);
        let expected = analytic::waf_greedy(ftl.config().spare_effective(), pages).unwrap();
        within(waf, expected, 0.01, &format!("greedy, {pages} pages, rho {rho} %"));
    }
}

#[test]
fn random_is_within_one_percent() {
    for rho in [7, 15, 28] {
        let (waf, ftl) = simulate(VictimConfig::RANDOM, Schedule::NON_PREEMPTIVE, rho, 128);
        within(
            waf,
            analytic::waf_random(ftl.config().spare_effective()),
            0.01,
            &format!("random, rho {rho} %"),
        );
    }
}

#[test]
fn no_schedule_changes_write_amplification() {
    for schedule in Schedule::registry().entries.iter().map(|entry| entry.make) {
        for rho in [7, 15, 28] {
            let (waf, ftl) = simulate(VictimConfig::GREEDY, schedule, rho, 128);
            let expected = analytic::waf_greedy(ftl.spare_effective().unwrap(), 128).unwrap();
            within(waf, expected, 0.01, &format!("greedy {schedule}, rho {rho} %"));
        }
    }
}

/// The rule: no schedule changes write amplification in virtual time, where a schedule decides how far
/// collection is behind the host. The load is uniform random writes of 16 users to a drive of 8 dies.
#[test]
fn no_schedule_changes_write_amplification_in_time() {
    let additions = ["semi-preemptive+merge+pipeline", "preemptive+merge+pipeline"];
    let schedules = Schedule::registry().entries.iter().map(|entry| entry.make);
    let schedules = schedules.chain(additions.map(|name| Schedule::from_name(name).unwrap()));
    for schedule in schedules {
        for (victim, op) in [(VictimConfig::GREEDY, 30), (VictimConfig::GREEDY, 12), (VictimConfig::FIFO, 30)]
        {
            let config = SsdConfig {
                channels: 4,
                chips: 2,
                blocks: 200,
                pages: 16,
                op: Share::percent(op),
                collect: Collect { victim: victim.clone(), schedule, ..preset::reference_e().collect },
                ..preset::reference_e()
            };
            let mut drive = SimDrive::new(config, 7, false).unwrap();
            let pages = drive.caps().pages;
            let mut prng = Prng::new(2, "closed form in time");
            let mut completions = Vec::new();
            let (mut submitted, mut completed) = (0, 0);
            while completed < 8 * pages {
                while submitted < 8 * pages && submitted - completed < 16 {
                    let operation = Operation::write(Lpn(prng.below(pages)), 1);
                    drive.submit(Command { tag: Tag(submitted), operation }).unwrap();
                    submitted += 1;
                }
                drive.wait(None, &mut completions);
                assert!(
                    !completions.is_empty(),
                    "{schedule} stalled after {completed} requests: {:?}",
                    drive.state()
                );
                completed += completions.drain(..).count() as u64;
            }
            drive.drain_events();
            drive.verify(true).unwrap();
            let counters = drive.counters();
            let waf = (counters.host_pages_written + counters.gc_pages_copied) as f64
                / counters.host_pages_written as f64;
            let rho = drive.ftl().unwrap().spare_effective().unwrap();
            let segment_pages = drive.config().pages_per_segment();
            let expected = match victim {
                VictimConfig::Fifo(_) => analytic::waf_fifo(rho),
                VictimConfig::Greedy(_) => analytic::waf_greedy(rho, segment_pages).unwrap(),
                _ => unreachable!("{victim} is not among those above"),
            };
            within(waf, expected, 0.01, &format!("in time: {} {schedule}, rho {rho:.3}", victim.name()));
        }
    }
}
