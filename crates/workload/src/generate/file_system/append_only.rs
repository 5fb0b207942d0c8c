//! Generates the writes of an append-only document store, after Couchbase's storage. Changes are appended to
//! a file, and a full file is compacted.
//!
//! Documents are the leaves of a tree whose nodes have `fanout` children each. A transaction appends its
//! changed documents, then the nodes above them, each once, then a header with the address of the root. The
//! replaced versions stay in the file. When the next transaction finds no room, the file is *compacted*: all
//! documents are moved to a new file, in their order, then the tree is written to the new file, and the old
//! file is discarded (`trim`). With `compaction=copy`, each document is written again. With
//! `compaction=share`, the new page of a document shares the physical page of its old one, by the command
//! SHARE of the drive (Oh et al., "SHARE Interface for Flash Storage", SIGMOD 2016). Only the tree is
//! written, because its nodes contain the addresses of the documents.
//!
//! *Assumptions.* A document has one page. Each of the two files has half of the space. No transaction runs
//! during a compaction.

use super::{Changes, ChangesConfig, Tree, check_pages, with_changes};
use crate::generate::generator::{Generator, RequestSource};
use crate::generate::recipe::{Recipe, Space};
use crate::{Op, Request};
use fulgurite_base::option::{COUNT, SHARE};
use fulgurite_base::{Choice, Form, Share, SpecError, opt};
use std::collections::VecDeque;

/// The way in which a compaction moves documents to the new file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compaction {
    /// The documents are written again.
    #[default]
    Copy,
    /// The new pages of the documents share the physical pages of the old ones.
    Share,
}

impl Choice for Compaction {
    const NAMES: &'static [(&'static str, Compaction)] =
        &[("copy", Compaction::Copy), ("share", Compaction::Share)];
}

/// The options of `append-only`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AppendOnlyConfig {
    /// The way in which a compaction moves documents to the new file.
    pub compaction: Compaction,
    /// The share of a file's pages that hold documents.
    pub fill: Share,
    /// The number of children of a node of the tree.
    pub fanout: u32,
    /// The changes that the transactions make.
    pub changes: ChangesConfig,
}

impl Default for AppendOnlyConfig {
    /// Documents fill 70 % of a file, because Couchbase compacts a file when 30 % of it is stale. Nodes have
    /// 100 children, because a node of 4 KiB has room for about a hundred entries.
    fn default() -> AppendOnlyConfig {
        let (compaction, changes) = (Compaction::Copy, ChangesConfig::default());
        AppendOnlyConfig { compaction, fill: Share::percent(70), fanout: 100, changes }
    }
}

with_changes!(
    AppendOnlyConfig,
    opt!(
        "compaction",
        compaction,
        Form::<Compaction>::choice("copy|share"),
        "copy: a document is written again to the new file, share: its page there shares the old one"
    ),
    opt!("fill", fill, SHARE, Share::percent(1) => Share::percent(95), "pages of a file that hold documents"),
    opt!("fanout", fanout, COUNT, 2 => 1 << 16, "children of a node of the tree")
);

impl Recipe for AppendOnlyConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        let Space { name, pages, seed, .. } = space;
        check_pages(name, pages, 1_000)?;
        let file_pages = pages / 2;
        let documents = self.fill.of(file_pages);
        let tree = Tree::new(documents, self.fanout);
        let header = 1;
        let needed =
            tree.numbers() + header + u64::from(self.changes.transaction) * tree.levels() as u64 + header;
        if needed > file_pages {
            return Err(SpecError::new(format!(
                "pages of {name}: a file of half of {pages} does not hold {documents} documents, their tree and \
                 a transaction, {needed} pages; accepted: more pages, or a smaller fill= or transaction="
            )));
        }
        let mut store = AppendOnly {
            compaction: self.compaction,
            file_pages: file_pages as u32,
            documents: documents as u32,
            place: vec![0; tree.numbers() as usize],
            tree,
            file: 0,
            used: 0,
            changes: Changes::new(self.changes, documents, seed),
            out: VecDeque::new(),
        };
        (0..store.place.len() as u32).for_each(|number| store.append(number));
        store.write();
        // The initial contents of the drive are not part of the workload, so their writes are dropped.
        store.out.clear();
        Ok(Generator::new(store))
    }

    fn writes_anything(&self) -> bool {
        true
    }

    fn trims_anything(&self) -> bool {
        true
    }

    fn shares_anything(&self) -> bool {
        self.compaction == Compaction::Share
    }
}

/// The state of the store, with the addresses of documents and nodes in `place`. Nodes are numbered after the
/// documents.
#[derive(Debug)]
struct AppendOnly {
    compaction: Compaction,
    file_pages: u32,
    documents: u32,
    tree: Tree,
    place: Vec<u32>,
    /// The current one of the two files, and the number of used pages in it.
    file: u32,
    used: u32,
    changes: Changes,
    out: VecDeque<Request>,
}

impl AppendOnly {
    fn transaction(&mut self) {
        let changed = self.tree.touched(self.changes.next());
        if self.used + changed.len() as u32 + 1 > self.file_pages {
            self.compact();
        }
        changed.into_iter().for_each(|number| self.append(number));
        self.write();
    }

    /// Allocates the next page of the current file and returns its address.
    fn take(&mut self) -> u32 {
        self.used += 1;
        self.file * self.file_pages + self.used - 1
    }

    /// Writes the next page of the current file and returns its address.
    fn write(&mut self) -> u32 {
        let page = self.take();
        self.out.push_back(Request::of_page(Op::Write, page.into()));
        page
    }

    fn append(&mut self, number: u32) {
        self.place[number as usize] = self.write();
    }

    fn compact(&mut self) {
        let old = self.file * self.file_pages;
        let old = old..old + self.used;
        (self.file, self.used) = (1 - self.file, 0);
        for number in 0..self.place.len() as u32 {
            if number < self.documents && self.compaction == Compaction::Share {
                let page = self.take();
                let from = std::mem::replace(&mut self.place[number as usize], page);
                self.out.push_back(Request::sharing(page.into(), from.into()));
            } else {
                self.append(number);
            }
        }
        self.write();
        self.out.extend(old.map(|page| Request::of_page(Op::Trim, page.into())));
    }
}

impl RequestSource for AppendOnly {
    fn request(&mut self) -> Request {
        loop {
            if let Some(request) = self.out.pop_front() {
                return request;
            }
            self.transaction();
        }
    }
}
