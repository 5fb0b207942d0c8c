//! The state of a drive at one moment, for display.

use super::busy::DieState;
use super::{SimDrive, Translation};
use fulgurite_base::Nanos;
use fulgurite_ftl::schedule::ScheduleState;

/// The state of a drive at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveState {
    /// The dies in the order of their numbers.
    pub dies: Vec<DieState>,
    /// The time that each channel has spent on transfers.
    pub channels: Vec<Nanos>,
    /// The number of commands that wait for a slot of the firmware or for room in the write buffer.
    pub waiting: u32,
    /// The number of pages in the write buffer.
    pub buffer_pages: u32,
    /// The number of pages for which the write buffer has room.
    pub buffer_pages_at_most: u32,
    /// The state of the drive's segments; `None` for a medium that is overwritten in place.
    pub segments: Option<Segments>,
}

/// The state of a drive's segments and of their collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// The number of segments.
    pub all: u32,
    /// The number of free segments.
    pub free: u32,
    /// The number of free segments below which collection starts.
    pub threshold: u32,
    /// The number of pages in all segments.
    pub pages: u64,
    /// The number of valid pages in all segments.
    pub valid_pages: u64,
    /// The state of the schedule; of several units, the most restrictive.
    pub state: ScheduleState,
}

impl Segments {
    /// The names of the states, the most restrictive last.
    pub const STATES: [&'static str; 4] = ["idle", "running", "pressed", "urgent"];

    /// Returns the name of the schedule's state. In `pressed`, writes wait for collection; in `urgent`, reads too.
    pub fn collection(&self) -> &'static str {
        Segments::STATES[self.state as usize]
    }
}

impl SimDrive {
    /// Returns the drive's state now, in O(dies + segments).
    pub fn look(&self) -> DriveState {
        let buffer_pages_at_most = self.config.write_buffer_pages();
        DriveState {
            dies: self.flash.die_states(),
            channels: self.flash.channels_busy(),
            waiting: (self.held.len() + self.entering.len()) as u32,
            buffer_pages: buffer_pages_at_most - self.buffer_free,
            buffer_pages_at_most,
            segments: self.segments_state(),
        }
    }

    fn segments_state(&self) -> Option<Segments> {
        let Translation::PageMapped(ftl) = &self.translation else { return None };
        let table = ftl.segments();
        Some(Segments {
            all: table.len(),
            free: ftl.free_segments(),
            threshold: self.config.collect.reserve * self.config.units(),
            pages: u64::from(table.len()) * u64::from(table.segment_pages()),
            valid_pages: table.valid_pages(),
            state: self.state(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Busy;
    use crate::{SsdConfig, preset};
    use fulgurite_base::{Lpn, Share};
    use fulgurite_device::{Command, Device, Operation, Tag};
    use fulgurite_ftl::precondition::Precondition;

    /// Returns a drive of four dies on two channels with the schedule `schedule`, and submits `writes` writes of a page
    /// at random places.
    fn drive(schedule: &str, writes: u64) -> SimDrive {
        let config = SsdConfig {
            channels: 2,
            chips: 1,
            dies: 2,
            planes: 1,
            blocks: 12,
            pages: 8,
            op: Share::percent(50),
            precondition: Precondition::Steady,
            ..preset::reference_e()
        };
        let mut config = config;
        config.collect.schedule = fulgurite_ftl::schedule::Schedule::from_name(schedule).unwrap();
        let pages = config.logical_pages();
        let mut drive = SimDrive::new(config, 42, false).unwrap();
        for tag in 0..writes {
            let lpn = tag.wrapping_mul(0x9e37_79b9) % pages;
            let operation =
                if tag % 4 == 3 { Operation::read(Lpn(lpn), 1) } else { Operation::write(Lpn(lpn), 1) };
            drive.submit(Command { tag: Tag(tag), operation }).unwrap();
        }
        drive
    }

    /// The rule: at any time, the busy times of a die and of a channel neither fall nor grow by more than the
    /// time that has passed. At the end they are those of all operations, of every kind.
    #[test]
    fn busy_times_grow_with_the_clock() {
        for schedule in ["paced", "semi-preemptive+pipeline", "preemptive"] {
            let mut drive = drive(schedule, 60);
            let (mut before, mut at) = (drive.look(), drive.now());
            while drive.perform_next_event() {
                let (now, passed) = (drive.look(), (drive.now() - at).0);
                let pairs = before.dies.iter().zip(&now.dies).map(|(before, now)| {
                    let sum = |die: &DieState| die.busy.by_kind().iter().map(|(_, time)| time.0).sum::<u64>();
                    (sum(before), sum(now))
                });
                let channels =
                    before.channels.iter().zip(&now.channels).map(|(before, now)| (before.0, now.0));
                for (before, now) in pairs.chain(channels) {
                    assert!(before <= now && now - before <= passed, "{schedule}: {before} {now} {passed}");
                }
                (before, at) = (now, drive.now());
            }
            let performed = drive.flash.performed;
            let sum = |of: fn(&Busy) -> u64| before.dies.iter().map(|die| of(&die.busy)).sum::<u64>();
            let config = drive.config();
            // An erase is in the array alone, and nothing overlaps with it.
            assert_eq!(sum(|busy| busy.erase), performed.blocks_erased * config.erase.0, "{schedule}");
            let transferred = performed.pages_read + performed.pages_programmed;
            let channels: u64 = before.channels.iter().map(|time| time.0).sum();
            assert_eq!(channels, transferred * config.transfer.0, "{schedule}");
            let kinds = [sum(|busy| busy.read), sum(|busy| busy.program), sum(|busy| busy.move_read)];
            assert!(kinds.iter().all(|time| *time > 0), "{schedule}: {kinds:?}");
        }
    }

    /// The rule: the state says what the drive holds: the pages in its buffer, the operations that wait for a die, and
    /// collection while it runs.
    #[test]
    fn the_state_is_that_of_the_drive() {
        let mut drive = drive("paced", 60);
        let idle = drive.look();
        assert_eq!((idle.buffer_pages, idle.waiting), (0, 0));
        assert_eq!(idle.dies.iter().map(|die| die.channel).collect::<Vec<_>>(), [0, 1, 0, 1]);
        let (mut buffered, mut queued, mut collecting, mut working) = (0, 0, false, false);
        while drive.perform_next_event() {
            let now = drive.look();
            let segments = now.segments.unwrap();
            assert!(segments.free <= segments.all && segments.valid_pages <= segments.pages);
            buffered = buffered.max(now.buffer_pages);
            queued = queued.max(now.dies.iter().map(|die| die.waiting).sum());
            collecting |= segments.collection() != "idle";
            working |= now.dies.iter().any(|die| die.collects);
        }
        assert!(
            buffered > 10 && queued > 3 && collecting && working,
            "{buffered} {queued} {collecting} {working}"
        );
        let end = drive.look();
        assert_eq!((end.buffer_pages, end.dies.iter().filter(|die| die.waiting > 0).count()), (0, 0));
    }
}
