//! Repair: saves the readable data of a damaged store into a new one. The damaged store is never written to.
//!
//! 1. *The layout* comes from the newer intact superblock. If both superblocks are damaged, it is found from
//!    the pages (see [`find`]).
//! 2. *The log* is read from the redo point to its end or to the first damage. Its structure changes are
//!    redone in memory, as recovery does.
//! 3. *Trees* are followed from their roots. A child must have the tree, the level and the fences that its
//!    parent gives it. A key range whose page is damaged is *lost*. Intact leaves without a parent fill a
//!    lost range if they are marked as used and their fences are within the range: the newest first, none
//!    overlapping another. So the loss of an inner node or a root loses no record.
//! 4. *Records* are put into the new store, overridden by the operations of the log. Large values are
//!    assembled from their pieces. Indexes are left out: [`Store::create_index`] fills them again.
//!
//! # Limits
//!
//! - Nothing is read behind the first damage of the log. Commits from there on are lost, except for changes
//!   in pages that were written later. So some records of a commit behind the damage may be saved and others
//!   not. A page that was merged into a neighbour behind the damage may reappear with records that were
//!   deleted later, if this neighbour is damaged too.
//! - Damaged blocks at the very end of the log look like a write that a power cut has torn. If no later
//!   block, superblock or page shows that they were durable, the log ends before them.
//! - A stale version of a page with a correct checksum, at the position of a newer one, is accepted if its
//!   fences and its level fit its parent.
//! - The records in a lost range that the log contains are saved. It is not known whether there were others.

mod log;
mod find;
mod pages;
mod plan;
mod save;

use crate::format::tree::{CATALOGUE, FIRST_USER_TREE, LARGE, Tree};
use crate::media::image::Source;
use crate::memory::catalogue::{self, Named, Own, SHARDS};
use crate::store::Store;
use crate::{Error, Options, StoreFuture};
use fulgurite_device::Handle;
use pages::Pages;
use plan::{Segment, fill, walk};
use save::{Large, Saving};
use std::collections::BTreeSet;

/// A range of keys, from the first inclusive to the second exclusive; `None` means no upper bound.
pub type KeyRange = (Vec<u8>, Option<Vec<u8>>);

/// A range of keys in which records may have been lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPart {
    /// The range of keys.
    pub keys: KeyRange,
    /// The number of records in the range that the log contained, and that are saved.
    pub saved: u64,
}

/// The outcome of a repair for one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableRepair {
    /// The name of the table in the new store.
    pub name: String,
    /// The number of saved records.
    pub records: u64,
    /// The ranges of keys in which records may have been lost.
    pub lost: Vec<LostPart>,
    /// The keys of large values with missing pieces. They are not in the new store.
    pub lost_large: Vec<Vec<u8>>,
}

/// The outcome of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// Whether both superblocks were damaged, so that sizes and positions were found from the pages.
    pub guessed: bool,
    /// The damage of the log; `None` if it was read to its end.
    pub log: Option<String>,
    /// The number of transactions in doubt: this shard of several had prepared them, and another one knows whether they
    /// are committed. Their writes are not in the new store.
    pub in_doubt: usize,
    /// The tables, by name. A table whose name was lost is saved as `(tree N)`; it may have been an index. A shard of
    /// several also has the table [`SHARDS`](crate::SHARDS), with its place among them.
    pub tables: Vec<TableRepair>,
    /// The names of the indexes. Creating an index in the new store fills it again.
    pub indexes: Vec<String>,
    /// The ranges of names in which tables may have been lost.
    pub lost_names: Vec<KeyRange>,
}

impl RepairReport {
    /// Whether nothing was lost.
    pub fn is_whole(&self) -> bool {
        let table = |table: &TableRepair| table.lost.is_empty() && table.lost_large.is_empty();
        self.log.is_none()
            && self.in_doubt == 0
            && self.lost_names.is_empty()
            && self.tables.iter().all(table)
    }
}

/// Returns the lost key ranges of a tree.
fn lost(segments: &[Segment]) -> Vec<KeyRange> {
    let lost = segments.iter().filter(|segment| segment.leaf.is_none());
    lost.map(|segment| (segment.low.clone(), segment.high.clone())).collect()
}

/// A tree whose records are to be saved.
struct Found {
    name: String,
    tree: u32,
    segments: Vec<Segment>,
}

/// The trees of a damaged store.
struct Trees {
    tables: Vec<Found>,
    large: Vec<Segment>,
    indexes: Vec<String>,
    lost_names: Vec<KeyRange>,
}

impl Trees {
    async fn find(pages: &Pages<'_>) -> Result<Trees, Error> {
        let superblock = &pages.superblock;
        let mut reached = BTreeSet::new();
        let root = Tree { id: CATALOGUE, root: superblock.catalogue_root() };
        let mut names = walk(pages, root, &mut reached).await;
        let root = Tree { id: LARGE, root: superblock.large_root() };
        let mut large = walk(pages, root, &mut reached).await;
        let lost_names = !lost(&names).is_empty();
        // Repairs the catalogue first, because its leaves without a parent name more trees.
        let strays = if lost_names { pages.strays(&reached).await } else { Vec::new() };
        reached.extend(fill(&mut names, CATALOGUE, &strays));
        let Names { named, damaged, dropped } = read_names(pages, &names).await?;
        let mut tables = Vec::new();
        // The leaves of a dropped tree are no lost table.
        let mut known = dropped;
        let mut indexes = Vec::new();
        for (name, value) in &named {
            match value {
                Named::Table(table) => {
                    known.insert(table.0.id);
                    let segments = walk(pages, table.0, &mut reached).await;
                    tables.push(Found { name: name.clone(), tree: table.0.id, segments });
                }
                Named::Index(index) => {
                    known.insert(index.tree.id);
                    // Marks the pages of the index as reached, so that they do not count as leaves without a
                    // parent.
                    walk(pages, index.tree, &mut reached).await;
                    indexes.push(name.clone());
                }
            }
        }
        let lost_names = lost(&names);
        let is_whole = lost(&large).is_empty()
            && lost_names.is_empty()
            && !damaged
            && tables.iter().all(|found| lost(&found.segments).is_empty());
        if !is_whole {
            let strays = pages.strays(&reached).await;
            fill(&mut large, LARGE, &strays);
            for found in &mut tables {
                fill(&mut found.segments, found.tree, &strays);
            }
            if !lost_names.is_empty() || damaged {
                let trees =
                    strays.iter().map(|stray| stray.tree).chain(pages.ops.keys().map(|(tree, _)| *tree));
                let unnamed: BTreeSet<u32> =
                    trees.filter(|tree| *tree >= FIRST_USER_TREE && !known.contains(tree)).collect();
                for tree in unnamed {
                    let mut segments = vec![Segment { low: Vec::new(), high: None, leaf: None }];
                    fill(&mut segments, tree, &strays);
                    tables.push(Found { name: format!("(tree {tree})"), tree, segments });
                }
            }
        }
        Ok(Trees { tables, large, indexes, lost_names })
    }
}

/// The names in the catalogue.
#[derive(Default)]
struct Names {
    /// The tables and indexes, in the order of their names.
    named: Vec<(String, Named)>,
    /// Whether an entry could not be read.
    damaged: bool,
    /// The numbers of dropped trees that have pages.
    dropped: BTreeSet<u32>,
}

/// Reads the names in the catalogue. Fails if the catalogue names a sorted run.
async fn read_names(pages: &Pages<'_>, segments: &[Segment]) -> Result<Names, Error> {
    let mut names = Names::default();
    for segment in segments {
        for (name, op) in save::records(pages, CATALOGUE, segment).await {
            if let Some(own) = catalogue::own(&name, &op.bytes) {
                if let Own::Dropped { tree, .. } = own {
                    names.dropped.insert(tree.id);
                }
                continue;
            }
            if catalogue::is_about_runs(&name) {
                if let Some(run) = catalogue::run(&op.bytes)
                    && let Some(bytes) = pages.get(run.root).await
                    && catalogue::is_run_there(run, &bytes)
                {
                    return Err(Error::SortedRuns);
                }
                continue;
            }
            match catalogue::decode(&op.bytes) {
                Some(named) => names.named.push((String::from_utf8_lossy(&name).into_owned(), named)),
                None => names.damaged = true,
            }
        }
    }
    Ok(names)
}

/// Saves the readable data of the store in `from` into a new store on `to`, whose former contents are lost.
/// The new store has the page size and the log size of the old one, and not those in `options`. It is closed
/// when this function returns; open it to use it.
///
/// A shard of several is repaired alone, and the new store takes its place beside the others. It knows nothing of
/// transactions of several shards that a crash has left undecided: their writes are not in it, and those that it had
/// decided for others are aborted there if they are still in doubt. So such a transaction may then be in a part of its
/// shards only.
///
/// It needs memory for the part of the log that recovery would read, for the pages that this part changes,
/// and for some bytes per leaf. Fails with [`Error::NotAStore`] if no store can be recognised, with
/// [`Error::Version`] if the store has another version, with [`Error::SortedRuns`] if it has sorted runs, and
/// with the errors of the new store.
pub fn repair(from: &dyn Source, to: impl Into<Handle>, options: Options) -> StoreFuture<'_, RepairReport> {
    repair_onto(from, to.into(), options)
}

fn repair_onto(from: &dyn Source, to: Handle, options: Options) -> StoreFuture<'_, RepairReport> {
    Box::pin(async move {
        let (superblock, guessed) = find::superblock(from).await?;
        let log = log::read(from, &superblock).await;
        let (damage, in_doubt) = (log.damage.clone(), log.in_doubt.len());
        let mut report = RepairReport { guessed, log: damage, in_doubt, ..RepairReport::default() };
        let log_bytes = superblock.log_pages * u64::from(superblock.page_bytes);
        let options = Options { page_bytes: superblock.page_bytes, log_bytes, ..options };
        // Before the search through all pages, since a drive that is too small for the store is refused here.
        let store = Store::create(to, options).await?;
        let pages = Pages::new(from, superblock, log).await;
        let trees = Trees::find(&pages).await?;
        let large = Large::new(&pages, trees.large);
        for Found { name, tree, segments } in trees.tables {
            let mut table = TableRepair { name, ..TableRepair::default() };
            let target = match &table.name[..] {
                SHARDS => store.create_own_table(SHARDS).await?,
                name => store.create_table(name).await?,
            };
            let mut saving = Saving::new(&store, target);
            for segment in &segments {
                let mut saved = 0;
                for (key, value) in save::records(&pages, tree, segment).await {
                    match large.value(value).await {
                        Some(value) => {
                            saving.put(key, value).await?;
                            saved += 1;
                        }
                        None => table.lost_large.push(key),
                    }
                }
                if segment.leaf.is_none() {
                    table.lost.push(LostPart { keys: (segment.low.clone(), segment.high.clone()), saved });
                }
            }
            table.records = saving.finish().await?;
            report.tables.push(table);
        }
        report.indexes = trees.indexes;
        report.lost_names = trees.lost_names;
        store.close().await?;
        Ok(report)
    })
}
