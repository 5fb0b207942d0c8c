//! Defines the plan of a seed: the parameters of the drive and of the store, and for each generation (the
//! time between two openings of the store) the operations of the clients and the faults of the drive. A run
//! has no other input, so a plan can be reduced piece by piece.

mod describe;
mod generate;
mod press;
mod shrink;
#[cfg(test)]
mod tests;

pub(crate) use shrink::simpler;

use crate::device::{CrashConfig, Fault, FaultKind};
use crate::value::Key;
use fulgurite_base::Nanos;
use fulgurite_engine::{Durability, Planted, TornPages};

/// The number of groups that the index divides the rows into.
pub(crate) const GROUPS: u8 = 8;

/// The options with which the store is created and opened.
#[derive(Clone, Debug, PartialEq)]
pub struct StorePlan {
    /// The number of shards, at least one. Each has the memory and the log below, and an equal part of the drive.
    pub shards: u32,
    /// The page size of the store in bytes.
    pub page_bytes: u32,
    /// The number of frames of the pool.
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
    /// The window of `group` commits: the virtual time that a commit may wait for others.
    pub group_window: Nanos,
    /// The window of `relaxed` commits: the longest virtual time until they are durable.
    pub relaxed_window: Nanos,
    /// Whether the store reads pages back after it has written them.
    pub verify_writes: bool,
    /// The share of memory for the record cache, in percent. The rest is for frames.
    pub records: u8,
    /// The way in which pages are written, by name: `in-place`, or an out-of-place configuration.
    pub place: String,
    /// The memory for the map of pages out of place, in bytes.
    pub map_bytes: u64,
    /// The fault that is injected into the engine; `None` if there is none.
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
        /// The amount that is transferred.
        amount: i64,
        /// Whether the reads take exclusive locks.
        for_update: bool,
    },
    /// Reads each key and updates or inserts its record.
    Update {
        /// The keys in the order of access.
        keys: Vec<Key>,
        /// The length of the values in bytes.
        len: usize,
        /// Whether the reads take exclusive locks.
        for_update: bool,
    },
    /// Writes each key without reading it.
    Put {
        /// The keys to write, in this order.
        keys: Vec<Key>,
        /// The length of the values in bytes.
        len: usize,
    },
    /// Scans a range of rows and deletes the rows that it finds.
    Delete {
        /// The first row of the range.
        first: u32,
        /// The last row of the range.
        last: u32,
    },
    /// Scans a range of rows and writes one row of the range, like a client that counts rows and then inserts
    /// one.
    ScanAndPut {
        /// The first row of the range.
        first: u32,
        /// The last row of the range.
        last: u32,
        /// The row to write.
        put: u32,
        /// The length of the value of this row in bytes.
        len: usize,
    },
    /// Scans a range of one table.
    Scan {
        /// The smallest key of the range.
        first: Key,
        /// The largest key of the range, in the same table.
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
        /// The keys to read, all in one table.
        keys: Vec<Key>,
        /// Whether to read from a snapshot.
        snapshot: bool,
    },
    /// Reads the rows of a group through the index.
    IndexScan {
        /// The group of the rows.
        group: u8,
        /// Whether to read from a snapshot.
        snapshot: bool,
    },
    /// Requests a checkpoint.
    Checkpoint,
    /// Compacts the store.
    Compact,
    /// Makes a backup, which is opened and judged at once.
    Backup,
    /// Makes a table with an index, and fills it in one transaction.
    MakeTable {
        /// The number of records.
        rows: u32,
        /// The length of their values in bytes.
        len: usize,
        /// Whether the table is dropped then.
        drops: bool,
    },
}

/// One step of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The virtual time that the client pauses before the step.
    pub wait: Nanos,
    /// The work of the step.
    pub work: Work,
    /// The durability of the commit of the step.
    pub durability: Durability,
    /// Whether the client rolls the transaction back instead of committing it.
    pub rolls_back: bool,
    /// The virtual time after which the client cancels the step; `None` if it never does.
    pub patience: Option<Nanos>,
}

/// The end of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The power is cut after this many drive events, or when all clients have ended.
    Cut(u64),
    /// The store is closed, and then the power is cut.
    Close,
}

/// Memory settings for opening a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The number of frames of the pool.
    pub frames: u32,
    /// The share of memory for the record cache, in percent. The rest is for frames.
    pub records: u8,
}

/// A generation: the events between two openings of the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// The steps of each client.
    pub clients: Vec<Vec<Step>>,
    /// The faults of the drive while the clients work.
    pub faults: Vec<Fault>,
    /// The end of the generation.
    pub ending: Ending,
    /// The power cuts during recovery: for each attempt to open the store, the number of drive events after
    /// which the power is cut.
    pub recovery_cuts: Vec<u64>,
    /// The faults of the drive during the last opening and the checks after it.
    pub recovery_faults: Vec<Fault>,
    /// New memory settings from the openings after this generation on; `None` to keep the settings. A full
    /// store may refuse to open with less memory. It is then opened with the largest amount of memory that it
    /// has had.
    pub memory: Option<Memory>,
}

/// The plan of a seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The seed. The durations and random outcomes of the drive also follow from it.
    pub seed: u64,
    /// The parameters of the drive.
    pub device: CrashConfig,
    /// The options of the store.
    pub store: StorePlan,
    /// The number of accounts.
    pub accounts: u32,
    /// The number of registers.
    pub registers: u32,
    /// The number of rows at the beginning.
    pub rows: u32,
    /// The length of the initial values of rows in bytes.
    pub row_bytes: usize,
    /// The number of times that every third row is updated before the clients begin. A checkpoint follows
    /// each time.
    pub rounds: u32,
    /// Whether the rows are inserted by a bulk load.
    pub bulk_load: bool,
    /// The number of drive events during the creation and filling of the store after which the power is cut for the
    /// first time; `None` if neither is interrupted.
    pub cut_in_create: Option<u64>,
    /// The generations in order.
    pub generations: Vec<Generation>,
}

impl Plan {
    /// Returns all faults of the plan.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.generations
            .iter()
            .flat_map(|generation| generation.faults.iter().chain(&generation.recovery_faults))
    }

    /// Removes the faults of these kinds from the plan.
    pub fn without(mut self, kinds: &[FaultKind]) -> Plan {
        for generation in &mut self.generations {
            generation.faults.retain(|fault| !kinds.contains(&fault.kind));
            generation.recovery_faults.retain(|fault| !kinds.contains(&fault.kind));
        }
        self
    }

    /// Returns the number of steps of all clients.
    pub fn steps(&self) -> usize {
        self.generations.iter().flat_map(|generation| &generation.clients).map(Vec::len).sum()
    }
}
