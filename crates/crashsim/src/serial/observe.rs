//! Extracts from a history which versions each committed transaction saw, and which transactions wrote each
//! key. Anomalies within a single transaction are found here.

use super::anomaly::{Anomaly, AnomalyName};
use crate::history::{Action, History, Txn};
use crate::value::{Key, Version};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A committed transaction, as an index into [`Observed::nodes`].
pub(super) type Node = u32;

/// An item: a key that a committed transaction wrote.
pub(super) struct Item {
    pub key: Key,
    /// Whether the key had a record at the beginning of the history.
    pub initially: bool,
    /// The transactions that wrote the key, each with whether it left the key deleted.
    pub writers: Vec<(Node, bool)>,
}

/// The version of an item that a read saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Seen {
    /// The version from the beginning of the history.
    Initial,
    /// The version that this transaction wrote.
    Writer(Node),
    /// No record: the initial state, or the result of a deletion.
    Absent,
}

/// The first read of a key by a transaction, before it wrote the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Read {
    pub node: Node,
    pub item: u32,
    pub seen: Seen,
    /// Whether the read was part of a scan.
    pub scan: bool,
}

/// The reads and writers of the committed transactions.
pub(super) struct Observed {
    /// The index of each committed transaction in [`History::txns`].
    pub nodes: Vec<usize>,
    pub items: Vec<Item>,
    pub reads: Vec<Read>,
}

/// The transaction that wrote a version.
struct Origin {
    txn: usize,
    key: Key,
    /// Whether the same transaction wrote the key again later.
    intermediate: bool,
    deletes: bool,
}

struct Observer<'a> {
    history: &'a History,
    origins: FxHashMap<Version, Origin>,
    /// The node of each transaction; `None` if it is not committed.
    node_of: Vec<Option<Node>>,
    item_of: BTreeMap<Key, u32>,
    observed: Observed,
    /// The reads that were recorded already, so that each is recorded once.
    known: FxHashSet<(Node, u32, Seen)>,
}

fn anomaly(name: AnomalyName, text: String) -> Anomaly {
    Anomaly { name, realtime: false, text }
}

/// Collects the reads and writers of the committed transactions.
pub(super) fn observe(history: &History, committed: &[bool]) -> Result<Observed, Anomaly> {
    let mut node_of = vec![None; history.txns.len()];
    let mut nodes = Vec::new();
    for (at, _) in committed.iter().enumerate().filter(|(_, committed)| **committed) {
        node_of[at] = Some(nodes.len() as Node);
        nodes.push(at);
    }
    let observed = Observed { nodes, items: Vec::new(), reads: Vec::new() };
    let mut observer = Observer {
        history,
        origins: FxHashMap::default(),
        node_of,
        item_of: BTreeMap::new(),
        observed,
        known: FxHashSet::default(),
    };
    observer.note_writers();
    for node in 0..observer.observed.nodes.len() {
        observer.note_reads(node as Node)?;
    }
    Ok(observer.observed)
}

impl Observer<'_> {
    fn note_writers(&mut self) {
        for (at, txn) in self.history.txns.iter().enumerate() {
            let mut last: BTreeMap<Key, Version> = BTreeMap::new();
            for action in &txn.actions {
                let Action::Write { key, version, deletes } = *action else { continue };
                if let Some(origin) = last.insert(key, version).and_then(|old| self.origins.get_mut(&old)) {
                    origin.intermediate = true;
                }
                self.origins.insert(version, Origin { txn: at, key, intermediate: false, deletes });
            }
            let Some(node) = self.node_of[at] else { continue };
            for (key, version) in last {
                let item = self.item(key);
                let deletes = self.origins[&version].deletes;
                self.observed.items[item as usize].writers.push((node, deletes));
            }
        }
    }

    fn item(&mut self, key: Key) -> u32 {
        let items = &mut self.observed.items;
        *self.item_of.entry(key).or_insert_with(|| {
            let initially = self.history.initial.contains_key(&key);
            items.push(Item { key, initially, writers: Vec::new() });
            items.len() as u32 - 1
        })
    }

    fn note_reads(&mut self, node: Node) -> Result<(), Anomaly> {
        // This copies the reference to the history, because `self` is modified below.
        let history = self.history;
        let txn = &history.txns[self.observed.nodes[node as usize]];
        let mut own: BTreeMap<Key, Option<Version>> = BTreeMap::new();
        for action in &txn.actions {
            match action {
                Action::Write { key, version, deletes } => {
                    own.insert(*key, (!deletes).then_some(*version));
                }
                Action::Read { key, seen } => self.note_read(node, txn, *key, *seen, &own, false)?,
                Action::Scan { first, last, rows } => {
                    for (key, seen) in self.scanned(*first, *last, rows, &own) {
                        self.note_read(node, txn, key, seen, &own, true)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns all known keys of the range, each with the version that the scan returned for it.
    fn scanned(
        &self,
        first: Key,
        last: Key,
        rows: &[(Key, Version)],
        own: &BTreeMap<Key, Option<Version>>,
    ) -> BTreeMap<Key, Option<Version>> {
        let initial = self.history.initial.range(first..=last).map(|(key, _)| *key);
        let written = self.item_of.range(first..=last).map(|(key, _)| *key);
        let own = own.range(first..=last).map(|(key, _)| *key);
        let mut seen: BTreeMap<Key, Option<Version>> =
            initial.chain(written).chain(own).map(|key| (key, None)).collect();
        seen.extend(rows.iter().map(|(key, version)| (*key, Some(*version))));
        seen
    }

    fn note_read(
        &mut self,
        node: Node,
        txn: &Txn,
        key: Key,
        seen: Option<Version>,
        own: &BTreeMap<Key, Option<Version>>,
        scan: bool,
    ) -> Result<(), Anomaly> {
        if let Some(own) = own.get(&key) {
            if *own == seen {
                return Ok(());
            }
            let [own, seen] = [*own, seen].map(shown);
            let text = format!("{} wrote {own} to {key} and then read {seen}", txn.id);
            return Err(anomaly(AnomalyName::Internal, text));
        }
        let seen = match seen {
            None => self.absent(txn, key)?,
            Some(version) => self.version(node, txn, key, version)?,
        };
        let Some(item) = self.item_of.get(&key).copied() else { return Ok(()) };
        if self.known.insert((node, item, seen)) {
            self.observed.reads.push(Read { node, item, seen, scan });
        }
        Ok(())
    }

    /// Returns the possible states that explain a read which found no record.
    fn absent(&self, txn: &Txn, key: Key) -> Result<Seen, Anomaly> {
        let initially = self.history.initial.contains_key(&key);
        let item = self.item_of.get(&key).map(|item| &self.observed.items[*item as usize]);
        let deleted = item.is_some_and(|item| item.writers.iter().any(|(_, deletes)| *deletes));
        match (initially, deleted) {
            (false, false) => Ok(Seen::Initial),
            (_, true) => Ok(Seen::Absent),
            (true, false) => {
                let text = format!("{} found nothing at {key}, which nobody deleted", txn.id);
                Err(anomaly(AnomalyName::Unwritten, text))
            }
        }
    }

    /// Returns the origin of the version that a read saw.
    fn version(&self, node: Node, txn: &Txn, key: Key, version: Version) -> Result<Seen, Anomaly> {
        if self.history.initial.get(&key) == Some(&version) {
            return Ok(Seen::Initial);
        }
        let origin = self.origins.get(&version).filter(|origin| origin.key == key && !origin.deletes);
        let Some(origin) = origin else {
            let text = format!("{} read {version} at {key}, which nobody wrote there", txn.id);
            return Err(anomaly(AnomalyName::Unwritten, text));
        };
        let Some(writer) = self.node_of[origin.txn] else {
            let text = format!("{} read {version} at {key}, whose writer did not commit", txn.id);
            return Err(anomaly(AnomalyName::G1a, text));
        };
        if writer == node {
            let text = format!("{} read {version} at {key} before it wrote it", txn.id);
            return Err(anomaly(AnomalyName::Internal, text));
        }
        if origin.intermediate {
            let text = format!("{} read {version} at {key}, which its writer wrote over", txn.id);
            return Err(anomaly(AnomalyName::G1b, text));
        }
        Ok(Seen::Writer(writer))
    }
}

fn shown(version: Option<Version>) -> String {
    version.map_or("nothing".to_owned(), |version| version.to_string())
}
