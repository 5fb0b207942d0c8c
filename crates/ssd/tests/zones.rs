//! Tests zoned drives: the rules that the host must keep, and what the drive does below them.

use fulgurite_base::{Lpn, Prng, Share, Spec};
use fulgurite_device::{Command, Completion, Device, IoError, Operation, Tag, Zone, ZoneCaps, ZoneError};
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ssd::{SimDrive, SsdConfig, preset};
use std::collections::BTreeSet;

const ACTIVE: usize = 3;

fn config(options: &str) -> SsdConfig {
    let small = SsdConfig {
        channels: 2,
        blocks: 40,
        pages: 8,
        op: Share::percent(25),
        precondition: Precondition::None,
        ..preset::reference_e()
    };
    let segment = u64::from(small.pages_per_segment()) * u64::from(small.page_bytes);
    let options = format!("small:zones={}B,active_zones={ACTIVE},{options}", 2 * segment);
    small.changed_by(Spec::parse(&options).unwrap()).unwrap()
}

fn drive(options: &str) -> SimDrive {
    SimDrive::new(config(options), 7, false).unwrap()
}

/// Executes one command and returns its status.
fn execute(drive: &mut SimDrive, operation: Operation) -> Result<(), IoError> {
    let mut completions: Vec<Completion> = Vec::new();
    drive.submit(Command { tag: Tag(0), operation }).unwrap();
    drive.wait(None, &mut completions);
    completions[0].status
}

/// The rules of zones: a write begins at the write pointer, stays within a zone that is not full, and begins no
/// more zones than may be active; a reset has whole zones. A refused command changes nothing.
#[test]
fn commands_that_break_a_rule_are_refused() {
    let mut drive = drive("precondition=none");
    let ZoneCaps { zone_pages, conventional_pages: 0, active: 3 } = drive.caps().zones.unwrap() else {
        panic!("{:?}", drive.caps().zones)
    };
    let zone = |number: u64| Lpn(number * u64::from(zone_pages));
    let write = |drive: &mut SimDrive, lpn: Lpn, pages| execute(drive, Operation::write(lpn, pages));
    let trim = |drive: &mut SimDrive, lpn, pages| execute(drive, Operation::Trim { lpn, pages });
    let broken = |rule| Err(IoError::Zone(rule));
    assert_eq!(write(&mut drive, Lpn(1), 1), broken(ZoneError::NotAtWritePointer));
    assert_eq!(write(&mut drive, zone(0), 5), Ok(()));
    assert_eq!(write(&mut drive, Lpn(4), 1), broken(ZoneError::NotAtWritePointer));
    assert_eq!(drive.zone(Lpn(77)).map(|zone| zone.written), Some(if zone_pages > 77 { 5 } else { 0 }));
    assert_eq!(write(&mut drive, Lpn(5), zone_pages - 4), broken(ZoneError::Boundary));
    for first in (5..zone_pages).step_by(8) {
        assert_eq!(write(&mut drive, Lpn(u64::from(first)), 8.min(zone_pages - first)), Ok(()));
    }
    assert_eq!(write(&mut drive, Lpn(0), 1), broken(ZoneError::Full));
    for next in 1..=ACTIVE as u64 {
        assert_eq!(write(&mut drive, zone(next), 1), Ok(()));
    }
    assert_eq!(write(&mut drive, zone(4), 1), broken(ZoneError::TooManyActive));
    assert_eq!(trim(&mut drive, zone(1), 1), broken(ZoneError::PartOfZone));
    assert_eq!(trim(&mut drive, Lpn(zone(1).0 + 1), zone_pages), broken(ZoneError::PartOfZone));
    assert_eq!(drive.zone(zone(1)), Some(Zone { first: zone(1), written: 1 }));
    assert_eq!(trim(&mut drive, zone(1), zone_pages), Ok(()));
    assert_eq!(drive.zone(zone(1)), Some(Zone { first: zone(1), written: 0 }));
    assert_eq!(write(&mut drive, zone(4), 1), Ok(()), "the reset made room");
    assert_eq!(trim(&mut drive, zone(0), zone_pages), Ok(()));
    assert_eq!(write(&mut drive, zone(0), 1), broken(ZoneError::TooManyActive), "the reset zone was full");
    drive.drain_events();
    assert_eq!(drive.verify(true), Ok(()));
}

/// A host that writes zones at random, in order within each, and resets some.
struct Host {
    prng: Prng,
    zone_pages: u32,
    conventional: u32,
    written: Vec<u32>,
}

impl Host {
    fn new(drive: &SimDrive) -> Host {
        let ZoneCaps { zone_pages, conventional_pages, .. } = drive.caps().zones.unwrap();
        let zones = (drive.caps().pages as u32 - conventional_pages) / zone_pages;
        let written = vec![0; zones as usize];
        Host { prng: Prng::new(8, "zones"), zone_pages, conventional: conventional_pages, written }
    }

    fn first(&self, zone: usize) -> Lpn {
        Lpn(u64::from(self.conventional + zone as u32 * self.zone_pages))
    }

    /// Returns the next command, which keeps the rules.
    fn next(&mut self) -> Operation {
        if self.conventional > 0 && self.prng.below(4) == 0 {
            return Operation::write(Lpn(self.prng.below(u64::from(self.conventional))), 1);
        }
        let is_active = |written: &u32| (1..self.zone_pages).contains(written);
        let active: Vec<usize> =
            (0..self.written.len()).filter(|zone| is_active(&self.written[*zone])).collect();
        let zone = if active.len() == ACTIVE || !active.is_empty() && self.prng.below(4) > 0 {
            active[self.prng.below(active.len() as u64) as usize]
        } else {
            self.prng.below(self.written.len() as u64) as usize
        };
        // Resets full zones, and now and then one that is not full.
        if self.written[zone] == self.zone_pages || self.written[zone] > 0 && self.prng.below(60) == 0 {
            self.written[zone] = 0;
            return Operation::Trim { lpn: self.first(zone), pages: self.zone_pages };
        }
        let pages = (1 + self.prng.below(6) as u32).min(self.zone_pages - self.written[zone]);
        let lpn = Lpn(self.first(zone).0 + u64::from(self.written[zone]));
        self.written[zone] += pages;
        Operation::write(lpn, pages)
    }

    /// Checks that the drive reports the zones that the host has written.
    fn check(&self, drive: &SimDrive) {
        for (zone, written) in self.written.iter().enumerate() {
            let expected = Zone { first: self.first(zone), written: *written };
            assert_eq!(drive.zone(self.first(zone)), Some(expected));
            assert_eq!(drive.zone(Lpn(self.first(zone).0 + u64::from(self.zone_pages) - 1)), Some(expected));
        }
    }
}

/// Checks that the flash has the written pages of each zone and no others, in segments of their own. The drive is
/// settled.
fn check_flash(drive: &SimDrive) {
    let ftl = drive.ftl().unwrap();
    let ZoneCaps { zone_pages, conventional_pages, .. } = drive.caps().zones.unwrap();
    let mut zone_of = vec![None; ftl.segments().len() as usize];
    for lpn in conventional_pages..drive.caps().pages as u32 {
        let zone = drive.zone(Lpn(u64::from(lpn))).unwrap();
        let segment = ftl.lookup(lpn).map(|ppn| ftl.segment(ppn).0 as usize);
        assert_eq!(
            segment.is_some(),
            u64::from(lpn) < zone.first.0 + u64::from(zone.written),
            "{lpn}: {zone:?}"
        );
        if let Some(segment) = segment {
            let number = (lpn - conventional_pages) / zone_pages;
            assert_eq!(*zone_of[segment].get_or_insert(number), number, "two zones in a segment");
        }
    }
}

/// The rule: however a host fills and resets zones, the drive copies none of their pages, and reports each
/// zone's write pointer. Collection moves conventional pages only.
#[test]
fn zones_are_never_copied() {
    for options in ["precondition=none", "write_cache=off", "conventional=1MiB,op=60%"] {
        let options = match options.strip_prefix("conventional=1MiB") {
            Some(rest) => {
                let plain = config("precondition=none");
                let segment = u64::from(plain.pages_per_segment()) * u64::from(plain.page_bytes);
                format!("conventional={}B{rest}", 6 * segment)
            }
            None => options.to_owned(),
        };
        let mut drive = drive(&options);
        let mut host = Host::new(&drive);
        let (mut completions, mut in_flight) = (Vec::new(), 0);
        for tag in 0..60_000 {
            drive.submit(Command { tag: Tag(tag), operation: host.next() }).unwrap();
            in_flight += 1;
            while in_flight > tag % 16 {
                drive.wait(None, &mut completions);
                in_flight -= completions.len() as u64;
                completions.drain(..).for_each(|done| assert_eq!(done.status, Ok(()), "{options}"));
            }
            if tag % 1_000 == 0 {
                host.check(&drive);
                in_flight = 0;
                drive.settle();
                drive.drain_events();
                drive.wait(None, &mut Vec::new());
                check_flash(&drive);
            }
        }
        drive.settle();
        drive.drain_events();
        assert_eq!(drive.verify(true), Ok(()));
        let counters = drive.counters();
        assert!(counters.erases > 300, "{options}: {}", counters.erases);
        // Overwrites of conventional pages are few and its spare is large, so hardly any page of it is moved.
        let most = if host.conventional > 0 { counters.host_pages_written / 10 } else { 0 };
        assert!(counters.gc_pages_copied <= most, "{options}: {}", counters.gc_pages_copied);
    }
}

/// The rule: after a power cut each zone has its acknowledged pages, and perhaps more that were written, from
/// its beginning on. It goes on at the write pointer that the drive reports.
#[test]
fn zones_go_on_after_a_power_cut() {
    for options in ["write_cache=protected", "write_cache=off"] {
        let mut drive = drive(options);
        let mut host = Host::new(&drive);
        let mut completions = Vec::new();
        for cut in 0..200u64 {
            // The written pages of each zone after each command, and the number of commands that were answered.
            let mut issued = vec![host.written.clone()];
            let mut answered = BTreeSet::new();
            for tag in 0..40 + cut {
                drive.submit(Command { tag: Tag(tag), operation: host.next() }).unwrap();
                issued.push(host.written.clone());
                if tag % 5 == 0 {
                    drive.wait(None, &mut completions);
                    for done in completions.drain(..) {
                        assert_eq!(done.status, Ok(()));
                        answered.insert(done.tag.0);
                    }
                }
            }
            let prefix = (0..).take_while(|tag| answered.contains(tag)).count();
            drive.power_cut();
            let reported: Vec<u32> =
                (0..host.written.len()).map(|zone| drive.zone(host.first(zone)).unwrap().written).collect();
            for (zone, written) in reported.iter().enumerate() {
                // A write in flight may have taken effect in a part of its pages.
                let range = |states: &[Vec<u32>]| {
                    let pages = states.iter().map(|state| state[zone]);
                    (pages.clone().min().unwrap(), pages.max().unwrap())
                };
                let (least, most) = range(&issued[prefix..]);
                assert!(
                    (least..=most).contains(written),
                    "{options}, cut {cut}: {least} to {most}, {written}"
                );
            }
            host.written = reported;
            host.check(&drive);
            drive.settle();
            check_flash(&drive);
        }
        drive.settle();
        drive.drain_events();
        assert_eq!(drive.verify(true), Ok(()));
        assert_eq!(drive.counters().gc_pages_copied, 0);
    }
}

/// The rule: a zoned drive begins with full zones, unless it is asked for none, because nothing else than writes
/// in order is possible.
#[test]
fn preconditioning_fills_the_zones() {
    for precondition in ["fill", "steady"] {
        let drive = drive(&format!("precondition={precondition}"));
        let ZoneCaps { zone_pages, .. } = drive.caps().zones.unwrap();
        let zones = drive.caps().pages / u64::from(zone_pages);
        assert_eq!(drive.caps().pages % u64::from(zone_pages), 0);
        let is_full =
            |zone: u64| drive.zone(Lpn(zone * u64::from(zone_pages))).unwrap().written == zone_pages;
        assert!((0..zones).all(is_full), "{precondition}");
        assert_eq!(drive.verify(true), Ok(()));
    }
}

/// The rule: zones that do not fit the flash, or the other options, are refused with what would be accepted.
#[test]
fn unsuitable_zones_are_refused() {
    let segment = {
        let plain = config("precondition=none");
        u64::from(plain.pages_per_segment()) * u64::from(plain.page_bytes)
    };
    let base = config("precondition=none");
    let refusal = |options: String| {
        base.clone().changed_by(Spec::parse(&format!("small:{options}")).unwrap()).unwrap_err().to_string()
    };
    for (options, why) in [
        (format!("zones={}B", segment + 4096), "accepted: a multiple of"),
        (format!("conventional={}B", segment / 2), "accepted: a multiple of"),
        (format!("conventional={}B", 40 * segment), "leave no zone"),
        ("gc_unit=channel".to_owned(), "accepted with zones: gc_unit=drive"),
        ("streams=4".to_owned(), "does not go with zones"),
        ("fdp=handles:4".to_owned(), "does not go with zones"),
        ("write_cache=volatile".to_owned(), "accepted: protected or off"),
        ("op=10%".to_owned(), "cannot collect their own garbage"),
        ("zones=0B,active_zones=4".to_owned(), "active_zones changes nothing without zones"),
        ("share_pages=4".to_owned(), "share_pages changes nothing with zones"),
    ] {
        let refused = refusal(options.clone());
        assert!(refused.contains(why), "{options}: {refused}");
    }
}
