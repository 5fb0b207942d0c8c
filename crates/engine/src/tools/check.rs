//! Checks a store: every page of every tree, the allocation maps, large values, and indexes.

use crate::format::index_entry::Coding;
use crate::format::large_value::LargeValue;
use crate::format::page::node::Node;
use crate::format::page::{self, map};
use crate::format::tree::{LARGE, Tree};
use crate::memory::catalogue::{Dropped, IndexInfo, Named, index_keys};
use crate::shard::Shard;
use crate::store::Store;
use crate::wait::insist;
use crate::{Error, StoreFuture};
use fulgurite_base::PageId;
use fulgurite_pool::ReadGuard;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::fmt;

/// The number of pages that are read at once.
const AHEAD: u32 = 64;

/// A problem that a check has found in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The name of the table or index, or a word for another part of the store.
    pub table: String,
    /// The damaged page; `None` if the problem is not in a single page.
    pub page: Option<PageId>,
    /// The description of the problem.
    pub what: String,
    /// The range of keys whose records are lost, from the first key inclusive to the second exclusive; `None`
    /// as the second key means no upper bound. `None` if no record is lost.
    pub lost: Option<(Vec<u8>, Option<Vec<u8>>)>,
    /// The number of records in the lost range that the log contains, so that they are not lost.
    pub waiting: u64,
}

impl Problem {
    /// Creates a problem that loses no record.
    fn without_loss(table: &str, page: Option<PageId>, what: String) -> Problem {
        Problem { table: table.to_owned(), page, what, lost: None, waiting: 0 }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.table)?;
        if let Some(page) = self.page {
            write!(f, "page {}: ", page.0)?;
        }
        write!(f, "{}", self.what)?;
        match &self.lost {
            Some((low, Some(high))) => write!(f, "; lost: the keys from {} up to {}", text(low), text(high))?,
            Some((low, None)) => write!(f, "; lost: the keys from {} to the end", text(low))?,
            None => {}
        }
        match self.waiting {
            0 => Ok(()),
            waiting => write!(f, ", except {waiting} that the log has"),
        }
    }
}

/// Describes why a page cannot be read, without the number of the page, which the problem contains already.
fn fault_of_page(error: Error) -> String {
    match error {
        Error::Corrupt { what, .. } => what,
        error => error.to_string(),
    }
}

fn text(key: &[u8]) -> String {
    format!("`{}`", key.escape_ascii())
}

/// The findings of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The number of checked pages of trees.
    pub pages: u64,
    /// The number of records in tables, without index entries.
    pub records: u64,
    /// The number of pages that are marked as used but that nothing refers to. They only waste space.
    pub unused_pages: u64,
    /// The number of pieces of large values that belong to no record. Without problems they are left by an
    /// interrupted bulk load and only waste space; otherwise they may be pieces of lost records.
    pub unused_pieces: u64,
    /// The problems; empty for an undamaged store.
    pub problems: Vec<Problem>,
}

impl CheckReport {
    /// Adds the findings about another shard.
    pub(crate) fn add(&mut self, other: CheckReport) {
        let CheckReport { pages, records, unused_pages, unused_pieces, problems } = other;
        self.pages += pages;
        self.records += records;
        self.unused_pages += unused_pages;
        self.unused_pieces += unused_pieces;
        self.problems.extend(problems);
    }
}

/// A page to be checked, with the fences and the level that its parent gives it.
struct Visit {
    page: PageId,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    level: Option<u8>,
}

/// A walk over the pages of all trees.
struct Walk<'a> {
    shard: &'a Shard,
    report: CheckReport,
    seen: FxHashSet<PageId>,
    large: Vec<(String, LargeValue)>,
    /// The numbers of the large values of dropped trees, whose pieces may be gone or not.
    dropped: FxHashSet<u64>,
}

impl<'a> Walk<'a> {
    fn new(shard: &'a Shard) -> Walk<'a> {
        let (report, seen) = (CheckReport::default(), FxHashSet::default());
        Walk { shard, report, seen, large: Vec::new(), dropped: FxHashSet::default() }
    }

    fn problem(
        &mut self,
        tree: Tree,
        page: Option<PageId>,
        what: String,
        lost: Option<(Vec<u8>, Option<Vec<u8>>)>,
    ) {
        let table = self.shard.state.catalogue().name_of(tree.id);
        self.report.problems.push(Problem { lost, ..Problem::without_loss(&table, page, what) });
    }

    /// Reports a node that is unusable as a whole. The records below it are lost, except those that are
    /// pending, because the log contains them.
    fn lost(&mut self, tree: Tree, what: String, visit: Visit) {
        let waiting = {
            let records = self.shard.state.records();
            let leaves = if visit.level == Some(0) { vec![visit.page] } else { records.leaves() };
            let is_in =
                |key: &[u8]| key >= &visit.low[..] && visit.high.as_ref().is_none_or(|high| key < high);
            let found = leaves.iter().flat_map(|leaf| records.of_leaf(*leaf));
            found.filter(|found| found.tree == tree.id && found.value.is_some() && is_in(found.key)).count()
        };
        self.problem(tree, Some(visit.page), what, Some((visit.low, visit.high)));
        if let Some(problem) = self.report.problems.last_mut() {
            problem.waiting = waiting as u64;
        }
    }

    /// Reads a page. An error may concern another page, which was to be written because the pool evicted it,
    /// so the read is repeated.
    async fn page(&self, page: PageId) -> Result<ReadGuard, Error> {
        insist(async || self.shard.read_page(page).await).await
    }

    async fn tree(&mut self, tree: Tree, is_table: bool) -> Result<(), Error> {
        let mut left = vec![Visit { page: tree.root, low: Vec::new(), high: None, level: None }];
        let most = self.shard.most_ahead(AHEAD);
        let mut fetched = 0;
        while let Some(visit) = left.pop() {
            self.shard.health.check()?;
            if visit.level == Some(0) && fetched == 0 {
                let next = left.iter().rev().take(most - 1).take_while(|visit| visit.level == Some(0));
                let pages = std::iter::once(&visit).chain(next).map(|visit| visit.page);
                let pages: Vec<PageId> =
                    pages.filter(|page| self.shard.state.space().is_data(*page)).collect();
                fetched = pages.len();
                // An error is ignored: it may concern an evicted page, and each page is read again below.
                let _ = self.shard.durable.pool().fetch(&pages).await;
            }
            fetched = fetched.saturating_sub(1);
            if let Err(what) = self.visit(tree, is_table, &visit, &mut left).await {
                // A read that failed because the store has stopped is not a finding about the page.
                self.shard.health.check()?;
                self.lost(tree, what, visit);
            }
        }
        Ok(())
    }

    /// Checks one page. The error says why the whole page is unusable.
    async fn visit(
        &mut self,
        tree: Tree,
        is_table: bool,
        visit: &Visit,
        left: &mut Vec<Visit>,
    ) -> Result<(), String> {
        if !self.shard.state.space().is_data(visit.page) {
            return Err("it lies outside the store".to_owned());
        }
        if !self.seen.insert(visit.page) {
            return Err("it has two parents".to_owned());
        }
        let guard = self.page(visit.page).await.map_err(fault_of_page)?;
        let node = Node::new(guard.bytes()).ok_or("it is no node")?;
        if page::tree(guard.bytes()) != tree.id {
            return Err(format!("it belongs to tree {}", page::tree(guard.bytes())));
        }
        node.check()?;
        if node.low() != visit.low || node.high() != visit.high.as_deref() {
            return Err("its fences are not those that its parent says".to_owned());
        }
        if visit.level.is_some_and(|level| level != node.level()) {
            return Err("it is on another level than its parent says".to_owned());
        }
        self.report.pages += 1;
        if node.level() > 0 {
            children(node, left);
            return Ok(());
        }
        if is_table {
            let lacks = self.shard.state.records().lacks(visit.page);
            self.report.records += if lacks { self.keys_of(node).len() } else { node.len() } as u64;
        }
        let name = self.shard.state.catalogue().name_of(tree.id);
        // A pending record may replace the large value in the leaf. Then the pieces of this value may already
        // be deleted, because recovery, which leaves the record pending, does not read the leaf.
        let is_replaced = |key: &[u8]| self.shard.state.records().is_pending(tree.id, key);
        for (key, value) in node.records().filter(|(key, value)| value.large && !is_replaced(key)) {
            let place = LargeValue::read(value.bytes).map_err(|error| error.to_string())?;
            self.large.push((format!("{name}, key {}", text(&key)), place));
        }
        Ok(())
    }

    /// Notes the pages and the large values of dropped trees that are not free yet. Pages are not checked: what a
    /// damaged page leads to counts as unused.
    async fn dropped(&mut self) -> Result<(), Error> {
        let dropped = self.shard.state.catalogue().dropped();
        for Dropped { tree, is_bare, .. } in dropped {
            let reads_leaves = !is_bare && self.shard.durable.has_had_large_values();
            let mut left = vec![(tree.root, u8::MAX)];
            while let Some((page, below)) = left.pop() {
                self.shard.health.check()?;
                let is_new = self.shard.state.space().is_data(page) && self.seen.insert(page);
                if !is_new || (below == 1 && !reads_leaves) {
                    continue;
                }
                let Ok(guard) = self.page(page).await else { continue };
                let node = Node::new(guard.bytes()).filter(|_| page::tree(guard.bytes()) == tree.id);
                let Some(node) = node.filter(|node| node.level() < below) else { continue };
                if node.level() > 0 {
                    left.extend((0..node.len()).map(|index| (node.child(index), node.level())));
                } else if reads_leaves {
                    let large = node.records().filter(|(_, value)| value.large);
                    let values = large.filter_map(|(_, value)| LargeValue::read(value.bytes).ok());
                    self.dropped.extend(values.map(|value| value.number));
                }
            }
        }
        Ok(())
    }

    /// Checks that each large value is complete, and counts the pieces that belong to no value.
    async fn large_values(&mut self) -> Result<(), Error> {
        let tree = self.shard.tree(LARGE)?;
        let mut known = std::mem::take(&mut self.dropped);
        for (whose, place) in std::mem::take(&mut self.large) {
            known.insert(place.number);
            // Repeats the read after an error, which may concern an evicted page.
            let found = insist(async || self.shard.read_large(place).await).await;
            let why = match found {
                Ok(Some(_)) => continue,
                Ok(None) => "a piece is missing".to_owned(),
                Err(error) => error.to_string(),
            };
            let LargeValue { number, bytes } = place;
            let what =
                format!("the value of {whose}, {bytes} bytes under number {number}, is not whole: {why}");
            self.problem(tree, None, what, None);
        }
        let shard = self.shard;
        let look = |node: Node<'_>| {
            // A mark is no piece. The pieces of its value count, because only the next writer of the store deletes
            // them.
            for (key, _) in
                node.records().filter(|(key, value)| LargeValue::marked(key, value.bytes).is_none())
            {
                match LargeValue::number_of(&key) {
                    None => self.problem(tree, None, format!("the piece {} has no number", text(&key)), None),
                    Some(number) if known.contains(&number) => {}
                    Some(_) => self.report.unused_pieces += 1,
                }
            }
            Ok(())
        };
        // An error is ignored here, because the walk has already reported the page.
        let _ = shard.each_leaf(tree, look).await;
        Ok(())
    }

    /// Compares the allocation maps with the pages that the walk has reached.
    async fn maps(&mut self) -> Result<(), Error> {
        for (map, pages) in self.shard.state.space().maps().collect::<Vec<_>>() {
            let guard = match self.page(map).await {
                Ok(guard) => guard,
                Err(error) => {
                    let what = fault_of_page(error);
                    self.report.problems.push(Problem::without_loss("(maps)", Some(map), what));
                    continue;
                }
            };
            for index in 1..pages {
                let page = PageId(map.0 + u64::from(index));
                match (map::is_used(guard.bytes(), index), self.seen.contains(&page)) {
                    (true, false) => self.report.unused_pages += 1,
                    (false, true) => {
                        let what = "it is in use and marked as free".to_owned();
                        self.report.problems.push(Problem::without_loss("(maps)", Some(page), what));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Checks that every entry of an index refers to a record. If the extraction function of the index is
    /// known, also checks that every record has its entries.
    async fn indexes(&mut self) -> Result<(), Error> {
        let shard = self.shard;
        let tables = shard.state.catalogue().tables();
        for (name, table) in tables {
            let indexes: Vec<_> = {
                let catalogue = shard.state.catalogue();
                catalogue.table(table).map_or(Vec::new(), |info| info.indexes.clone())
            };
            for IndexInfo { name: index_name, tree, coding, extract } in indexes {
                if !matches!(shard.state.catalogue().get(&index_name), Some(Named::Index(index)) if index.complete)
                {
                    continue;
                }
                let entries: Vec<Vec<u8>> = self.keys(tree).await?;
                self.lead_to_records((tree, coding), table.0, &entries).await?;
                let Some(extract) = extract else { continue };
                let entries: FxHashSet<Vec<u8>> = entries.into_iter().collect();
                let mut expected = 0;
                for key in self.keys(table.0).await? {
                    let value = shard.current(table.0, &key).await?.unwrap_or_default();
                    let keys = index_keys(&extract, &index_name, &key, &value)?;
                    for entry in keys.iter().map(|index_key| coding.entry(index_key, &key)) {
                        expected += 1;
                        if !entries.contains(&entry) {
                            let what = format!("the record {} of {name} is not in it", text(&key));
                            self.problem(tree, None, what, None);
                        }
                    }
                }
                if expected < entries.len() {
                    self.problem(
                        tree,
                        None,
                        "it has entries that no record of the table asks for".to_owned(),
                        None,
                    );
                }
            }
        }
        Ok(())
    }

    /// Checks that the entries of an index refer to records. It looks them up in the order of the leaves of
    /// the table.
    async fn lead_to_records(
        &mut self,
        (index, coding): (Tree, Coding),
        table: Tree,
        entries: &[Vec<u8>],
    ) -> Result<(), Error> {
        let mut rows = Vec::with_capacity(entries.len());
        for entry in entries {
            match coding.split(entry) {
                Some((_, key)) => rows.push((key, entry)),
                None => self.problem(index, None, format!("the entry {} is damaged", text(entry)), None),
            }
        }
        rows.sort_unstable();
        for some in rows.chunks(self.shard.most_ahead(AHEAD)) {
            let keys: Vec<&[u8]> = some.iter().map(|(key, _)| &key[..]).collect();
            self.shard.fetch_leaves(table, &keys).await?;
            for (key, entry) in some {
                if self.shard.current(table, key).await?.is_none() {
                    let what = format!("the entry {} leads to no record", text(entry));
                    self.problem(index, None, what, None);
                }
            }
        }
        Ok(())
    }

    /// Returns the keys of a leaf and of its pending records.
    fn keys_of(&self, leaf: Node<'_>) -> BTreeSet<Vec<u8>> {
        let mut keys: BTreeSet<Vec<u8>> = (0..leaf.len()).map(|index| leaf.key(index)).collect();
        for record in self.shard.state.records().of_leaf(page::number(leaf.bytes())) {
            match record.value {
                Some(_) => keys.insert(record.key.to_vec()),
                None => keys.remove(record.key),
            };
        }
        keys
    }

    /// Returns the keys of a tree. An error may concern an evicted page, so the scan is repeated.
    async fn keys(&self, tree: Tree) -> Result<Vec<Vec<u8>>, Error> {
        insist(async || {
            let mut keys = Vec::new();
            let look = |node: Node<'_>| {
                keys.extend(self.keys_of(node));
                Ok(())
            };
            self.shard.each_leaf(tree, look).await?;
            Ok(keys)
        })
        .await
    }
}

/// Adds the children of an inner node to the list of pages to be checked.
fn children(node: Node<'_>, left: &mut Vec<Visit>) {
    for index in (0..node.len()).rev() {
        let high =
            if index + 1 < node.len() { Some(node.key(index + 1)) } else { node.high().map(<[u8]>::to_vec) };
        let level = Some(node.level() - 1);
        left.push(Visit { page: node.child(index), low: node.key(index), high, level });
    }
}

/// Returns the pages of all trees. Fails if a tree cannot be read completely. The structure must not change
/// during the call.
pub(crate) async fn reachable(shard: &Shard) -> Result<FxHashSet<PageId>, Error> {
    let mut walk = Walk::new(shard);
    let trees = shard.state.catalogue().trees();
    for tree in trees {
        walk.tree(tree, false).await?;
    }
    walk.dropped().await?;
    match walk.report.problems.first() {
        Some(problem) => Err(Error::corrupt(problem.page.unwrap_or(PageId(0)), problem.what.clone())),
        None => Ok(walk.seen),
    }
}

impl Store {
    /// Checks every page of the store. Transactions go on, but structure changes of the trees wait until the
    /// check ends. It needs memory for a set of all pages, for the entries of one index at a time, twice, and
    /// for the keys of the table of this index.
    pub fn check(&self) -> StoreFuture<'_, CheckReport> {
        Box::pin(async move {
            let shard = &self.0;
            shard.check_open()?;
            // The check looks at pages, so pending records are merged into them first.
            shard.merge_all().await;
            let _turn = shard.jobs.structure_turn().await;
            let mut walk = Walk::new(shard);
            let tables: FxHashSet<u32> =
                shard.state.catalogue().tables().iter().map(|(_, table)| table.0.id).collect();
            let trees = shard.state.catalogue().trees();
            for tree in trees {
                walk.tree(tree, tables.contains(&tree.id)).await?;
            }
            walk.dropped().await?;
            walk.large_values().await?;
            walk.maps().await?;
            if let Some(what) = shard.durable.pages().backend().out_of_place().and_then(|place| place.fault())
            {
                walk.report.problems.push(Problem::without_loss("(places of pages)", None, what));
            }
            if walk.report.problems.is_empty() {
                walk.indexes().await?;
            }
            shard.health.check()?;
            Ok(walk.report)
        })
    }
}
