//! The counters of a drive, and its self-check.

use super::command::InFlight;
use super::fdp::{FdpCounts, FdpEvents};
use super::{SimDrive, Translation};
use crate::SsdConfig;
use crate::nand::NandError;
use fulgurite_base::Nanos;
use fulgurite_device::MeterError;
use fulgurite_ftl::check::{self, CheckError};
use thiserror::Error;

/// A violation that the drive found in itself.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // each message names the fields
pub enum DriveError {
    /// A law of queues (conservation or Little's law) is violated.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// A rule of NAND is violated.
    #[error("NAND rule broken: {0}")]
    Nand(#[from] NandError),
    /// An invariant of the flash translation layer is violated.
    #[error("FTL invariant broken: {0}")]
    Ftl(#[from] CheckError),
    /// The number of pages that the dies programmed differs from the number that the FTL emitted.
    #[error("the FTL emitted {emitted} page programs, the dies performed {performed}")]
    Programs { emitted: u64, performed: u64 },
    /// The free and the occupied pages of the write buffer do not add up to its size.
    #[error("the write buffer has {free} free pages and holds {held}, together not its {pages}")]
    Buffer { pages: u32, free: u32, held: u32 },
    /// A command that was answered is kept in the drive, though it has no page to place.
    #[error("a request that was answered is kept for nothing")]
    Kept,
}

/// Counters of a drive since it was preconditioned.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DriveCounters {
    /// The number of pages that the host wrote.
    pub host_pages_written: u64,
    /// The number of pages read from the flash, for the host and for moves.
    pub flash_pages_read: u64,
    /// The number of pages programmed by the dies.
    pub flash_pages_programmed: u64,
    /// The number of pages moved by garbage collection.
    pub gc_pages_copied: u64,
    /// The number of segments erased.
    pub erases: u64,
    /// The number of flash operations of the dies; a multi-plane operation counts once.
    pub flash_operations: u64,
    /// The number of flash page reads that merging has saved.
    pub merged_pages: u64,
    /// The number of host operations that overlapped an operation of collection.
    pub overlaps: u64,
    /// The number of suspensions of programs and erases.
    pub suspensions: u64,
    /// The number of pages that were shared instead of written.
    pub shared_pages: u64,
    /// The number of segments collected by wear leveling.
    pub leveled_segments: u64,
    /// The events of flexible data placement; `None` without it.
    pub fdp: Option<FdpCounts>,
    /// The energy of all flash operations and transfers, in joules.
    pub energy_j: f64,
}

impl DriveCounters {
    /// Returns the increase of each counter since `before`.
    pub fn since(&self, before: &DriveCounters) -> DriveCounters {
        DriveCounters {
            host_pages_written: self.host_pages_written - before.host_pages_written,
            flash_pages_read: self.flash_pages_read - before.flash_pages_read,
            flash_pages_programmed: self.flash_pages_programmed - before.flash_pages_programmed,
            gc_pages_copied: self.gc_pages_copied - before.gc_pages_copied,
            erases: self.erases - before.erases,
            flash_operations: self.flash_operations - before.flash_operations,
            merged_pages: self.merged_pages - before.merged_pages,
            overlaps: self.overlaps - before.overlaps,
            suspensions: self.suspensions - before.suspensions,
            shared_pages: self.shared_pages - before.shared_pages,
            leveled_segments: self.leveled_segments - before.leveled_segments,
            fdp: self.fdp.zip(before.fdp).map(|(now, before)| now.since(&before)),
            energy_j: self.energy_j - before.energy_j,
        }
    }
}

impl SimDrive {
    /// Returns the current counters.
    pub fn counters(&self) -> DriveCounters {
        let performed = self.flash.performed;
        let counters = match &self.translation {
            Translation::PageMapped(ftl) => {
                let counters = ftl.counters();
                DriveCounters {
                    host_pages_written: counters.host_pages,
                    gc_pages_copied: counters.copied_pages,
                    erases: counters.erased_segments,
                    shared_pages: counters.shared_pages,
                    leveled_segments: counters.leveled_segments,
                    ..DriveCounters::default()
                }
            }
            Translation::InPlace(medium) => {
                DriveCounters { host_pages_written: medium.host_pages, ..DriveCounters::default() }
            }
        };
        DriveCounters {
            host_pages_written: counters.host_pages_written + self.accepted_pages(),
            flash_pages_read: performed.pages_read,
            flash_pages_programmed: performed.pages_programmed + performed.parity_pages,
            flash_operations: performed.operations,
            merged_pages: self.collectors.iter().map(|collector| collector.merged_pages).sum(),
            overlaps: performed.overlaps,
            suspensions: performed.suspensions,
            fdp: self.fdp.as_ref().map(FdpEvents::counts),
            energy_j: self.energy_j(),
            ..counters
        }
    }

    /// Returns the energy so far in joules: power × time of all operations and transfers.
    fn energy_j(&self) -> f64 {
        let performed = self.flash.performed;
        let SsdConfig { read, program, erase, transfer, .. } = self.config;
        // A program writes this many flash pages of a plane at once.
        let bits = f64::from(self.config.programmed_bits());
        let milliwatt_ns = |count: u64, time: Nanos, milliwatts: u32| {
            count as f64 * time.0 as f64 * f64::from(milliwatts) * 1e-12
        };
        milliwatt_ns(performed.flash_pages_read, read, self.config.read_mw)
            + milliwatt_ns(performed.flash_pages_programmed, program, self.config.program_mw) / bits
            + milliwatt_ns(performed.blocks_erased, erase, self.config.erase_mw)
            + milliwatt_ns(
                performed.pages_read + performed.pages_programmed + performed.parity_pages,
                transfer,
                self.config.transfer_mw,
            )
    }

    /// Checks every property that can be checked once the drive is flushed: conservation, Little's law, the
    /// rules of NAND, and that the dies performed the programs that the FTL emitted. With `deep` it also
    /// checks the FTL's invariants, in O(physical pages).
    pub fn verify(&self, deep: bool) -> Result<(), DriveError> {
        self.meter.check()?;
        if let Some(fault) = &self.flash.fault {
            return Err(fault.clone().into());
        }
        let counters = self.counters();
        let (emitted, performed) = (
            counters.host_pages_written - self.accepted_pages() + counters.gc_pages_copied,
            self.flash.performed.pages_programmed + self.flash.performed.pages_lost,
        );
        // Compares only an idle flash, since programs in progress are emitted and not yet counted.
        if self.flash.is_idle() && emitted != performed {
            return Err(DriveError::Programs { emitted, performed });
        }
        self.verify_buffer()?;
        if let (true, Translation::PageMapped(ftl)) = (deep, &self.translation) {
            check::check(ftl)?;
        }
        Ok(())
    }

    /// Checks that each page of the write buffer is free, waits for its physical page, or is on its way to
    /// the flash, and that answered commands are kept only for pages without a physical page.
    fn verify_buffer(&self) -> Result<(), DriveError> {
        let buffered = self.commands.iter().filter(|(_, command)| command.is_buffered);
        let unplaced: u32 = buffered.map(|(_, write)| write.pages - write.placed).sum();
        let held = unplaced + self.unprogrammed.iter().sum::<u32>();
        let (pages, free) = (self.config.write_buffer_pages(), self.buffer_free);
        if free + held != pages {
            return Err(DriveError::Buffer { pages, free, held });
        }
        let is_left = |command: &InFlight| command.is_buffered && command.placed < command.pages;
        match self.commands.iter().all(|(_, command)| !command.is_answered || is_left(command)) {
            true => Ok(()),
            false => Err(DriveError::Kept),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Place;
    use crate::preset;
    use fulgurite_base::{Lpn, Share};
    use fulgurite_device::{Command, Device, Operation, Tag};
    use fulgurite_ftl::precondition::Precondition;

    fn written() -> SimDrive {
        let config = SsdConfig {
            blocks: 8,
            pages: 8,
            op: Share::percent(100),
            precondition: Precondition::None,
            ..preset::reference_e()
        };
        let mut drive = SimDrive::new(config, 42, false).unwrap();
        for tag in 0..4 {
            drive.submit(Command { tag: Tag(tag), operation: Operation::write(Lpn(tag), 1) }).unwrap();
        }
        drive.wait(None, &mut Vec::new());
        drive.drain_events();
        drive
    }

    /// The rule: the self-check accepts a correct drive and reports each violation.
    #[test]
    fn every_violation_is_reported() {
        assert_eq!(written().verify(true), Ok(()));
        let found = |spoil: fn(&mut SimDrive)| {
            let mut drive = written();
            spoil(&mut drive);
            drive.verify(false)
        };
        let pages = written().config().write_buffer_pages();
        assert_eq!(
            found(|drive| drive.buffer_free -= 1),
            Err(DriveError::Buffer { pages, free: pages - 1, held: 0 })
        );
        assert_eq!(
            found(|drive| drive.flash.performed.pages_programmed += 1),
            Err(DriveError::Programs { emitted: 4, performed: 5 })
        );
        assert!(matches!(found(|drive| drive.meter.submit(Nanos::ZERO)), Err(DriveError::Meter(_))));
        assert!(matches!(found(|drive| drive.flash.fault = Some(FAULT)), Err(DriveError::Nand(FAULT))));
    }

    const FAULT: NandError = NandError::ReadOfErased { block: 0, page: 7, programmed: 1 };

    /// The rule: a violation of the rules of NAND is reported, and of several violations the first.
    #[test]
    fn the_first_broken_rule_of_nand_is_kept() {
        let mut drive = written();
        let read = |drive: &mut SimDrive, page| {
            let place = Place { die: 0, block: 0, page, row: page };
            drive.flash.host_read(0, place, None);
            drive.flash.next_host(0);
            // The two events are the ends of the read's array time and of its transfer.
            assert!(drive.flash.event(0).is_none() && drive.flash.event(0).is_some());
        };
        read(&mut drive, 0);
        assert_eq!(drive.verify(false), Ok(()));
        read(&mut drive, 7);
        read(&mut drive, 6);
        assert_eq!(drive.verify(false), Err(FAULT.into()));
    }

    /// The rule: an acknowledged write stays in the table of commands only while one of its pages waits in the
    /// write buffer for a physical page.
    #[test]
    fn an_answered_request_is_kept_only_for_unplaced_pages() {
        let kept = |placed, is_answered| {
            let mut drive = written();
            drive.submit(Command { tag: Tag(9), operation: Operation::write(Lpn(9), 2) }).unwrap();
            drive.commands.iter_mut().for_each(|(_, write)| {
                (write.is_buffered, write.placed, write.is_answered) = (true, placed, is_answered);
            });
            drive.buffer_free -= 2 - placed;
            drive.verify_buffer()
        };
        assert_eq!(kept(0, true), Ok(()));
        assert_eq!(kept(1, true), Ok(()));
        assert_eq!(kept(2, true), Err(DriveError::Kept));
        assert_eq!(kept(2, false), Ok(()));
    }

    /// The rule: [`DriveCounters::since`] returns the increase of every counter.
    #[test]
    fn counters_since_are_the_increase() {
        let counters = |of: fn(u64) -> u64| DriveCounters {
            host_pages_written: of(12),
            flash_pages_read: of(2),
            flash_pages_programmed: of(3),
            gc_pages_copied: of(4),
            erases: of(5),
            flash_operations: of(6),
            merged_pages: of(7),
            overlaps: of(8),
            suspensions: of(9),
            shared_pages: of(10),
            leveled_segments: of(11),
            fdp: Some(FdpCounts { invalid_identifiers: of(14), reallocated_units: of(15) }),
            energy_j: of(13) as f64,
        };
        let (before, after) = (counters(|count| 100 * count), counters(|count| 101 * count));
        assert_eq!(after.since(&before), counters(|count| count));
    }
}
