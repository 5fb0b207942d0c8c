//! Merges of nodes: two neighbours under one parent become one node, or three become two. A root with one child
//! takes over the contents of this child.

use crate::Error;
use crate::format::log_record::Delta;
use crate::format::page;
use crate::format::page::node::{Cell, Node, NodeMut, leaf, separator};
use crate::format::tree::Tree;
use crate::shard::Shard;
use fulgurite_base::PageId;

/// Whether a node has so few records that it should be merged: they take less than half of the page.
fn is_sparse(node: Node<'_>) -> bool {
    node.used() < node.bytes().len() / 2
}

/// Whether a leaf should look for neighbours to merge with after records were taken from it, which took `before`
/// bytes in all before. A look may read four neighbours, so a leaf looks once for each eighth of a page that it
/// loses, and when it becomes empty.
pub(crate) fn should_look(node: Node<'_>, before: usize) -> bool {
    let (used, step) = (node.used(), node.bytes().len() / 8);
    used < before && is_sparse(node) && (used / step < before / step || node.is_empty())
}

/// Whether a node has nothing to give to a neighbour but its fences, or one child. The neighbour becomes hardly
/// fuller then. If it were refused, a page without records would stay for ever.
fn is_trifle(node: Node<'_>) -> bool {
    node.len() <= usize::from(node.level() > 0)
}

/// Returns two neighbours as one node with the page number of the left one; `None` if its records would take
/// more than `most` bytes.
fn unite(left: Node<'_>, right: Node<'_>, most: usize) -> Option<Vec<u8>> {
    let records = left.records().chain(right.records());
    let united = filled(left, (left.low(), right.high()), records)?;
    let fits = leaf(&united).ok()?.used() <= most || is_trifle(left) || is_trifle(right);
    fits.then_some(united)
}

/// Returns three neighbours as two nodes with the page numbers of the outer ones, and the key that separates the
/// two; `None` if the records of either would take more than `most` bytes.
fn spread([left, middle, right]: [Node<'_>; 3], most: usize) -> Option<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let records: Vec<(Vec<u8>, Cell<'_>)> =
        left.records().chain(middle.records()).chain(right.records()).collect();
    let size = |(key, value): &(Vec<u8>, Cell<'_>)| key.len() + value.bytes.len();
    let half = records.iter().map(size).sum::<usize>() / 2;
    let mut sum = 0;
    let at = records.iter().position(|record| {
        sum += size(record);
        sum > half
    })?;
    let (last, first) = (&records.get(at.checked_sub(1)?)?.0, &records[at].0);
    let between = if left.level() == 0 { separator(last, first).to_vec() } else { first.clone() };
    let mut records = records.into_iter();
    let lower = filled(left, (left.low(), Some(&between)), records.by_ref().take(at))?;
    let upper = filled(right, (&between, right.high()), records)?;
    let fits = |bytes: &[u8]| leaf(bytes).is_ok_and(|node| node.used() <= most);
    (fits(&lower) && fits(&upper)).then_some((lower, upper, between))
}

/// Returns a node at the page of `node` with these fences and records; `None` if they do not fit.
fn filled<'a>(
    node: Node<'_>,
    fences: (&[u8], Option<&[u8]>),
    records: impl Iterator<Item = (Vec<u8>, Cell<'a>)>,
) -> Option<Vec<u8>> {
    let mut bytes = vec![0; node.bytes().len()];
    let (page, tree) = (page::number(node.bytes()), page::tree(node.bytes()));
    let mut new = NodeMut::init(&mut bytes, page, tree, node.level(), fences);
    for (key, value) in records {
        if !new.push(&key, value) {
            return None;
        }
    }
    Some(bytes)
}

/// The outcome of an attempt to merge a node with neighbours under the same parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum United {
    /// There is one node less.
    Yes,
    /// No neighbour has room.
    NoRoom,
    /// The node is the only child of its parent.
    Alone,
}

/// The bytes of a page number, which is the value of a record in an inner node.
const PAGE_NUMBER: usize = 8;

impl Shard {
    /// Merges the leaves that could not be merged before because the log had no room. Returns whether it merged
    /// any.
    pub(crate) async fn shrink_remembered(&self) -> Result<bool, Error> {
        let before = self.counters.get().merges;
        while let Some((tree, key)) = self.state.take_sparse() {
            if !self.shrink(tree, &key).await? {
                break;
            }
        }
        Ok(self.counters.get().merges > before)
    }

    /// Merges the leaf that covers `key` with neighbours while it is sparse, and likewise the nodes above. If the log
    /// has no room for that, remembers the leaf for later and returns false.
    pub(crate) async fn shrink(&self, tree: Tree, key: &[u8]) -> Result<bool, Error> {
        let _turn = self.jobs.structure_turn().await;
        // The pages of a dropped tree become free anyway.
        if !self.state.catalogue().is_live(tree.id) {
            return Ok(true);
        }
        // A merged node leaves a sixteenth of the page, so that the next record does not split it again.
        let most = self.page_bytes() as usize * 7 / 8;
        loop {
            let path = self.path(tree, key).await?;
            // Whether a node below has no neighbour, and whether it has one after a merge of its parent.
            let (mut is_alone, mut again) = (false, false);
            for at in (1..path.len()).rev() {
                if !is_sparse(leaf(self.read_page(path[at]).await?.bytes())?) {
                    break;
                }
                // Each merge asks for room: one leaf may be merged with a thousand others, one after the other.
                let Some(_room) = self.room_for_change() else {
                    self.state.remember_sparse(tree, key.to_vec());
                    return Ok(false);
                };
                match self.unite_children(path[at], path[at - 1], key, most).await? {
                    United::Yes => {
                        self.counters.count(|counts| counts.merges += 1);
                        // The merged leaf may be sparse, and its next neighbour may have waited for it.
                        again |= is_alone || at + 1 == path.len();
                        is_alone = false;
                    }
                    United::Alone => is_alone = true,
                    United::NoRoom => break,
                }
            }
            // A root that keeps one child is lowered by the next merge.
            if let Some(_room) = self.room_for_change() {
                self.lower_root(tree).await?;
            }
            // Each turn of this loop has merged two nodes, so it ends.
            if !again {
                return Ok(true);
            }
        }
    }

    /// Merges `child` with a neighbour under `parent`, or spreads it and two others over two nodes, if the records
    /// of each remaining node take at most `most` bytes.
    pub(crate) async fn unite_children(
        &self,
        child: PageId,
        parent: PageId,
        key: &[u8],
        most: usize,
    ) -> Result<United, Error> {
        // The child with two neighbours on each side, as far as there are so many, and its place among them.
        let (near, at) = {
            let guard = self.read_page(parent).await?;
            let node = leaf(guard.bytes())?;
            let index = node.child_for(key);
            let from = index.saturating_sub(2);
            let near: Vec<PageId> =
                (from..node.len().min(index + 3)).map(|index| node.child(index)).collect();
            (near, index - from)
        };
        if near.get(at) != Some(&child) {
            return Err(Error::corrupt(parent, "a child has another place than the way to it says"));
        }
        if near.len() == 1 {
            return Ok(United::Alone);
        }
        let pairs = [at, at.wrapping_sub(1)]
            .into_iter()
            .filter_map(|from| Some([*near.get(from)?, *near.get(from + 1)?]));
        for [left, right] in pairs {
            if self.unite_pair(parent, left, right, most).await? {
                return Ok(United::Yes);
            }
        }
        let triples = [at.wrapping_sub(1), at.wrapping_sub(2), at].into_iter();
        let triples = triples.filter_map(|from| near.get(from..from.checked_add(3)?)?.try_into().ok());
        for triple in triples {
            if self.spread_triple(parent, triple, most).await? {
                return Ok(United::Yes);
            }
        }
        Ok(United::NoRoom)
    }

    /// Returns the number of bytes that the records of a node take, and whether it is a trifle.
    async fn used(&self, page: PageId) -> Result<(usize, bool), Error> {
        let guard = self.read_page(page).await?;
        let node = leaf(guard.bytes())?;
        Ok((node.used(), is_trifle(node)))
    }

    /// Merges two neighbours. Returns false if they do not fit into one node.
    async fn unite_pair(
        &self,
        parent: PageId,
        left: PageId,
        right: PageId,
        most: usize,
    ) -> Result<bool, Error> {
        // Looks at the sizes first, because latching a page for a change makes it dirty.
        let ((of_left, is_left), (of_right, is_right)) = (self.used(left).await?, self.used(right).await?);
        if of_left + of_right > most && !is_left && !is_right {
            return Ok(false);
        }
        let (map, index) = self.state.space().place(right);
        let held = self.hold(&[parent, left, right, map], &[]).await?;
        let (left_node, right_node) = (leaf(held.bytes(left)?)?, leaf(held.bytes(right)?)?);
        let Some(united) = unite(left_node, right_node, most) else { return Ok(false) };
        let deltas = vec![
            Delta::image(&united),
            Delta::DropChild { page: parent, key: right_node.low().into() },
            Delta::Free { page: right },
            Delta::Map { page: map, from: index, count: 1, used: false },
        ];
        self.restructure(held, deltas, Vec::new())?;
        Ok(true)
    }

    /// Spreads the records of three neighbours over the outer two. Returns false if they do not fit.
    async fn spread_triple(
        &self,
        parent: PageId,
        [left, middle, right]: [PageId; 3],
        most: usize,
    ) -> Result<bool, Error> {
        if self.used(left).await?.0 + self.used(middle).await?.0 + self.used(right).await?.0 > 2 * most {
            return Ok(false);
        }
        let (map, index) = self.state.space().place(middle);
        let held = self.hold(&[parent, left, middle, right, map], &[]).await?;
        let nodes = [leaf(held.bytes(left)?)?, leaf(held.bytes(middle)?)?, leaf(held.bytes(right)?)?];
        let Some((lower, upper, between)) = spread(nodes, most) else { return Ok(false) };
        let above = leaf(held.bytes(parent)?)?;
        let cost = |key: &[u8]| above.cost(key.len(), PAGE_NUMBER);
        let [_, of_middle, of_right] = nodes.map(|node| node.low().to_vec());
        // The new key may be longer than those that it replaces.
        if cost(&between) > above.free() + cost(&of_middle) + cost(&of_right) {
            return Ok(false);
        }
        let deltas = vec![
            Delta::image(&lower),
            Delta::image(&upper),
            Delta::DropChild { page: parent, key: of_middle.into() },
            Delta::DropChild { page: parent, key: of_right.into() },
            Delta::AddChild { page: parent, key: between.into(), child: right },
            Delta::Free { page: middle },
            Delta::Map { page: map, from: index, count: 1, used: false },
        ];
        self.restructure(held, deltas, Vec::new())?;
        Ok(true)
    }

    /// Replaces a root that has one child by that child, repeatedly.
    pub(crate) async fn lower_root(&self, tree: Tree) -> Result<(), Error> {
        loop {
            let child = {
                let guard = self.read_page(tree.root).await?;
                let root = leaf(guard.bytes())?;
                if root.level() == 0 || root.len() > 1 {
                    return Ok(());
                }
                root.child(0)
            };
            let (map, index) = self.state.space().place(child);
            let held = self.hold(&[tree.root, child, map], &[]).await?;
            let node = leaf(held.bytes(child)?)?;
            let root = super::split::copy(node, tree.root, (b"", None));
            let deltas = vec![
                Delta::image(&root),
                Delta::Free { page: child },
                Delta::Map { page: map, from: index, count: 1, used: false },
            ];
            self.restructure(held, deltas, Vec::new())?;
        }
    }
}
