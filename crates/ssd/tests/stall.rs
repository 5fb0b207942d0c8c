//! Tests one rule: a write of many pages always ends, for any streams of its pages and any number of free
//! segments.

use fulgurite_base::{Lpn, Prng, Share};
use fulgurite_device::{Command, Device, Operation, Tag};
use fulgurite_ftl::Collect;
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ssd::{SimDrive, SsdConfig, preset};

/// Returns a small filled drive whose thresholds reserve few segments.
fn drive(schedule: &str, placement: &str, reserve: u32, hard: u32, seed: u64) -> SimDrive {
    let collect = Collect {
        reserve,
        hard,
        schedule: Schedule::from_name(schedule).unwrap(),
        placement: placement.parse::<PlacementConfig>().unwrap(),
        ..Collect::PLAIN
    };
    let shape = SsdConfig {
        channels: 2,
        chips: 1,
        dies: 1,
        planes: 1,
        blocks: 64,
        pages: 32,
        ..preset::reference_e()
    };
    let config = SsdConfig {
        op: Share::percent(60),
        collect,
        endurance: 0,
        precondition: Precondition::Fill,
        ..shape
    };
    SimDrive::new(config, seed, false).unwrap()
}

#[test]
fn a_write_to_many_streams_never_stalls() {
    for schedule in ["paced", "semi-preemptive", "non-preemptive"] {
        for placement in ["dac", "sepbit", "fulgurite", "autostream:chunk=1,decay=500"] {
            for (seed, (reserve, hard)) in [(2, 1), (3, 1), (4, 2)].into_iter().enumerate() {
                let mut drive = drive(schedule, placement, reserve, hard, seed as u64);
                let pages = drive.caps().pages;
                let mut prng = Prng::new(seed as u64, "stall");
                let mut completions = Vec::new();
                for at in 0..3_000 {
                    let count = 1 + prng.below(64).min(pages - 1);
                    // Most pages are hot, so that the pages of a write go to different streams.
                    let range = if prng.below(3) > 0 { pages / 8 } else { pages };
                    let lpn = Lpn(prng.below(range).min(pages - count));
                    let operation = Operation::write(lpn, count as u32);
                    drive.submit(Command { tag: Tag(at), operation }).unwrap();
                    drive.wait(None, &mut completions);
                    assert_eq!(
                        completions.len(),
                        1,
                        "{schedule} {placement} {reserve} {hard}: write {at} stalled"
                    );
                    completions.clear();
                }
                drive.drain_events();
                drive.verify(true).unwrap();
            }
        }
    }
}
