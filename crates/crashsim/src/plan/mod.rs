//! The plan of a seed: the drive, the store, and for each generation the operations of the clients and the
//! faults of the drive. A run has no other input, so a plan can be reduced piece by piece.

mod describe;
mod generate;
mod shrink;
#[cfg(test)]
mod tests;

pub(crate) use shrink::simpler;

use crate::device::{CrashConfig, Fault, FaultKind};
use crate::value::Key;
use fulgurite_base::Nanos;
use fulgurite_engine::{Durability, Planted, TornPages};

/// The number of groups in the index.
pub(crate) const GROUPS: u8 = 8;

/// How the store is created and opened.
#[derive(Clone, Debug, PartialEq)]
pub struct StorePlan {
    /// Page size in bytes.
    pub page_bytes: u32,
    /// The number of frames in memory.
    pub frames: u32,
    /// The size of the log in pages.
    pub log_pages: u32,
    /// The protection against torn pages.
    pub torn_pages: TornPages,
    /// The replacement policy, by name.
    pub replacement: String,
    /// The write-back policy, by name.
    pub write_back: String,
    /// The prefetch policy, by name.
    pub prefetch: String,
    /// The window of `group` commits: how long a commit may wait for others.
    pub group_window: Nanos,
    /// The window of `relaxed` commits: the longest time until they are durable.
    pub relaxed_window: Nanos,
    /// Whether pages are read back after they were written.
    pub verify_writes: bool,
    /// The share of memory for records, in percent. The rest is for frames.
    pub records: u8,
    /// The place to which pages are written, by name.
    pub place: String,
    /// A bug to plant.
    pub planted: Option<Planted>,
}

/// The work of a client in one step.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Reads two accounts and transfers an amount between them.
    Transfer {
        /// The account that pays.
        from: u32,
        /// The account that is paid.
        to: u32,
        /// The amount.
        amount: i64,
        /// Whether reads lock for writing.
        for_update: bool,
    },
    /// Reads each key and updates or inserts its record.
    Update {
        /// The keys in the order of access.
        keys: Vec<Key>,
        /// The length of the values in bytes.
        len: usize,
        /// Whether reads lock for writing.
        for_update: bool,
    },
    /// Writes each key without reading it.
    Put {
        /// The keys.
        keys: Vec<Key>,
        /// The length of the values in bytes.
        len: usize,
    },
    /// Scans a range of rows and deletes those that it finds.
    Delete {
        /// The first row of the range.
        first: u32,
        /// The last row of the range.
        last: u32,
    },
    /// Scans a range of rows and writes one row of it, as a client that counts and inserts.
    ScanAndPut {
        /// The first row of the range.
        first: u32,
        /// The last row of the range.
        last: u32,
        /// The row to write.
        put: u32,
        /// The length of its value in bytes.
        len: usize,
    },
    /// Scans a range.
    Scan {
        /// The smallest key.
        first: Key,
        /// The largest key, in the same table.
        last: Key,
        /// Whether to scan from the largest to the smallest key.
        backward: bool,
        /// The number of rows after which the scan stops.
        limit: usize,
        /// Whether to read from a snapshot.
        snapshot: bool,
    },
    /// Reads all accounts and checks their sum.
    Sum {
        /// Whether to read from a snapshot.
        snapshot: bool,
    },
    /// Reads several keys in one call.
    GetMany {
        /// The keys, in one table.
        keys: Vec<Key>,
        /// Whether to read from a snapshot.
        snapshot: bool,
    },
    /// Reads the rows of a group through the index.
    IndexScan {
        /// The group.
        group: u8,
        /// Whether to read from a snapshot.
        snapshot: bool,
    },
    /// Requests a checkpoint.
    Checkpoint,
}

/// One step of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The pause before the step.
    pub wait: Nanos,
    /// The work.
    pub work: Work,
    /// The durability of its commit.
    pub durability: Durability,
    /// Whether to roll back instead of committing.
    pub rolls_back: bool,
    /// The time after which the client cancels the step.
    pub patience: Option<Nanos>,
}

/// How a generation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The power is cut after this many events, or when all clients have ended.
    Cut(u64),
    /// The store is closed before the power cut.
    Close,
}

/// Memory settings for opening a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The number of frames.
    pub frames: u32,
    /// The share of memory for records, in percent. The rest is for frames.
    pub records: u8,
}

/// The events between two openings of the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// The steps of each client.
    pub clients: Vec<Vec<Step>>,
    /// The faults of the drive while the clients work.
    pub faults: Vec<Fault>,
    /// How it ends.
    pub ending: Ending,
    /// Power cuts during recovery: for each attempt to open the store, the number of events after which the
    /// power is cut.
    pub recovery_cuts: Vec<u64>,
    /// The faults of the drive during the last opening and the checks after it.
    pub recovery_faults: Vec<Fault>,
    /// New memory settings from these openings on. A full store may refuse to open with less memory. It is
    /// then opened with the largest amount that it has had.
    pub memory: Option<Memory>,
}

/// The plan of a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The seed. The drive's times and random outcomes also follow from it.
    pub seed: u64,
    /// The drive.
    pub device: CrashConfig,
    /// The store.
    pub store: StorePlan,
    /// The number of accounts.
    pub accounts: u32,
    /// The number of registers.
    pub registers: u32,
    /// The number of rows at the beginning.
    pub rows: u32,
    /// The length of their initial values in bytes.
    pub row_bytes: usize,
    /// How many times every third row is updated before the work begins. A checkpoint follows each time.
    pub rounds: u32,
    /// Whether the rows are inserted by a bulk load.
    pub bulk_load: bool,
    /// If given, the power is first cut after this many events of creating the store.
    pub cut_in_create: Option<u64>,
    /// The generations.
    pub generations: Vec<Generation>,
}

impl Plan {
    /// All faults of the plan.
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

    /// The number of steps of all clients.
    pub fn steps(&self) -> usize {
        self.generations.iter().flat_map(|generation| &generation.clients).map(Vec::len).sum()
    }
}
