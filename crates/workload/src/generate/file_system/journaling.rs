//! A file system with a journal, after ext4 with its data in the journal, and after SHARE's change of it.
//!
//! A transaction goes to the journal: a block that describes it, the changed blocks, a block that commits it. The
//! journal is written round and round. When the next transaction finds no room, the oldest ones are *checkpointed*:
//! those of their blocks that no later transaction has changed come to their places, and the journal's superblock says
//! from where on it is needed. With `checkpoint=copy` each of these blocks is written a second time, as ext4 does. With
//! `checkpoint=share` its place is made to share the page that the journal holds ("SHARE Interface for Flash Storage",
//! SIGMOD 2016): nothing is written, and the page stays when the journal overwrites its own address.
//!
//! Assumed: ext4's other metadata are blocks like others; a transaction is not delayed by a timer.

use super::{Changes, ChangesConfig, check_pages, with_changes};
use crate::generate::generator::{Generator, RequestSource};
use crate::generate::recipe::{Recipe, Space};
use crate::{Op, Request};
use fulgurite_base::option::SHARE;
use fulgurite_base::{Choice, Form, Share, SpecError, opt};
use std::collections::VecDeque;

/// How journaled blocks come to their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkpoint {
    /// They are written again.
    #[default]
    Copy,
    /// Their places share the journal's pages.
    Share,
}

impl Choice for Checkpoint {
    const NAMES: &'static [(&'static str, Checkpoint)] =
        &[("copy", Checkpoint::Copy), ("share", Checkpoint::Share)];
}

/// The options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JournalingConfig {
    /// How journaled blocks come to their places.
    pub checkpoint: Checkpoint,
    /// Pages that belong to the journal.
    pub journal: Share,
    /// What is asked of the file system.
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
        "copy: a journaled block is written again to its place, share: its place shares the journal's page"
    ),
    opt!("journal", journal, SHARE, Share::ZERO => Share::percent(50), "pages that belong to the journal")
);

/// Blocks of a transaction that are not of files: the one that describes it and the one that commits it.
const BESIDE: u64 = 2;

impl Recipe for JournalingConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        check_pages(space.name, space.pages, 1_000)?;
        let slots = self.journal.of(space.pages);
        let least = u64::from(self.changes.transaction) + BESIDE;
        if slots < least {
            return Err(SpecError::new(format!(
                "journal={} of {}: its {slots} pages cannot hold a transaction of {} changes; accepted: at least {least} pages, or a smaller transaction=",
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

/// A transaction in the journal: its blocks, each with the slot that holds it, and how many slots it has in all.
#[derive(Debug)]
struct Transaction {
    blocks: Vec<(u32, u32)>,
    slots: u64,
}

/// The journal and the places of the blocks. Page 0 is the journal's superblock; the slots follow, then the blocks.
#[derive(Debug)]
struct Journaling {
    checkpoint: Checkpoint,
    slots: u64,
    /// The page of block 0.
    first: u64,
    /// The next slot, and how many are free from there on.
    next: u64,
    free: u64,
    journaled: VecDeque<Transaction>,
    /// The slot that holds each block's newest version, plus one; 0 where it is in its place.
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

    /// Writes the next slot and returns its number.
    fn slot(&mut self) -> u64 {
        let slot = self.next;
        self.next = (self.next + 1) % self.slots;
        self.out.push_back(Request::of_page(Op::Write, 1 + slot));
        slot
    }

    fn checkpoint(&mut self, transaction: &Transaction) {
        self.free += transaction.slots;
        for (block, slot) in &transaction.blocks {
            // A later transaction that changed the block brings it to its place.
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
