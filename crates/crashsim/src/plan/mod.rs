//! Everything that a seed decides, written out: the drive, the store, and for each generation what the clients do and
//! what befalls the drive. A run reads nothing else, so a plan can be made smaller piece by piece.

mod describe;
mod generate;
mod shrink;
#[cfg(test)]
mod tests;

pub use shrink::simpler;

use crate::device::{CrashConfig, Fault, FaultKind};
use crate::value::Key;
use fulgurite_base::Nanos;
use fulgurite_engine::{Durability, Planted, TornPages};

/// How the store is made and opened.
#[derive(Clone, Debug, PartialEq)]
pub struct StorePlan {
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Frames that the memory has room for.
    pub frames: u32,
    /// Pages of the log.
    pub log_pages: u32,
    /// What protects pages.
    pub torn_pages: TornPages,
    /// The replacement policy, by name.
    pub replacement: String,
    /// The write-back policy, by name.
    pub write_back: String,
    /// The prefetch policy, by name.
    pub prefetch: String,
    /// How long a `group` commit waits.
    pub group_window: Nanos,
    /// How old a `relaxed` commit becomes.
    pub relaxed_window: Nanos,
    /// Whether pages are read back after they were written.
    pub verify_writes: bool,
    /// Per cent of the memory for pages that records have, beside the frames.
    pub records: u8,
    /// Where pages are written, by name.
    pub place: String,
    /// A bug to plant.
    pub planted: Option<Planted>,
}

/// What a client does in one transaction, or beside transactions.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Reads two accounts and moves an amount from one to the other.
    Transfer {
        /// The account that gives.
        from: u32,
        /// The account that takes.
        to: u32,
        /// How much.
        amount: i64,
        /// Whether it locks for writing at once.
        for_update: bool,
    },
    /// Reads each key and writes it again where it exists, or makes it.
    Update {
        /// The keys, in the order in which they are taken.
        keys: Vec<Key>,
        /// The length of the values, in bytes.
        len: usize,
        /// Whether it locks for writing at once.
        for_update: bool,
    },
    /// Writes each key without reading it.
    Put {
        /// The keys.
        keys: Vec<Key>,
        /// The length of the values, in bytes.
        len: usize,
    },
    /// Deletes the rows of a range that it finds by a scan.
    Delete {
        /// The least row.
        first: u32,
        /// The greatest row.
        last: u32,
    },
    /// Reads a range of rows and writes one row of it, as somebody who counts and adds.
    ScanAndPut {
        /// The least row.
        first: u32,
        /// The greatest row.
        last: u32,
        /// The row to write.
        put: u32,
        /// The length of its value.
        len: usize,
    },
    /// Reads a range.
    Scan {
        /// The least key.
        first: Key,
        /// The greatest key, of the same table.
        last: Key,
        /// From the greatest to the least.
        backward: bool,
        /// After how many rows it stops.
        limit: usize,
        /// From a snapshot.
        snapshot: bool,
    },
    /// Reads all accounts and compares their sum.
    Sum {
        /// From a snapshot.
        snapshot: bool,
    },
    /// Reads several keys at once.
    GetMany {
        /// The keys, of one table.
        keys: Vec<Key>,
        /// From a snapshot.
        snapshot: bool,
    },
    /// Reads the rows of a group through the index.
    IndexScan {
        /// The group.
        group: u8,
        /// From a snapshot.
        snapshot: bool,
    },
    /// Asks for a checkpoint.
    Checkpoint,
}

/// One step of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// How long it waits first.
    pub wait: Nanos,
    /// What it does.
    pub work: Work,
    /// How its commit becomes durable.
    pub durability: Durability,
    /// Whether it rolls back in place of the commit.
    pub rolls_back: bool,
    /// How long the client waits for the step before it gives up and goes on.
    pub patience: Option<Nanos>,
}

/// How a generation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The power goes after this many events, or when the clients have ended.
    Cut(u64),
    /// The store is closed first.
    Close,
}

/// What a store is opened with in place of what it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Frames that the memory has room for.
    pub frames: u32,
    /// Per cent of the memory for pages that records have, beside the frames.
    pub records: u8,
}

/// What happens between two openings of the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// The steps of each client.
    pub clients: Vec<Vec<Step>>,
    /// What befalls the drive meanwhile.
    pub faults: Vec<Fault>,
    /// How it ends.
    pub ending: Ending,
    /// Attempts to open the store afterwards in which the power goes again, each after so many events.
    pub recovery_cuts: Vec<u64>,
    /// What befalls the drive while it is opened for good and looked at.
    pub recovery_faults: Vec<Fault>,
    /// Other memory from these openings on. A full store may refuse less than it had; then it gets all that it ever had.
    pub memory: Option<Memory>,
}

/// A seed, written out.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The seed, which the drive's times and outcomes still follow.
    pub seed: u64,
    /// The drive.
    pub device: CrashConfig,
    /// The store.
    pub store: StorePlan,
    /// Accounts.
    pub accounts: u32,
    /// Registers.
    pub registers: u32,
    /// Rows at the beginning.
    pub rows: u32,
    /// Bytes of each of their values at first.
    pub row_bytes: usize,
    /// How often the rows are written again before the work begins, every third of them, and then a checkpoint.
    pub rounds: u32,
    /// Whether the rows are loaded in bulk.
    pub bulk_load: bool,
    /// A first attempt to make the store, in which the power goes after this many events.
    pub cut_in_create: Option<u64>,
    /// The generations.
    pub generations: Vec<Generation>,
}

impl Plan {
    /// Every fault of the plan.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.generations
            .iter()
            .flat_map(|generation| generation.faults.iter().chain(&generation.recovery_faults))
    }

    /// The plan without faults of these kinds.
    pub fn without(mut self, kinds: &[FaultKind]) -> Plan {
        for generation in &mut self.generations {
            generation.faults.retain(|fault| !kinds.contains(&fault.kind));
            generation.recovery_faults.retain(|fault| !kinds.contains(&fault.kind));
        }
        self
    }

    /// The steps in all.
    pub fn steps(&self) -> usize {
        self.generations.iter().flat_map(|generation| &generation.clients).map(Vec::len).sum()
    }
}
