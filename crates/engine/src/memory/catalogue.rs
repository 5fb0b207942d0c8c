//! The catalogue: tables and indexes by name.
//!
//! The catalogue is a tree like any other. The key of an entry is the name of the table or index. The value
//! is `kind (1: 1 table, 8 index, 9 index that is still being filled), tree (4), root (8), table of the index
//! (4)`. The kinds 2 and 3 are indexes that were made before format 8; their entries are coded otherwise ([`Coding`]).
//!
//! Two kinds of entries have names of the engine's own, which begin with a byte that is not valid in UTF-8.
//! `255, "d", tree (4, big-endian)` is a dropped tree whose pages are not all free yet: kind 6, and 1 in the
//! last field once its large values are deleted. `255, "n"` is the highest number of a tree at the last drop:
//! kind 7, and the number in place of a tree. Without it the number of a dropped tree could be given again
//! while the log still has operations on the dropped tree.

use crate::format::index_entry::Coding;
use crate::format::page::node::Node;
use crate::format::page::{self, get_u32, get_u64};
use crate::format::tree::{CATALOGUE, LARGE, Tree};
use crate::memory::versions::ReaderId;
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The name of the internal table that stores the shard number of a drive. The name is reserved.
pub const SHARDS: &str = "fulgurite.shards";

/// Refuses a table name that is reserved for the engine.
pub(crate) fn refuse_own(name: &str) -> Result<(), Error> {
    if name == SHARDS {
        return Err(Error::Options(format!("`{name}` is the engine's own; accepted: another name")));
    }
    Ok(())
}

/// A table of the store that returned this handle. Another store would use its own table with the same
/// number. [`crate::blocking`] refuses a handle of another store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Table(pub(crate) Tree);

/// An index of the store that returned this handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index {
    pub(crate) tree: Tree,
    pub(crate) table: Table,
    /// The code of its entries.
    pub(crate) coding: Coding,
    /// Whether the index has entries for all records of its table.
    pub(crate) complete: bool,
}

/// A function that extracts the index keys of a record. It is given the key and the value of the record, and
/// adds no, one or several index keys to the list. If it panics, the call that needs the index keys fails with
/// [`Error::IndexPanicked`].
pub type Extract = Rc<dyn Fn(&[u8], &[u8], &mut Vec<Vec<u8>>)>;

/// Returns the index keys of a record for the index of a name.
pub(crate) fn index_keys(
    extract: &Extract,
    index: &str,
    key: &[u8],
    value: &[u8],
) -> Result<Vec<Vec<u8>>, Error> {
    let mut keys = Vec::new();
    // The function sees only the record and the list, which is dropped if it panics.
    let outcome = catch_unwind(AssertUnwindSafe(|| extract(key, value, &mut keys)));
    outcome.map(|()| keys).map_err(|_| Error::IndexPanicked { index: index.to_owned() })
}

/// The table or index that a name in the catalogue denotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Table(Table),
    Index(Index),
}

/// The number of dropped trees whose names are remembered for errors.
const REMEMBERED: usize = 1_000;

/// A dropped table or index whose pages are not all free yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub tree: Tree,
    /// The last reader that was registered before the drop. It and those before it still read the tree.
    before: ReaderId,
    /// Whether the large values of the tree are deleted.
    pub is_bare: bool,
}

/// The name and the indexes of a table.
#[derive(Default)]
pub(crate) struct TableInfo {
    pub name: String,
    /// The indexes of the table.
    pub indexes: Vec<IndexInfo>,
}

/// The name of an index, and what a writer of the table needs.
#[derive(Clone)]
pub(crate) struct IndexInfo {
    pub name: String,
    pub tree: Tree,
    pub coding: Coding,
    /// The extract function; `None` until it is given after the store was opened.
    pub extract: Option<Extract>,
}

/// The catalogue in memory.
#[derive(Default)]
pub(crate) struct Catalogue {
    names: FxHashMap<String, Named>,
    tables: FxHashMap<u32, TableInfo>,
    roots: FxHashMap<u32, PageId>,
    /// The LSN of the state from which on an index has all entries, for the indexes that were filled since the
    /// store was opened.
    filled: FxHashMap<u32, Lsn>,
    next: u32,
    /// The dropped trees whose pages are not all free yet, by number. They are not in `roots`.
    dropped: BTreeMap<u32, Dropped>,
    /// The names of the trees that were dropped last since the store was opened.
    gone: BTreeMap<u32, String>,
}

impl Catalogue {
    /// Creates a catalogue that has only its own tree and the tree of large values.
    pub(crate) fn new(catalogue: PageId, large: PageId) -> Catalogue {
        let mut roots = FxHashMap::default();
        roots.insert(CATALOGUE, catalogue);
        roots.insert(LARGE, large);
        Catalogue { roots, next: crate::format::tree::FIRST_USER_TREE, ..Catalogue::default() }
    }

    /// Returns the tree with this number, also if it is dropped and has pages.
    pub(crate) fn tree(&self, id: u32) -> Option<Tree> {
        let dropped = || self.dropped.get(&id).map(|dropped| dropped.tree);
        self.roots.get(&id).map(|root| Tree { id, root: *root }).or_else(dropped)
    }

    /// Whether a tree exists and was not dropped.
    pub(crate) fn is_live(&self, id: u32) -> bool {
        self.roots.contains_key(&id)
    }

    /// Whether a number was given to a tree at some time.
    pub(crate) fn was_given(&self, id: u32) -> bool {
        id < self.next
    }

    /// Fails if a tree was dropped. A reader of a past state that was registered before the drop still reads it.
    pub(crate) fn check_tree(&self, id: u32, reader: Option<ReaderId>) -> Result<(), Error> {
        if self.gone.is_empty() && self.dropped.is_empty() || self.is_live(id) {
            return Ok(());
        }
        match self.dropped.get(&id) {
            Some(Dropped { before, .. }) if reader.is_some_and(|reader| reader <= *before) => Ok(()),
            _ => Err(Error::NoTable(self.gone.get(&id).cloned().unwrap_or_else(|| "(dropped)".to_owned()))),
        }
    }

    /// Returns every tree that was not dropped, in the order of their numbers.
    pub(crate) fn trees(&self) -> Vec<Tree> {
        let mut trees: Vec<Tree> =
            self.roots.iter().map(|(id, root)| Tree { id: *id, root: *root }).collect();
        trees.sort_unstable();
        trees
    }

    /// Returns the dropped trees that still have pages.
    pub(crate) fn dropped(&self) -> Vec<Dropped> {
        self.dropped.values().copied().collect()
    }

    /// Returns the first dropped tree that nobody reads, except those of `failed`. `oldest` is the oldest reader.
    pub(crate) fn next_dropped(&self, failed: &[u32], oldest: Option<ReaderId>) -> Option<Dropped> {
        let is_unread = |dropped: &&Dropped| {
            oldest.is_none_or(|oldest| oldest > dropped.before) && !failed.contains(&dropped.tree.id)
        };
        self.dropped.values().find(is_unread).copied()
    }

    /// Returns the number that the next tree gets.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Returns the table or index with this name.
    pub(crate) fn get(&self, name: &str) -> Option<Named> {
        self.names.get(name).copied()
    }

    /// Notes that an index has all entries in the state at `lsn`.
    pub(crate) fn note_filled(&mut self, index: u32, lsn: Lsn) {
        self.filled.insert(index, lsn);
    }

    /// Returns the LSN of the first state in which an index has all entries; 0 if every state has them.
    pub(crate) fn filled_at(&self, index: u32) -> Lsn {
        self.filled.get(&index).copied().unwrap_or(Lsn(0))
    }

    /// Returns the name and the indexes of a table.
    pub(crate) fn table(&self, table: Table) -> Option<&TableInfo> {
        self.tables.get(&table.0.id)
    }

    /// Returns the tables with their names, in the order of the names.
    pub(crate) fn tables(&self) -> Vec<(String, Table)> {
        let tables = self.names.iter().filter_map(|(name, named)| match named {
            Named::Table(table) => Some((name.clone(), *table)),
            Named::Index(_) => None,
        });
        let mut tables: Vec<_> = tables.collect();
        tables.sort_unstable();
        tables
    }

    /// Returns the name of the table or index to which a tree belongs.
    pub(crate) fn name_of(&self, tree: u32) -> String {
        let found = self.names.iter().find(|(_, named)| match named {
            Named::Table(table) => table.0.id == tree,
            Named::Index(index) => index.tree.id == tree,
        });
        match (found, tree) {
            (Some((name, _)), _) => name.clone(),
            (None, CATALOGUE) => "(catalogue)".to_owned(),
            (None, LARGE) => "(large values)".to_owned(),
            (None, _) => format!("(tree {tree})"),
        }
    }

    /// Returns the indexes of a table with their names, in the order of the names.
    pub(crate) fn indexes(&self, table: Table) -> Vec<(String, Index)> {
        let indexes = self.names.iter().filter_map(|(name, named)| match named {
            Named::Index(index) if index.table.0.id == table.0.id => Some((name.clone(), *index)),
            _ => None,
        });
        let mut indexes: Vec<_> = indexes.collect();
        indexes.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        indexes
    }

    /// Removes all names and trees but the engine's own, before the catalogue is read again.
    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.tables.clear();
        self.dropped.clear();
        self.roots.retain(|id, _| matches!(*id, CATALOGUE | LARGE));
    }

    /// Gives a table or an index another name.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        let Some(named) = self.names.remove(from) else { return };
        self.names.insert(to.to_owned(), named);
        match named {
            Named::Table(table) => {
                if let Some(info) = self.tables.get_mut(&table.0.id) {
                    to.clone_into(&mut info.name);
                }
            }
            Named::Index(index) => {
                let indexes = self.tables.get_mut(&index.table.0.id).map(|table| &mut table.indexes);
                let known = indexes.and_then(|all| all.iter_mut().find(|known| known.tree == index.tree));
                if let Some(known) = known {
                    to.clone_into(&mut known.name);
                }
            }
        }
    }

    /// Makes the tree of a name a dropped one. The readers up to `before` still read it.
    pub(crate) fn drop_name(&mut self, name: &str, before: ReaderId) {
        let Some(named) = self.names.remove(name) else { return };
        let (tree, is_bare) = match named {
            Named::Table(table) => {
                self.tables.remove(&table.0.id);
                (table.0, false)
            }
            Named::Index(index) => {
                if let Some(table) = self.tables.get_mut(&index.table.0.id) {
                    table.indexes.retain(|known| known.tree != index.tree);
                }
                // An index has no large values.
                (index.tree, true)
            }
        };
        self.roots.remove(&tree.id);
        self.filled.remove(&tree.id);
        self.gone.insert(tree.id, name.to_owned());
        if self.gone.len() > REMEMBERED {
            self.gone.pop_first();
        }
        self.dropped.insert(tree.id, Dropped { tree, before, is_bare });
    }

    /// Notes that the large values of a dropped tree are deleted.
    pub(crate) fn note_bare(&mut self, id: u32) {
        if let Some(dropped) = self.dropped.get_mut(&id) {
            dropped.is_bare = true;
        }
    }

    /// Removes a dropped tree, whose pages are all free.
    pub(crate) fn forget_dropped(&mut self, id: u32) {
        self.dropped.remove(&id);
    }

    /// Adds an entry of the catalogue. If an index of this name is known, its extract function is kept.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), Error> {
        match own(name, value) {
            Some(Own::Dropped { tree, is_bare }) => {
                self.dropped.insert(tree.id, Dropped { tree, before: ReaderId::default(), is_bare });
                self.next = self.next.max(tree.id.saturating_add(1));
                return Ok(());
            }
            Some(Own::Highest(tree)) => {
                self.next = self.next.max(tree.saturating_add(1));
                return Ok(());
            }
            None => {}
        }
        let named =
            decode(value).ok_or_else(|| Error::corrupt(PageId(0), "an entry of the catalogue is damaged"))?;
        let name = String::from_utf8_lossy(name).into_owned();
        let tree = match named {
            Named::Table(table) => {
                self.tables.entry(table.0.id).or_default().name.clone_from(&name);
                table.0
            }
            Named::Index(index) => {
                let table = self.tables.entry(index.table.0.id).or_default();
                if !table.indexes.iter().any(|known| known.name == name) {
                    let Index { tree, coding, .. } = index;
                    table.indexes.push(IndexInfo { name: name.clone(), tree, coding, extract: None });
                }
                index.tree
            }
        };
        self.roots.insert(tree.id, tree.root);
        self.next = self.next.max(tree.id.saturating_add(1));
        // The entry of an index has only the number of its table. The root of the table is filled in from the
        // table's own entry.
        self.names.insert(name, named);
        self.complete();
        Ok(())
    }

    /// Fills in the roots of the tables to which indexes belong.
    fn complete(&mut self) {
        for named in self.names.values_mut() {
            if let Named::Index(index) = named
                && let Some(root) = self.roots.get(&index.table.0.id)
            {
                index.table.0.root = *root;
            }
        }
    }

    /// Sets the extract function of an index.
    pub(crate) fn set_extract(&mut self, index: Index, extract: Extract) {
        if let Some(table) = self.tables.get_mut(&index.table.0.id)
            && let Some(known) = table.indexes.iter_mut().find(|known| known.tree == index.tree)
        {
            known.extract = Some(extract);
        }
    }
}

/// Whether an entry that is not [`own`] belongs to the sorted runs of a store of format 5. The names of such
/// entries begin with a byte that is not valid in UTF-8.
pub(crate) fn is_about_runs(name: &[u8]) -> bool {
    name.first() == Some(&0xFF)
}

/// Returns the tree of a sorted run. The value of its entry is `kind (1: 4), tree of its records (4), root
/// (8), number (4)`. Returns `None` if the value is another one.
pub(crate) fn run(value: &[u8]) -> Option<Tree> {
    let is_run = value.len() == 17 && value[0] == 4;
    is_run.then(|| Tree { id: 1 << 31 | get_u32(value, 13), root: PageId(get_u64(value, 5)) })
}

/// Returns whether the root of a sorted run is still there. A freed page is no node, whatever tree it belonged to.
pub(crate) fn is_run_there(run: Tree, root: &[u8]) -> bool {
    Node::new(root).is_some() && page::tree(root) == run.id
}

/// An entry with a name of the engine's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// A dropped tree, and whether its large values are deleted.
    Dropped { tree: Tree, is_bare: bool },
    /// The highest number of a tree at the last drop.
    Highest(u32),
}

/// The kinds of complete indexes. The next number is an index that is still being filled.
const SINGLE: u8 = 2;
const RUNS: u8 = 8;
const DROPPED: u8 = 6;
const HIGHEST: u8 = 7;

impl Own {
    /// Encodes the name and the value of the entry.
    pub(crate) fn entry(self) -> (Vec<u8>, Vec<u8>) {
        let (name, kind, tree, last) = match self {
            Own::Dropped { tree, is_bare } => (dropped_name(tree.id), DROPPED, tree, u32::from(is_bare)),
            Own::Highest(id) => (vec![0xFF, b'n'], HIGHEST, Tree { id, root: PageId(0) }, 0),
        };
        (name, value_of(kind, tree, last))
    }
}

/// Returns the name of the entry of a dropped tree.
pub(crate) fn dropped_name(tree: u32) -> Vec<u8> {
    [&[0xFF, b'd'][..], &tree.to_be_bytes()].concat()
}

/// Decodes an entry with a name of the engine's own; `None` if it is another one.
pub(crate) fn own(name: &[u8], value: &[u8]) -> Option<Own> {
    if value.len() != 17 {
        return None;
    }
    let tree = Tree { id: get_u32(value, 1), root: PageId(get_u64(value, 5)) };
    match (name, value[0]) {
        ([0xFF, b'n'], HIGHEST) => Some(Own::Highest(tree.id)),
        ([0xFF, b'd', _, _, _, _], DROPPED) if name == dropped_name(tree.id) => {
            Some(Own::Dropped { tree, is_bare: get_u32(value, 13) == 1 })
        }
        _ => None,
    }
}

/// Encodes the value of an entry of the catalogue.
pub(crate) fn encode(named: Named) -> Vec<u8> {
    let (kind, tree, table) = match named {
        Named::Table(table) => (1, table.0, 0),
        Named::Index(index) => {
            let kind = match index.coding {
                Coding::Single => SINGLE,
                Coding::Runs => RUNS,
            };
            (kind + u8::from(!index.complete), index.tree, index.table.0.id)
        }
    };
    value_of(kind, tree, table)
}

fn value_of(kind: u8, tree: Tree, last: u32) -> Vec<u8> {
    let mut value = vec![kind];
    value.extend_from_slice(&tree.id.to_le_bytes());
    value.extend_from_slice(&tree.root.0.to_le_bytes());
    value.extend_from_slice(&last.to_le_bytes());
    value
}

/// Decodes the value of an entry of the catalogue; `None` if the value is invalid.
pub(crate) fn decode(value: &[u8]) -> Option<Named> {
    if value.len() != 17 {
        return None;
    }
    let tree = Tree { id: get_u32(value, 1), root: PageId(get_u64(value, 5)) };
    match value[0] {
        1 => Some(Named::Table(Table(tree))),
        kind @ (2 | 3 | 8 | 9) => {
            let table = Table(Tree { id: get_u32(value, 13), root: PageId(0) });
            let coding = if kind < RUNS { Coding::Single } else { Coding::Runs };
            Some(Named::Index(Index { tree, table, coding, complete: kind.is_multiple_of(2) }))
        }
        _ => None,
    }
}
