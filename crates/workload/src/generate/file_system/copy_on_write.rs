//! Generates the writes of a copy-on-write file system, after BTRFS. A changed block is written to a new
//! address, and so is every node above it.
//!
//! Blocks are the leaves of a tree whose nodes have `fanout` children each. A transaction writes its changed
//! blocks to free pages, then the nodes above them, each once, level by level up to the root, then the
//! superblock at its fixed address (the *wandering tree*). When the superblock is written, the old pages are
//! discarded (`trim`). Free pages are allocated in the order of their addresses, circling through the space.
//!
//! *Assumptions.* Extents have one block. There is only one tree. A node has one page; in BTRFS 16 KiB.

use super::{Changes, ChangesConfig, Tree, check_pages, with_changes};
use crate::generate::generator::{Generator, RequestSource};
use crate::generate::recipe::{Recipe, Space};
use crate::{Op, Request};
use fulgurite_base::option::{COUNT, SHARE};
use fulgurite_base::{Share, SpecError, opt};
use std::collections::VecDeque;

/// The options of `copy-on-write`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyOnWriteConfig {
    /// The share of the pages that hold blocks of files.
    pub fill: Share,
    /// The number of children of a node of the tree.
    pub fanout: u32,
    /// The changes that the transactions make.
    pub changes: ChangesConfig,
}

impl Default for CopyOnWriteConfig {
    /// Nodes have 100 children, because a node of 4 KiB has room for about a hundred entries.
    fn default() -> CopyOnWriteConfig {
        let changes = ChangesConfig::default();
        CopyOnWriteConfig { fill: Share::percent(80), fanout: 100, changes }
    }
}

with_changes!(
    CopyOnWriteConfig,
    opt!("fill", fill, SHARE, Share::percent(1) => Share::percent(95), "pages that hold files"),
    opt!("fanout", fanout, COUNT, 2 => 1 << 16, "children of a node of the tree")
);

impl Recipe for CopyOnWriteConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        let Space { name, pages, seed, .. } = space;
        check_pages(name, pages, 1_000)?;
        let blocks = self.fill.of(pages);
        let tree = Tree::new(blocks, self.fanout);
        let numbers = tree.numbers();
        // A transaction allocates new pages for all its writes before it frees the old ones.
        let needed = 1 + numbers + u64::from(self.changes.transaction) * tree.levels() as u64;
        if needed > pages {
            return Err(SpecError::new(format!(
                "pages of {name}: {pages} do not hold {blocks} blocks, their tree and a transaction, {needed} \
                 pages; accepted: more pages, or a smaller fill= or transaction="
            )));
        }
        // The superblock has page 0. The pages of the blocks and of the tree follow.
        Ok(Generator::new(CopyOnWrite {
            tree,
            place: (1..=numbers as u32).collect(),
            is_used: (0..pages).map(|page| page <= numbers).collect(),
            next: 1 + numbers as u32,
            changes: Changes::new(self.changes, blocks, seed),
            out: VecDeque::new(),
        }))
    }

    fn writes_anything(&self) -> bool {
        true
    }

    fn trims_anything(&self) -> bool {
        true
    }
}

/// The state of the file system, with the addresses of blocks and nodes in `place`, and the pages in use.
#[derive(Debug)]
struct CopyOnWrite {
    tree: Tree,
    place: Vec<u32>,
    is_used: Vec<bool>,
    next: u32,
    changes: Changes,
    out: VecDeque<Request>,
}

impl CopyOnWrite {
    fn transaction(&mut self) {
        let changed = self.tree.touched(self.changes.next());
        let left: Vec<u32> = changed.into_iter().map(|number| self.write_anew(number)).collect();
        self.out.push_back(Request::of_page(Op::Write, 0));
        for page in left {
            self.is_used[page as usize] = false;
            self.out.push_back(Request::of_page(Op::Trim, page.into()));
        }
    }

    /// Writes a block or node to the next free page. Returns the address of its old page.
    fn write_anew(&mut self, number: u32) -> u32 {
        // The loop ends, because `start` has checked that there is always a free page.
        while self.is_used[self.next as usize] {
            self.next = (self.next + 1) % self.is_used.len() as u32;
        }
        self.is_used[self.next as usize] = true;
        self.out.push_back(Request::of_page(Op::Write, self.next.into()));
        std::mem::replace(&mut self.place[number as usize], self.next)
    }
}

impl RequestSource for CopyOnWrite {
    fn request(&mut self) -> Request {
        loop {
            if let Some(request) = self.out.pop_front() {
                return request;
            }
            self.transaction();
        }
    }
}
