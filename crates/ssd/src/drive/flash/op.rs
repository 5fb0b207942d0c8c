//! One flash operation of a die, from its entry into a queue to its end.

use crate::config::MAX_PLANES;
use crate::drive::waits::Waits;
use crate::layout::Place;
use std::num::NonZeroU32;

/// The row of an erase and of parity, which no page of data shares.
pub(super) const NO_ROW: u32 = u32::MAX;

/// The number of a flash operation in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::drive) struct OpId(NonZeroU32);

impl OpId {
    /// Returns the operation with this key in the table of operations.
    #[inline]
    pub(crate) fn of_key(key: usize) -> OpId {
        // Stores one more than the key, so that an `Option` of it has the same size.
        OpId(NonZeroU32::new(key as u32 + 1).expect("fewer than 2^32 operations are under way"))
    }

    #[inline]
    pub(crate) fn key(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The kind of a flash operation.
#[derive(Clone, Debug)]
pub(in crate::drive) enum FlashOpKind {
    HostRead {
        command: u32,
        /// The pages, as bits by position in the row, that collection takes as its own reads.
        merged: u64,
    },
    /// A read of garbage collection.
    MoveRead,
    Program(Programmed),
    /// A program of parity.
    Parity,
    Erase,
}

/// The contents of a program operation.
#[derive(Clone, Debug, Default)]
pub(in crate::drive) struct Programmed {
    /// The number of host pages.
    pub(crate) host_pages: u8,
    /// The flush epoch of the host pages. Each flush ends an epoch.
    pub(crate) epoch: u32,
    /// The host write that waits for the program; `None` if no write waits.
    pub(crate) command: Option<u32>,
    /// The number of copies, and the dies of their source pages. Copies that wait in a protected buffer are not
    /// among them, so a row with copies here has at most one page of each plane.
    copies: u8,
    sources: [u32; MAX_PLANES as usize],
}

impl Programmed {
    /// Returns a program without pages, in the flush epoch `epoch`.
    pub(crate) fn in_epoch(epoch: u32) -> Programmed {
        Programmed { epoch, ..Programmed::default() }
    }

    /// Adds a copy of a page of `die`.
    #[inline]
    pub(crate) fn add_copy(&mut self, die: u32) {
        self.sources[usize::from(self.copies)] = die;
        self.copies += 1;
    }

    /// Returns the dies of the source pages of the copies.
    #[inline]
    pub(crate) fn sources(&self) -> &[u32] {
        &self.sources[..usize::from(self.copies)]
    }
}

/// One flash operation of a die, on pages of one row.
#[derive(Clone, Debug)]
pub(in crate::drive) struct FlashOp {
    pub(crate) kind: FlashOpKind,
    pub(crate) die: u32,
    /// The row of its pages; see [`Place::row`].
    pub(crate) row: u32,
    /// The erase block of the row's first page; `in_row` has a bit for each page of the row that takes part.
    pub(crate) block: u32,
    pub(crate) in_row: u64,
    pub(crate) page: u32,
    /// Whether the operation is in its second phase: a read in its transfer, a program in its array time.
    pub(crate) second_phase: bool,
    pub(crate) suspensions: u8,
    /// The virtual time at which the operation was queued or, once it runs, at which it started.
    pub(crate) since: u64,
    /// The time that the die had spent on host operations when this operation was queued.
    pub(crate) host_busy: u64,
    /// The end of the current phase.
    pub(crate) until: u64,
    pub(crate) waits: Waits,
}

impl FlashOp {
    #[inline]
    pub(crate) fn pages(&self) -> u32 {
        self.in_row.count_ones()
    }

    /// Adds the page at `place`, which is in the operation's row.
    #[inline]
    pub(crate) fn add(&mut self, place: Place) {
        self.in_row |= 1 << (place.block - self.block);
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = u32> + use<> {
        members(self.block, self.in_row)
    }

    /// Returns whether the operation only serves garbage collection.
    #[inline]
    pub(crate) fn collects(&self) -> bool {
        match &self.kind {
            FlashOpKind::HostRead { .. } | FlashOpKind::Parity => false,
            FlashOpKind::MoveRead | FlashOpKind::Erase => true,
            FlashOpKind::Program(programmed) => programmed.host_pages == 0,
        }
    }

    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.kind, FlashOpKind::HostRead { .. } | FlashOpKind::MoveRead)
    }

    #[inline]
    pub(crate) fn is_program(&self) -> bool {
        matches!(self.kind, FlashOpKind::Program(_) | FlashOpKind::Parity)
    }

    #[inline]
    pub(crate) fn is_erase(&self) -> bool {
        matches!(self.kind, FlashOpKind::Erase)
    }

    /// Returns the number of copies in a program; 0 for other operations.
    pub(crate) fn copies(&self) -> usize {
        match &self.kind {
            FlashOpKind::Program(programmed) => programmed.sources().len(),
            _ => 0,
        }
    }
}

/// Returns the numbers from `first` on whose bits are set in `in_row`: the pages of a row, or their erase
/// blocks.
#[inline]
pub(in crate::drive) fn members(first: u32, mut in_row: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let at = in_row.trailing_zeros();
        // Clears the lowest bit; there is none left if the word is 0.
        in_row &= in_row.checked_sub(1)?;
        Some(first + at)
    })
}
