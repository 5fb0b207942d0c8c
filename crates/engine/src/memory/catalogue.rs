//! Tables and indexes by name.
//!
//! The catalogue is a tree like any other. The key is the name, the value `kind (1: 1 table, 2 index, 3 index
//! that is still being filled), tree (4), root (8), table of the index (4)`.

use crate::Error;
use crate::format::page::{get_u32, get_u64};
use crate::format::tree::{CATALOGUE, LARGE, Tree};
use fulgurite_base::PageId;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The internal table that stores a drive's shard number. The name is reserved.
pub const SHARDS: &str = "fulgurite.shards";

/// A table of the store that returned it. Another store would take it for its own table with the same number;
/// [`crate::blocking`] refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Table(pub(crate) Tree);

/// An index of the store that returned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index {
    pub(crate) tree: Tree,
    pub(crate) table: Table,
    /// Whether it has entries for all records.
    pub(crate) complete: bool,
}

/// Adds the index keys of a record, given its key and its value: none, one or several.
pub type Extract = Rc<dyn Fn(&[u8], &[u8], &mut Vec<Vec<u8>>)>;

/// The entry of a name in the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Table(Table),
    Index(Index),
}

/// The name and the indexes of a table.
#[derive(Default)]
pub(crate) struct TableInfo {
    pub name: String,
    /// Its indexes: name, tree, and the extract function once it was given.
    pub indexes: Vec<(String, Tree, Option<Extract>)>,
}

/// The catalogue in memory.
#[derive(Default)]
pub(crate) struct Catalogue {
    names: FxHashMap<String, Named>,
    tables: FxHashMap<u32, TableInfo>,
    roots: FxHashMap<u32, PageId>,
    next: u32,
}

impl Catalogue {
    /// A catalogue with itself and the tree of large values.
    pub(crate) fn new(catalogue: PageId, large: PageId) -> Catalogue {
        let mut roots = FxHashMap::default();
        roots.insert(CATALOGUE, catalogue);
        roots.insert(LARGE, large);
        Catalogue { roots, next: crate::format::tree::FIRST_USER_TREE, ..Catalogue::default() }
    }

    pub(crate) fn tree(&self, id: u32) -> Option<Tree> {
        self.roots.get(&id).map(|root| Tree { id, root: *root })
    }

    /// Every tree, in order.
    pub(crate) fn trees(&self) -> Vec<Tree> {
        let mut trees: Vec<Tree> =
            self.roots.iter().map(|(id, root)| Tree { id: *id, root: *root }).collect();
        trees.sort_unstable();
        trees
    }

    /// The number of the next tree.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// The table or index with this name.
    pub(crate) fn get(&self, name: &str) -> Option<Named> {
        self.names.get(name).copied()
    }

    /// The name and the indexes of a table.
    pub(crate) fn table(&self, table: Table) -> Option<&TableInfo> {
        self.tables.get(&table.0.id)
    }

    /// The tables by name, in order.
    pub(crate) fn tables(&self) -> Vec<(String, Table)> {
        let tables = self.names.iter().filter_map(|(name, named)| match named {
            Named::Table(table) => Some((name.clone(), *table)),
            Named::Index(_) => None,
        });
        let mut tables: Vec<_> = tables.collect();
        tables.sort_unstable();
        tables
    }

    /// The name of the table or index that a tree belongs to.
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

    /// Adds an entry of the catalogue. Existing entries are kept.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), Error> {
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
                if !table.indexes.iter().any(|(known, ..)| *known == name) {
                    table.indexes.push((name.clone(), index.tree, None));
                }
                index.tree
            }
        };
        self.roots.insert(tree.id, tree.root);
        self.next = self.next.max(tree.id.saturating_add(1));
        // The entry of an index has only the number of its table. The root is filled in from the table's own
        // entry.
        self.names.insert(name, named);
        self.complete();
        Ok(())
    }

    /// Fills in the roots of the tables of indexes.
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
            && let Some((.., slot)) = table.indexes.iter_mut().find(|(_, tree, _)| *tree == index.tree)
        {
            *slot = Some(extract);
        }
    }
}

/// Whether an entry is about the sorted runs of a store of format 5: their names begin with this byte, which
/// is not valid in UTF-8.
pub(crate) fn is_about_runs(name: &[u8]) -> bool {
    name.first() == Some(&0xFF)
}

/// The tree of a sorted run, from the value of such an entry: `kind (1: 4), tree of its records (4), root
/// (8), number (4)`.
pub(crate) fn run(value: &[u8]) -> Option<Tree> {
    let is_run = value.len() == 17 && value[0] == 4;
    is_run.then(|| Tree { id: 1 << 31 | get_u32(value, 13), root: PageId(get_u64(value, 5)) })
}

/// Encodes the value of an entry.
pub(crate) fn encode(named: Named) -> Vec<u8> {
    let (kind, tree, table) = match named {
        Named::Table(table) => (1, table.0, 0),
        Named::Index(index) => (if index.complete { 2 } else { 3 }, index.tree, index.table.0.id),
    };
    let mut value = vec![kind];
    value.extend_from_slice(&tree.id.to_le_bytes());
    value.extend_from_slice(&tree.root.0.to_le_bytes());
    value.extend_from_slice(&u32::to_le_bytes(table));
    value
}

/// Decodes the value of an entry; `None` if it is invalid.
pub(crate) fn decode(value: &[u8]) -> Option<Named> {
    if value.len() != 17 {
        return None;
    }
    let tree = Tree { id: get_u32(value, 1), root: PageId(get_u64(value, 5)) };
    match value[0] {
        1 => Some(Named::Table(Table(tree))),
        kind @ (2 | 3) => {
            let table = Table(Tree { id: get_u32(value, 13), root: PageId(0) });
            Some(Named::Index(Index { tree, table, complete: kind == 2 }))
        }
        _ => None,
    }
}
