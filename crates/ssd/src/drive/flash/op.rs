//! One operation of a die, from its queue to its end.

use super::Waits;
use crate::config::MAX_PLANES;
use crate::layout::Place;
use std::num::NonZeroU32;

/// The number of an operation, while it is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::drive) struct OpId(NonZeroU32);

impl OpId {
    /// The operation with this key in the table of operations.
    #[inline]
    pub fn of_key(key: usize) -> OpId {
        // One more than the key, so that an `Option` of it is as small as the number itself.
        OpId(NonZeroU32::new(key as u32 + 1).expect("fewer than 2^32 operations are under way"))
    }

    #[inline]
    pub fn key(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// What an operation does.
#[derive(Clone, Debug)]
pub(in crate::drive) enum FlashOpKind {
    HostRead {
        command: u32,
        /// Its pages, by plane, that collection takes along.
        merged: u8,
    },
    /// A read of garbage collection.
    MoveRead,
    Program(Programmed),
    Erase,
}

/// What a program holds.
#[derive(Clone, Debug, Default)]
pub(in crate::drive) struct Programmed {
    /// Pages of the host.
    pub host_pages: u8,
    /// Flush epoch of the host's pages.
    pub epoch: u32,
    /// The write that waits for it.
    pub command: Option<u32>,
    /// Copies, and the dies from which they came.
    copies: u8,
    sources: [u32; MAX_PLANES],
}

impl Programmed {
    /// Nothing yet.
    pub fn in_epoch(epoch: u32) -> Programmed {
        Programmed { epoch, ..Programmed::default() }
    }

    /// Adds a copy of a page of `die`.
    #[inline]
    pub fn add_copy(&mut self, die: u32) {
        self.sources[usize::from(self.copies)] = die;
        self.copies += 1;
    }

    /// The dies from which its copies came.
    #[inline]
    pub fn sources(&self) -> &[u32] {
        &self.sources[..usize::from(self.copies)]
    }
}

/// One operation of a die, on up to one page in each of its planes.
#[derive(Clone, Debug)]
pub(in crate::drive) struct FlashOp {
    pub kind: FlashOpKind,
    pub die: u32,
    /// [`Place::row`] of its pages.
    pub row: u32,
    /// The erase block of plane 0, and which planes take part.
    pub block: u32,
    pub planes: u8,
    pub page: u32,
    /// In its second phase: a read in its transfer, a program in its array time.
    pub second_phase: bool,
    pub suspensions: u8,
    /// When it was queued, and once it is under way, when that began.
    pub since: u64,
    /// What the die had worked for the host when this was queued.
    pub host_busy: u64,
    /// The end of the phase under way.
    pub until: u64,
    pub waits: Waits,
}

impl FlashOp {
    #[inline]
    pub fn pages(&self) -> u32 {
        self.planes.count_ones()
    }

    /// Adds the page at `place`, which lies in the op's row.
    #[inline]
    pub fn add(&mut self, place: Place) {
        self.planes |= 1 << (place.block - self.block);
    }

    pub fn blocks(&self) -> impl Iterator<Item = u32> + use<> {
        blocks_of(self.block, self.planes)
    }

    /// Whether this operation is garbage collection's alone.
    #[inline]
    pub fn collects(&self) -> bool {
        match &self.kind {
            FlashOpKind::HostRead { .. } => false,
            FlashOpKind::MoveRead | FlashOpKind::Erase => true,
            FlashOpKind::Program(programmed) => programmed.host_pages == 0,
        }
    }

    #[inline]
    pub fn is_read(&self) -> bool {
        matches!(self.kind, FlashOpKind::HostRead { .. } | FlashOpKind::MoveRead)
    }

    #[inline]
    pub fn is_program(&self) -> bool {
        matches!(self.kind, FlashOpKind::Program(_))
    }

    #[inline]
    pub fn is_erase(&self) -> bool {
        matches!(self.kind, FlashOpKind::Erase)
    }

    /// Copies in a program.
    pub fn copies(&self) -> usize {
        match &self.kind {
            FlashOpKind::Program(programmed) => programmed.sources().len(),
            _ => 0,
        }
    }
}

/// The erase blocks of `planes` of the die whose first block is `first`.
pub(in crate::drive) fn blocks_of(first: u32, planes: u8) -> impl Iterator<Item = u32> {
    (0..MAX_PLANES as u32).filter(move |plane| planes >> plane & 1 == 1).map(move |plane| first + plane)
}
