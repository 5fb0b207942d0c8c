//! What a drive has done, and whether it was right.

use super::command::InFlight;
use super::{SimDrive, Translation};
use crate::SsdConfig;
use crate::nand::NandError;
use fulgurite_base::Nanos;
use fulgurite_device::MeterError;
use fulgurite_ftl::check::{self, CheckError};
use thiserror::Error;

/// Something that the drive found wrong with itself.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DriveError {
    /// A law of queues.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// A rule of NAND.
    #[error("NAND rule broken: {0}")]
    Nand(#[from] NandError),
    /// An invariant of the flash translation layer.
    #[error("FTL invariant broken: {0}")]
    Ftl(#[from] CheckError),
    /// The flash did not perform what the FTL emitted.
    #[error("the FTL emitted {emitted} page programs, the dies performed {performed}")]
    Programs {
        /// By the FTL.
        emitted: u64,
        /// By the dies.
        performed: u64,
    },
    /// Room in the write buffer that is neither free nor holds a page.
    #[error("the write buffer has {free} free pages and holds {held}, together not its {pages}")]
    Buffer {
        /// Pages of the buffer.
        pages: u32,
        /// That are free.
        free: u32,
        /// That hold pages, without a place or on their way to the flash.
        held: u32,
    },
    /// A request that was answered is kept, though nothing of it is left to do.
    #[error("a request that was answered is kept for nothing")]
    Kept,
}

/// What a drive has done since it was preconditioned.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DriveCounters {
    /// Pages that the host wrote.
    pub host_pages_written: u64,
    /// Pages read from the flash, for the host and for moves.
    pub flash_pages_read: u64,
    /// Pages programmed by the dies.
    pub flash_pages_programmed: u64,
    /// Pages moved by garbage collection.
    pub gc_pages_copied: u64,
    /// Segments erased.
    pub erases: u64,
    /// Operations of dies, multi-plane ones counted once.
    pub flash_operations: u64,
    /// Flash reads of pages that merging has saved.
    pub merged_pages: u64,
    /// Host operations that overlapped one of collection.
    pub overlaps: u64,
    /// Suspensions of programs and erases.
    pub suspensions: u64,
    /// Pages that were shared instead of written.
    pub shared_pages: u64,
    /// Segments that were collected to level wear.
    pub leveled_segments: u64,
    /// Energy of all flash operations and transfers, in joules.
    pub energy_j: f64,
}

impl DriveCounters {
    /// What has been done since these were the counters.
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
            energy_j: self.energy_j - before.energy_j,
        }
    }
}

impl SimDrive {
    /// What the drive has done.
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
            flash_pages_programmed: performed.pages_programmed,
            flash_operations: performed.operations,
            merged_pages: self.collectors.iter().map(|collector| collector.merged_pages).sum(),
            overlaps: performed.overlaps,
            suspensions: performed.suspensions,
            energy_j: self.energy_j(),
            ..counters
        }
    }

    /// Power × time of every operation and transfer so far.
    fn energy_j(&self) -> f64 {
        let performed = self.flash.performed;
        let SsdConfig { read, program, erase, transfer, .. } = self.config;
        let milliwatt_ns = |count: u64, time: Nanos, milliwatts: u32| {
            count as f64 * time.0 as f64 * f64::from(milliwatts) * 1e-12
        };
        milliwatt_ns(performed.pages_read, read, self.config.read_mw)
            + milliwatt_ns(performed.pages_programmed, program, self.config.program_mw)
            + milliwatt_ns(performed.blocks_erased, erase, self.config.erase_mw)
            + milliwatt_ns(
                performed.pages_read + performed.pages_programmed,
                transfer,
                self.config.transfer_mw,
            )
    }

    /// Checks everything that can be checked once the drive is flushed: conservation, Little's
    /// law, the NAND rules, and that the dies did what the FTL emitted; with `deep`, the FTL's
    /// invariants too, in O(physical pages).
    pub fn verify(&self, deep: bool) -> Result<(), DriveError> {
        self.meter.check()?;
        if let Some(fault) = &self.flash.fault {
            return Err(fault.clone().into());
        }
        let counters = self.counters();
        let (emitted, performed) = (
            counters.host_pages_written - self.accepted_pages() + counters.gc_pages_copied,
            counters.flash_pages_programmed + self.flash.performed.pages_lost,
        );
        // Programs under way are emitted and not yet counted, so only an idle flash can be compared.
        if self.flash.is_idle() && emitted != performed {
            return Err(DriveError::Programs { emitted, performed });
        }
        self.verify_buffer()?;
        if let (true, Translation::PageMapped(ftl)) = (deep, &self.translation) {
            check::check(ftl)?;
        }
        Ok(())
    }

    /// Each page of the write buffer is free, waits for its place, or is on its way to the flash; and what was answered is kept
    /// for pages without a place alone.
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
