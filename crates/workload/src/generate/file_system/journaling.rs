//! Generates the writes of a file system with a journal, after ext4 with data journaling, and of its variant
//! for a drive with SHARE. SHARE is a command that maps a logical page to the physical page of another one.
//!
//! The journal is a ring of pages. A transaction writes a descriptor block, the changed blocks and a commit
//! block to it. When the next transaction finds no room, the oldest transactions are *checkpointed*: their
//! blocks that no later transaction has changed are moved to their home locations, and the journal's
//! superblock records the new start of the journal. With `checkpoint=copy`, each of these blocks is written a
//! second time, as in ext4. With `checkpoint=share`, the home location shares the physical page in the
//! journal (Oh et al., "SHARE Interface for Flash Storage", SIGMOD 2016). Nothing is written, and the
//! physical page stays valid when the journal overwrites its own address.
//!
//! *Assumptions.* ext4's other metadata are blocks like all others. No timer delays a transaction.

use super::{Changes, ChangesConfig, check_pages, with_changes};
use crate::generate::generator::{Generator, RequestSource};
use crate::generate::recipe::{Recipe, Space};
use crate::{Op, Request};
use fulgurite_base::option::SHARE;
use fulgurite_base::{Choice, Form, Share, SpecError, opt};
use std::collections::VecDeque;

/// The way in which a checkpoint moves journaled blocks to their home locations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkpoint {
    /// The blocks are written again.
    #[default]
    Copy,
    /// The home locations share the physical pages of the journal.
    Share,
}

impl Choice for Checkpoint {
    const NAMES: &'static [(&'static str, Checkpoint)] =
        &[("copy", Checkpoint::Copy), ("share", Checkpoint::Share)];
}

/// The options of `journaling`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JournalingConfig {
    /// The way in which a checkpoint moves journaled blocks to their home locations.
    pub checkpoint: Checkpoint,
    /// The share of the pages that belong to the journal.
    pub journal: Share,
    /// The changes that the transactions make.
    pub changes: ChangesConfig,
}

impl Default for JournalingConfig {
    fn default() -> JournalingConfig {
        let (checkpoint, changes) = (Checkpoint::Copy, ChangesConfig::default());
        JournalingConfig { checkpoint, journal: Share::percent(2), changes }
    }
}

with_changes!(
    JournalingConfig,
    opt!(
        "checkpoint",
        checkpoint,
        Form::<Checkpoint>::choice("copy|share"),
        "copy: a journaled block is written again to its home place, share: its home place shares the journal's page"
    ),
    opt!("journal", journal, SHARE, Share::ZERO => Share::percent(50), "pages that belong to the journal")
);

/// The number of additional blocks of a transaction, which are the descriptor block and the commit block.
const BESIDE: u64 = 2;

impl Recipe for JournalingConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        check_pages(space.name, space.pages, 1_000)?;
        let slots = self.journal.of(space.pages);
        let least = u64::from(self.changes.transaction) + BESIDE;
        if slots < least {
            return Err(SpecError::new(format!(
                "journal={} of {}: its {slots} pages cannot hold a transaction of {} changes; accepted: at least \
                 {least} pages, or a smaller transaction=",
                self.journal, space.name, self.changes.transaction
            )));
        }
        let first = 1 + slots;
        let blocks = space.pages - first;
        Ok(Generator::new(Journaling {
            checkpoint: self.checkpoint,
            slots,
            first,
            next: 0,
            free: slots,
            journaled: VecDeque::new(),
            newest: vec![0; blocks as usize],
            changes: Changes::new(self.changes, blocks, space.seed),
            out: VecDeque::new(),
        }))
    }

    fn writes_anything(&self) -> bool {
        true
    }

    fn shares_anything(&self) -> bool {
        self.checkpoint == Checkpoint::Share
    }
}

/// A transaction in the journal, with its changed blocks, each with its slot, and the number of all its
/// slots. A slot is a page of the journal.
#[derive(Debug)]
struct Transaction {
    blocks: Vec<(u32, u32)>,
    slots: u64,
}

/// The state of the journal and of the home locations. Page 0 is the journal's superblock. The slots of the
/// journal follow, then the home locations of the blocks.
#[derive(Debug)]
struct Journaling {
    checkpoint: Checkpoint,
    slots: u64,
    /// The home location of block 0.
    first: u64,
    /// The next slot to write, and the number of free slots from it on.
    next: u64,
    free: u64,
    journaled: VecDeque<Transaction>,
    /// For each block, the slot of its newest version plus one; 0 if the newest version is at its home
    /// location.
    newest: Vec<u32>,
    changes: Changes,
    out: VecDeque<Request>,
}

impl Journaling {
    fn commit(&mut self) {
        let changed = self.changes.next();
        let slots = changed.len() as u64 + BESIDE;
        if self.free < slots {
            while self.free < slots
                && let Some(oldest) = self.journaled.pop_front()
            {
                self.checkpoint(&oldest);
            }
            self.out.push_back(Request::of_page(Op::Write, 0));
        }
        self.free -= slots;
        self.slot();
        let mut blocks = Vec::with_capacity(changed.len());
        for block in changed {
            let slot = self.slot() as u32;
            self.newest[block as usize] = slot + 1;
            blocks.push((block, slot));
        }
        self.slot();
        self.journaled.push_back(Transaction { blocks, slots });
    }

    /// Writes the next slot of the journal and returns its number.
    fn slot(&mut self) -> u64 {
        let slot = self.next;
        self.next = (self.next + 1) % self.slots;
        self.out.push_back(Request::of_page(Op::Write, 1 + slot));
        slot
    }

    fn checkpoint(&mut self, transaction: &Transaction) {
        self.free += transaction.slots;
        for (block, slot) in &transaction.blocks {
            // A later transaction changed the block, so the checkpoint of that transaction moves it to its
            // home location.
            if self.newest[*block as usize] != slot + 1 {
                continue;
            }
            self.newest[*block as usize] = 0;
            let place = self.first + u64::from(*block);
            self.out.push_back(match self.checkpoint {
                Checkpoint::Copy => Request::of_page(Op::Write, place),
                Checkpoint::Share => Request::sharing(place, 1 + u64::from(*slot)),
            });
        }
    }
}

impl RequestSource for Journaling {
    fn request(&mut self) -> Request {
        loop {
            if let Some(request) = self.out.pop_front() {
                return request;
            }
            self.commit();
        }
    }
}
